package model

import (
	"testing"
)

// TestModelNeedsEachGuard takes the guards out, one at a time, and two or three where one covers
// another: then the model must find a way to a broken promise. Guards that may go alone are named
// too: the model shows that something else covers them.
func TestModelNeedsEachGuard(t *testing.T) {
	for _, c := range []struct {
		name   string
		out    without
		broken bool
	}{
		// Commit 2. Any of the three is enough, as long as an operation has one outcome.
		{"settle: token", without{settleToken: true}, false},
		{"settle: status", without{settleStatus: true}, false},
		{"settle: charge still pending", without{settleCharge: true}, false},
		{"settle: token, status", without{settleToken: true, settleStatus: true}, false},
		{
			"settle: token, status, charge",
			without{settleToken: true, settleStatus: true, settleCharge: true}, true,
		},
		// A zombie's 429 must not erase what its successor did.
		{"release: token", without{releaseToken: true}, true},
		{"release: what was reached stays reached", without{reachedStays: true}, true},
		// Who read long ago knows facts of long ago. The swap covers the staleness: a lease that
		// was read as stale is stale as long as it is the same.
		{"take-over: swap", without{swap: true}, true},
		{"take-over: swap, limit of asking", without{swap: true, askLimit: true}, true},
		{"take-over: staleness", without{stale: true}, false},
		{"take-over: swap, staleness", without{swap: true, stale: true}, true},
		{"take-over of stale leases", without{takeOver: true}, true},
		// The look-up covers the window, while lists are consistent. Within the window the
		// provider's memory covers the look-up. Who was stopped between reading the key and taking
		// it over believes in a window of long ago: its patience with the database ends before.
		{"window", without{window: true}, false},
		{"look-up before sending again", without{lookFirst: true}, false},
		{"limit of asking", without{askLimit: true}, false},
		{
			"look-up before sending again, limit of asking",
			without{lookFirst: true, askLimit: true}, true,
		},
		{"window, look-up before sending again", without{window: true, lookFirst: true}, true},
		{"run limit", without{runLimit: true}, true},
		{"errors of look-ups prove nothing", without{errorsProveNothing: true}, true},
		// The span is what proves; the number of misses guards against lists that err now and then,
		// which the model has not.
		{"misses over a span", without{span: true}, true},
		{"number of misses", without{misses: true}, false},
		{"misses and span", without{misses: true, span: true}, true},
		{"sweep: finished keys only", without{sweepFinished: true}, true},
		{"forget: operation", without{forgetOperation: true}, false},
		{"forget: condition", without{forgetCondition: true}, false},
		{
			"forget: operation, condition", without{forgetOperation: true, forgetCondition: true},
			true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.out.idle = 1
			explore(state{}, c.out, true).tell(t, c.broken)
		})
	}
}
