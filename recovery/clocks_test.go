package recovery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/provider"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

// skews are how far the provider's clock is ahead of the database's.
var skews = []time.Duration{7 * time.Minute, -7 * time.Minute, 30 * time.Minute, -30 * time.Minute, time.Hour, -time.Hour}

// An operation whose charge was made and whose answer was lost is settled with that charge, however far the clocks are apart, whether they were so at
// the attempt or were set since, and whether its key's window is open (where the provider has forgotten the key) or over.
func TestSkewedClocks(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"charge", "intent", "refund"} {
		for _, skew := range skews {
			t.Run(fmt.Sprint(kind, " ", skew), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.intents = kind == "intent"
				i := w.start(nil, crowded{w.psp})
				for _, when := range []string{"before the claim", "before the attempt", "since"} {
					for _, late := range []time.Duration{0, 25 * time.Hour} {
						w.loses(i, kind, skew, when, late)
					}
				}
			})
		}
	}
}

// loses loses an answer with clocks that are so far apart, and wants the operation to end so much later with what was made.
func (w *world) loses(i instance, kind string, skew time.Duration, when string, late time.Duration) {
	w.t.Helper()
	key, charge := fmt.Sprint(when, late), ""
	if kind == "refund" {
		charge = i.made(w, "charged"+key, twenty)
	}
	do := func() (err error) {
		if kind == "refund" {
			_, err = i.refund(w, key, charge, 2000)
		} else {
			_, err = i.charge(w, key)
		}
		return err
	}
	apart := time.Duration(0)
	if when == "before the claim" {
		apart = skew
	}
	w.sim.SetClock(apart)
	_, _ = w.psp.Account(w.t.Context()) // what was heard of the provider before the claim
	if when == "before the attempt" {
		apart = skew
	}
	w.sim.SetClock(apart)
	w.loseAnswer(kind)
	wantUnknown(w.t, do())
	if when == "since" {
		apart = skew
	}
	w.sim.SetClock(apart + late)
	w.age(late)
	if err := w.sim.ForgetKeys(""); err != nil {
		w.t.Fatal(err)
	}
	made := w.sim.Stats()
	for n := 0; ; n++ {
		err := do()
		if err == nil {
			break
		}
		if wantUnknown(w.t, err); n == 2 { // at the first it may be seen that a clock was set
			w.t.Fatalf("%s, %v later: %v", when, late, err)
		}
	}
	now := w.sim.Stats()
	if w.intents { // which is charged only now
		now.Succeeded--
	}
	if now.Succeeded != made.Succeeded || now.Refunds != made.Refunds || now.Intents != made.Intents {
		w.t.Errorf("%s, %v later: something was made twice", when, late)
	}
}

// As above for a claim of which only our own time is known, as those of earlier versions.
func TestSkewedClocksAndNoTimeOfTheClaim(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		w := newWorld(t)
		w.sim.SetClock(skew)
		w.clock = noClock{}
		before := w.start(nil, crowded{w.psp})
		w.clock = w.psp
		i := w.start(nil, crowded{w.psp})
		w.loseAnswer("charge")
		_, err := before.charge(w, "k")
		wantUnknown(t, err)
		if err := w.sim.ForgetKeys(""); err != nil {
			t.Fatal(err)
		}
		if res, err := i.charge(w, "k"); err != nil || res.Answer.Code != http.StatusCreated {
			t.Errorf("%v: %d, %v", skew, res.Answer.Code, err)
		}
		w.books(1)
	}
}

// crowded is a provider's account on which there is so much that a look-up sees its window, widened by five minutes, and nothing else.
type crowded struct{ provider.Provider }

func within(l provider.Lookup, at time.Time) bool {
	const allowance = 5*time.Minute + time.Second
	return !at.Before(l.From.Add(-allowance)) && (l.To.IsZero() || !at.After(l.To.Add(allowance)))
}

func (p crowded) FindCharge(ctx context.Context, l provider.Lookup) (hits []provider.Charge, err error) {
	all, err := p.Provider.FindCharge(ctx, l)
	for _, c := range all {
		if within(l, c.Created) {
			hits = append(hits, c)
		}
	}
	return hits, err
}

func (p crowded) FindIntent(ctx context.Context, l provider.Lookup) (hits []provider.Intent, err error) {
	all, err := p.Provider.FindIntent(ctx, l)
	for _, c := range all {
		if within(l, c.Created) {
			hits = append(hits, c)
		}
	}
	return hits, err
}

// loseAnswer loses the answer to the next request that makes one of these.
func (w *world) loseAnswer(kind string) {
	w.t.Helper()
	path := map[string]string{"charge": "/v1/charges", "intent": "/v1/payment_intents", "refund": "/v1/refunds"}[kind]
	if _, err := w.sim.AddFault(stripesim.Rule{Match: stripesim.Match{Method: http.MethodPost, Path: path}, Count: 1, Fault: stripesim.Fault{Type: stripesim.DropAfter}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) onlyCharge() (id string) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), `SELECT id FROM charges`).Scan(&id); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// A person's word that nothing moved is checked in the provider's time, too.
func TestResolveWithSkewedClocks(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		w := newWorld(t)
		w.sim.SetClock(skew)
		i := w.start(nil, crowded{w.psp})
		w.loseAnswer("charge")
		var unknown *idemkeys.Unknown
		if _, err := i.charge(w, "k"); !errors.As(err, &unknown) {
			t.Fatal(err)
		}
		word := idemkeys.Resolution{Reason: "it was not", By: "me"}
		if _, err := i.engine.Resolve(t.Context(), unknown.OperationID, word); err == nil {
			t.Errorf("%v: a charge that was made was declared not to be", skew)
		}
		w.clock = noClock{}
		blind := w.start(nil, empty{w.psp})
		if _, err := blind.engine.Resolve(t.Context(), unknown.OperationID, word); err == nil {
			t.Errorf("%v: it was believed although the provider's time is not known", skew)
		}
	}
}

// noClock is a provider that tells no time.
type noClock struct{}

func (noClock) Now() (time.Time, bool) { return time.Time{}, false }

func (noClock) Account(context.Context) (provider.Account, error) { return provider.Account{}, nil }

// empty is a provider that has nothing.
type empty struct{ provider.Provider }

func (empty) FindCharge(context.Context, provider.Lookup) ([]provider.Charge, error) { return nil, nil }

func (empty) FindRefund(context.Context, provider.Lookup) ([]provider.Refund, error) { return nil, nil }

func (empty) FindIntent(context.Context, provider.Lookup) ([]provider.Intent, error) { return nil, nil }

// A clock that is set makes no span of two minutes out of none, and of misses before it none counts; nor does any as long as the provider's time is
// not known. Once the clocks are steady, absence is proven as ever.
func TestAJumpProvesNoAbsence(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"charge", "intent", "refund"} {
		for _, jump := range []time.Duration{2 * time.Minute, -2 * time.Minute, time.Hour, -time.Hour} {
			t.Run(fmt.Sprint(kind, jump), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.intents = kind == "intent"
				i := w.start(nil, empty{w.psp})
				if kind == "refund" {
					if _, err := i.charge(w, "charged"); err != nil {
						t.Fatal(err)
					}
				}
				path := map[string]string{"charge": "/v1/charges", "intent": "/v1/payment_intents", "refund": "/v1/refunds"}[kind]
				if _, err := w.sim.AddFault(stripesim.Rule{Match: stripesim.Match{Method: http.MethodPost, Path: path}, Count: 1, Fault: stripesim.Fault{Type: stripesim.DropBefore}}); err != nil {
					t.Fatal(err)
				}
				if kind == "refund" {
					_, err := i.refund(w, "k", w.onlyCharge(), 2000)
					wantUnknown(t, err)
				} else {
					_, err := i.charge(w, "k")
					wantUnknown(t, err)
				}
				w.age(25 * time.Hour)
				w.clock = noClock{}
				blind := w.start(nil, empty{w.psp})
				for range 5 {
					w.pass(blind)
				}
				if n := w.count(`SELECT lookup_misses FROM idempotency_keys WHERE status = 'in_progress'`); n != 0 {
					t.Fatalf("%d misses count although the provider's time is not known", n)
				}
				for range 3 {
					w.pass(i)
				}
				// The database's clock is set ahead by so much, or the provider's back: what is stored of the first miss is as old as the span.
				w.sim.SetClock(-jump)
				_, _ = w.psp.Account(t.Context())
				w.exec(`UPDATE idempotency_keys SET first_miss_at = first_miss_at - interval '3 minutes', miss_skew = miss_skew - 180 WHERE status = 'in_progress' AND $1`, jump < 0)
				w.exec(`UPDATE idempotency_keys SET first_miss_at = first_miss_at - $1::interval WHERE status = 'in_progress' AND $2`, jump, jump > 0)
				if c := w.pass(i); c.Finished != 0 {
					t.Fatalf("after a jump: %+v", c)
				}
				if n := w.count(`SELECT lookup_misses FROM idempotency_keys WHERE status = 'in_progress'`); n != 1 {
					t.Errorf("%d misses count after a jump", n)
				}
				w.pass(i)
				w.exec(`UPDATE idempotency_keys SET first_miss_at = first_miss_at - interval '3 minutes' WHERE status = 'in_progress'`)
				w.exec(`UPDATE idempotency_keys SET miss_skew = miss_skew WHERE status = 'in_progress'`)
				if c := w.pass(i); c.Finished != 1 {
					t.Errorf("with steady clocks: %+v", c)
				}
			})
		}
	}
}

// A double whose "created" is minutes off while its Date is right (net/http sets that by itself) still shows what it made.
func TestCreatedIsOffAndDateIsRight(t *testing.T) {
	t.Parallel()
	created := regexp.MustCompile(`"created":(\d+)`)
	for _, off := range skews {
		w := newWorld(t)
		double := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			w.sim.ServeHTTP(rec, r)
			body := created.ReplaceAllFunc(rec.Body.Bytes(), func(m []byte) []byte {
				at, _ := strconv.ParseInt(string(m[len(`"created":`):]), 10, 64)
				return strconv.AppendInt([]byte(`"created":`), at+int64(off.Seconds()), 10)
			})
			for name, values := range rec.Header() {
				out.Header()[name] = values
			}
			out.Header().Set("Content-Length", strconv.Itoa(len(body)))
			out.WriteHeader(rec.Code)
			_, _ = out.Write(body)
		}))
		psp, err := stripe.New(stripe.Config{APIKey: "sk_test_x", BaseURL: double.URL, Timeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		w.clock = psp
		i := w.start(nil, psp)
		for n, late := range []bool{false, true} {
			w.fault(1, stripesim.Fault{Type: stripesim.StatusAfter, Status: 500})
			_, err := i.charge(w, fmt.Sprint(n))
			wantUnknown(t, err)
			if err := w.sim.ForgetKeys(""); err != nil {
				t.Fatal(err)
			}
			if late {
				w.age(25 * time.Hour)
			}
			if res, err := i.charge(w, fmt.Sprint(n)); err != nil || res.Answer.Code != http.StatusCreated {
				t.Errorf("%v: %d, %v", off, res.Answer.Code, err)
			}
			w.books(n + 1)
		}
		double.Close()
	}
}

// The log is told once when the clocks are more than a minute apart, and again when that changes.
func TestClocksAreToldOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var out bytes.Buffer
	clocks := charges.NewClocks(w.psp, slog.New(slog.NewTextHandler(&out, nil)))
	if _, known := clocks.Skew(); known {
		t.Error("a skew is known before anything was asked")
	}
	cfg := charges.Config{Installation: "test", LookupMisses: 3, Clocks: clocks}
	i := w.start(nil, nil)
	service := charges.NewService(i.store, i.engine, cfg)
	for n, step := range []struct {
		clock time.Duration
		lines int
	}{{0, 0}, {0, 0}, {7 * time.Minute, 1}, {7 * time.Minute, 1}, {-time.Hour, 2}, {0, 3}} {
		w.sim.SetClock(step.clock)
		_, _ = w.psp.Account(t.Context())
		if _, err := service.Create(t.Context(), w.request(fmt.Sprint(n)), twenty); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(out.String(), "\n"); lines != step.lines {
			t.Errorf("step %d: %d lines:\n%s", n, lines, out.String())
		}
		if ahead, known := clocks.Skew(); !known || (ahead-step.clock).Abs() > 3*time.Second {
			t.Errorf("step %d: %v ahead, %v", n, ahead, known)
		}
	}
}

// The audit reads the same time on both sides.
func TestAuditWithSkewedClocks(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		w := newWorld(t)
		w.sim.SetClock(skew)
		i := w.start(nil, nil)
		w.loseAnswer("charge")
		_, err := i.charge(w, "k")
		wantUnknown(t, err)
		w.age(5 * time.Minute) // it is stuck
		for _, since := range []time.Duration{time.Minute, time.Hour} {
			var kinds []string
			now := time.Now()
			_, err = charges.Audit(t.Context(), i.store, w.psp, charges.AuditConfig{Installation: "test", StaleAfter: time.Second, Skew: skew},
				now.Add(-since), now.Add(5*time.Minute),
				func(d charges.Difference) error { kinds = append(kinds, d.Kind); return nil }, func(time.Time, charges.AuditCounts) {})
			if err != nil || len(kinds) != 1 || kinds[0] != charges.UnsettledHere {
				t.Errorf("%v, since %v: %v, %v", skew, since, kinds, err)
			}
		}
	}
}
