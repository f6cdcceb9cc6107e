package sim_test

import (
	"context"
	"encoding/json"
	"fmt"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/problem"
)

// holdsEvery: in one of seven seeds all charges are holds, and clients race to end one of them:
// some capture it, some let go of it, some refund it, each under keys of their own.
const holdsEvery = 7

// theHold is the variant that authorises only.
const theHold = 1

// endings are the requests that end a hold. Their numbers follow those of the variants.
var endings = []struct {
	name string
	ask  func(context.Context, *charges.Service, idemkeys.Request, string) (idemkeys.Result, error)
}{
	{"capture", func(
		ctx context.Context, s *charges.Service, q idemkeys.Request, hold string,
	) (idemkeys.Result, error) {
		return s.Capture(ctx, q, charges.CaptureParams{Charge: hold})
	}},
	{"cancel", func(
		ctx context.Context, s *charges.Service, q idemkeys.Request, hold string,
	) (idemkeys.Result, error) {
		return s.Cancel(ctx, q, charges.CancelParams{Charge: hold})
	}},
	{"refund", func(
		ctx context.Context, s *charges.Service, q idemkeys.Request, hold string,
	) (idemkeys.Result, error) {
		return s.Refund(ctx, q, charges.RefundParams{Charge: hold})
	}},
}

// endingRefusals are what those may be told who come while another ends the hold, or after.
var endingRefusals = []problem.Code{
	problem.CapturePending, problem.CancelPending, problem.RefundPending,
	problem.ChargeAlreadyCaptured, problem.ChargeReleased, problem.ChargeAlreadyRefunded,
}

// hireEnders hires clients that end the hold. More of them capture it than let go of it, since what
// is captured can be refunded after that.
func (r *run) hireEnders() {
	for k := range 2 + r.dice.IntN(4) {
		ending := len(variants) + []int{0, 0, 1, 2}[r.dice.IntN(4)]
		r.hire(fmt.Sprintf("end-%d", k+1), ending, len(variants), len(endings))
	}
}

// chargeIn returns the id of the charge that an answer has.
func chargeIn(a idemkeys.Answer) string {
	var c struct{ ID string }
	if json.Unmarshal(a.Body, &c) != nil {
		return ""
	}
	return c.ID
}

// checkHold: a hold ends once, both sides say how, and everybody was told what is true.
func (r *run) checkHold() {
	if r.hold == "" {
		return
	}
	var operation string
	var captured, released bool
	var amount, refunded, reserved int64
	r.must(r.lane.query(`SELECT operation_id, captured, release IS NOT NULL, amount_captured, amount_refunded, amount_refund_pending FROM charges WHERE id = $1`,
		func(row interface{ Scan(...any) error }) error {
			return row.Scan(&operation, &captured, &released, &amount, &refunded, &reserved)
		}, r.hold))
	made := r.ledger()[operation]
	if len(made) != 1 {
		return // that was noticed
	}
	there := made[0]
	letGo := !there.Captured && there.AmountRefunded > 0
	if captured != there.Captured || released != letGo || captured && released || reserved != 0 ||
		captured && (amount != there.AmountCaptured || refunded != there.AmountRefunded) {
		r.fail("the hold: captured %t (%d), released %t, refunded %d, reserved %d; the provider says %+v", captured, amount, released, refunded, reserved, there)
	}
	r.counts.add("holds that ended: captured %t, released %t, refunded %t", captured, released, refunded > 0)
	done := map[string]int{}
	for _, op := range r.opOrder {
		if op.variant >= len(variants) && op.answer != nil && op.answer.Code < 300 {
			done[endings[op.variant-len(variants)].name]++
		}
	}
	if done["capture"] > 1 || done["capture"] > 0 && !captured || done["cancel"] > 1 ||
		done["cancel"] > 0 && !released || done["refund"] > 1 || done["refund"] > 0 && refunded == 0 && !released ||
		released && done["cancel"]+done["refund"] > 1 {
		r.fail("of one hold were told: %v; captured %t, released %t", done, captured, released)
	}
	for code, is := range map[problem.Code]bool{
		problem.ChargeAlreadyCaptured: captured, problem.ChargeReleased: released,
		problem.ChargeAlreadyRefunded: released || refunded == amount,
	} {
		if r.told[code] && !is {
			r.fail("somebody was told %s, which is not so", code)
		}
	}
	r.checkHoldEvents(captured, released, refunded)
}

// checkHoldEvents: each change of the hold has one event.
func (r *run) checkHoldEvents(captured, released bool, refunded int64) {
	told := map[string]int{}
	r.must(r.lane.query(`SELECT type, count(*)::int FROM outbox WHERE object_id = $1 GROUP BY type`,
		func(row interface{ Scan(...any) error }) error {
			var kind string
			var n int
			err := row.Scan(&kind, &n)
			told[kind] = n
			return err
		}, r.hold))
	count := map[bool]int{true: 1}
	if told["charge.captured"] != count[captured] ||
		told["charge.canceled"]+told["charge.refunded"] != count[released || refunded > 0] {
		r.fail("the hold's events are %v; captured %t, released %t, refunded %d", told, captured, released, refunded)
	}
}
