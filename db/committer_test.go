package db_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/db"
	"paidonce/internal/dbtest"
)

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := db.Open(dbtest.New(t), 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

type numberRow struct {
	id string
	n  int
}

// numbers is a committer on a table that refuses negative numbers.
func numbers(t *testing.T, pool *pgxpool.Pool) (c *db.Committer[numberRow, int], statements *atomic.Int64) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `CREATE TABLE numbers (id text PRIMARY KEY, n int NOT NULL CHECK (n >= 0))`); err != nil {
		t.Fatal(err)
	}
	statements = &atomic.Int64{}
	return &db.Committer[numberRow, int]{
		ID: func(r numberRow) string { return r.id },
		Write: func(ctx context.Context, rows []numberRow) (map[string]int, error) {
			statements.Add(1)
			ids, ns := make([]string, len(rows)), make([]int, len(rows))
			for i, r := range rows {
				ids[i], ns[i] = r.id, r.n
			}
			got, err := pool.Query(ctx, `INSERT INTO numbers SELECT * FROM unnest($1::text[], $2::int[]) ORDER BY 1 ON CONFLICT DO NOTHING RETURNING id, n`, ids, ns)
			if err != nil {
				return nil, err
			}
			won := map[string]int{}
			for got.Next() {
				var id string
				var n int
				if err := got.Scan(&id, &n); err != nil {
					return nil, err
				}
				won[id] = n
			}
			return won, got.Err()
		},
	}, statements
}

// Many rows at once share statements, and each learns its own result.
func TestCompanySharesTransactions(t *testing.T) {
	t.Parallel()
	c, statements := numbers(t, open(t))
	var group sync.WaitGroup
	const rows = 400
	for i := range rows {
		group.Go(func() {
			n, won, err := c.Do(t.Context(), numberRow{fmt.Sprint(i), i})
			if err != nil || !won || n != i {
				t.Errorf("row %d: got %d, won %v, %v", i, n, won, err)
			}
		})
	}
	group.Wait()
	if s := statements.Load(); s >= rows/2 {
		t.Errorf("%d statements for %d rows that came at once: they do not share", s, rows)
	}
}

// A bad row of a batch fails alone.
func TestOneBadRowHurtsNoOther(t *testing.T) {
	t.Parallel()
	c, _ := numbers(t, open(t))
	var group sync.WaitGroup
	for i := range 60 {
		group.Go(func() {
			bad := i%20 == 7
			n := i
			if bad {
				n = -1
			}
			_, won, err := c.Do(t.Context(), numberRow{fmt.Sprint(i), n})
			if bad && (err == nil || db.Classify(err) != db.Permanent) {
				t.Errorf("bad row %d: won %v, %v", i, won, err)
			}
			if !bad && (err != nil || !won) {
				t.Errorf("good row %d: won %v, %v", i, won, err)
			}
		})
	}
	group.Wait()
}

// Of rows with one key in one company exactly one wins, and the others learn that they lost.
func TestOneKeyInCompanyHasOneWinner(t *testing.T) {
	t.Parallel()
	pool := open(t)
	c, _ := numbers(t, pool)
	// the row's own identity; the table's key is shared
	c.ID = func(r numberRow) string { return fmt.Sprint(r.n) }
	write := c.Write
	c.Write = func(ctx context.Context, rows []numberRow) (map[string]int, error) {
		won, err := write(ctx, rows)
		byNumber := map[string]int{}
		for _, n := range won {
			byNumber[fmt.Sprint(n)] = n
		}
		return byNumber, err
	}
	var wins atomic.Int64
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			_, won, err := c.Do(t.Context(), numberRow{"same", i})
			if err != nil {
				t.Error(err)
			}
			if won {
				wins.Add(1)
			}
		})
	}
	group.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d winners", wins.Load())
	}
}

// A caller that gives up while its row is being written is told so, and the winner's effect is
// handed to Late.
func TestGivingUpIsToldApart(t *testing.T) {
	t.Parallel()
	release, writing := make(chan struct{}), make(chan struct{}, 2)
	late := make(chan numberRow, 1)
	c := &db.Committer[numberRow, int]{
		ID:   func(r numberRow) string { return r.id },
		Late: func(r numberRow, _ int) { late <- r },
		Write: func(_ context.Context, rows []numberRow) (map[string]int, error) {
			writing <- struct{}{}
			<-release
			won := map[string]int{}
			for _, r := range rows {
				won[r.id] = r.n
			}
			return won, nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { _, _, err := c.Do(ctx, numberRow{"a", 1}); first <- err }()
	<-writing
	go func() { _, _, err := c.Do(ctx, numberRow{"b", 2}); second <- err }()
	time.Sleep(10 * time.Millisecond) // let b queue; either order of what follows is right for it
	cancel()
	if err := <-first; !errors.Is(err, db.ErrMaybeWritten) {
		t.Errorf("the row being written: %v", err)
	}
	if err := <-second; !errors.Is(err, db.ErrNotWritten) {
		t.Errorf("the row in the queue: %v", err)
	}
	close(release)
	if r := <-late; r.id != "a" {
		t.Errorf("late row %q", r.id)
	}
}

// Two servers that insert the same keys in batches neither deadlock nor both win.
func TestTwoCommittersOverTheSameKeys(t *testing.T) {
	t.Parallel()
	pool := open(t)
	one, _ := numbers(t, pool)
	two := &db.Committer[numberRow, int]{ID: one.ID, Write: one.Write}
	var wins atomic.Int64
	var group sync.WaitGroup
	const keys = 300
	for i := range keys {
		for k, c := range []*db.Committer[numberRow, int]{one, two} {
			group.Go(func() {
				id := fmt.Sprint(i)
				if k == 1 {
					id = fmt.Sprint(keys - 1 - i) // the other way round
				}
				_, won, err := c.Do(t.Context(), numberRow{id, i})
				if err != nil {
					t.Error(err)
				}
				if won {
					wins.Add(1)
				}
			})
		}
	}
	group.Wait()
	if wins.Load() != keys {
		t.Errorf("%d winners of %d keys", wins.Load(), keys)
	}
}

// Under overload a row is refused at once rather than written when nobody waits for it any more.
func TestFullQueueRefuses(t *testing.T) {
	t.Parallel()
	release, writing := make(chan struct{}), make(chan struct{}, 4)
	c := &db.Committer[numberRow, int]{
		QueueMax: 2,
		ID:       func(r numberRow) string { return r.id },
		Write: func(_ context.Context, rows []numberRow) (map[string]int, error) {
			writing <- struct{}{}
			<-release
			won := map[string]int{}
			for _, r := range rows {
				won[r.id] = r.n
			}
			return won, nil
		},
	}
	results := make(chan error, 10)
	do := func(id string) { _, _, err := c.Do(t.Context(), numberRow{id, 1}); results <- err }
	go do("first")
	<-writing
	for n := range 5 {
		go do(fmt.Sprint(n))
	}
	for range 3 { // two may wait
		// not written: nobody has to give anything back
		if err := <-results; !errors.Is(err, db.ErrBusy) || !errors.Is(err, db.ErrNotWritten) || !errors.Is(err, db.ErrUnavailable) {
			t.Errorf("got %v, want db.ErrBusy", err)
		}
	}
	close(release)
	for range 3 {
		if err := <-results; err != nil {
			t.Errorf("%v", err)
		}
	}
}
