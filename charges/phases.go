package charges

import (
	"paidonce/idemkeys"
	"paidonce/provider"
)

// Kinds is the table of all kinds: what is done at each recovery point. The HTTP handler and the
// reconciler drive the same rows, so that whatever a crash leaves is gone on with by what would
// have done it.
//
//	kind            recovery point   committed there                          phase
//	charge.create   started          the key's claim, the pending charge      charge: look, send, settle
//	charge.intent   started          the key's claim, the pending charge      create: look, send, go on with its id
//	                intent_created   the intent's id                          confirm: look, send, settle
//	charge.capture  started          the key's claim, who captures            capture: look, send, settle
//	charge.cancel   started          the key's claim, who ends the charge     cancel: look, send, settle
//	refund.create   started          the key's claim, the reserved amount     refund: look, send, settle
//	refund.hold     started          the key's claim, who ends the charge     cancel: look, send, settle
//	payment_intent.create
//	                started          the key's claim, the intent's charge     create: look, send, settle or go on
//	                intent_created   the intent's id                          confirm: look, send, settle
//	payment_intent.confirm
//	                started          the key's claim, who confirms            confirm: look, send, settle
//	payment_intent.update
//	                started          the key's claim, who changes             update: look, send, settle
//	any             finished         the outcome, its event, the answer       none: the answer is replayed
//
//	kind            commit 1, the claim          the last commit
//	charge.create   claim, in charge.go          settlement, in charge_phases.go
//	charge.intent   claim, in charge.go          settlement, in charge_phases.go
//	charge.capture  Capture, in capture.go       captureSettlement, in capture_phases.go
//	charge.cancel   Cancel, in cancel.go         cancelSettlement, in cancel_phases.go
//	refund.create   Refund, in refund.go         refundSettlement, in refund_phases.go
//	refund.hold     reserveHold, in cancel.go    cancelSettlement, in cancel_phases.go
//	payment_intent.…    payment_intent_claim.go  intentSettlement, in payment_intent_end.go
//
// Look, send and settle are what attempt.go makes of a phase. To look is to ask the provider what
// became of an earlier attempt. The first attempt leaves it out, but for a capture that the
// database had forgotten. Whichever flow is set, all kinds are there: what was begun in one ends in
// it. A phase's error is an [idemkeys.Unresolved]. Safe for concurrent use.
//
// Nothing in this package refers to this file: it only puts together what the others have.
func Kinds(p provider.Provider, s *Store, cfg Config) map[string]idemkeys.Kind {
	d := &phaseDeps{provider: p, store: s, cfg: cfg}
	charge, intent, capture, refund := chargeKind{d}, intentKind{d}, captureKind{d}, refundKind{d}
	cancel := cancelKind{d}
	made, confirmed, changed := intentCreateKind{d}, intentConfirmKind{d}, intentUpdateKind{d}
	kinds := map[string]idemkeys.Kind{
		KindCreate: {
			Phases: idemkeys.Phases{idemkeys.Started: charge.charge}, Resolve: charge.resolve,
		},
		KindIntent: {
			Phases: idemkeys.Phases{
				idemkeys.Started: intent.create, IntentCreated: intent.confirm,
			},
			Resolve: intent.resolve,
		},
		KindCapture: {
			Phases: idemkeys.Phases{idemkeys.Started: capture.capture}, Resolve: capture.resolve,
		},
		KindCancel: {
			Phases: idemkeys.Phases{idemkeys.Started: cancel.cancel}, Resolve: cancel.resolve,
		},
		KindPaymentIntentCreate: {
			Phases: idemkeys.Phases{
				idemkeys.Started: made.create, IntentCreated: made.confirm,
			},
			Resolve: made.resolve,
		},
		KindPaymentIntentConfirm: {
			Phases: idemkeys.Phases{idemkeys.Started: confirmed.confirm}, Resolve: confirmed.resolve,
		},
		KindPaymentIntentUpdate: {
			Phases: idemkeys.Phases{idemkeys.Started: changed.update}, Resolve: changed.resolve,
		},
		KindRefund: {
			Phases: idemkeys.Phases{idemkeys.Started: refund.refund}, Resolve: refund.resolve,
		},
		KindRefundHold: {
			Phases: idemkeys.Phases{idemkeys.Started: cancel.cancel}, Resolve: cancel.resolve,
		},
	}
	for name, kind := range kinds {
		// an operation of another account at the provider is not ours
		kinds[name] = s.withAccountCheck(kind)
	}
	return kinds
}
