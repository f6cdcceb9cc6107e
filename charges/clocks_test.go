package charges_test

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
	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

// skews are how far the provider's clock is ahead of the database's.
var skews = []time.Duration{
	7 * time.Minute, -7 * time.Minute, 30 * time.Minute, -30 * time.Minute, time.Hour, -time.Hour,
}

// An operation whose charge was made and whose answer was lost is settled with that charge, however
// far the clocks are apart, whether they were so at the attempt or were set since, and whether its
// key's window is open (where the provider has forgotten the key) or over.
func TestSkewedClocks(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"charge", "intent", "refund"} {
		for _, skew := range skews {
			t.Run(fmt.Sprint(kind, " ", skew), func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				w.Intents = kind == "intent"
				i := w.StartWith(nil, crowded{w.Provider})
				for _, when := range []string{"before the claim", "before the attempt", "since"} {
					for _, late := range []time.Duration{0, 25 * time.Hour} {
						loses(w, i, kind, skew, when, late)
					}
				}
			})
		}
	}
}

// loses loses an answer with clocks that are so far apart, and wants the operation to end so much
// later with what was made.
func loses(
	w *world.World, i world.Instance, kind string, skew time.Duration, when string,
	late time.Duration,
) {
	w.T.Helper()
	key, charge := fmt.Sprint(when, late), ""
	if kind == "refund" {
		charge = i.MustCharge("charged"+key, world.Twenty)
	}
	do := func() (err error) {
		if kind == "refund" {
			_, err = i.Refund(key, charge, 2000)
		} else {
			_, err = i.Charge(key)
		}
		return err
	}
	apart := time.Duration(0)
	if when == "before the claim" {
		apart = skew
	}
	w.Sim.SetClock(apart)
	_, _ = w.Provider.Account(w.T.Context()) // what was heard of the provider before the claim
	if when == "before the attempt" {
		apart = skew
	}
	w.Sim.SetClock(apart)
	loseAnswer(w, kind)
	world.WantUnknown(w.T, do())
	if when == "since" {
		apart = skew
	}
	w.Sim.SetClock(apart + late)
	w.Age(late)
	if err := w.Sim.ForgetKeys(""); err != nil {
		w.T.Fatal(err)
	}
	made := w.Sim.Stats()
	for n := 0; ; n++ {
		err := do()
		if err == nil {
			break
		}
		if world.WantUnknown(w.T, err); n == 2 { // at the first it may be seen that a clock was set
			w.T.Fatalf("%s, %v later: %v", when, late, err)
		}
	}
	now := w.Sim.Stats()
	if w.Intents { // which is charged only now
		now.Succeeded--
	}
	if now.Succeeded != made.Succeeded || now.Refunds != made.Refunds ||
		now.Intents != made.Intents {
		w.T.Errorf("%s, %v later: something was made twice", when, late)
	}
}

// The same for a claim of which only our own time is known, as of earlier versions.
func TestSkewedClocksAndNoTimeOfTheClaim(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		w := world.New(t)
		w.Sim.SetClock(skew)
		w.Clock = noClock{}
		before := w.StartWith(nil, crowded{w.Provider})
		w.Clock = w.Provider
		i := w.StartWith(nil, crowded{w.Provider})
		loseAnswer(w, "charge")
		_, err := before.Charge("k")
		world.WantUnknown(t, err)
		if err := w.Sim.ForgetKeys(""); err != nil {
			t.Fatal(err)
		}
		if res, err := i.Charge("k"); err != nil || res.Answer.Code != http.StatusCreated {
			t.Errorf("%v: %d, %v", skew, res.Answer.Code, err)
		}
		w.CheckRecords(1)
	}
}

// crowded is a provider's account on which there is so much that a look-up sees its window, widened
// by five minutes, and nothing else.
type crowded struct{ provider.Provider }

func within(l provider.Lookup, at time.Time) bool {
	const allowance = 5*time.Minute + time.Second
	return !at.Before(l.From.Add(-allowance)) && (l.To.IsZero() || !at.After(l.To.Add(allowance)))
}

func (p crowded) FindCharge(
	ctx context.Context, l provider.Lookup,
) (hits []provider.Charge, err error) {
	all, err := p.Provider.FindCharge(ctx, l)
	for _, c := range all {
		if within(l, c.Created) {
			hits = append(hits, c)
		}
	}
	return hits, err
}

func (p crowded) FindIntent(
	ctx context.Context, l provider.Lookup,
) (hits []provider.Intent, err error) {
	all, err := p.Provider.FindIntent(ctx, l)
	for _, c := range all {
		if within(l, c.Created) {
			hits = append(hits, c)
		}
	}
	return hits, err
}

// loseAnswer loses the answer to the next request that makes one of these.
func loseAnswer(w *world.World, kind string) {
	w.T.Helper()
	path := map[string]string{
		"charge": "/v1/charges", "intent": "/v1/payment_intents", "refund": "/v1/refunds",
	}[kind]
	if _, err := w.Sim.AddFault(
		stripesim.Rule{
			Match: stripesim.Match{Method: http.MethodPost, Path: path}, Count: 1,
			Fault: stripesim.Fault{Type: stripesim.DropAfter},
		},
	); err != nil {
		w.T.Fatal(err)
	}
}

func onlyCharge(w *world.World) (id string) {
	w.T.Helper()
	if err := w.Pool.QueryRow(w.T.Context(), `SELECT id FROM charges`).Scan(&id); err != nil {
		w.T.Fatal(err)
	}
	return id
}

// An operator's word that nothing moved is checked in the provider's time, too.
func TestResolveWithSkewedClocks(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		w := world.New(t)
		w.Sim.SetClock(skew)
		i := w.StartWith(nil, crowded{w.Provider})
		loseAnswer(w, "charge")
		var unknown *idemkeys.Unknown
		if _, err := i.Charge("k"); !errors.As(err, &unknown) {
			t.Fatal(err)
		}
		word := idemkeys.Resolution{Reason: "it was not", By: "me"}
		if _, err := i.Engine.Resolve(t.Context(), unknown.OperationID, word); err == nil {
			t.Errorf("%v: a charge that was made was declared not to be", skew)
		}
		w.Clock = noClock{}
		blind := w.StartWith(nil, empty{w.Provider})
		if _, err := blind.Engine.Resolve(t.Context(), unknown.OperationID, word); err == nil {
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

func (empty) FindCharge(
	context.Context, provider.Lookup,
) ([]provider.Charge, error) {
	return nil, nil
}

func (empty) FindRefund(
	context.Context, provider.Lookup,
) ([]provider.Refund, error) {
	return nil, nil
}

func (empty) RefundsOf(context.Context, string) ([]provider.Refund, error) { return nil, nil }

func (empty) FindIntent(
	context.Context, provider.Lookup,
) ([]provider.Intent, error) {
	return nil, nil
}

// A clock that is set makes no span of two minutes out of none, and of misses before it none
// counts; nor does any as long as the provider's time is not known. Once the clocks are steady,
// absence is proven as ever.
func TestAJumpProvesNoAbsence(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"charge", "intent", "refund"} {
		for _, jump := range []time.Duration{
			2 * time.Minute, -2 * time.Minute, time.Hour, -time.Hour,
		} {
			t.Run(fmt.Sprint(kind, jump), func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				w.Intents = kind == "intent"
				i := w.StartWith(nil, empty{w.Provider})
				if kind == "refund" {
					if _, err := i.Charge("charged"); err != nil {
						t.Fatal(err)
					}
				}
				path := map[string]string{
					"charge": "/v1/charges", "intent": "/v1/payment_intents",
					"refund": "/v1/refunds",
				}[kind]
				if _, err := w.Sim.AddFault(
					stripesim.Rule{
						Match: stripesim.Match{Method: http.MethodPost, Path: path}, Count: 1,
						Fault: stripesim.Fault{Type: stripesim.DropBefore},
					},
				); err != nil {
					t.Fatal(err)
				}
				if kind == "refund" {
					_, err := i.Refund("k", onlyCharge(w), 2000)
					world.WantUnknown(t, err)
				} else {
					_, err := i.Charge("k")
					world.WantUnknown(t, err)
				}
				w.Age(25 * time.Hour)
				w.Clock = noClock{}
				blind := w.StartWith(nil, empty{w.Provider})
				for range 5 {
					w.Pass(blind)
				}
				if n := w.Count(
					`SELECT lookup_misses FROM idempotency_keys WHERE status = 'in_progress'`,
				); n != 0 {
					t.Fatalf("%d misses count although the provider's time is not known", n)
				}
				for range 3 {
					w.Pass(i)
				}
				// The database's clock is set ahead by so much, or the provider's back: what is
				// stored of the first miss is as old as the span.
				w.Sim.SetClock(-jump)
				_, _ = w.Provider.Account(t.Context())
				w.Exec(
					`UPDATE idempotency_keys SET first_miss_at = first_miss_at - interval '3 minutes', miss_skew = miss_skew - 180 WHERE status = 'in_progress' AND $1`,
					jump < 0,
				)
				w.Exec(
					`UPDATE idempotency_keys SET first_miss_at = first_miss_at - $1::interval WHERE status = 'in_progress' AND $2`,
					jump, jump > 0,
				)
				if c := w.Pass(i); c.Finished != 0 {
					t.Fatalf("after a jump: %+v", c)
				}
				if n := w.Count(
					`SELECT lookup_misses FROM idempotency_keys WHERE status = 'in_progress'`,
				); n != 1 {
					t.Errorf("%d misses count after a jump", n)
				}
				w.Pass(i)
				w.Exec(
					`UPDATE idempotency_keys SET first_miss_at = first_miss_at - interval '3 minutes' WHERE status = 'in_progress'`,
				)
				w.Exec(
					`UPDATE idempotency_keys SET miss_skew = miss_skew WHERE status = 'in_progress'`,
				)
				if c := w.Pass(i); c.Finished != 1 {
					t.Errorf("with steady clocks: %+v", c)
				}
			})
		}
	}
}

// A double whose "created" is minutes off while its Date is right (net/http sets that by itself)
// still shows what it made.
func TestCreatedIsOffAndDateIsRight(t *testing.T) {
	t.Parallel()
	created := regexp.MustCompile(`"created":(\d+)`)
	for _, off := range skews {
		w := world.New(t)
		double := httptest.NewServer(http.HandlerFunc(func(
			out http.ResponseWriter, r *http.Request,
		) {
			rec := httptest.NewRecorder()
			w.Sim.ServeHTTP(rec, r)
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
		psp, err := stripe.New(
			stripe.Config{APIKey: "sk_test_x", BaseURL: double.URL, Timeout: 2 * time.Second},
		)
		if err != nil {
			t.Fatal(err)
		}
		w.Clock = psp
		i := w.StartWith(nil, psp)
		for n, late := range []bool{false, true} {
			w.ChargeFault(1, stripesim.Fault{Type: stripesim.StatusAfter, Status: 500})
			_, err := i.Charge(fmt.Sprint(n))
			world.WantUnknown(t, err)
			if err := w.Sim.ForgetKeys(""); err != nil {
				t.Fatal(err)
			}
			if late {
				w.Age(25 * time.Hour)
			}
			if res, err := i.Charge(fmt.Sprint(n)); err != nil ||
				res.Answer.Code != http.StatusCreated {
				t.Errorf("%v: %d, %v", off, res.Answer.Code, err)
			}
			w.CheckRecords(n + 1)
		}
		double.Close()
	}
}

// The log is told once when the clocks are more than a minute apart, and again when that changes.
func TestClocksAreToldOf(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	var out bytes.Buffer
	clocks := charges.NewClocks(w.Provider, slog.New(slog.NewTextHandler(&out, nil)))
	if _, known := clocks.Skew(); known {
		t.Error("a skew is known before anything was asked")
	}
	cfg := charges.Config{Installation: "test", LookupMisses: 3, Clocks: clocks}
	i := w.Start()
	service := charges.NewService(i.Store, i.Engine.Runner, cfg)
	for n, step := range []struct {
		clock time.Duration
		lines int
	}{{0, 0}, {0, 0}, {7 * time.Minute, 1}, {7 * time.Minute, 1}, {-time.Hour, 2}, {0, 3}} {
		w.Sim.SetClock(step.clock)
		_, _ = w.Provider.Account(t.Context())
		if _, err := service.Create(
			t.Context(), w.Request(fmt.Sprint(n)), world.Twenty,
		); err != nil {
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
		w := world.New(t)
		w.Sim.SetClock(skew)
		i := w.Start()
		loseAnswer(w, "charge")
		_, err := i.Charge("k")
		world.WantUnknown(t, err)
		w.Age(5 * time.Minute) // it is stuck
		for _, since := range []time.Duration{time.Minute, time.Hour} {
			var kinds []string
			now := time.Now()
			_, err = charges.Audit(t.Context(), i.Store, w.Provider, charges.AuditConfig{
				Installation: "test", StaleAfter: time.Second, Skew: skew, Since: now.Add(-since),
				Until:    now.Add(5 * time.Minute),
				Report:   func(d charges.Difference) error { kinds = append(kinds, d.Kind); return nil },
				Progress: func(time.Time, charges.AuditCounts) {},
			})
			if err != nil || len(kinds) != 1 || kinds[0] != charges.UnsettledHere {
				t.Errorf("%v, since %v: %v, %v", skew, since, kinds, err)
			}
		}
	}
}
