package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/internal/race"
)

// trade makes a charge. Some are declined, some only authorised and then captured in part, some
// refunded, and some refunds fail after all.
func (w *world) trade(c *apitest.Client, name string, n int, dice *rand.Rand) {
	t := w.t
	t.Helper()
	post := func(path, key, body string) apitest.Answer {
		a := c.Post(path, fmt.Sprint(name, "-", n, key), body)
		if a.Code >= 300 && a.Code != http.StatusPaymentRequired {
			t.Errorf("%s: got %d %s, want 402", path, a.Code, a.Body)
		}
		return a
	}
	amount := 1000 + dice.IntN(9000)
	source, capture := "tok_visa", true
	switch dice.IntN(6) {
	case 0:
		source = "tok_chargeDeclined"
	case 1:
		capture = false
	}
	a := post("/v1/charges",
		"", fmt.Sprintf(`{"amount":%d,"currency":"usd","source":%q,"capture":%t}`, amount, source,
			capture))
	if a.Code == http.StatusPaymentRequired {
		return
	}
	if !capture {
		amount -= dice.IntN(500)
		post("/v1/charges/"+a.ID()+"/capture", "-capture", fmt.Sprintf(`{"amount":%d}`, amount))
	}
	for i := range dice.IntN(3) {
		r := post("/v1/refunds", fmt.Sprint("-refund", i),
			fmt.Sprintf(`{"charge":%q,"amount":%d}`, a.ID(), 1+dice.IntN(amount/2)))
		if dice.IntN(3) == 0 {
			var refund struct{ Provider struct{ ID string } }
			r.JSON(&refund)
			w.sim.control(http.MethodPost, "fail_refund",
				map[string]string{"refund": refund.Provider.ID}, nil)
		}
	}
}

// failedRefunds is how many refunds have failed at the provider.
func (s *sim) failedRefunds() (n int) {
	var ledger struct{ Refunds []struct{ Status string } }
	s.control(http.MethodGet, "ledger", nil, &ledger)
	for _, r := range ledger.Refunds {
		if r.Status == "failed" {
			n++
		}
	}
	return n
}

// forwarder hands what is delivered on to a consumer that is killed again and again, and so has
// another address each time. If it does not answer, neither does the forwarder: as if the one
// connection had ended.
type forwarder struct {
	to     atomic.Pointer[string]
	client http.Client
}

func (f *forwarder) answer(w http.ResponseWriter, r *http.Request) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, *f.to.Load(), r.Body)
	if err != nil {
		panic(err)
	}
	req.Header = r.Header.Clone()
	res, err := f.client.Do(req)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	w.WriteHeader(res.StatusCode)
}

// What docs/events.md promises: two relays, a consumer that is sent events and one that reads them
// are killed at random while charges, captures, refunds and their failures run. In the end both
// consumers have each event once, and their sums are the provider's.
func TestKilledOnBothSides(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	// of what is charged and when is killed; what that meets, the machine decides
	t.Logf("seed %d", seed)
	dice := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
	w := newWorld(t, allowPrivate, "PAIDONCE_WORKERS=inbox", "STRIPE_WEBHOOK_SECRET=whsec_provider")
	c := w.client(w.serve())
	w.sim.control(http.MethodPost, "webhooks",
		map[string]any{"endpoints": []map[string]string{{"url": c.BaseURL +
			"/v1/provider/stripe/webhooks", "secret": "whsec_provider"}}}, nil)
	s, f := newSink(t), &forwarder{}
	s.answer = func(w http.ResponseWriter, r *http.Request, _ event, _ int) {
		f.answer(w, r)
		// the way back: a relay that is killed now does not learn that it was taken
		time.Sleep(rand.N(10 * time.Millisecond))
	}
	s.listen(c)
	sent, read := host.create(t, false), host.create(t, false)
	env := []string{
		"WEBHOOK_SECRET=" + s.secret, "PAIDONCE_URL=" + c.BaseURL, "PAIDONCE_API_KEY=" + w.apiKey,
	}
	w.hurry(300 * time.Millisecond)
	trades, slower := 50, 1
	if race.Enabled { // its processes start slowly, and would be killed before they do anything
		trades, slower = 15, 3
	}
	var kills atomic.Int64
	over := make(chan struct{})
	var killing, trading sync.WaitGroup
	// lives so many milliseconds at most, once it is at work
	mortal := func(n uint64, most int, start func() *proc) {
		p, dice := start(), dice(n)
		killing.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Duration(slower*(50+dice.IntN(most))) * time.Millisecond):
				}
				p.kill()
				kills.Add(1)
				p = start()
			}
		})
	}
	mortal(1, 300, func() *proc { return w.relay() })
	mortal(2, 600, func() *proc { return w.relay() })
	mortal(3, 300, func() *proc {
		p := w.consumer(sent, env)
		f.to.Store(&p.url)
		return p
	})
	mortal(4, 300, func() *proc {
		p := w.consumer(read, env, "-pull")
		p.await("reading events")
		return p
	})
	for i := range 2 {
		trading.Go(func() {
			dice := dice(uint64(10 + i))
			began := time.Now()
			// On a busy machine the relays may live too shortly to deliver meanwhile; they do so
			// later.
			for n := 0; n < trades || s.doubled() < 3 && time.Since(began) < patience; n++ {
				w.trade(c, fmt.Sprint("trader-", i), n, dice)
				time.Sleep(time.Duration(dice.IntN(40)) * time.Millisecond)
			}
		})
	}
	trading.Wait()
	close(over)
	killing.Wait()
	net := w.sim.net()
	eventually(t, "refunds that failed are known", func() bool {
		return querySQL[int64](t, w.dbURL,
			"SELECT sum(amount_captured - amount_refunded)::bigint FROM charges") == net &&
			// The charge's own news may come first, and tell the sum alone.
			querySQL[int](t, w.dbURL,
				"SELECT count(*) FROM refunds WHERE status = 'failed'") == w.sim.failedRefunds()
	})
	w.awaitDelivered()
	stored := w.stored()
	eventually(t, "all is read", func() bool {
		return querySQL[int](t, read, "SELECT count(*) FROM books.seen_events") == len(stored)
	})
	if s.doubled() == 0 {
		t.Error("no relay was killed between an answer and the writing of it")
	}
	t.Logf("%d kills, %d events, %d of them taken more than once; they tell %v", kills.Load(),
		len(stored), s.doubled(), s.types())
	for _, books := range []string{sent, read} {
		checkConsumer(t, books, stored, net)
	}
}

// checkConsumer compares the ledger of a consumer with what was committed, and with what the
// provider has.
func checkConsumer(t *testing.T, books string, stored map[string]string, net int64) {
	t.Helper()
	var lines map[string]int
	text := querySQL[string](t, books,
		`SELECT coalesce(jsonb_object_agg(event_id, n), '{}')::text FROM (SELECT event_id, count(*) AS n FROM books.ledger GROUP BY 1) l`)
	if err := json.Unmarshal([]byte(text), &lines); err != nil {
		t.Fatal(err)
	}
	seen := querySQL[int](t, books, "SELECT count(*) FROM books.seen_events")
	if seen != len(stored) {
		t.Errorf("%d events are remembered, %d are committed", seen, len(stored))
	}
	newest := map[string]event{}
	for id, payload := range stored {
		e, want := validEvent(t, []byte(payload)), 0
		if strings.HasPrefix(e.Type, "charge.") { // the example has an effect for these
			want = 1
			if e.Sequence > newest[e.Data.Object.ID].Sequence {
				newest[e.Data.Object.ID] = e
			}
		}
		if lines[id] != want {
			t.Errorf("%s has its effect %d times, want %d", id, lines[id], want)
		}
		delete(lines, id)
	}
	if len(lines) > 0 {
		t.Errorf("effects of events that are not committed: %v", lines)
	}
	if sum := querySQL[int64](t, books,
		"SELECT coalesce(sum(amount), 0)::bigint FROM books.ledger"); sum != net {
		t.Errorf("the consumer has %d in its books, the provider %d", sum, net)
	}
	for id, e := range newest {
		if got := querySQL[string](t, books,
			"SELECT status || ' ' || sequence FROM books.charges WHERE id = $1",
			id); got != fmt.Sprint(e.Data.Object.Status, " ", e.Sequence) {
			t.Errorf("of %s the consumer knows %q, the newest event is %+v", id, got, e)
		}
	}
}

// net is what the provider has taken and not given back. What a capture left of an authorisation
// counts there as given back.
func (s *sim) net() (sum int64) {
	s.t.Helper()
	var l struct {
		Charges []struct {
			Amount         int64
			AmountRefunded int64 `json:"amount_refunded"`
			Captured       bool
		}
	}
	s.control(http.MethodGet, "ledger", nil, &l)
	for _, c := range l.Charges {
		if c.Captured {
			sum += c.Amount - c.AmountRefunded
		}
	}
	return sum
}
