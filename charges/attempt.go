package charges

import (
	"cmp"
	"context"

	"paidonce/idemkeys"
	"paidonce/provider"
)

// phaseDeps is what the phases of all kinds work with.
type phaseDeps struct {
	provider provider.Provider
	store    *Store
	cfg      Config
}

// attempt is what every phase that calls the provider does: find out what became of an earlier
// attempt, prove that nothing did, or send. T is what the provider makes, or changes. A phase says
// what differs.
type attempt[T any] struct {
	// look asks the provider what an earlier attempt came to. It returns nil, nil if it came to
	// nothing.
	look func(clocks reading) (*T, error)
	// again means to look even if nothing was sent, since it may have been sent before the database
	// was put back.
	again bool
	// repeatable means that no key window matters: what a look-up does not show as done may be sent
	// again, however late.
	repeatable bool
	// send makes the call under the derived key. It ends in an object, a definite no, or an error.
	send func() (*T, *provider.Refusal, error)
	// settled is the commit for the object, refused that for a definite no, and neverMade that for
	// proof that there is no object. They may ask the provider again; their errors are those of
	// phases.
	settled   func(*T) (*idemkeys.Commit, error)
	refused   func(*provider.Refusal) (*idemkeys.Commit, error)
	neverMade func() *idemkeys.Commit
}

// run carries an attempt out as far as the operation's plan allows. Errors: an
// [idemkeys.Unresolved].
func (a attempt[T]) run(
	ctx context.Context, cfg *Config, op *idemkeys.Operation,
) (*idemkeys.Commit, error) {
	if a.repeatable {
		open := *op
		open.WindowOpen = true
		op = &open
	}
	plan := op.Plan()
	var clocks reading
	if plan != idemkeys.Send || a.again {
		clocks = cfg.Clocks.read(ctx, op)
		switch found, err := a.look(clocks); {
		case err != nil:
			return nil, err
		case found != nil:
			return a.commit(found, nil, "found by a look-up")
		}
	}
	if plan == idemkeys.LookUpOnly {
		return foundNothing(op, cfg, clocks, a.neverMade)
	}
	made, refusal, err := a.send()
	if err != nil {
		return nil, unresolved(err)
	}
	return a.commit(made, refusal, "sent")
}

// commit is the commit for what there is, or for a definite no.
func (a attempt[T]) commit(
	made *T, refusal *provider.Refusal, note string,
) (c *idemkeys.Commit, err error) {
	if refusal != nil {
		c, err = a.refused(refusal)
	} else {
		c, err = a.settled(made)
	}
	return withNote(c, note), err
}

// withNote adds how the outcome was learnt, unless the commit has a note already.
func withNote(c *idemkeys.Commit, note string) *idemkeys.Commit {
	if c != nil {
		c.Note = cmp.Or(c.Note, note)
	}
	return c
}

// infallible adapts a function that returns a commit and no error to an attempt's fields.
func infallible[T any](commit func(*T) *idemkeys.Commit) func(*T) (*idemkeys.Commit, error) {
	return func(v *T) (*idemkeys.Commit, error) { return commit(v), nil }
}

// search is a look-up of a charge or intent in the provider's lists.
type search struct {
	cfg     *Config
	op      *idemkeys.Operation
	request *provider.ChargeRequest
	clocks  reading
}

// lookup says where to look, and for how long.
func (s search) lookup(ctx context.Context) provider.Lookup {
	return s.cfg.lookup(ctx, s.op, s.clocks, s.request.Tags, s.request.ProviderTime)
}

// result returns what the search has found. It returns nil, nil if that is nothing, or if the
// search was cut short and the operation may be sent again. Anything doubtful is left to an
// operator.
func result[T any](s search, hits []T, err error, noun string, matches func(*T) error) (*T, error) {
	if s.cfg.cutShort(s.op, s.clocks, s.request.ProviderTime, err) {
		err = nil
	}
	if err = lookedUp(s.op, err); err != nil {
		return nil, err
	}
	if len(hits) == 0 {
		return nil, s.cfg.steady(s.op, s.clocks)
	}
	return single(hits, noun, matches)
}
