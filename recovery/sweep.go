package recovery

import (
	"context"
	"log/slog"
	"time"
)

const (
	// sweepBatch is how many keys one transaction forgets: a few milliseconds of work, so nobody waits long for its locks.
	sweepBatch = 1000
	// Between batches a sweep rests as long as the batch took, so that it takes half of one connection at most.
	sweepRest = 1.0
)

// Sweep forgets finished keys whose time is over, batch by batch, until none is left, and tells how many. Charges, events and operation logs stay. Any
// number of sweeps may run at once. Errors: the database's; what was swept before stays swept and is counted.
func Sweep(ctx context.Context, e *Engine, log *slog.Logger) (int, error) {
	total, told := 0, time.Now() //tidy:clock when progress was told
	for {
		began := time.Now() //tidy:clock how long a batch takes
		n, err := e.Sweep(ctx, sweepBatch)
		total += n
		if err != nil || n < sweepBatch {
			return total, err
		}
		if time.Since(told) > reportEvery { //tidy:clock as above
			told = time.Now() //tidy:clock as above
			log.InfoContext(ctx, "sweeping", "swept", total)
		}
		select {
		case <-ctx.Done():
			return total, ctx.Err()
		case <-time.After(time.Duration(sweepRest * float64(time.Since(began)))): //tidy:clock as above
		}
	}
}
