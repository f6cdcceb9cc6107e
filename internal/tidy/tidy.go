// Package tidy has tests about the source: who may import whom, what may not be called, how long
// things may get, what every column and package must say of itself. A rule that is only in a
// document is forgotten.
package tidy
