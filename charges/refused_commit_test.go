package charges_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/provider"
)

// givingTwice is a provider that gives the id of what it made first to all that it makes from then
// on.
type givingTwice struct {
	provider.Provider
	mu             sync.Mutex
	charge, refund string
}

func (p *givingTwice) first(at *string, id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *at == "" {
		*at = id
	}
	return *at
}

func (p *givingTwice) Charge(
	ctx context.Context, r *provider.ChargeRequest,
) (provider.ChargeOutcome, error) {
	o, err := p.Provider.Charge(ctx, r)
	if o.Charge != nil {
		o.Charge.ID = p.first(&p.charge, o.Charge.ID)
	}
	return o, err
}

func (p *givingTwice) ConfirmIntent(
	ctx context.Context, r provider.ConfirmRequest,
) (provider.IntentOutcome, error) {
	o, err := p.Provider.ConfirmIntent(ctx, r)
	if o.Intent != nil && o.Intent.Charge != nil {
		o.Intent.Charge.ID = p.first(&p.charge, o.Intent.Charge.ID)
	}
	return o, err
}

func (p *givingTwice) Refund(
	ctx context.Context, r provider.RefundRequest,
) (provider.RefundOutcome, error) {
	o, err := p.Provider.Refund(ctx, r)
	if o.Refund != nil {
		o.Refund.ID = p.first(&p.refund, o.Refund.ID)
	}
	return o, err
}

// An id that the provider has given before: the operation waits for an operator, who is told both,
// and nothing is sent again.
func TestProviderGivesAnIDTwice(t *testing.T) {
	t.Parallel()
	for _, s := range everyStep() {
		if s.capture || s.name == "charge.intent created" || s.ends && s.name != "refund.hold" {
			continue // no id comes with it, or none that is stored
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			w.Intents = s.intents
			var charges [2]string
			if s.on {
				for n := range charges {
					charges[n] = s.prepare(w.Start(), fmt.Sprint("charge", n))
				}
			}
			i := w.StartWith(nil, &givingTwice{Provider: w.Provider})
			first, err := s.do(i, w, "first", charges[0])
			if err != nil || first.Answer.Code >= http.StatusMultipleChoices {
				t.Fatalf("got %d %s, %v, want success", first.Answer.Code, first.Answer.Body, err)
			}
			requests := 0
			for n := range 3 {
				_, err = s.do(i, w, "second", charges[1])
				var parked *idemkeys.Parked
				if !errors.As(err, &parked) {
					t.Fatalf("%v, want it parked", err)
				}
				if n == 0 {
					requests = int(w.Sim.Stats().Requests)
				}
			}
			if now := int(w.Sim.Stats().Requests); now != requests {
				t.Errorf("the provider was asked %d times more", now-requests)
			}
			saysBoth(w, t, i)
		})
	}
}

// saysBoth checks that the parked operation shows the provider's id and both of ours.
func saysBoth(w *world.World, t *testing.T, i world.Instance) {
	t.Helper()
	var second, op, ours, theirs string
	if err := w.Pool.QueryRow(
		t.Context(), `SELECT resource_id, operation_id FROM idempotency_keys WHERE key = 'second'`,
	).Scan(&second, &op); err != nil {
		t.Fatal(err)
	}
	if err := w.Pool.QueryRow(t.Context(), `SELECT k.resource_id, coalesce(r.provider_id, c.provider_id) FROM idempotency_keys k
		LEFT JOIN charges c ON c.id = k.resource_id LEFT JOIN refunds r ON r.id = k.resource_id WHERE k.key = 'first'`).Scan(&ours, &theirs); err != nil {
		t.Fatal(err)
	}
	h, err := i.Engine.Show(t.Context(), op)
	if err != nil || h.State != idemkeys.StateParked {
		t.Fatalf("%s, %v", h.State, err)
	}
	for _, id := range []string{second, ours, theirs} {
		if !strings.Contains(h.LastError, id) {
			t.Errorf("%q does not name %s", h.LastError, id)
		}
	}
}

// sometimes gives an id twice for one amount only.
type sometimes struct {
	provider.Provider
	twice *givingTwice
}

func (p sometimes) Charge(
	ctx context.Context, r *provider.ChargeRequest,
) (provider.ChargeOutcome, error) {
	if r.Amount == 666 {
		return p.twice.Charge(ctx, r)
	}
	return p.Provider.Charge(ctx, r)
}

// Charges that share a statement with such a charge are not harmed.
func TestABadRowHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.StartWith(nil, sometimes{w.Provider, &givingTwice{Provider: w.Provider}})
	bad := world.Twenty
	bad.Amount = 666
	i.MustCharge("first", bad)
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() {
			if n%10 == 0 {
				_, err := i.Charges.Create(
					context.Background(), w.Request(fmt.Sprint("bad", n)), bad,
				)
				var parked *idemkeys.Parked
				if !errors.As(err, &parked) {
					t.Errorf("%v, want it parked", err)
				}
				return
			}
			if res, err := i.Charge(fmt.Sprint("good", n)); err != nil ||
				res.Answer.Code != http.StatusCreated {
				t.Errorf("got %d, %v, want 201", res.Answer.Code, err)
			}
		})
	}
	group.Wait()
}

// A schema that a binary does not fit, in the middle of a deployment, parks nothing: the outcome is
// written when it is over.
func TestHalfDoneDeploymentParksNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ breaks, mends string }{
		"a column is missing": {
			`ALTER TABLE outbox RENAME COLUMN payload TO payload_2`,
			`ALTER TABLE outbox RENAME COLUMN payload_2 TO payload`,
		},
		"a table is missing": {
			`ALTER TABLE outbox RENAME TO outbox_2`, `ALTER TABLE outbox_2 RENAME TO outbox`,
		},
		"a new column is not given": {
			`ALTER TABLE outbox ADD COLUMN later text NOT NULL DEFAULT ''; ALTER TABLE outbox ALTER COLUMN later DROP DEFAULT`,
			`ALTER TABLE outbox DROP COLUMN later`,
		},
	} {
		for _, s := range everyStep() {
			if s.name == "charge.intent created" {
				continue // its commit writes no such row
			}
			t.Run(name+", "+s.name, func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				w.Intents = s.intents
				i := w.Start()
				charge := s.prepare(i, "charge")
				for sql := range strings.SplitSeq(c.breaks, ";") {
					w.Exec(sql)
				}
				_, err := s.do(i, w, "k", charge)
				world.WantUnknown(t, err)
				for range 2 {
					if counts := w.Pass(i); counts.Waiting != 1 {
						t.Errorf("got %+v: %s, want 1 waiting", counts, w.LastError("k"))
					}
				}
				if n := w.Count(
					`SELECT count(*) FROM idempotency_keys WHERE key = 'k' AND next_run_at > clock_timestamp() + interval '200 milliseconds'`,
				); n != 1 {
					t.Error("it is tried again without a pause")
				}
				w.Exec(c.mends)
				if counts := w.Pass(i); counts.Finished != 1 {
					t.Errorf("got %+v: %s, want 1 finished", counts, w.LastError("k"))
				}
				if moved := s.moved(w.Sim.Stats()); s.on && moved != 1 {
					t.Errorf("money moved %d times", moved)
				}
				if end := ended(w, "k"); end != "settled" {
					t.Errorf("it ended %q", end)
				}
			})
		}
	}
}
