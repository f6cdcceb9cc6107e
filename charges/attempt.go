package charges

import (
	"context"

	"paidonce/idemkeys"
)

// attempt is what every phase that calls the provider does: find out what became of an earlier attempt, prove
// that nothing did, or send. A phase says what differs.
type attempt struct {
	// look asks the provider what an earlier attempt came to. known: it came to c.
	look func(clocks reading) (c idemkeys.Commit, known bool, err error)
	// again: look even if nothing was sent, since it may have been before the database was put back.
	again bool
	// send makes the call under the derived key.
	send func() (idemkeys.Commit, error)
	// neverMade is the commit once it is proven that nothing was made.
	neverMade func() idemkeys.Commit
}

// attempt carries an attempt out as far as the operation's plan allows. Errors: an [idemkeys.Unresolved].
func (cfg Config) attempt(ctx context.Context, op idemkeys.Operation, a attempt) (idemkeys.Commit, error) {
	plan := op.Plan()
	var clocks reading
	if plan != idemkeys.Send || a.again {
		clocks = cfg.Clocks.read(ctx, op)
		if c, known, err := a.look(clocks); known || err != nil {
			return c, err
		}
	}
	if plan == idemkeys.LookUpOnly {
		return absent(op, cfg, clocks, a.neverMade)
	}
	return a.send()
}
