package recovery

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Work makes a pass about every interval until ctx ends. What a pass has begun ends in order.
func Work(ctx context.Context, e *Engine, interval time.Duration, log *slog.Logger) {
	for {
		// Instances that started together should not all come at the same moment.
		pause := interval/2 + rand.N(interval)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		counts, err := Pass(ctx, e, LimitDefault, log)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.WarnContext(ctx, "a reconciler's pass failed", "cause", err)
		case counts.Driven > 0:
			log.InfoContext(ctx, "reconciled", "driven", counts.Driven, "finished", counts.Finished, "waiting", counts.Waiting, "parked", counts.Parked)
		}
	}
}
