package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/inbox"
	"paidonce/internal/world"
)

func TestReceiveVerifies(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	in := w.Inbox(w.Start())
	body := world.Event("evt_1", "charge.succeeded", "ch_1")
	now := time.Now()
	good := world.Signed(body, world.Secret, now)
	v1 := good[strings.Index(good, "v1=")+3:]
	at := fmt.Sprint("t=", now.Unix())
	for name, header := range map[string]string{
		"none": "", "garbage": "garbage", "other secret": world.Signed(body, "whsec_other", now),
		"an hour old":       world.Signed(body, world.Secret, now.Add(-time.Hour)),
		"ten minutes ahead": world.Signed(body, world.Secret, now.Add(10*time.Minute)),
		"ten years ahead":   world.Signed(body, world.Secret, now.AddDate(10, 0, 0)),
		"other time":        fmt.Sprintf("t=%d,v1=%s", now.Unix()-1, v1), "no time": "v1=" + v1,
		"no signature": at, "empty signature": at + ",v1=", "other scheme": at + ",v0=" + v1,
		"other body": world.Signed([]byte("{}"), world.Secret, now), "time twice": "t=x," + good,
	} {
		if err := in.Receive(t.Context(), body, header); !errors.Is(err, inbox.ErrSignature) {
			t.Errorf("%s: got %v, want inbox.ErrSignature", name, err)
		}
	}
	if n := w.Count(`SELECT count(*) FROM provider_events`); n != 0 {
		t.Fatalf("%d events are stored", n)
	}
	for name, header := range map[string]string{
		"good": good, "old secret": world.Signed(body, "whsec_old", now),
		"a minute ahead": world.Signed(body, world.Secret, now.Add(time.Minute)),
		"two signatures": at + ",v1=zz,v1=" + v1, "upper case": at + ",v1=" + strings.ToUpper(v1),
	} {
		if err := in.Receive(t.Context(), body, header); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.Count(`SELECT count(*) FROM provider_events WHERE payload = $1`, body); n != 1 {
		t.Errorf("%d events with the raw bytes", n)
	}
	// Odd bytes elsewhere in a signed body are kept as they are.
	odd := []byte(
		"{\"id\":\"evt_odd\",\"object\":\"event\",\"type\":\"x.y\",\"data\":{\"object\":{\"id\":\"o\",\"description\":\"\xe9\\u0000\"}}}",
	)
	if err := in.Receive(t.Context(), odd, world.Signed(odd, world.Secret, now)); err != nil {
		t.Errorf("%v", err)
	}
}

// An event that fails is tried again on its own schedule; a poison one is listed, and a fixed
// version replays it. Others go on.
func TestPoisonAndReplay(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	tries := map[string]int{}
	broken := true
	in := w.InboxWith(func(ctx context.Context, e inbox.Event, mark inbox.Mark) error {
		tries[e.ID]++
		switch {
		case e.ID == "evt_third" && tries[e.ID] <= 3:
			return errors.New("not yet")
		case e.ID == "evt_poison" && broken:
			panic("a parser's bug")
		}
		_, err := mark(ctx, w.Pool, inbox.Nothing("done"))
		return err
	})
	for _, id := range []string{"evt_poison", "evt_third", "evt_good"} {
		w.Deliver(in, id, "x.y", "o")
	}
	for range 25 {
		w.Process(in)
	}
	if tries["evt_good"] != 1 || tries["evt_third"] != 4 || tries["evt_poison"] != 20 {
		t.Errorf("tries: %v", tries)
	}
	list, err := in.List(
		t.Context(), inbox.Filter{Since: time.Now().Add(-time.Hour), Unprocessed: true, Most: 10},
	)
	if err != nil || len(list) != 1 || list[0].ID != "evt_poison" || list[0].ParkedAt == nil ||
		!strings.Contains(list[0].LastError, "panic") {
		t.Fatalf("got %+v, %v, want 1", list, err)
	}
	broken = false
	if n, err := in.Replay(t.Context(), "", time.Now().Add(-time.Hour), "x.y"); err != nil ||
		n != 3 {
		t.Errorf("got %d, %v, want 3", n, err)
	}
	w.Process(in)
	if n := w.Count(`SELECT count(*) FROM provider_events WHERE result = 'done'`); n != 3 {
		t.Errorf("%d are done", n)
	}
}

// A burst is acknowledged whole, and stored once.
func TestBurst(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	in := w.Inbox(w.Start())
	var group sync.WaitGroup
	for n := range 500 {
		group.Go(func() {
			body := world.Event(fmt.Sprint("evt_", n/2), "unknown.type", "o") // each twice
			if err := in.Receive(
				context.Background(), body, world.Signed(body, world.Secret, time.Now()),
			); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := w.Count(`SELECT count(*) FROM provider_events`); n != 250 {
		t.Errorf("%d are stored", n)
	}
}
