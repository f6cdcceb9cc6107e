package stripe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"paidonce/provider"
)

// A provider whose "created" is half an hour off its Date, on a busy account: the charge lies
// elsewhere in the list than Date says, and its absence must not be concluded. What it makes itself
// tells.
func TestCreatedIsOffDate(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-30 * time.Minute, 0, 30 * time.Minute} {
		t.Run(fmt.Sprint(off), func(t *testing.T) {
			t.Parallel()
			b := newBusy(10, 72_000) // two hours
			b.setClock(b.created(b.count.Load()) - int64(off.Seconds()))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					b.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Date", time.Now().Add(time.Duration(b.ahead.Load())*time.Second).UTC().Format(http.TimeFormat))
				_, _ = w.Write([]byte(b.charge(b.count.Add(1) - 1)))
			}))
			p, err := New(Config{APIKey: "sk_test_x", BaseURL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Close(); server.Close() })

			made := provider.ChargeRequest{Tags: provider.Tags{Operation: fmt.Sprint("op_", b.count.Load()), Installation: "test"}, Amount: 2000, Currency: "usd", Capture: true, IdempotencyKey: "k"}
			if _, err := p.Charge(t.Context(), &made); err != nil {
				t.Fatal(err)
			}
			const n = 45_000 // three quarters of an hour ago
			l := b.lookup(n)
			l.From, l.To = l.From.Add(-off), l.To.Add(-off) // by its Date
			wantFound(t, p, l, 1)
			b.missing.Store(n)
			l.Tags.Installation = "other" // as one that was never made
			wantFound(t, p, l, 0)
		})
	}
}
