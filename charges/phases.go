package charges

import (
	"paidonce/idemkeys"
	"paidonce/provider"
)

// The kinds of operation that move money. The names are stored with each operation.
const (
	KindCreate  = "charge.create"  // makes a charge in one call
	KindIntent  = "charge.intent"  // makes a charge through a payment intent
	KindCapture = "charge.capture" // takes what was authorised
	KindRefund  = "refund.create"  // gives money back
)

// IntentCreated is where an operation stands whose intent exists at the provider, under an id that is kept.
// No money has moved; from here on, what became of it is one read by that id, which is consistent and never
// forgotten, past any key window.
const IntentCreated idemkeys.Point = "intent_created"

// Kinds is the table of all kinds: what is done at each recovery point. The HTTP handler and the reconciler
// drive the same rows, so that whatever a crash leaves is gone on with by what would have done it.
//
//	kind            recovery point   committed there                          phase
//	charge.create   started          the key's claim, the pending charge      charge: look, send, settle
//	charge.intent   started          the key's claim, the pending charge      create: look, send, keep the id
//	                intent_created   the intent's id                          confirm: look, send, settle
//	charge.capture  started          the key's claim, who captures            capture: look, send, settle
//	refund.create   started          the key's claim, the reserved amount     refund: look, send, settle
//	any             finished         the outcome, its event, the answer       none: the answer is replayed
//
// Both commits of a charge are in store.go, those of the others beside their phases. To look is to ask the
// provider what became of an earlier attempt, and is left out at the first. Whichever flow is set, all kinds are there:
// what was begun in one ends in it. A phase's error is an [idemkeys.Unresolved]. Safe for concurrent use.
func Kinds(p provider.Provider, s *Store, cfg Config) map[string]idemkeys.Kind {
	c := creation{provider: p, store: s, cfg: cfg}
	i := intending{c}
	t := capturing{provider: p, store: s, cfg: cfg}
	r := refunding{provider: p, store: s, cfg: cfg}
	kinds := map[string]idemkeys.Kind{
		KindCreate:  {Phases: idemkeys.Phases{idemkeys.Started: c.charge}, Resolve: c.resolve},
		KindIntent:  {Phases: idemkeys.Phases{idemkeys.Started: i.create, IntentCreated: i.confirm}, Resolve: i.resolve},
		KindCapture: {Phases: idemkeys.Phases{idemkeys.Started: t.capture}, Resolve: t.resolve},
		KindRefund:  {Phases: idemkeys.Phases{idemkeys.Started: r.refund}, Resolve: r.resolve},
	}
	for name, kind := range kinds {
		kinds[name] = s.guarded(kind) // an operation of another account at the provider is none of ours
	}
	return kinds
}
