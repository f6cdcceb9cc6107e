package history_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"paidonce/db"
	"paidonce/history"
	"paidonce/internal/dbtest"
)

// timeless are the records of a provider that tells no time.
type timeless struct{ read []time.Time }

var beginning = time.Unix(1_000_000, 0)

func (b *timeless) FindForgotten(context.Context) (string, error)  { return "a charge", nil }
func (b *timeless) RebuildFrom(context.Context) (time.Time, error) { return beginning, nil }
func (b *timeless) Now() (time.Time, bool)                         { return time.Time{}, false }
func (b *timeless) Claimed() []string                              { return nil }
func (b *timeless) ClearClaimed()                                  {}
func (b *timeless) Rebuild(
	_ context.Context, since time.Time, _ func(context.Context, history.Counts) error,
) error {
	b.read = append(b.read, since)
	return nil
}

// What was sent before the fork may be carried out while the records are read, so they are read
// twice: from the same moment again when the provider's time is not known.
func TestBooksOfAProviderThatTellsNoTime(t *testing.T) {
	t.Parallel()
	g, records := history.New(), &timeless{}
	pool, err := db.Open(dbtest.New(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	g.Use(
		pool,
		history.Config{
			Records: records, Log: slog.New(slog.DiscardHandler), CallLimit: time.Millisecond,
		},
	)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); g.Work(ctx) }()
	for g.Held() != nil {
		if err := g.Wait(ctx); err != nil && ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	stop()
	<-done
	if want := []time.Time{beginning, beginning}; !slices.EqualFunc(
		records.read, want, time.Time.Equal,
	) {
		t.Errorf("read from %v on, want %v", records.read, want)
	}
}
