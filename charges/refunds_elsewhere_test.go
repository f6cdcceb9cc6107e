package charges_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

func idIn(w *world.World, body []byte) string {
	w.T.Helper()
	var o struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &o); err != nil || o.ID == "" {
		w.T.Fatalf("%s has no id, %v", body, err)
	}
	return o.ID
}

// wantEvents compares how many events of each type went out.
func wantEvents(w *world.World, want map[string]int) {
	w.T.Helper()
	got := map[string]int{}
	for _, kind := range strings.Fields(`charge.pending charge.succeeded charge.failed charge.captured
		charge.refunded charge.updated refund.created refund.updated refund.failed`) {
		if n := w.Count(`SELECT count(*) FROM outbox WHERE type = $1`, kind); n > 0 {
			got[kind] = n
		}
	}
	if !maps.Equal(got, want) {
		w.T.Errorf("the events are %v, want %v", got, want)
	}
}

// inDashboard refunds a charge as somebody in the provider's dashboard does.
func inDashboard(w *world.World, id string, amount int64) (refund string) {
	w.T.Helper()
	refund, err := w.Sim.RefundInDashboard(stripesim.DashboardRefund{Charge: id, Amount: amount})
	if err != nil {
		w.T.Fatal(err)
	}
	return refund
}

// listed returns the refunds of a charge as clients see them, the newest first.
func listed(i world.Instance, w *world.World, charge string) []charges.Refund {
	w.T.Helper()
	page, err := i.Charges.ListRefunds(
		context.Background(), w.Key.AccountID, charges.RefundFilter{Limit: 100, Charge: charge},
	)
	if err != nil {
		w.T.Fatal(err)
	}
	return page.Refunds
}

// explains checks that the refunds in the list are as said (amount, who made it, status), and add
// up to what is refunded here and at the provider.
func explains(i world.Instance, w *world.World, charge, id string, want ...string) {
	w.T.Helper()
	var got []string
	sum := int64(0)
	for _, r := range listed(i, w, charge) {
		got = append(got, fmt.Sprint(r.Amount, " ", r.MadeBy, " ", r.Status))
		if r.Status != "failed" && r.Status != "canceled" {
			sum += r.Amount
		}
		if one, err := i.Charges.GetRefund(w.T.Context(), w.Key.AccountID, r.ID, false); err != nil ||
			one.ID != r.ID || one.MadeBy != r.MadeBy || one.Created != r.Created {
			w.T.Errorf("read by its id it is %+v, %v", one, err)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.T.Errorf("the refunds are %q, want %q", got, want)
	}
	shown, err := i.Charges.Get(w.T.Context(), w.Key.AccountID, charge, false)
	if err != nil || shown.AmountRefunded != sum {
		w.T.Errorf("refunded are %d, %v, the refunds add up to %d", shown.AmountRefunded, err, sum)
	}
	there, err := w.Provider.GetCharge(w.T.Context(), id)
	if err != nil || there.AmountRefunded != sum {
		w.T.Errorf("at the provider %+v, %v are refunded, here %d", there, err, sum)
	}
}

// A refund that was made in the dashboard is in the list, once, with one event each, in whichever
// order its news arrives, whatever of it is missing, and however often it comes.
func TestDashboardRefundsAreListed(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{
		{"charge.refunded", "refund.created"}, {"refund.created", "charge.refunded"},
		{"charge.refunded"}, {"refund.created"}, {"charge.refund.updated"}, {"charge.updated"},
	} {
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			i := w.Start()
			in := w.Inbox(i)
			charge := i.MustCharge("k", world.Twenty)
			id := w.ProviderCharge()
			i.MustRefund("r", charge, 200)
			refund := inDashboard(w, id, 500)
			for range 2 {
				for _, kind := range order {
					object := id
					if strings.Contains(kind, "refund.") {
						object = refund
					}
					learn(w, in, kind, object)
				}
				w.Exec(`DELETE FROM provider_events`)
			}
			explains(i, w, charge, id, "200 api succeeded", "500 provider succeeded")
			wantEvents(w, map[string]int{
				"charge.succeeded": 1, "refund.created": 2, "charge.refunded": 2,
			})
			// It fails after all.
			if err := w.Sim.FailRefund(refund, ""); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				learn(w, in, "refund.failed", refund)
				learn(w, in, "charge.refund.updated", refund)
				learn(w, in, "charge.refunded", id)
				w.Exec(`DELETE FROM provider_events`)
			}
			explains(i, w, charge, id, "200 api succeeded", "500 provider failed")
			wantEvents(w, map[string]int{
				"charge.succeeded": 1, "refund.created": 2, "charge.refunded": 2,
				"refund.updated": 1, "refund.failed": 1, "charge.updated": 1,
			})
		})
	}
}

// One that had failed before anybody told of it is in the list as well, with one event.
func TestDashboardRefundThatHadFailed(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	in := w.Inbox(i)
	charge := i.MustCharge("k", world.Twenty)
	id := w.ProviderCharge()
	refund := inDashboard(w, id, 500)
	if err := w.Sim.FailRefund(refund, ""); err != nil {
		t.Fatal(err)
	}
	learn(w, in, "refund.created", refund)
	learn(w, in, "refund.failed", refund)
	explains(i, w, charge, id, "500 provider failed")
	wantEvents(w, map[string]int{"charge.succeeded": 1, "refund.failed": 1})
}

// Several refunds, ours and others', whose news arrives last: each is there once, and the whole
// charge can be refunded together.
func TestDashboardRefundsBesideOurs(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	in := w.Inbox(i)
	charge := i.MustCharge("k", world.Twenty)
	id := w.ProviderCharge()
	inDashboard(w, id, 100)
	i.MustRefund("r1", charge, 200)
	inDashboard(w, id, 300)
	inDashboard(w, id, 300)
	learn(w, in, "charge.refunded", id)
	i.MustRefund("rest", charge, 0)
	explains(
		i, w, charge, id, "100 provider succeeded", "200 api succeeded", "300 provider succeeded",
		"300 provider succeeded", "1100 api succeeded",
	)
	res, err := i.Refund("more", charge, 1)
	if err == nil {
		t.Errorf("more than all: %d %s", res.Answer.Code, res.Answer.Body)
	}
}

// One of our own refunds whose answer was lost is never taken for another's, whatever news comes
// first; neither is it counted twice beside one of the same amount in the dashboard.
func TestLostRefundIsNotTakenForAnothers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"refund.created", "charge.refunded", "their refund.created"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			i := w.Start()
			in := w.Inbox(i)
			charge := i.MustCharge("k", world.Twenty)
			id := w.ProviderCharge()
			w.RefundFault(1, stripesim.Fault{Type: stripesim.DropAfter})
			_, err := i.Refund("r", charge, 500)
			world.WantUnknown(t, err)
			ours := w.OnlyOne("/v1/refunds")
			theirs := inDashboard(w, id, 500)
			object := map[string]string{"refund.created": ours, "charge.refunded": id}[kind]
			if object == "" {
				object = theirs
			}
			learn(w, in, strings.TrimPrefix(kind, "their "), object)
			if n := w.Count(
				`SELECT count(*) FROM refunds WHERE made_by = 'provider' AND provider_id = $1`, ours,
			); n != 0 {
				t.Fatal("ours is taken for another's")
			}
			w.Pass(i)
			res, err := i.Refund("r", charge, 500)
			if err != nil || !res.Replayed {
				t.Errorf("replayed %t, %v", res.Replayed, err)
			}
			for _, f := range []struct{ kind, object string }{
				{"charge.refunded", id}, {"refund.created", theirs}, {"refund.updated", ours},
			} {
				w.Exec(`DELETE FROM provider_events`)
				learn(w, in, f.kind, f.object)
			}
			explains(i, w, charge, id, "500 api succeeded", "500 provider succeeded")
			wantEvents(w, map[string]int{
				"charge.succeeded": 1, "refund.created": 2, "charge.refunded": 2,
			})
		})
	}
}

// The part of an authorisation that a smaller capture let go of is listed by the provider as a
// refund, and is none: it is neither in the list nor in the sum.
func TestWhatACaptureLetGoIsNoRefund(t *testing.T) {
	t.Parallel()
	for _, intents := range []bool{false, true} {
		w := world.New(t)
		w.Intents = intents
		i := w.Start()
		in := w.Inbox(i)
		charge := i.MustCharge("k", world.Authorised)
		id := w.OnlyOne("/v1/charges")
		if res, err := i.Capture("c", charge, 1500); err != nil ||
			res.Answer.Code != http.StatusOK {
			t.Fatalf("got %d, %v", res.Answer.Code, err)
		}
		release := w.OnlyOne("/v1/refunds")
		learn(w, in, "refund.created", release)
		learn(w, in, "charge.refunded", id)
		explains(i, w, charge, id)
		dashboard := inDashboard(w, id, 500) // of the same amount
		w.Exec(`DELETE FROM provider_events`)
		learn(w, in, "refund.created", release)
		learn(w, in, "refund.updated", dashboard)
		explains(i, w, charge, id, "500 provider succeeded")
		if r := listed(i, w, charge); len(r) != 1 || *r[0].Provider.ID != dashboard {
			t.Errorf("the list has %+v", r)
		}
	}
}

// Refunds that are no refunds of one of our charges are noted once: of a customer's balance, of
// another program's charge, of one that nobody knows.
func TestRefundsOfNothingOfOurs(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.StartWith(nil, chargeless{w.Provider})
	in := w.InboxWith(w.ProviderEvents(i, chargeless{w.Provider}).Apply)
	i.MustCharge("k", world.Twenty)
	theirs, err := w.Provider.Charge(t.Context(), &provider.ChargeRequest{
		IdempotencyKey: "theirs", Tags: provider.Tags{Operation: "op_x", Installation: "elsewhere"},
		Amount: 1000, Currency: "usd", Source: "tok_visa", Capture: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Deliver(in, "evt_1", "refund.created", "re_of_a_balance")
	w.Deliver(in, "evt_2", "refund.failed", "re_nobody")
	w.Deliver(in, "evt_3", "refund.created", inDashboard(w, theirs.Charge.ID, 100))
	w.Process(in)
	if n := w.Count(
		`SELECT count(*) FROM provider_events WHERE processed_at IS NOT NULL AND attempts = 1`,
	); n != 3 {
		t.Errorf("%d of 3 are noted at once", n)
	}
	if n := w.Count(`SELECT count(*) FROM refunds`); n != 0 {
		t.Errorf("%d refunds", n)
	}
}

// chargeless has a refund of a customer's balance.
type chargeless struct{ provider.Provider }

func (p chargeless) GetRefund(ctx context.Context, id string) (*provider.Refund, error) {
	if id == "re_of_a_balance" {
		return &provider.Refund{
			ID: id, Status: provider.Succeeded, Amount: 100, Currency: "usd", Created: time.Now(),
		}, nil
	}
	return p.Provider.GetRefund(ctx, id)
}

// A dashboard refund whose news never came is found by the audit and adopted, once; so is one whose
// sum was learnt by a version that did not list it.
func TestAuditAdoptsDashboardRefunds(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		w := world.New(t)
		i := w.Start()
		events := w.ProviderEvents(i, nil)
		charge := i.MustCharge("k", world.Twenty)
		id := w.ProviderCharge()
		refund := inDashboard(w, id, 500)
		want := charges.OtherAmount
		told := 1
		if known {
			w.Exec(`UPDATE charges SET amount_refunded = 500`)
			want, told = charges.OtherRefunds, 0
		}
		if got := audit(w, t); got[id] != want {
			t.Errorf("the audit tells of %v, want %s", got, want)
		}
		for n := range 2 {
			if changed, err := events.Adopt(t.Context(), id); err != nil || changed != (n == 0) {
				t.Errorf("adopted %t, %v", changed, err)
			}
		}
		explains(i, w, charge, id, "500 provider succeeded")
		learn(w, w.Inbox(i), "refund.created", refund)
		if got := audit(w, t); len(got) != 0 {
			t.Errorf("the audit tells of %v", got)
		}
		want2 := map[string]int{"charge.succeeded": 1, "refund.created": 1}
		if told > 0 {
			want2["charge.refunded"] = told
		}
		wantEvents(w, want2)
	}
}

// News of a dashboard refund that several workers process at the same moment is written once.
func TestDashboardRefundLearntTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	charge := i.MustCharge("k", world.Twenty)
	id := w.ProviderCharge()
	refund := inDashboard(w, id, 500)
	late(w, i, "charge.refunded", id, func() { learn(w, w.Inbox(i), "refund.created", refund) })
	explains(i, w, charge, id, "500 provider succeeded")
	wantEvents(w, map[string]int{
		"charge.succeeded": 1, "refund.created": 1, "charge.refunded": 1,
	})
}

// News of a refund that comes before anybody knows what became of the charge: the charge is settled
// by it, and the refund is listed.
func TestRefundNewsBeforeTheChargeIsKnown(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"refund.created", "charge.refunded"} {
		w := world.New(t)
		i := w.Start()
		w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
		_, err := i.Charge("k")
		world.WantUnknown(t, err)
		id := w.ProviderCharge()
		object := inDashboard(w, id, 500)
		if kind == "charge.refunded" {
			object = id
		}
		learn(w, w.Inbox(i), kind, object)
		res, err := i.Charge("k")
		if err != nil || !res.Replayed {
			t.Fatalf("replayed %t, %v", res.Replayed, err)
		}
		explains(i, w, idIn(w, res.Answer.Body), id, "500 provider succeeded")
		wantEvents(w, map[string]int{
			"charge.succeeded": 1, "refund.created": 1, "charge.refunded": 1,
		})
	}
}

// A refund of all that is left, by a sum that is out of date since nobody told of a refund in the
// dashboard, is refused by the provider; once that is known, the rest is refunded.
func TestRefundOfAllByAnOldSum(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	charge := i.MustCharge("k", world.Twenty)
	id := w.ProviderCharge()
	inDashboard(w, id, 300)
	res, err := i.Refund("all", charge, 0)
	if err != nil || res.Answer.Code != http.StatusBadRequest {
		t.Errorf("got %d %s, %v, want 400", res.Answer.Code, res.Answer.Body, err)
	}
	if _, err := w.ProviderEvents(i, nil).Adopt(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	i.MustRefund("rest", charge, 0)
	explains(i, w, charge, id, "300 provider succeeded", "1700 api succeeded", "2000 api failed")
}
