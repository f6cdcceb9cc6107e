package idemkeys_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/internal/world"
)

// waiting is a world with one operation that waits for a driver, and an instance whose drivers call
// phase.
func waiting(t *testing.T, phase idemkeys.Phase) (*world.World, *idemkeys.Engine) {
	t.Helper()
	w := world.New(t)
	engine := idemkeys.NewEngine(
		w.Pool, w.Keys, world.Quiet,
		map[string]idemkeys.Kind{"kind": {Phases: idemkeys.Phases{idemkeys.Started: phase}}},
	)
	claim := func(ctx context.Context, r idemkeys.Request, op *idemkeys.Operation) (
		idemkeys.Claimed, error,
	) {
		op.Kind, op.ResourceID, op.Params = "kind", "none", []byte{}
		_, claimed, err := idemkeys.ClaimIn(ctx, w.Pool, r, op)
		return claimed, errors.Join(err, errors.New("the process dies here"))
	}
	if _, err := engine.Do(
		t.Context(), w.Request("k"), claim,
	); !errors.Is(err, idemkeys.ErrUnavailable) {
		t.Fatal(err)
	}
	w.Age(w.Keys.StaleAfter)
	return w, engine
}

func leaseOne(t *testing.T, e *idemkeys.Engine) *idemkeys.Operation {
	t.Helper()
	start, err := e.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ops, err := e.LeaseDue(t.Context(), start, 10)
	if err != nil || len(ops) != 1 {
		t.Fatalf("%d operations, %v", len(ops), err)
	}
	return ops[0]
}

// Drain waits for operations that others than callers drive.
func TestDrainWaitsForADriver(t *testing.T) {
	t.Parallel()
	calling, called := make(chan struct{}), make(chan struct{})
	_, engine := waiting(t, func(context.Context, *idemkeys.Operation) (*idemkeys.Commit, error) {
		close(calling)
		<-called
		return nil, errors.New("no outcome")
	})
	op := leaseOne(t, engine)
	driven, drained := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = engine.Drive(context.Background(), op)
		close(driven)
	}()
	<-calling
	go func() {
		engine.Drain()
		close(drained)
	}()
	select {
	case <-drained:
		t.Error("drained while an operation was driven")
	case <-time.After(50 * time.Millisecond):
	}
	close(called)
	<-driven
	<-drained
}

// A driver that comes when the process is ending begins nothing, and leaves the operation to
// others.
func TestNothingIsDrivenAfterDrain(t *testing.T) {
	t.Parallel()
	w, engine := waiting(t, func(context.Context, *idemkeys.Operation) (*idemkeys.Commit, error) {
		t.Error("driven after the drain")
		return nil, errors.New("no outcome")
	})
	op := leaseOne(t, engine)
	engine.Drain()
	var unknown *idemkeys.Unknown
	if _, err := engine.Drive(t.Context(), op); !errors.As(err, &unknown) {
		t.Errorf("driven after the drain: %v", err)
	}
	if n := w.Count(
		`SELECT count(*) FROM idempotency_keys WHERE lease_token IS NULL AND finished_at IS NULL`,
	); n != 1 {
		t.Error("its lease was not given back")
	}
	if _, err := engine.Resolve(
		t.Context(), op.ID, idemkeys.Resolution{},
	); !errors.Is(err, idemkeys.ErrUnavailable) {
		t.Errorf("resolved after the drain: %v", err)
	}
}
