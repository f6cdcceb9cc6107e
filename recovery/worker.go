package recovery

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"paidonce/internal/loop"
)

// Work makes a pass about every interval until ctx ends, and passes what it did to done. What a
// pass has begun ends in order. What is awaited is asked for as often, beside the passes: an
// outside that is slow to say something of it keeps no operation waiting.
func (r Reconciler) Work(
	ctx context.Context, interval time.Duration, done func(c Counts, took time.Duration, err error),
) {
	passes := func(ctx context.Context) {
		began := time.Now() //tidy:clock how long it takes, for a metric
		counts, err := r.driveDue(ctx, LimitDefault)
		done(counts, time.Since(began), err) //tidy:clock as above
		switch {
		case ctx.Err() != nil:
		case err != nil:
			r.Log.WarnContext(ctx, "a reconciler's pass failed", "cause", err)
		case counts.Driven > 0:
			r.Log.InfoContext(ctx, "reconciled", counts.attributes()...)
		}
	}
	awaits := func(ctx context.Context) {
		if r.Await == nil {
			return
		}
		if err := r.Await(ctx); err != nil && ctx.Err() == nil {
			r.Log.WarnContext(ctx, "asking for what is awaited failed", "cause", err)
		}
	}
	loop.All(ctx,
		func(ctx context.Context) { loop.Every(ctx, interval, passes) },
		func(ctx context.Context) { loop.Every(ctx, interval, awaits) })
}

// WorkSweep sweeps what kinds returns about every interval until ctx ends, and passes how many rows
// of each kind a sweep forgot to done.
func WorkSweep(
	ctx context.Context, kinds func() []Kind, interval time.Duration, log *slog.Logger,
	done func(swept map[string]int, err error),
) {
	loop.Every(ctx, interval, func(ctx context.Context) {
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
