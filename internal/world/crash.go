package world

import (
	"context"
	"runtime"
	"testing"
	"time"

	"paidonce/provider"
)

// Crash ends the goroutine at once, as SIGKILL ends a process: nothing after it is executed.
func Crash() { runtime.Goexit() }

// UntilCrash runs fn in a goroutine that is expected to crash, and waits until it has crashed.
func UntilCrash(t testing.TB, crashed <-chan struct{}, fn func()) {
	t.Helper()
	// Only a goroutine that hangs takes this long, even on a busy machine.
	const long = 20 * time.Second
	go fn()
	select {
	case <-crashed:
	case <-time.After(long):
		t.Fatalf("it did not crash within %v", long)
	}
}

// CrashingProvider crashes before or after the call that creates a charge, and closes Crashed.
type CrashingProvider struct {
	provider.Provider
	Before, After bool
	Crashed       chan struct{}
}

// Charge crashes.
func (p CrashingProvider) Charge(
	ctx context.Context, r *provider.ChargeRequest,
) (provider.ChargeOutcome, error) {
	if p.Before {
		close(p.Crashed)
		Crash()
	}
	o, err := p.Provider.Charge(ctx, r)
	if p.After {
		close(p.Crashed)
		Crash()
	}
	return o, err
}

// PausedProvider holds its caller between the provider's answer and the commit, as SIGSTOP does.
type PausedProvider struct {
	provider.Provider
	Answered, Resume chan struct{}
}

// Paused returns a provider that holds its caller from the moment when it closes Answered until the
// test closes Resume.
func (w *World) Paused() PausedProvider {
	return PausedProvider{
		Provider: w.Provider, Answered: make(chan struct{}), Resume: make(chan struct{}),
	}
}

// Charge holds its caller.
func (p PausedProvider) Charge(
	ctx context.Context, r *provider.ChargeRequest,
) (provider.ChargeOutcome, error) {
	o, err := p.Provider.Charge(ctx, r)
	close(p.Answered)
	<-p.Resume
	return o, err
}
