package recovery

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Work makes a pass about every interval until ctx ends, and tells done of each. What a pass has begun ends in order.
func Work(ctx context.Context, e *Engine, interval time.Duration, log *slog.Logger, done func(c Counts, took time.Duration, err error)) {
	every(ctx, interval, func() {
		began := time.Now() //tidy:clock how long it takes, for who measures
		counts, err := Pass(ctx, e, LimitDefault, log)
		done(counts, time.Since(began), err) //tidy:clock as above
		switch {
		case ctx.Err() != nil:
		case err != nil:
			log.WarnContext(ctx, "a reconciler's pass failed", "cause", err)
		case counts.Driven > 0:
			log.InfoContext(ctx, "reconciled", "driven", counts.Driven, "finished", counts.Finished, "waiting", counts.Waiting, "parked", counts.Parked)
		}
	})
}

// WorkAwait calls await about every interval until ctx ends: it asks the outside about what goes on there without us, and tells how much it asked for.
func WorkAwait(ctx context.Context, await func(ctx context.Context) (int, error), interval time.Duration, log *slog.Logger) {
	every(ctx, interval, func() {
		if _, err := await(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "asking for what is awaited failed", "cause", err)
		}
	})
}

// WorkSweep sweeps what kinds returns about every interval until ctx ends, and tells done how many rows of each kind a sweep forgot.
func WorkSweep(ctx context.Context, kinds func() []Kind, interval time.Duration, log *slog.Logger, done func(swept map[string]int, err error)) {
	every(ctx, interval, func() {
		swept, err := Sweep(ctx, log, kinds()...)
		done(swept, err)
		if ctx.Err() == nil && err != nil {
			log.WarnContext(ctx, "a sweep failed", "cause", err)
		}
		var counts []any
		for name, n := range swept {
			counts = append(counts, slog.Int(name, n))
		}
		if slices.Max(slices.Collect(maps.Values(swept))) > 0 {
			log.InfoContext(ctx, "swept", counts...)
		}
	})
}

// every calls do about every interval. Instances that started together should not all come at the same moment.
func every(ctx context.Context, interval time.Duration, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval/2 + rand.N(interval)):
			do()
		}
	}
}
