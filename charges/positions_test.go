package charges_test

import (
	"fmt"
	"sync"
	"testing"

	"paidonce/internal/world"
	"paidonce/outbox"
)

// A charge's event gets its position from the commit that settles the charge, a refund's later.
// With several servers that settle at once, a reader that comes back again and again sees each
// event once, and in one order.
func TestReadersMissNothingWhileServersSettle(t *testing.T) {
	t.Parallel()
	const servers, clients, each = 3, 4, 12
	w := world.New(t)
	w.Pool = w.Connect(12)
	var writers, readers sync.WaitGroup
	for s := range servers {
		server := w.StartWith(w.Connect(6), nil)
		for c := range clients {
			writers.Go(func() {
				for n := range each {
					charge := server.MustCharge(fmt.Sprintf("key-%d-%d-%d", s, c, n), world.Twenty)
					if n%4 == 0 {
						server.MustRefund(fmt.Sprintf("refund-%d-%d-%d", s, c, n), charge, 0)
					}
				}
			})
		}
	}
	done := make(chan struct{})
	seen := make([][]string, 2)
	for i := range seen {
		readers.Go(func() {
			store, last := outbox.New(outbox.Config{Pool: w.Connect(4)}), ""
			for ended := false; ; {
				page, err := store.List(
					t.Context(), w.Key.AccountID, outbox.Filter{StartingAfter: last, Limit: 7},
				)
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range page.Events {
					seen[i], last = append(seen[i], e.ID), e.ID
				}
				switch {
				case len(page.Events) > 0:
				case ended:
					return
				default:
					select {
					case <-done:
						ended = true
					default:
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()

	const all = servers * clients * each
	refunds := all / 4
	events := w.Count(`SELECT count(*) FROM outbox`)
	if events < all+refunds {
		t.Errorf("there are %d events of %d charges and %d refunds", events, all, refunds)
	}
	for i, ids := range seen {
		once := map[string]bool{}
		for _, id := range ids {
			once[id] = true
		}
		if len(ids) != events || len(once) != events {
			t.Errorf(
				"reader %d saw %d events, %d different ones, want %d", i, len(ids), len(once),
				events,
			)
		}
		for n := range min(len(ids), len(seen[0])) {
			if ids[n] != seen[0][n] {
				t.Fatalf(
					"reader %d saw %s as event %d, the first reader saw %s", i, ids[n], n,
					seen[0][n],
				)
			}
		}
	}
	highest := w.Count(`SELECT max(position) FROM outbox`)
	if counted := w.Count(`SELECT last_position FROM outbox_counter`); counted < highest {
		t.Errorf("the counter stands at %d, the last event at %d", counted, highest)
	}
}

// Nothing numbers a charge's event after its commit: its position is there as soon as it is.
func TestChargesEventHasItsPositionAtOnce(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	w.Start().MustCharge("key", world.Twenty)
	if n := w.Count(`SELECT count(*) FROM outbox WHERE position IS NULL`); n != 0 {
		t.Errorf("%d events have no position", n)
	}
}
