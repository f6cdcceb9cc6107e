// Package sim is two programs that try to break the promise: one idempotency key moves money at
// most once, and every caller of it learns the same answer.
//
// The tests of this package are the simulation: the product itself on PostgreSQL and the provider's
// simulator, in an order of events that is drawn from a seed, `make sim`. Those of package
// sim/model are the model: the rules written down a second time, in every order of events, `make
// model`. docs/simulation.md describes both.
package sim
