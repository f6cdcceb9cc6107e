package outbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/outbox"
)

// TestRelayWithoutNetwork: a relay that is alive, and whose every try ends without an answer, keeps
// touching its deliveries. Another one delivers them all the same.
func TestRelayWithoutNetwork(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	const events = 50
	w.addMany(events)
	sick := w.relay(func(c *outbox.RelayConfig) { c.Sender, c.Pause = noNetwork{}, 20*time.Millisecond })
	w.run(sick)
	eventually(t, 10*time.Second, "the sick one has tried", func() bool { return sick.Counts().Failed >= 10 })
	w.run(w.relay(func(c *outbox.RelayConfig) { c.Pause = 20 * time.Millisecond }))
	eventually(t, 20*time.Second, "all are delivered", func() bool { return w.Count(`SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == events })
	if r.distinct() != events {
		t.Errorf("%d events", r.distinct())
	}
}

type noNetwork struct{}

func (noNetwork) Send(context.Context, outbox.Message) (outbox.Answer, error) {
	time.Sleep(100 * time.Millisecond) // so long it waits for an answer
	return outbox.Answer{}, errors.New("no answer in time")
}

// TestRetentionIsExact: of old events exactly those go that everybody has. Not one between them
// that waits, nor one that was written before them all and commits after they are gone. The newest
// of its type stays: there stands the cursor of who has seen all.
func TestRetentionIsExact(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	// of serializable ones it would be the one that loses
	held, err := w.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.Background()) }()
	late := w.add(held, "charge.succeeded", "ch_late")
	before := w.add(w.Pool, "charge.succeeded", "ch_before")
	waits := w.add(w.Pool, "charge.succeeded", "ch_waits")
	after := w.add(w.Pool, "charge.succeeded", "ch_after")
	if err := w.relay().RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := w.store.Requeue(t.Context(), account, waits, "hook"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := held.Exec(t.Context(), `UPDATE outbox SET created_at = created_at - interval '32 days' WHERE event_id = $1`, late); err != nil {
		t.Fatal(err)
	}
	w.Exec(`UPDATE outbox SET created_at = created_at - interval '31 days'`)
	clean := func(want int) {
		t.Helper()
		if n, err := w.store.Clean(t.Context(), 30*24*time.Hour); n != want || err != nil {
			t.Errorf("%d events are forgotten, want %d: %v", n, want, err)
		}
	}
	clean(1)
	if err := held.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	clean(0)
	if got := w.walk("", 10); !slices.Equal(got, []string{waits, after, late}) {
		t.Errorf("left are %v, not %s", got, before)
	}
	if err := w.relay().RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.times[waits] != 2 || r.times[late] != 1 {
		t.Errorf("the one that waited came %d times, the late one %d times", r.times[waits], r.times[late])
	}
	clean(2) // the newest stays
}

// TestOnceForgets: where relays run from cron alone, old events go all the same, once they are
// delivered.
func TestOnceForgets(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	w.put("hook", r.URL)
	w.add(w.Pool, "charge.succeeded", "ch_old")
	newest := w.add(w.Pool, "charge.succeeded", "ch_newest") // of its type: it stays
	w.Exec(`UPDATE outbox SET created_at = created_at - interval '31 days'`)
	relay := w.relay(func(c *outbox.RelayConfig) { c.TTL = 30 * 24 * time.Hour })
	if err := relay.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.walk("", 10); !slices.Equal(got, []string{newest}) || relay.Counts().Cleaned != 1 || r.distinct() != 2 {
		t.Errorf("left are %v, %d forgotten, %d delivered", got, relay.Counts().Cleaned, r.distinct())
	}
}
