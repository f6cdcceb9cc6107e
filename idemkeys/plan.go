package idemkeys

import (
	"fmt"
	"time"
)

// Plan is what is to be done about an unfinished operation.
type Plan string

// The plans. Send and LookUpThenSend resume the operation; LookUpOnly asks without acting.
const (
	Wait           Plan = "wait"              // somebody works on it, or its time has not come
	Park           Plan = "park"              // a person has to decide
	Send           Plan = "send"              // nothing can have been executed: act
	LookUpThenSend Plan = "look_up_then_send" // it may have been: look, then send the same again under the same derived key
	LookUpOnly     Plan = "look_up"           // the derived key can no longer be trusted: look only
)

const (
	// serverErrorsMax: an answer that says nothing, stored by the provider, is replayed for the same key for ever, so after the second sending is pointless.
	serverErrorsMax = 2
	// An operation that was driven this often, over this long, without an outcome needs a person. Both count: an impatient client alone, or an outage of
	// an hour, should not bring work to people. At the reconciler's longest pause 200 attempts are about 16 hours, well inside the provider's window.
	attemptsMax = 200
	patience    = 6 * time.Hour
)

// planFor decides by stored facts alone, never by who asks and never by this machine's clock. known: the engine has a phase for the
// operation's kind and point.
func planFor(op Operation, known, due bool) (p Plan, why string) {
	switch {
	case !due:
		return Wait, ""
	case !known:
		return Park, fmt.Sprintf("nothing is known to do for kind %q at recovery point %q", op.Kind, op.Point)
	case op.Attempts > attemptsMax && op.Now().Sub(op.CreatedAt) > patience:
		return Park, fmt.Sprintf("no outcome after %d attempts and %v", attemptsMax, patience)
	}
	return op.Plan(), ""
}

// Plan is what a phase may do about the outside world.
func (op Operation) Plan() Plan {
	switch {
	case !op.Reached:
		return Send
	case op.WindowOpen && op.ServerErrors < serverErrorsMax && op.Misses == 0:
		return LookUpThenSend
	default:
		return LookUpOnly
	}
}
