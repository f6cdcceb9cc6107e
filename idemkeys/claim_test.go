package idemkeys_test

import (
	"context"
	"errors"
	"testing"

	"paidonce/idemkeys"
	"paidonce/internal/world"
)

// losing is a claim that always loses, and counts how often.
func losing(n *int) idemkeys.Claim {
	return func(_ context.Context, _ idemkeys.Request, _ *idemkeys.Operation) (
		idemkeys.Claimed, error,
	) {
		*n++
		return idemkeys.Lost, nil
	}
}

// A key that is taken at each claim and gone at each read, as by a sweep, is no reason to turn the
// caller's API key away: the same request may be tried again.
func TestAKeyThatComesAndGoes(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	claims := 0
	_, err := w.Start().Engine.Do(t.Context(), w.Request("k"), losing(&claims))
	if claims != 5 || errors.Is(err, idemkeys.ErrForbidden) ||
		!errors.Is(err, idemkeys.ErrContended) || !errors.Is(err, idemkeys.ErrUnavailable) {
		t.Errorf("after %d claims: %v", claims, err)
	}
}

// A revoked API key is the reason why a claim lost, whether its statement says so or not; another
// claim would lose as well.
func TestAClaimThatIsForbidden(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	w.Exec(`UPDATE api_keys SET revoked_at = clock_timestamp()`)
	i := w.Start()
	claims := 0
	if _, err := i.Engine.Do(
		t.Context(), w.Request("k"), losing(&claims),
	); !errors.Is(err, idemkeys.ErrForbidden) || claims != 1 {
		t.Errorf("after %d claims: %v", claims, err)
	}
	claims = 0
	said := func(_ context.Context, _ idemkeys.Request, _ *idemkeys.Operation) (
		idemkeys.Claimed, error,
	) {
		claims++
		return idemkeys.Forbidden, nil
	}
	if _, err := i.Engine.Do(
		t.Context(), w.Request("k"), said,
	); !errors.Is(err, idemkeys.ErrForbidden) || claims != 1 {
		t.Errorf("after %d claims that say so: %v", claims, err)
	}
	_, err := i.Engine.Local(t.Context(), w.Request("k"), "kind", "resource", func(
		context.Context, idemkeys.Tx,
	) (idemkeys.Answer, error) {
		t.Error("a revoked API key has its work done")
		return idemkeys.Answer{}, nil
	})
	if !errors.Is(err, idemkeys.ErrForbidden) {
		t.Errorf("work of our database alone: %v", err)
	}
}
