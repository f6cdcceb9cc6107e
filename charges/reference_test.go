package charges_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/problem"
	"paidonce/provider/stripesim"
)

// order is a charge of $20 for an order.
func order(reference string) charges.Params {
	p := world.Twenty
	p.Reference = reference
	return p
}

// besides is another charge for an order, which is meant.
func besides(reference, of string) charges.Params {
	p := order(reference)
	p.DuplicateOf = of
	return p
}

// charge requests a charge with these parameters, which are part of the fingerprint.
func charge(w *world.World, i world.Instance, key string, p charges.Params) (idemkeys.Result, error) {
	r := w.Request(key)
	r.Fingerprint = idemkeys.NewFingerprint("POST", "/v1/charges", "", fmt.Append(nil, p))
	return i.Charges.Create(context.Background(), r, p)
}

func made(w *world.World, i world.Instance, key string, p charges.Params) string {
	w.T.Helper()
	res, err := charge(w, i, key, p)
	if err != nil {
		w.T.Fatal(err)
	}
	var c charges.Charge
	if err := json.Unmarshal(res.Answer.Body, &c); err != nil || c.Status != "succeeded" ||
		c.Reference == nil || *c.Reference != p.Reference {
		w.T.Fatalf("the charge is %s, %v", res.Answer.Body, err)
	}
	return c.ID
}

// refusedAs checks that nothing was begun, for this reason, which names a charge.
func refusedAs(t testing.TB, err error, code problem.Code, charge string) {
	t.Helper()
	var refused *idemkeys.Refused
	var why *problem.Error
	if !errors.As(err, &refused) || !errors.As(err, &why) || why.Code != code ||
		why.Charge != charge {
		t.Fatalf("got %v; want %s because of %s", err, code, charge)
	}
}

// Another key for an order that is paid learns which charge paid it, and is not spent. The first
// key replays.
func TestOneOrderOneCharge(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	id := made(w, i, "k1", order("order-1"))
	_, err := charge(w, i, "k2", order("order-1"))
	refusedAs(t, err, problem.ReferenceAlreadyPaid, id)
	if n := w.Count(`SELECT count(*) FROM idempotency_keys`); n != 1 {
		t.Errorf("%d keys, want one: a refusal spends none", n)
	}
	if res, err := charge(w, i, "k1", order("order-1")); err != nil || !res.Replayed {
		t.Errorf("the first key: %v, replayed %t", err, res.Replayed)
	}
	if made(w, i, "k2", order("Order-1")) == id { // compared as they are
		t.Error("two orders have one charge")
	}
	w.CheckRecords(2)
}

// Many keys for one order at the same moment, at two instances, among charges that have none: one
// charge for the order, and no company suffers.
func TestManyKeysForOneOrder(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	instances := []world.Instance{w.Start(), w.Start()}
	const orders, each, others = 5, 12, 30
	var all sync.WaitGroup
	for n := range orders * each {
		all.Go(func() {
			_, err := charge(w, instances[n%2], fmt.Sprint("o", n), order(fmt.Sprint(n%orders)))
			var why *problem.Error
			if err != nil && (!errors.As(err, &why) ||
				why.Code != problem.ReferenceInProgress && why.Code != problem.ReferenceAlreadyPaid) {
				t.Errorf("a charge for an order: %v", err)
			}
		})
	}
	for n := range others {
		all.Go(func() {
			if _, err := instances[n%2].Charge(fmt.Sprint("k", n)); err != nil {
				t.Errorf("a charge without a reference: %v", err)
			}
		})
	}
	all.Wait()
	w.CheckRecords(orders + others)
	if n := w.Count(`SELECT count(*) FROM charges WHERE reference IS NOT NULL`); n != orders {
		t.Errorf("%d charges for %d orders", n, orders)
	}
}

// The index decides when the look of both came too early.
func TestTheIndexDecides(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	const look = ` AND (x.reference = '' OR x.duplicate_of <> '' OR NOT EXISTS (SELECT FROM charges r WHERE r.account_id = x.account_id AND r.reference = x.reference AND r.livemode = x.livemode AND r.status <> 'failed' AND coalesce(r.release, 'pending') = 'pending' AND (NOT r.captured OR r.amount_refunded < r.amount_captured) OFFSET 0)) -- planner`
	blind := w.StartWith(world.Without(t, w.Pool, "ChargeClaim", look), nil)
	id := made(w, blind, "k1", order("order-1"))
	_, err := charge(w, blind, "k2", order("order-1"))
	refusedAs(t, err, problem.ReferenceAlreadyPaid, id)
	w.CheckRecords(1)
}

// An unknown outcome is pending: whoever comes under another key waits for it, and a decline or the
// proof that nothing moved frees the order.
func TestAnOrderWhoseOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err := charge(w, i, "k1", order("order-1"))
	world.WantUnknown(t, err)
	var id string
	w.Read(`SELECT id FROM charges`, nil, &id)
	_, err = charge(w, i, "k2", order("order-1"))
	refusedAs(t, err, problem.ReferenceInProgress, id)
	w.Age(w.Keys.StaleAfter)
	w.Pass(i)
	_, err = charge(w, i, "k2", order("order-1"))
	refusedAs(t, err, problem.ReferenceAlreadyPaid, id)
	w.CheckRecords(1)

	declined := order("order-2")
	declined.Source = "tok_chargeDeclined"
	if res, err := charge(w, i, "k3", declined); err != nil || res.Answer.Code != 402 {
		t.Fatalf("%+v, %v", res, err)
	}
	made(w, i, "k4", order("order-2"))
}

// A reference is free when all the money is back, and not before.
func TestARefundFreesTheOrder(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	id := made(w, i, "k1", order("order-1"))
	i.MustRefund("r1", id, 1999)
	_, err := charge(w, i, "k2", order("order-1"))
	refusedAs(t, err, problem.ReferenceAlreadyPaid, id)
	refund := i.MustRefund("r2", id, 1)
	second := made(w, i, "k2", order("order-1"))

	// The refund fails after all: the money of both is here, and the second keeps the order.
	if err := w.Sim.FailRefund(refund, ""); err != nil {
		t.Fatal(err)
	}
	learn(w, w.Inbox(i), "refund.failed", refund)
	if n := w.Count(
		`SELECT count(*) FROM charges WHERE id = $1 AND reference_yielded`, id,
	); n != 1 {
		t.Error("the first charge did not yield")
	}
	_, err = charge(w, i, "k3", order("order-1"))
	refusedAs(t, err, problem.ReferenceAlreadyPaid, second)
	i.MustRefund("r3", second, 0)
	_, err = charge(w, i, "k3", order("order-1"))
	refusedAs(t, err, problem.ReferenceAlreadyPaid, id) // its money is not back
}

// A refund that fails while nobody else has the order takes it back.
func TestAFailedRefundTakesTheOrderBack(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	id := made(w, i, "k1", order("order-1"))
	refund := i.MustRefund("r1", id, 0)
	if err := w.Sim.FailRefund(refund, ""); err != nil {
		t.Fatal(err)
	}
	learn(w, w.Inbox(i), "refund.failed", refund)
	_, err := charge(w, i, "k2", order("order-1"))
	refusedAs(t, err, problem.ReferenceAlreadyPaid, id)
}

// A second charge for an order that is meant names the newest one; of many that name the same, one
// is made.
func TestADuplicateThatIsMeant(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	a := made(w, i, "a", order("order-1"))
	var wins, losses int
	var mu sync.Mutex
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			_, err := charge(w, i, fmt.Sprint("b", n), besides("order-1", a))
			var why *problem.Error
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				wins++
			case errors.As(err, &why) && (why.Code == problem.ReferenceInProgress ||
				why.Code == problem.ReferenceAlreadyPaid):
				losses++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if wins != 1 || losses != 11 {
		t.Fatalf("%d were made, %d refused", wins, losses)
	}
	var b string
	w.Read(`SELECT id FROM charges WHERE duplicate_of = $1`, []any{a}, &b)
	_, err := charge(w, i, "c", order("order-1"))
	refusedAs(t, err, problem.ReferenceAlreadyPaid, b)
	c := made(w, i, "c", besides("order-1", b))
	i.MustRefund("rb", b, 0)
	_, err = charge(w, i, "d", besides("order-1", a))
	refusedAs(t, err, problem.ReferenceAlreadyPaid, c) // a is not the last, though b is gone
	i.MustRefund("ra", a, 0)
	i.MustRefund("rc", c, 0)
	_, err = charge(w, i, "d", besides("order-1", c))
	refusedAs(t, err, problem.ParameterInvalid, "")
	made(w, i, "d", order("order-1"))
	_, err = charge(w, i, "e", besides("order-2", c))
	refusedAs(t, err, problem.ParameterInvalid, "")
	_, err = charge(w, i, "e", besides("order-1", "ch_none"))
	refusedAs(t, err, problem.ResourceMissing, "")
	w.CheckRecords(4)
}

// Whoever repeats a duplicate under its own key gets its answer.
func TestADuplicateReplays(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	a := made(w, i, "a", order("order-1"))
	made(w, i, "b", besides("order-1", a))
	if res, err := charge(w, i, "b", besides("order-1", a)); err != nil || !res.Replayed {
		t.Errorf("%v, replayed %t", err, res.Replayed)
	}
	w.CheckRecords(2)
}
