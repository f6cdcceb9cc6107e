package sim_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/history"
	"paidonce/idemkeys"
	"paidonce/internal/dbtest"
	"paidonce/internal/world"
	"paidonce/problem"
	"paidonce/provider/stripesim"
)

// restorable is a world whose clock is the test's own, and whose database can be put back to the
// moment of a copy.
type restorable struct {
	*world.World
	instance world.Instance
	lane     *lane
	now      time.Time
}

func newRestorable(t *testing.T, intents bool) *restorable {
	t.Helper()
	l := newLane(t)
	w := &world.World{Database: &dbtest.Database{T: t, Pool: l.pool}, Sim: l.server, Provider: l.psp, Clock: laneClock{l}, Key: l.key, Intents: intents, Keys: idemkeys.Config{
		StaleAfter: 90 * time.Second, CallLimit: 2 * time.Second, SendWindow: 23 * time.Hour,
		LookupSpan: 2 * time.Minute,
	}}
	r := &restorable{World: w, instance: w.Start(), lane: l, now: epoch}
	r.advance(0)
	return r
}

func (r *restorable) advance(d time.Duration) {
	r.T.Helper()
	r.now = r.now.Add(d)
	if err := r.lane.setClock(r.now); err != nil {
		r.T.Fatal(err)
	}
}

// copyDatabase copies the database. putBack forgets all that was written since, and rebuilds what
// the provider has of it.
func (r *restorable) copyDatabase() (putBack func()) {
	for _, table := range laneTables {
		r.Exec(fmt.Sprintf("CREATE TABLE sim.copy_of_%s AS TABLE public.%[1]s", table))
	}
	return func() {
		r.T.Helper()
		r.Exec("TRUNCATE " + strings.Join(laneTables, ", "))
		for _, table := range laneTables {
			r.Exec(
				fmt.Sprintf(
					"INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT * FROM sim.copy_of_%[1]s", table,
				),
			)
		}
		b := charges.NewRebuilder(
			charges.NewStore(charges.StoreConfig{Pool: r.Pool, KeyTTL: 24 * time.Hour}), r.Provider,
			charges.Config{Installation: world.Installation, Intents: r.Intents}, world.Quiet,
		)
		since, err := b.RebuildFrom(r.T.Context())
		for range 2 { // it may be interrupted, and run again
			if err == nil {
				err = b.Rebuild(
					r.T.Context(), since,
					func(context.Context, history.Counts) error { return nil },
				)
			}
		}
		if err != nil {
			r.T.Fatal(err)
		}
	}
}

func (r *restorable) arm(path string, count int, f stripesim.Fault) {
	r.T.Helper()
	rule := stripesim.Rule{
		Match: stripesim.Match{Method: http.MethodPost, Path: path}, Count: count, Fault: f,
	}
	if _, err := r.Sim.AddFault(rule); err != nil {
		r.T.Fatal(err)
	}
}

// text is the only value that a query gives; empty where there is none.
func (r *restorable) text(query string, args ...any) (s string) {
	r.T.Helper()
	if err := r.Pool.QueryRow(
		r.T.Context(), "SELECT coalesce(("+query+"), '')", args...,
	).Scan(&s); err != nil {
		r.T.Fatal(err)
	}
	return s
}

func (r *restorable) events() string {
	r.T.Helper()
	return r.text("SELECT string_agg(event_id, ' ' ORDER BY event_id) FROM outbox")
}

// passes makes passes, a minute apart: with a span of two minutes, as many as an operation may
// take.
func (r *restorable) passes() {
	r.T.Helper()
	for range 8 {
		r.Pass(r.instance)
		r.advance(time.Minute)
	}
}

// moves is how often the provider was asked to move money.
func (r *restorable) moves() (n int64) {
	s := r.Sim.Stats()
	return s.ChargeRequests + s.CaptureRequests + s.RefundRequests + s.IntentRequests + s.ConfirmRequests
}

// listed are the provider's charges of an operation.
func (r *restorable) listed(operation string) (ids []string) {
	run := run{lane: r.lane}
	for _, c := range run.ledger()[operation] {
		ids = append(ids, c.ID)
	}
	return ids
}

// checkUnchanged compares with what was before the database was put back.
func (r *restorable) checkUnchanged(t *testing.T, events string, moves int64) {
	t.Helper()
	if got := r.events(); got != events {
		t.Errorf("events:\n%s\nbefore:\n%s", got, events)
	}
	if got := r.moves(); got != moves {
		t.Errorf("%d requests that move money were sent since", got-moves)
	}
	if n := r.Count(
		"SELECT count(*) FROM charges WHERE settled_at IS NULL OR amount_refund_pending > 0",
	); n != 0 {
		t.Errorf("%d charges are not settled", n)
	}
}

// A charge that the database had forgotten has its reference again when it is rebuilt, and keeps
// others from paying the order.
func TestRebuiltChargeHoldsItsReference(t *testing.T) {
	t.Parallel()
	r := newRestorable(t, false)
	order := world.Twenty
	order.Reference = "order 1"
	putBack := r.copyDatabase()
	r.advance(time.Minute)
	first := r.instance.MustCharge("k1", order)
	besides := order
	besides.DuplicateOf = first
	second := r.instance.MustCharge("k2", besides)
	putBack()
	_, err := r.instance.Charges.Create(t.Context(), r.Request("k3"), order)
	var refused *problem.Error
	if !errors.As(err, &refused) || refused.Code != problem.ReferenceAlreadyPaid ||
		refused.Charge != second {
		t.Errorf("got %v; want a refusal because of %s", err, second)
	}
	if n := r.Count(`SELECT count(*) FROM charges WHERE reference = 'order 1' AND NOT reference_yielded
		AND (id = $1 AND duplicate_of IS NULL OR id = $2 AND duplicate_of = $1)`, first, second); n != 2 {
		t.Errorf("%d of the two charges are as they were", n)
	}
}
