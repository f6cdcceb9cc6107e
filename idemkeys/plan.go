package idemkeys

import (
	"fmt"
	"strings"
	"time"
)

// Plan is what is to be done about an unfinished operation.
type Plan string

// The plans. Send and LookUpThenSend resume the operation; LookUpOnly asks without acting.
const (
	Wait Plan = "wait" // somebody works on it, or it is not due
	Park Plan = "park" // an operator has to decide
	Send Plan = "send" // nothing can have been executed: act
	// it may have been executed: look it up, then send the same again under the same derived key
	LookUpThenSend Plan = "look_up_then_send"
	LookUpOnly     Plan = "look_up" // the derived key can no longer be trusted: look only
)

const (
	// serverErrorsMax bounds sends whose stored answer says nothing. The provider replays such an
	// answer forever, so after the second one sending is pointless.
	serverErrorsMax = 2
	// An operation that was driven attemptsMax times, over parkAge, without an outcome needs an
	// operator. Both count: an impatient client alone, or an outage of an hour, should not make
	// work for operators. At the reconciler's longest pause 200 attempts are about 16 hours, well
	// inside the provider's window.
	attemptsMax = 200
	parkAge     = 6 * time.Hour
)

// planFor decides by stored facts alone, never by who asks and never by this machine's clock. known
// reports whether the engine has a phase for the operation's kind and point.
func planFor(op *Operation, known, due bool) (p Plan, why string) {
	switch {
	case !due:
		return Wait, ""
	case !known:
		return Park, fmt.Sprintf(
			"nothing is known to do for kind %q at recovery point %q", op.Kind, op.Point,
		)
	case op.Attempts > attemptsMax && op.Now().Sub(op.CreatedAt) > parkAge:
		return Park, fmt.Sprintf("no outcome after %d attempts and %v", attemptsMax, parkAge)
	}
	return op.Plan(), ""
}

// Plan is what a phase may do about the outside world.
func (op *Operation) Plan() Plan {
	switch {
	case strings.HasPrefix(op.Key, OvertakenPrefix):
		// at every point: a later operation of the same key may have moved the money
		return LookUpOnly
	case !op.Reached:
		return Send
	case op.WindowOpen && op.ServerErrors < serverErrorsMax && op.Misses == 0:
		return LookUpThenSend
	default:
		return LookUpOnly
	}
}
