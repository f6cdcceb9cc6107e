package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
)

// oneKey fails the test unless all attempts of a call carried its key.
func oneKey(t *testing.T, keys []string, key string, least int) {
	t.Helper()
	for _, k := range keys {
		if k != key {
			t.Errorf("an attempt carried the key %q, want %q", k, key)
		}
	}
	if len(keys) < least {
		t.Errorf("%d attempts, want at least %d", len(keys), least)
	}
}

// stripe-go retries what we say may be retried, by itself, and ends with the charge.
func TestStripeGoRetries(t *testing.T) {
	t.Parallel()
	for _, loss := range []struct {
		name  string
		fault fault
	}{
		{"answer lost", fault{"type": "drop_after"}},
		{"request lost", fault{"type": "drop_before"}},
		{"500 at the provider", fault{"type": "status_after", "status": 500}},
		{"429 at the provider", fault{"type": "status_before", "status": 429}},
	} {
		t.Run(loss.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.sim.arm(1, loss.fault)
			sc, sent := w.stripeGo(w.serve(), 2)
			ch, err := sc.Charges.New(chargeOf("k", 2000, "tok_visa"))
			if err != nil || ch.Status != stripe.ChargeStatusSucceeded {
				t.Errorf("%+v %v", ch, err)
			}
			oneKey(t, sent.taken(), "k", 2)
			w.sim.mustHave(t, 1)
		})
	}
}

// 409 while the same request runs. The loser retries until it learns the winner's answer.
func TestStripeGoMeetsItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.slow(1200)
	p := w.serve()
	sc, _ := w.stripeGo(p, 8)
	ids := make([]string, 2)
	late, sent := w.stripeGo(p, 8)
	together(2, func(i int) {
		by := sc
		if i == 1 {
			w.sim.awaitRequests(1)
			by = late
		}
		ch, err := by.Charges.New(chargeOf("k", 2000, "tok_visa"))
		if err != nil {
			t.Error(err)
			return
		}
		ids[i] = ch.ID
	})
	if ids[0] == "" || ids[0] != ids[1] {
		t.Errorf("two callers of one key learnt %v", ids)
	}
	oneKey(t, sent.taken(), "k", 2)
	w.sim.mustHave(t, 1)
}

// A server that is not there yet, and one without a database that says 503.
func TestStripeGoWaitsForTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.serve()
	address := first.url[len("http://"):]
	sc, sent := w.stripeGo(first, 10)
	first.kill()
	done := make(chan error, 1)
	go func() { _, err := sc.Charges.New(chargeOf("k", 2000, "tok_visa")); done <- err }()
	time.Sleep(time.Second)
	w.serve("PAIDONCE_LISTEN=" + address)
	if err := <-done; err != nil {
		t.Error(err)
	}
	oneKey(t, sent.taken(), "k", 2)
	w.sim.mustHave(t, 1)
}

// Rate limits say Stripe-Should-Retry: true, which stripe-go follows though it would not retry a
// 429 by itself.
func TestStripeGoAtTheRateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PAIDONCE_RATE_LIMIT=2")
	sc, sent := w.stripeGo(w.serve(), 6)
	for i := range 5 {
		if _, err := sc.Charges.New(chargeOf(string(rune('a'+i)), 2000, "tok_visa")); err != nil {
			t.Error(err)
		}
	}
	if n := len(sent.taken()); n < 6 {
		t.Errorf("%d requests: none was over the limit", n)
	}
	if sent.last == nil || sent.last.StatusCode != http.StatusCreated {
		t.Errorf("the last answer is %v", sent.last)
	}
	w.sim.mustHave(t, 5)
}

// After a decline the order is paid with another card, under another key of the client's and of
// ours.
func TestStripeGoPaysAfterADecline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 2)
	order := func(key, token string) *stripe.ChargeParams {
		p := chargeOf(key, 2000, token)
		p.Metadata = map[string]string{"order": "1"}
		return p
	}
	if _, err := sc.Charges.New(order("card-1", "tok_chargeDeclined")); asError(err).HTTPStatusCode != http.StatusPaymentRequired {
		t.Error(err)
	}
	if ch, err := sc.Charges.New(order("card-2", "tok_visa")); err != nil ||
		ch.Status != stripe.ChargeStatusSucceeded {
		t.Errorf("%+v %v", ch, err)
	}
	w.sim.mustHave(t, 2)
}

// A retry that is another request, as the client counts its attempts in metadata, is refused; the
// first is found out about all the same.
func TestStripeGoCountsInMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.arm(1, fault{"type": "drop_after"})
	sc, _ := w.stripeGo(w.serve(), 0)
	first := chargeOf("k", 2000, "tok_visa")
	first.AddMetadata("attempt", "1")
	if _, err := sc.Charges.New(first); asError(err).HTTPStatusCode != http.StatusServiceUnavailable {
		t.Error(err)
	}
	second := chargeOf("k", 2000, "tok_visa")
	second.AddMetadata("attempt", "2")
	if _, err := sc.Charges.New(second); asError(err).HTTPStatusCode != http.StatusUnprocessableEntity {
		t.Error(err)
	}
	eventually(t, "the reconciler finishes the first", func() bool {
		w.must("reconcile")
		return w.status("k") == "completed"
	})
	if ch := firstOf(t, sc); ch.Status != stripe.ChargeStatusSucceeded ||
		ch.Metadata["attempt"] != "1" {
		t.Errorf("%+v", ch)
	}
	w.sim.mustHave(t, 1)
}

// While the provider says that the key is in use there, the caller is told to come again, and the
// charge is made once it is free.
func TestStripeGoWhileTheProviderIsBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.arm(2, fault{"type": "status_before", "status": 409})
	sc, sent := w.stripeGo(w.serve(), 8)
	if ch, err := sc.Charges.New(chargeOf("k", 2000, "tok_visa")); err != nil ||
		ch.Status != stripe.ChargeStatusSucceeded {
		t.Errorf("%+v %v", ch, err)
	}
	oneKey(t, sent.taken(), "k", 2)
	w.sim.mustHave(t, 1)
}
