package loop

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/internal/backoff"
)

// record is a step that notes when it comes, and answers what it is given, in turn; then it stops
// the loop.
type record struct {
	stop    context.CancelFunc
	began   time.Time
	at      []time.Duration
	answers []answer
}

type answer struct {
	more bool
	err  error
}

func (r *record) step(context.Context) (bool, error) {
	r.at = append(r.at, time.Since(r.began))
	if len(r.answers) == 0 {
		r.stop()
		return true, nil
	}
	a := r.answers[0]
	r.answers = r.answers[1:]
	return a.more, a.err
}

func newRecord(t *testing.T, answers ...answer) (context.Context, *record) {
	ctx, stop := context.WithCancel(t.Context())
	return ctx, &record{stop: stop, began: time.Now(), answers: answers}
}

// about reports whether a pause is the wanted one but for its random part.
func about(d, want time.Duration) bool { return d >= want/2 && d <= want*3/2 }

func TestLoopPausesWhenThereIsNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, r := newRecord(t, answer{more: true}, answer{}, answer{more: true})
		Loop{Step: r.step, Every: time.Minute}.Run(ctx)
		if len(r.at) != 4 || r.at[0] != 0 || r.at[1] != 0 || !about(r.at[2], time.Minute) ||
			r.at[3] != r.at[2] {
			t.Errorf("steps at %v, not two at once, and two after about a minute", r.at)
		}
	})
}

func TestLoopIsWoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		ctx, r := newRecord(t, answer{})
		time.AfterFunc(time.Second, func() { wake <- struct{}{} })
		Loop{Step: r.step, Every: time.Hour, Wake: wake}.Run(ctx)
		if !slices.Equal(r.at, []time.Duration{0, time.Second}) {
			t.Errorf("steps at %v, not at once and when it was woken", r.at)
		}
	})
}

func TestLoopBacksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("failed")
		var pauses []time.Duration
		ctx, r := newRecord(t, answer{err: failure}, answer{err: failure}, answer{more: true},
			answer{err: failure})
		Loop{
			Step: r.step, Every: time.Hour, Retry: backoff.Policy{
				First: time.Minute, Max: time.Hour,
			},
			Failed: func(_ error, pause time.Duration) { pauses = append(pauses, pause) },
		}.Run(ctx)
		if len(pauses) != 3 || !about(pauses[0], time.Minute) || !about(pauses[1], 2*time.Minute) ||
			!about(pauses[2], time.Minute) {
			t.Fatalf("pauses of %v, not of about one, two and, after a success, one minute", pauses)
		}
		if want := []time.Duration{0, pauses[0], pauses[0] + pauses[1], pauses[0] + pauses[1],
			pauses[0] + pauses[1] + pauses[2]}; !slices.Equal(r.at, want) {
			t.Errorf("steps at %v, want %v", r.at, want)
		}
	})
}

// TestLoopEndsQuietly: what fails because the context has ended is no failure.
func TestLoopEndsQuietly(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	Loop{
		Step:   func(ctx context.Context) (bool, error) { stop(); return false, ctx.Err() },
		Failed: func(err error, _ time.Duration) { t.Errorf("told of %v", err) },
	}.Run(ctx)
}

func TestEveryPausesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, r := newRecord(t, answer{})
		Every(ctx, time.Minute, func(ctx context.Context) { _, _ = r.step(ctx) })
		if len(r.at) != 2 || !about(r.at[0], time.Minute) || !about(r.at[1]-r.at[0], time.Minute) {
			t.Errorf("steps at %v, not about a minute apart", r.at)
		}
	})
}

// TestStopWaits: a step that has begun ends, without being interrupted, before stop returns.
func TestStopWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		work := Loop{Step: func(context.Context) (bool, error) {
			time.Sleep(time.Minute)
			ended++
			return true, nil
		}}.Run
		stop := Start(t.Context(), work, func(ctx context.Context) { <-ctx.Done() })
		time.Sleep(90 * time.Second)
		stop()
		if stop(); ended != 2 {
			t.Errorf("%d steps ended before stop returned, want 2", ended)
		}
	})
}
