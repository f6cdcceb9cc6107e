// Package loop runs work again and again in the background. Every worker of the product is built
// from its loops: they pause between steps, start early when they are woken, back off after
// failures, and end with their context, but never in the middle of a step.
package loop

import (
	"context"
	"sync"
	"time"

	"paidonce/internal/backoff"
)

// Loop runs a step repeatedly until its context ends.
type Loop struct {
	// Step does one step and reports whether there is more to do at once.
	Step func(ctx context.Context) (more bool, err error)
	// Every is the pause after a step that left nothing to do: from half of it to one and a half.
	Every time.Duration
	// Wake ends a pause. It may be nil.
	Wake <-chan struct{}
	// Retry sets the pauses after steps that fail in a row. The zero policy means Every.
	Retry backoff.Policy
	// Failed is called for each step that failed, with the pause that follows, unless ctx has
	// ended. It may be nil.
	Failed func(err error, pause time.Duration)
}

// Run runs the first step at once. It returns when ctx has ended and the current step has, too.
func (l Loop) Run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		more, err := l.Step(ctx)
		pause := backoff.About(l.Every)
		if err == nil {
			failures = 0
			if more {
				continue
			}
		} else {
			failures++
			if l.Retry != (backoff.Policy{}) {
				pause = l.Retry.After(failures)
			}
			if l.Failed != nil && ctx.Err() == nil {
				l.Failed(err, pause)
			}
		}
		select {
		case <-ctx.Done():
		case <-l.Wake:
		case <-time.After(pause):
		}
	}
}

// Every runs step about every d until ctx ends. The first comes after a pause, so that instances
// which started together do not all begin at the same moment.
func Every(ctx context.Context, d time.Duration, step func(ctx context.Context)) {
	for backoff.Sleep(ctx, backoff.About(d)) {
		step(ctx)
	}
}

// All runs works at the same time and returns when each has returned.
func All(ctx context.Context, works ...func(ctx context.Context)) {
	var running sync.WaitGroup
	for _, work := range works {
		running.Go(func() { work(ctx) })
	}
	running.Wait()
}

// Start runs works in the background until ctx ends or stop is called, which returns when each of
// them has returned. stop may be called more than once, and concurrently.
func Start(ctx context.Context, works ...func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { All(ctx, works...) })
	return func() {
		cancel()
		running.Wait()
	}
}
