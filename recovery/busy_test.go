package recovery_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/provider"
	"paidonce/provider/stripe"
)

// A look-up that is cut short is no reason not to send again, as long as the provider remembers the key by its own clock. It is given a
// part of the run only. After that nothing is sent, and a look-up that is merely broken never lets anything be sent.
func TestCutShortLookUps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cut   provider.Error
		clock time.Duration // how far the provider's clock runs on
		sends bool
	}{
		"in the window":           {provider.Error{Kind: provider.Unknown, Incomplete: true}, 0, true},
		"past it at the provider": {provider.Error{Kind: provider.Unknown, Incomplete: true}, 24 * time.Hour, false},
		"broken":                  {provider.Error{Kind: provider.Unknown}, 0, false},
	} {
		for _, intents := range []bool{false, true} {
			w := newWorld(t)
			w.intents = intents
			_, _ = w.psp.Account(t.Context())
			find := &cutting{Provider: w.psp, err: c.cut}
			i := w.start(nil, find)
			kind := map[bool]string{false: "charge", true: "intent"}[intents]
			w.loseAnswer(kind)
			_, err := i.charge(w, "k")
			wantUnknown(t, err)
			w.sim.SetClock(c.clock)
			_, _ = w.psp.Account(t.Context())
			_, err = i.charge(w, "k")
			if sent := err == nil; sent != c.sends {
				t.Errorf("%s, %s: sent %v, %v", name, kind, sent, err)
			}
			if within := find.asked.Within; (within > 0) != (c.sends || name == "broken") || within > w.cfg.RunLimit()/4 {
				t.Errorf("%s, %s: the look-up may take %v", name, kind, within)
			}
			if c.sends {
				w.books(1)
			}
		}
	}
}

// cutting has look-ups that come to nothing.
type cutting struct {
	provider.Provider
	err   provider.Error
	asked provider.Lookup
}

func (p *cutting) FindCharge(_ context.Context, l provider.Lookup) ([]provider.Charge, error) {
	p.asked = l
	return nil, &p.err
}

func (p *cutting) FindIntent(_ context.Context, l provider.Lookup) ([]provider.Intent, error) {
	p.asked = l
	return nil, &p.err
}

// On an account so busy that no look-up comes to an end, an operation is sent again within its key's window, and never past it.
func TestAnAccountWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, intents := range []bool{false, true} {
		w := newWorld(t)
		w.intents = intents
		w.cfg.StaleAfter = 8 * time.Second // a look-up gets a quarter of nine tenths
		var id atomic.Int64
		front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/search"): // which would find it
				http.NotFound(out, r)
				return
			case r.Method != http.MethodGet || r.URL.Path != "/v1/charges" && r.URL.Path != "/v1/payment_intents":
				w.sim.ServeHTTP(out, r)
				return
			}
			created := time.Now().Unix()
			if from, err := strconv.ParseInt(r.FormValue("created[gte]"), 10, 64); err == nil {
				created = from
			}
			items := make([]string, 100)
			for n := range items {
				items[n] = fmt.Sprintf(`{"id":"x_%d","created":%d,"metadata":{}}`, id.Add(1), created)
			}
			_, _ = fmt.Fprintf(out, `{"object":"list","has_more":true,"data":[%s]}`, strings.Join(items, ","))
		}))
		psp, err := stripe.New(stripe.Config{APIKey: "sk_test_x", BaseURL: front.URL, Timeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		w.clock = psp
		i := w.start(nil, psp)
		kind := map[bool]string{false: "charge", true: "intent"}[intents]
		w.loseAnswer(kind)
		_, err = i.charge(w, "k")
		wantUnknown(t, err)
		if res, err := i.charge(w, "k"); err != nil || res.Answer.Code != http.StatusCreated {
			t.Fatalf("%s: %d, %v", kind, res.Answer.Code, err)
		}
		w.books(1)
		w.loseAnswer(kind)
		_, err = i.charge(w, "late")
		wantUnknown(t, err)
		w.age(25 * time.Hour)
		w.sim.SetClock(25 * time.Hour)
		before := w.sim.Stats()
		_, err = i.charge(w, "late")
		wantUnknown(t, err)
		if now := w.sim.Stats(); now.ChargeRequests != before.ChargeRequests || now.IntentRequests != before.IntentRequests {
			t.Errorf("%s: it was sent past the window", kind)
		}
		if n := w.count(`SELECT sum(lookup_misses) FROM idempotency_keys WHERE status = 'in_progress'`); n != 0 {
			t.Errorf("%s: %d misses were counted of look-ups that came to no end", kind, n)
		}
		front.Close()
	}
}
