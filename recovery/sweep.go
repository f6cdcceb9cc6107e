package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// sweepBatch is how many rows one transaction forgets: a few milliseconds of work, so nobody
	// waits long for its locks.
	sweepBatch = 1000
	// Between batches a sweep rests as long as the batch took, so that it takes half of one
	// connection at most.
	sweepRest = 1.0
)

// Kind is a kind of rows that are forgotten when their time is over.
type Kind struct {
	Name string // of the rows, such as keys
	// Batch deletes up to most rows, and returns how many, and whether there may be more.
	Batch func(ctx context.Context, most int) (swept int, more bool, err error)
}

// Sweep forgets rows of each kind, batch by batch, until none is left whose time is over, and
// returns how many by the kinds' names. A kind that fails does not keep the others. Any number of
// sweeps may run at once. Errors: the database's; what was swept before stays swept and is counted.
func Sweep(ctx context.Context, log *slog.Logger, kinds ...Kind) (map[string]int, error) {
	swept := map[string]int{}
	var failed error
	for _, k := range kinds {
		n, err := sweep(ctx, log, k)
		swept[k.Name] = n
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", k.Name, err))
		}
	}
	return swept, failed
}

func sweep(ctx context.Context, log *slog.Logger, k Kind) (int, error) {
	total, logged := 0, time.Now() //tidy:clock when progress was told
	for {
		began := time.Now() //tidy:clock how long a batch takes
		n, more, err := k.Batch(ctx, sweepBatch)
		total += n
		if err != nil || !more {
			return total, err
		}
		if time.Since(logged) > reportEvery { //tidy:clock as above
			logged = time.Now() //tidy:clock as above
			log.InfoContext(ctx, "sweeping", k.Name, total)
		}
		select {
		case <-ctx.Done():
			return total, ctx.Err()
		case <-time.After(time.Duration(sweepRest * float64(time.Since(began)))): //tidy:clock as above
		}
	}
}
