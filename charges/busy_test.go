package charges_test

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

	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripe"
)

// A look-up that is cut short is no reason not to send again, as long as the provider remembers the
// key by its own clock. It is given a part of the run only. After that nothing is sent, and a
// look-up that is merely broken never lets anything be sent.
func TestCutShortLookUps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cut   provider.Error
		clock time.Duration // how far the provider's clock runs on
		sends bool
	}{
		"in the window": {provider.Error{Kind: provider.Incomplete}, 0, true},
		"past it at the provider": {
			provider.Error{Kind: provider.Incomplete}, 24 * time.Hour, false,
		},
		"broken": {provider.Error{Kind: provider.Unknown}, 0, false},
	} {
		for _, intents := range []bool{false, true} {
			w := world.New(t)
			w.Intents = intents
			_, _ = w.Provider.Account(t.Context())
			find := &cutting{Provider: w.Provider, err: c.cut}
			i := w.StartWith(nil, find)
			kind := map[bool]string{false: "charge", true: "intent"}[intents]
			loseAnswer(w, kind)
			_, err := i.Charge("k")
			world.WantUnknown(t, err)
			w.Sim.SetClock(c.clock)
			_, _ = w.Provider.Account(t.Context())
			_, err = i.Charge("k")
			if sent := err == nil; sent != c.sends {
				t.Errorf("%s, %s: sent %v, %v", name, kind, sent, err)
			}
			if within := find.asked.Within; (within > 0) != (c.sends || name == "broken") ||
				within > w.Keys.RunLimit()/4 {
				t.Errorf("%s, %s: the look-up may take %v", name, kind, within)
			}
			if c.sends {
				w.CheckRecords(1)
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

// On an account so busy that no look-up comes to an end, an operation is sent again within its
// key's window, and never past it.
func TestAnAccountWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, intents := range []bool{false, true} {
		w := world.New(t)
		w.Intents = intents
		w.Keys.StaleAfter = 8 * time.Second // a look-up gets a quarter of nine tenths
		var id atomic.Int64
		front := httptest.NewServer(http.HandlerFunc(func(
			out http.ResponseWriter, r *http.Request,
		) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/search"): // which would find it
				http.NotFound(out, r)
				return
			case r.Method != http.MethodGet ||
				r.URL.Path != "/v1/charges" && r.URL.Path != "/v1/payment_intents":
				w.Sim.ServeHTTP(out, r)
				return
			}
			created := time.Now().Unix()
			if from, err := strconv.ParseInt(r.FormValue("created[gte]"), 10, 64); err == nil {
				created = from
			}
			items := make([]string, 100)
			for n := range items {
				items[n] = fmt.Sprintf(
					`{"id":"x_%d","created":%d,"metadata":{}}`, id.Add(1), created,
				)
			}
			_, _ = fmt.Fprintf(
				out, `{"object":"list","has_more":true,"data":[%s]}`, strings.Join(items, ","),
			)
		}))
		psp, err := stripe.New(
			stripe.Config{APIKey: "sk_test_x", BaseURL: front.URL, Timeout: 2 * time.Second},
		)
		if err != nil {
			t.Fatal(err)
		}
		w.Clock = psp
		i := w.StartWith(nil, psp)
		kind := map[bool]string{false: "charge", true: "intent"}[intents]
		loseAnswer(w, kind)
		_, err = i.Charge("k")
		world.WantUnknown(t, err)
		if res, err := i.Charge("k"); err != nil || res.Answer.Code != http.StatusCreated {
			t.Fatalf("%s: got %d, %v, want 201", kind, res.Answer.Code, err)
		}
		w.CheckRecords(1)
		loseAnswer(w, kind)
		_, err = i.Charge("late")
		world.WantUnknown(t, err)
		w.Age(25 * time.Hour)
		w.Sim.SetClock(25 * time.Hour)
		before := w.Sim.Stats()
		_, err = i.Charge("late")
		world.WantUnknown(t, err)
		if now := w.Sim.Stats(); now.ChargeRequests != before.ChargeRequests ||
			now.IntentRequests != before.IntentRequests {
			t.Errorf("%s: it was sent past the window", kind)
		}
		if n := w.Count(
			`SELECT sum(lookup_misses) FROM idempotency_keys WHERE status = 'in_progress'`,
		); n != 0 {
			t.Errorf("%s: %d misses were counted of look-ups that came to no end", kind, n)
		}
		front.Close()
	}
}
