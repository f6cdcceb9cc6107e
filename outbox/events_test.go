package outbox_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"paidonce/db"
	"paidonce/outbox"
)

// TestHeldBackTransaction: an event that was written early and commits late is listed after what
// was seen, and delivered.
func TestHeldBackTransaction(t *testing.T) {
	w := newWorld(t)
	w.put("hook", "http://receiver.test/")
	ctx := context.Background()
	held, err := w.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	early := w.add(held, "charge.succeeded", "ch_early")
	undone, err := w.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.add(undone, "charge.succeeded", "ch_undone")
	late := w.add(w.Pool, "charge.succeeded", "ch_late")

	if got := w.walk("", 10); !slices.Equal(got, []string{late}) {
		t.Fatalf("seen: %v", got)
	}
	if err := undone.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := held.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.walk(late, 10); !slices.Equal(got, []string{early}) {
		t.Fatalf("seen after coming back: %v, want %v", got, early)
	}
	if n := w.Count(`SELECT count(*) FROM deliveries`); n != 2 {
		t.Errorf("%d deliveries are queued, want 2", n)
	}
}

// TestNothingIsMissed: writers commit out of order, some roll back, several number; readers that
// walk to the end and come back see each event once.
func TestNothingIsMissed(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	var mu sync.Mutex
	committed := map[string]bool{}
	var writers, others sync.WaitGroup
	for range 6 {
		writers.Go(func() {
			for range 40 {
				tx, err := w.Pool.Begin(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				id := w.add(tx, "charge.succeeded", "ch_x")
				time.Sleep(time.Duration(rand.N(8)) * time.Millisecond)
				if rand.N(20) == 0 {
					_ = tx.Rollback(ctx)
					continue
				}
				mu.Lock()
				committed[id] = true
				mu.Unlock()
				// a serializable transaction may lose
				if err := tx.Commit(ctx); err != nil && db.Classify(err) == db.Rerun {
					mu.Lock()
					delete(committed, id)
					mu.Unlock()
				} else if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	for range 2 {
		others.Go(func() {
			for {
				if _, err := w.store.Number(ctx); err != nil {
					t.Error(err)
				}
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	seen := make([][]string, 3)
	for i := range seen {
		others.Go(func() {
			after := ""
			for last := false; ; {
				for _, id := range w.walk(after, 7) {
					seen[i] = append(seen[i], id)
					after = id
				}
				if last {
					return
				}
				select {
				case <-done:
					last = true
				case <-time.After(time.Duration(rand.N(5)) * time.Millisecond):
				}
			}
		})
	}
	writers.Wait()
	close(done)
	others.Wait()
	for i, ids := range seen {
		if len(ids) != len(committed) || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(committed) {
			t.Errorf("reader %d saw %d events, %d were committed", i, len(ids), len(committed))
		}
		for _, id := range ids {
			if !committed[id] {
				t.Errorf("reader %d saw %s, which was rolled back", i, id)
			}
		}
		if !slices.Equal(ids, seen[0]) {
			t.Errorf("reader %d saw another order than the first", i)
		}
	}
}

// TestTies: events of one transaction, at one time, in the order of their ids.
func TestTies(t *testing.T) {
	w := newWorld(t)
	w.Exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, created_at)
		SELECT 'evt_' || lpad(((i * 7919) % 500)::text, 4, '0'), $1, 'charge.succeeded', 'op_' || i, 'ch_' || i % 5, '{}', '2026-01-01' FROM generate_series(0, 499) i`, account)
	got := w.walk("", 100)
	if len(got) != 500 || !slices.IsSorted(got) {
		t.Errorf("%d events, sorted: %t", len(got), slices.IsSorted(got))
	}
}

// TestPagesAndFilters: forward, backward, by type, and only of the own account.
func TestPagesAndFilters(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	var all, failed []string
	for i := range 9 {
		typ := "charge.succeeded"
		if i%3 == 0 {
			typ = "charge.failed"
		}
		id := w.add(w.Pool, typ, "ch_1")
		all = append(all, id)
		if i%3 == 0 {
			failed = append(failed, id)
		}
	}
	w.Exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload) VALUES ('evt_other', 'acct_2', 'charge.failed', 'op_other', 'ch_other', '{}')`)
	if got := w.walk("", 2); !slices.Equal(got, all) {
		t.Errorf("walked: %v, want %v", got, all)
	}
	ids := func(p outbox.Page, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, e := range p.Events {
			list = append(list, e.ID)
		}
		return list
	}
	if got := ids(w.store.List(ctx, account, outbox.Filter{Types: []string{"charge.failed"}, Limit: 10})); !slices.Equal(got, failed) {
		t.Errorf("failed: %v, want %v", got, failed)
	}
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	for _, c := range []struct {
		after string
		want  []string
		more  bool
	}{{"", backwards[:3], true}, {backwards[2], backwards[3:6], true}, {all[1], all[:1], false}, {all[0], nil, false}} {
		page, err := w.store.List(ctx, account, outbox.Filter{NewestFirst: true, StartingAfter: c.after, Limit: 3})
		if got := ids(page, err); !slices.Equal(got, c.want) || page.HasMore != c.more {
			t.Errorf("backwards from %q: %v, has more: %t, want %v, %t", c.after, got, page.HasMore, c.want, c.more)
		}
	}
	last := failed[len(failed)-1:]
	if got := ids(w.store.List(ctx, account, outbox.Filter{NewestFirst: true, Types: []string{"charge.failed"}, Limit: 1})); !slices.Equal(got, last) {
		t.Errorf("the newest failed: %v, want %v", got, last)
	}
	for _, f := range []outbox.Filter{{StartingAfter: "evt_other", Limit: 1}, {NewestFirst: true, StartingAfter: "evt_nowhere", Limit: 1}} {
		if _, err := w.store.List(ctx, account, f); !errors.Is(err, outbox.ErrNotFound) {
			t.Errorf("got %+v: %v, want outbox.ErrNotFound", f, err)
		}
	}
	if _, err := w.store.Get(ctx, account, "evt_other"); !errors.Is(err, outbox.ErrNotFound) {
		t.Errorf("another account's event: %v", err)
	}
	if e, err := w.store.Get(ctx, account, all[0]); err != nil || e.Position == 0 || len(e.Payload) == 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestOrderUnderAnOldSnapshot: prints what giving places costs while a transaction stays open, and
// tries that one that commits very late is found.
func TestOrderUnderAnOldSnapshot(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.Exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload) VALUES ('evt_0', $1, 'charge.succeeded', 'op_0', 'ch_0', '{}')`, account)
	old, err := w.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Rollback(ctx) }()
	if _, err := old.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox`); err != nil {
		t.Fatal(err)
	}
	w.run(w.relay())
	w.addMany(30_000)
	numberedAll := func() bool { return w.Count(`SELECT count(*) FROM outbox WHERE position IS NULL`) == 0 }
	eventually(t, 30*time.Second, "all have places", numberedAll)
	began := time.Now()
	w.add(w.Pool, "charge.succeeded", "ch_new")
	eventually(t, 10*time.Second, "the new one has its place", numberedAll)
	t.Logf("with 30000 dead entries a new event had its place after %s", time.Since(began))
	w.Exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, created_at) VALUES ('evt_late', $1, 'charge.succeeded', 'op_late', 'ch_late', '{}', now() - interval '1 hour')`, account)
	eventually(t, 10*time.Second, "the late one has its place", numberedAll)
}
