package history_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/db"
	"paidonce/history"
	"paidonce/internal/dbtest"
)

// fakeRecords are the provider's, as a test wants them. What a real provider's are is tried from
// outside.
type fakeRecords struct {
	forgot   atomic.Pointer[string]
	away     atomic.Bool
	claimed  atomic.Pointer[[]string]
	rebuilds atomic.Int32
	since    atomic.Int64 // of the first rebuild
}

func (b *fakeRecords) FindForgotten(context.Context) (string, error) {
	if b.away.Load() {
		return "", errors.New("the provider is away")
	}
	if what := b.forgot.Load(); what != nil {
		return *what, nil
	}
	return "", nil
}

func (b *fakeRecords) RebuildFrom(context.Context) (time.Time, error) {
	return time.Unix(1700000000, 0), nil
}

func (b *fakeRecords) Rebuild(
	ctx context.Context, since time.Time, told func(context.Context, history.Counts) error,
) error {
	if b.away.Load() {
		return errors.New("the provider is away")
	}
	b.since.CompareAndSwap(0, since.Unix())
	b.rebuilds.Add(1)
	b.forgot.Store(nil)
	return told(ctx, history.Counts{Charges: 1})
}

func (b *fakeRecords) Now() (time.Time, bool) { return time.Now(), true }

func (b *fakeRecords) Claimed() []string {
	if ids := b.claimed.Load(); ids != nil {
		return *ids
	}
	return nil
}

func (b *fakeRecords) ClearClaimed() { b.claimed.Store(nil) }

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := db.Open(dbtest.New(t), 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// guard starts a server's guard; it ends with the test, or by stop, which is what a SIGKILL comes
// to.
func guard(
	t *testing.T, pool *pgxpool.Pool, b *fakeRecords, off bool,
) (g *history.Guard, stop func()) {
	t.Helper()
	g = history.New()
	g.Use(
		pool,
		history.Config{
			Records: b, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Off: off,
			CallLimit: 50 * time.Millisecond,
		},
	)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); g.Work(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return g, stop
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func isOpen(g *history.Guard) func() bool { return func() bool { return g.Held() == nil } }

func exec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

// promoted makes the database look as if it had been promoted since somebody vouched for it.
const promoted = `UPDATE installation SET history = regexp_replace(history, '[^/]+$', '00000000'), timeline = '00000000'`

func TestPromotionThatLostNothing(t *testing.T) {
	t.Parallel()
	pool, b := open(t), &fakeRecords{}
	one, _ := guard(t, pool, b, false)
	two, _ := guard(t, pool, b, false)
	until(t, "both are open", func() bool { return one.Held() == nil && two.Held() == nil })
	exec(t, pool, promoted)
	until(t, "it is noticed", func() bool {
		list, err := one.Recoveries(context.Background(), 1)
		return err == nil && len(list) == 1
	})
	until(t, "both vouch, and go on", func() bool { return one.Held() == nil && two.Held() == nil })
	if n := b.rebuilds.Load(); n != 0 {
		t.Errorf(
			"the records were read %d times, although all servers found what they had claimed", n,
		)
	}
	if list, err := one.Recoveries(context.Background(), 9); err != nil || len(list) != 1 ||
		list[0].EndedAt == nil {
		t.Errorf("got %+v, %v, want 1", list, err)
	}
}

// A server that is gone cannot say whether what it claimed is there: then the records tell.
func TestPromotionWithAServerGone(t *testing.T) {
	t.Parallel()
	pool, b := open(t), &fakeRecords{}
	one, _ := guard(t, pool, b, false)
	_, kill := guard(t, pool, b, false)
	until(t, "two servers are known", func() bool {
		var n int
		return pool.QueryRow(
			context.Background(), `SELECT count(*) FROM servers`,
		).Scan(&n) == nil && n == 2
	})
	kill()
	exec(t, pool, promoted)
	// Once is enough: whatever that server had sent has ended by then.
	until(t, "the records are read", func() bool { return b.rebuilds.Load() == 1 })
	until(t, "claims go on", isOpen(one))
	if b.since.Load() != 1700000000 {
		t.Errorf("they were read since %d", b.since.Load())
	}
}

func TestWhatShowsAFork(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(t *testing.T, pool *pgxpool.Pool, b *fakeRecords){
		"another place": func(t *testing.T, pool *pgxpool.Pool, _ *fakeRecords) {
			exec(t, pool, `UPDATE installation SET history = '1/1/00000001', timeline = '00000001'`)
		},
		"the mark went back": func(t *testing.T, pool *pgxpool.Pool, _ *fakeRecords) {
			exec(t, pool, `UPDATE history_mark SET mark = 0`)
		},
		"a claim is missing": func(_ *testing.T, _ *pgxpool.Pool, b *fakeRecords) {
			b.claimed.Store(&[]string{"op_gone"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, b := open(t), &fakeRecords{}
			g, _ := guard(t, pool, b, false)
			until(t, "it is open", isOpen(g))
			happens(t, pool, b)
			until(t, "the records are read, twice", func() bool { return b.rebuilds.Load() == 2 })
			until(t, "claims go on", isOpen(g))
			if list, err := g.Recoveries(context.Background(), 9); err != nil || len(list) != 1 ||
				list[0].EndedAt == nil || list[0].Counts.Charges != 2 {
				t.Errorf("got %+v, %v, want 1", list, err)
			}
		})
	}
}

// What one server has claimed shows in the mark at its next look, so that all notice if it is taken
// back.
func TestMarkFollowsClaims(t *testing.T) {
	t.Parallel()
	pool, claims, idle := open(t), &fakeRecords{}, &fakeRecords{}
	one, kill := guard(t, pool, claims, false)
	two, _ := guard(t, pool, idle, false)
	mark := func() (n int64) {
		if err := pool.QueryRow(
			context.Background(), `SELECT mark FROM history_mark`,
		).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	until(
		t, "both are open",
		func() bool { return one.Held() == nil && two.Held() == nil && mark() == 2 },
	)
	exec(
		t, pool,
		`INSERT INTO operation_log (operation_id, event, attempt, actor) VALUES ('op_1', 'settled', 1, 'test')`,
	)
	claims.claimed.Store(&[]string{"op_1"})
	until(t, "the claim is counted", func() bool { return mark() == 3 })
	time.Sleep(5 * time.Second) // five looks of the other
	kill()
	exec(t, pool, `UPDATE history_mark SET mark = 2`)
	until(
		t, "the one that claimed nothing notices", func() bool { return idle.rebuilds.Load() == 2 },
	)
}

// At its start a server looks at what the records begin with; while they cannot be read, nothing is
// claimed.
func TestBooksAreLookedAtFirst(t *testing.T) {
	t.Parallel()
	pool, b := open(t), &fakeRecords{}
	what := "a charge"
	b.forgot.Store(&what)
	b.away.Store(true)
	g, _ := guard(t, pool, b, false)
	if err := g.Wait(context.Background()); !errors.Is(err, history.ErrHeld) ||
		!strings.Contains(err.Error(), "the provider is away") {
		t.Errorf("got %v, want history.ErrHeld", err)
	}
	b.away.Store(false)
	until(t, "claims go on", isOpen(g))
	if n := b.rebuilds.Load(); n != 2 {
		t.Errorf("the records were read %d times", n)
	}
	if err := g.Wait(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestOffHoldsNothing(t *testing.T) {
	t.Parallel()
	pool, b := open(t), &fakeRecords{}
	exec(t, pool, `UPDATE installation SET history = '1/1/00000001', timeline = '00000001'`)
	g, _ := guard(t, pool, b, true)
	until(t, "claims go on", isOpen(g))
	if b.rebuilds.Load() != 0 {
		t.Error("the records were read")
	}
	if err := g.Check(context.Background()); err != nil {
		t.Errorf("for commands: %v", err)
	}
}

// Commands that end by themselves look and do nothing.
func TestCheck(t *testing.T) {
	t.Parallel()
	pool := open(t)
	g := history.New()
	g.Use(pool, history.Config{Records: &fakeRecords{}})
	if err := g.Check(context.Background()); err != nil {
		t.Errorf("of a database that nobody has looked at: %v", err)
	}
	exec(t, pool, `UPDATE installation SET history = '1/1/00000001', timeline = '00000001'`)
	if err := g.Check(context.Background()); !errors.Is(err, history.ErrHeld) {
		t.Errorf("of another history: %v", err)
	}
}
