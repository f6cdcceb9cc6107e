package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"paidonce/idemkeys"
	"paidonce/provider"
)

// resolve checks a person's word on a charge at the provider: a success must be there, as asked for, under the id that was named; a failure must
// not be contradicted by a success there. What cannot be checked is not taken.
func (c creation) resolve(ctx context.Context, op idemkeys.Operation, word idemkeys.Resolution) (idemkeys.Commit, error) {
	var r provider.ChargeRequest
	if err := json.Unmarshal(op.Params, &r); err != nil {
		return idemkeys.Commit{}, fmt.Errorf("frozen parameters cannot be read: %w", err)
	}
	if word.Succeeded {
		return c.resolveSucceeded(ctx, op, r, word)
	}
	clocks := c.cfg.Clocks.read(ctx, op)
	l := clocks.window(op, r.ProviderTime, c.cfg.RunLimit)
	l.Tags = r.Tags
	hits, err := c.provider.FindCharge(ctx, l)
	if err != nil {
		return idemkeys.Commit{}, fmt.Errorf("the provider could not be asked: %w", err)
	}
	for _, hit := range hits {
		if hit.Status != provider.Failed {
			return idemkeys.Commit{}, fmt.Errorf("the provider has the charge %s of this operation, %s", hit.ID, hit.Status)
		}
	}
	if len(hits) > 0 {
		return c.settled(op, r, hits[0]), nil
	}
	if !clocks.known {
		return idemkeys.Commit{}, errors.New("the provider did not tell its time, so it is not known where to look for the charge")
	}
	return c.neverMade(op, r), nil
}

func (c creation) resolveSucceeded(ctx context.Context, op idemkeys.Operation, r provider.ChargeRequest, word idemkeys.Resolution) (idemkeys.Commit, error) {
	id := word.ProviderID
	if id == "" {
		return idemkeys.Commit{}, errors.New("the provider's id of the charge is needed")
	}
	got, err := c.chargeFor(ctx, id, word)
	switch {
	case err != nil:
		return idemkeys.Commit{}, fmt.Errorf("the provider could not be asked: %w", err)
	case got == nil:
		return idemkeys.Commit{}, fmt.Errorf("the provider has no charge %s", id)
	case got.Status != provider.Succeeded:
		return idemkeys.Commit{}, fmt.Errorf("the provider's charge %s is %s", id, got.Status)
	}
	if err := matches(*got, r); err != nil {
		return idemkeys.Commit{}, err
	}
	return c.settled(op, r, *got), nil
}
