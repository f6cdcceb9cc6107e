package providertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/provider"
)

func sameKey(_ *testing.T, w *world) {
	r := w.request()
	first := w.paid(r)
	if first.Amount != r.Amount || first.AmountCaptured != r.Amount || first.Currency != r.Currency || !first.Captured ||
		first.Tags != r.Tags || first.Livemode != r.Livemode || first.Created.IsZero() {
		w.Errorf("charge doesn't say what was asked for: %+v", first)
	}
	if second := w.paid(r); second.ID != first.ID {
		w.Errorf("the same key gave charge %s, then %s", first.ID, second.ID)
	}
	w.moved(r.Tags, 1)
}

func otherParameters(_ *testing.T, w *world) {
	r := w.request()
	w.paid(r)
	r.Amount++
	_, err := w.charge(r)
	w.failed(err, provider.Conflict)
	w.moved(r.Tags, 1)
}

func decline(_ *testing.T, w *world) {
	r := w.request()
	r.Source = w.Declined
	for range 2 { // the replay is the same decline
		out, err := w.charge(r)
		if err != nil || out.Refusal == nil || out.Charge != nil || !out.Refusal.Decline || out.Refusal.Code == "" || out.Refusal.Message == "" {
			w.Fatalf("got %+v, %v; want a decline", out, err)
		}
		if out.Refusal.ChargeID == "" {
			w.Error("the failed charge isn't named")
		}
	}
	w.moved(r.Tags, 0)
}

func refusedRequest(_ *testing.T, w *world) {
	r := w.request()
	r.Source = w.Missing
	out, err := w.charge(r)
	if err != nil || out.Refusal == nil || out.Refusal.Decline || out.Refusal.ChargeID != "" {
		w.Fatalf("got %+v, %v; want a refusal that isn't a decline", out, err)
	}
	w.found(r.Tags, 0)
}

func lostAnswerSameKey(_ *testing.T, w *world) {
	r := w.request()
	w.Break(LoseAnswer)
	_, err := w.charge(r)
	w.failed(err, provider.Unknown)
	w.moved(r.Tags, 1)
	again := w.paid(r)
	w.moved(r.Tags, 1)
	if hits := w.found(r.Tags, 1); hits[0].ID != again.ID {
		w.Errorf("the look-up found %s, the key gave %s", hits[0].ID, again.ID)
	}
}

func lostAnswerLookup(_ *testing.T, w *world) {
	r := w.request()
	for range 3 {
		w.paid(w.request()) // neighbours
	}
	w.Break(LoseAnswer)
	_, err := w.charge(r)
	w.failed(err, provider.Unknown)
	hit := w.found(r.Tags, 1)[0]
	if hit.Amount != r.Amount || hit.Currency != r.Currency || hit.Tags != r.Tags || hit.Status != provider.Succeeded {
		w.Errorf("found %+v", hit)
	}
	other := r.Tags
	other.Installation = "inst_other"
	w.found(other, 0)
}

func cutAnswer(_ *testing.T, w *world) {
	r := w.request()
	w.Break(CutAnswer)
	_, err := w.charge(r)
	w.failed(err, provider.Unknown)
	w.paid(r)
	w.moved(r.Tags, 1)
}

func lostRequest(_ *testing.T, w *world) {
	r := w.request()
	w.Break(LoseRequest)
	_, err := w.charge(r)
	w.failed(err, provider.Unknown) // the caller can't tell it from a lost answer
	w.found(r.Tags, 0)
	w.paid(r)
	w.moved(r.Tags, 1)
}

func storedFailure(_ *testing.T, w *world) {
	r := w.request()
	w.Break(StoreFailure)
	for range 2 { // the failure is replayed, so sending again can't help
		_, err := w.charge(r)
		w.failed(err, provider.StoredFailure)
	}
	w.found(r.Tags, 1)
	w.moved(r.Tags, 1)
}

// unavailable: what isn't kept under the key passes, and must not end the sending.
func unavailable(_ *testing.T, w *world) {
	r := w.request()
	w.Break(Unavailable)
	_, err := w.charge(r)
	w.failed(err, provider.Unknown)
	w.moved(r.Tags, 0)
	w.paid(r)
	w.moved(r.Tags, 1)
}

// forgottenKeys shows why nothing may be sent past the key window: the same key moves money a
// second time.
func forgottenKeys(_ *testing.T, w *world) {
	r := w.request()
	first := w.paid(r)
	w.ForgetKeys()
	if second := w.paid(r); second.ID == first.ID {
		w.Fatal("the simulator still knew the key")
	}
	w.found(r.Tags, 2)
}

func manyPages(t *testing.T, w *world) {
	r := w.request()
	w.paid(r)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 32 {
				if _, err := w.charge(w.request()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	w.found(r.Tags, 1)
	w.found(newTags(), 0)
}

func lookupWindow(_ *testing.T, w *world) {
	r := w.request()
	c := w.paid(r)
	for name, c := range map[string]struct {
		from, to time.Time
		hits     int
	}{
		"a minute off": {c.Created.Add(time.Minute), c.Created.Add(2 * time.Minute), 1},
		// What lies near is seen beyond the window as well, and what is seen counts.
		"an hour off": {c.Created.Add(time.Hour), c.Created.Add(2 * time.Hour), 1},
		"still open":  {c.Created.Add(-time.Hour), time.Time{}, 1},
	} {
		hits, err := w.Provider.FindCharge(context.Background(), provider.Lookup{Tags: r.Tags, From: c.from, To: c.to})
		if err != nil || len(hits) != c.hits {
			w.Errorf("%s: %d hits, %v; want %d", name, len(hits), err, c.hits)
		}
	}
}

func lookupFailed(_ *testing.T, w *world) {
	r := w.request()
	r.Source = w.Declined
	w.Break(LoseAnswer)
	_, err := w.charge(r)
	w.failed(err, provider.Unknown)
	if hit := w.found(r.Tags, 1)[0]; hit.Status != provider.Failed || hit.FailureCode == "" {
		w.Errorf("found %+v, want a failed charge", hit)
	}
}

func inFlight(t *testing.T, w *world) {
	r := w.request()
	w.Break(Slow)
	first := make(chan error, 1)
	go func() {
		_, err := w.charge(r)
		first <- err
	}()
	time.Sleep(150 * time.Millisecond)
	_, err := w.charge(r)
	w.failed(err, provider.InFlight)
	if err := <-first; err != nil {
		t.Fatalf("the first call: %v", err)
	}
	w.paid(r)
	w.moved(r.Tags, 1)
}

func manyAtOnce(t *testing.T, w *world) {
	r := w.request()
	var wg sync.WaitGroup
	ids := sync.Map{}
	for range 32 {
		wg.Go(func() {
			switch out, err := w.charge(r); {
			case err == nil && out.Charge != nil:
				ids.Store(out.Charge.ID, true)
			case err == nil:
				t.Errorf("got %+v", out)
			default:
				if e := (*provider.Error)(nil); !errors.As(err, &e) || e.Kind != provider.InFlight {
					t.Errorf("got %v, want a charge or %s", err, provider.InFlight)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d different charges were answered", n)
	}
	w.moved(r.Tags, 1)
}

func contextDone(_ *testing.T, w *world) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := w.request()
	_, err := w.Provider.Charge(ctx, &r)
	w.failed(err, provider.NotExecuted)
	w.moved(r.Tags, 0)
	if _, err := w.Provider.FindCharge(ctx, provider.Lookup{Tags: r.Tags}); err == nil {
		w.Error("a look-up that asked nobody proved something")
	}
}

func deadline(_ *testing.T, w *world) {
	r := w.request()
	w.paid(w.request()) // connections stand
	w.Break(Slow)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := w.Provider.Charge(ctx, &r)
	w.failed(err, provider.Unknown)
	// The provider carries it out although we have gone.
	for range 100 {
		if w.Moved(r.Tags.Operation) == 1 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.moved(r.Tags, 1)
	w.found(r.Tags, 1)
}

func noKey(_ *testing.T, w *world) {
	for _, key := range []string{"", " ", "a b", strings.Repeat("k", 256), "k\n"} {
		r := w.request()
		r.IdempotencyKey = key
		_, err := w.charge(r)
		w.failed(err, provider.Conflict)
		w.moved(r.Tags, 0)
	}
	r := w.request()
	r.Tags.Operation = ""
	_, err := w.charge(r)
	w.failed(err, provider.Conflict)
	_, err = w.Provider.Refund(context.Background(), provider.RefundRequest{Tags: newTags(), ChargeID: "ch_1", Amount: 1})
	w.failed(err, provider.Conflict)
	_, err = w.Provider.Capture(context.Background(), provider.CaptureRequest{Tags: newTags(), ChargeID: "ch_1", Amount: 1})
	w.failed(err, provider.Conflict)
}

func metadata(_ *testing.T, w *world) {
	r := w.request()
	r.Metadata = map[string]string{}
	for i := range 50 {
		r.Metadata[fmt.Sprintf("key_%02d", i)] = strings.Repeat("ü", 500)
	}
	kept := maps.Clone(r.Metadata)
	// A client can neither take our tags' place nor come near them.
	r.Metadata[provider.MetadataOperation] = "op_forged"
	r.Metadata["Paidonce_Operation"] = "op_forged"
	if c := w.paid(r); c.Tags != r.Tags {
		w.Errorf("tags are %+v, want %+v", c.Tags, r.Tags)
	}
	w.found(r.Tags, 1)
	r2 := w.request()
	r2.Metadata = kept
	w.paid(r2)
}
