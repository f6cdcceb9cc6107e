package stripe

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// Many look-ups at once share walks, and each finds what is its own: its one charge, or nothing.
func TestLookUpsShareWalks(t *testing.T) {
	t.Parallel()
	sim, err := stripesim.New(stripesim.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var lists atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			lists.Add(1)
			time.Sleep(5 * time.Millisecond) // so that the others come meanwhile
		}
		sim.ServeHTTP(w, r)
	}))
	defer server.Close()
	p, err := New(Config{APIKey: "sk_test_x", BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	const charges = 250
	ids := make([]string, charges)
	var group sync.WaitGroup
	tags := func(n int) provider.Tags { return provider.Tags{Operation: fmt.Sprint("op_", n), Installation: "test"} }
	for n := range charges {
		group.Go(func() {
			o, err := p.Charge(context.Background(), &provider.ChargeRequest{
				IdempotencyKey: fmt.Sprint("k", n), Tags: tags(n), Amount: 500, Currency: "usd", Source: "tok_visa", Capture: true,
			})
			if err != nil || o.Charge == nil {
				t.Errorf("%+v, %v", o, err)
				return
			}
			ids[n] = o.Charge.ID
		})
	}
	group.Wait()
	now := time.Now()
	for n := range charges * 2 { // the second half was never made
		group.Go(func() {
			hits, err := p.FindCharge(context.Background(), provider.Lookup{Tags: tags(n), From: now.Add(-time.Minute), To: now})
			switch {
			case err != nil:
				t.Error(err)
			case n >= charges && len(hits) != 0:
				t.Errorf("look-up %d found %d charges that were never made", n, len(hits))
			case n < charges && (len(hits) != 1 || hits[0].ID != ids[n]):
				t.Errorf("look-up %d found %d charges", n, len(hits))
			}
		})
	}
	group.Wait()
	const pages = charges/pageSize + 1
	if got := lists.Load(); got > charges*2*pages/5 {
		t.Errorf("%d pages were read for %d look-ups of %d pages: they do not share", got, charges*2, pages)
	}
}

// A look-up never joins a walk that began before it: its charge may have been made meanwhile.
func TestLookUpsBeginAfterTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	sim, err := stripesim.New(stripesim.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	began, goOn := make(chan struct{}, walksMax+1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sim.ServeHTTP(w, r)
		if r.Method == http.MethodGet {
			began <- struct{}{}
			<-goOn
		}
	}))
	defer server.Close()
	p, err := New(Config{APIKey: "sk_test_x", BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	tags := provider.Tags{Operation: "op_late", Installation: "test"}
	var group sync.WaitGroup
	find := func(want int) {
		group.Go(func() {
			hits, err := p.FindCharge(context.Background(), provider.Lookup{Tags: tags, From: time.Now().Add(-time.Minute)})
			if err != nil || len(hits) != want {
				t.Errorf("%d hits, want %d, %v", len(hits), want, err)
			}
		})
	}
	for range walksMax { // all walks are under way, past the page
		find(0)
		<-began
	}
	if _, err := p.Charge(context.Background(), &provider.ChargeRequest{IdempotencyKey: "k", Tags: tags, Amount: 500, Currency: "usd", Source: "tok_visa", Capture: true}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		find(1)
	}
	close(goOn)
	group.Wait()
}
