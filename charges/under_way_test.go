package charges_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"paidonce/charges"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// debit charges a bank account: the money is under way for days.
func debit(w *world.World, i world.Instance, key string) (charge string) {
	w.T.Helper()
	p := world.Twenty
	p.Source = "btok_us_verified"
	if w.Intents {
		p.Source = "pm_usBankAccount"
	}
	res, err := i.Charges.Create(w.T.Context(), w.Request(key), p)
	if err != nil || res.Answer.Code != http.StatusCreated ||
		!strings.Contains(string(res.Answer.Body), `"status":"pending"`) {
		w.T.Fatalf("got %d %s, %v, want a pending charge", res.Answer.Code, res.Answer.Body, err)
	}
	return idIn(w, res.Answer.Body)
}

// ask lets the reconciler ask for whatever is under way or waits, whenever it is due.
func ask(w *world.World, events *charges.ProviderEvents) {
	w.T.Helper()
	w.Exec(`UPDATE charges SET asks_at = clock_timestamp() WHERE asks_at IS NOT NULL`)
	w.Exec(`UPDATE charges SET awaits_at = clock_timestamp() WHERE awaits_at IS NOT NULL`)
	w.Exec(`UPDATE refunds SET asks_at = clock_timestamp() WHERE asks_at IS NOT NULL`)
	if _, err := events.Await(w.T.Context(), 10); err != nil {
		w.T.Fatal(err)
	}
	if _, err := events.AskUnderWay(w.T.Context(), 10); err != nil {
		w.T.Fatal(err)
	}
}

// Money that is under way from a bank is not called back: the provider's refusal is the answer, and
// the charge comes to what the bank decides.
func TestCancellingABankDebit(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	i := w.Start()
	charge := debit(w, i, "k")
	res, err := i.Cancel("c", charge)
	if err != nil || res.Answer.Code != http.StatusBadRequest ||
		!strings.Contains(string(res.Answer.Body), `"payment_intent_unexpected_state"`) {
		t.Errorf("got %d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	if err := w.Sim.EndDebit(w.ProviderCharge(), ""); err != nil {
		t.Fatal(err)
	}
	ask(w, w.ProviderEvents(i, nil))
	if c := shown(w, i, charge); c.Status != "succeeded" || !c.Captured {
		t.Errorf("the charge is %+v", c)
	}
	if got := told(w, charge); got != "charge.pending charge.succeeded" {
		t.Errorf("the events are %s", got)
	}
	agree(w, t, i)
}

// A bank debit is pending for days, then clears or bounces. It is settled once, with one event,
// whether the news, the reconciler or an operator with `audit --adopt` comes first.
func TestBankDebits(t *testing.T) {
	t.Parallel()
	for _, intents := range []bool{false, true} {
		for _, decline := range []string{"", "insufficient_funds"} {
			for _, first := range []string{"news", "reconciler", "operator"} {
				t.Run(fmt.Sprintf("intents %t, decline %q, %s", intents, decline, first), func(t *testing.T) {
					t.Parallel()
					w := world.New(t)
					w.Intents = intents
					i := w.Start()
					events, in := w.ProviderEvents(i, nil), w.Inbox(i)
					charge := debit(w, i, "k")
					id := w.ProviderCharge()
					for range 3 { // as long as it is under way nothing changes
						ask(w, events)
						learn(w, in, "charge.pending", id)
						w.Exec(`DELETE FROM provider_events`)
					}
					if got := audit(w, t); len(got) != 0 {
						t.Errorf("the audit tells of %v", got)
					}
					if err := w.Sim.EndDebit(id, decline); err != nil {
						t.Fatal(err)
					}
					kind, status := "charge.succeeded", "succeeded"
					if decline != "" {
						kind, status = "charge.failed", "failed"
					}
					steps := map[string]func(){
						"news":       func() { learn(w, in, kind, id); w.Exec(`DELETE FROM provider_events`) },
						"reconciler": func() { ask(w, events) },
						"operator": func() {
							if _, err := events.Adopt(t.Context(), id); err != nil {
								t.Error(err)
							}
						},
					}
					steps[first]()
					if n := w.Count(`SELECT count(*) FROM charges WHERE status = $1`, status); n != 1 {
						t.Errorf("not %s after the %s", status, first)
					}
					for _, name := range []string{"news", "reconciler", "operator"} {
						steps[name]()
					}
					wantEvents(w, map[string]int{"charge.pending": 1, kind: 1})
					if got := audit(w, t); len(got) != 0 {
						t.Errorf("the audit tells of %v", got)
					}
					if res, err := i.Charge("other"); err != nil || res.Answer.Code != http.StatusCreated {
						t.Errorf("another charge: %d, %v", res.Answer.Code, err)
					}
					if res, err := i.Refund("r", charge, 500); (err == nil) != (decline == "") {
						t.Errorf("a refund of it: %d, %v", res.Answer.Code, err)
					}
				})
			}
		}
	}
}

// What is under way is asked for with growing pauses, some at a time, and no longer once it ended.
func TestUnderWayIsAskedForWithGrowingPauses(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	counted := &reads{Provider: w.Provider}
	i := w.StartWith(nil, counted)
	events := w.ProviderEvents(i, counted)
	for n := range 3 {
		debit(w, i, fmt.Sprint("k", n))
	}
	asked := func(most, want int) {
		t.Helper()
		counted.seen = nil
		if n, err := events.AskUnderWay(t.Context(), most); err != nil || n != want ||
			len(counted.seen) != want {
			t.Errorf("asked for %d (%v), %v, want %d", n, counted.seen, err, want)
		}
	}
	asked(2, 2)
	asked(2, 1)
	asked(2, 0) // a minute has to pass
	for _, c := range []struct{ age, pause string }{
		{"30 seconds", "1 minute"}, {"10 minutes", "10 minutes"}, {"2 days", "6 hours"},
	} {
		w.Exec(
			`UPDATE charges SET created_at = clock_timestamp() - $1::text::interval, asks_at = clock_timestamp()`,
			c.age,
		)
		asked(10, 3)
		if n := w.Count(
			`SELECT count(*) FROM charges WHERE asks_at - clock_timestamp() BETWEEN $1::text::interval - interval '30 seconds' AND $1::text::interval + interval '30 seconds'`,
			c.pause,
		); n != 3 {
			t.Errorf("%s after their making %d are asked for after %s", c.age, n, c.pause)
		}
	}
}

// A refund that the provider has not carried out yet ends later, once, whoever learns of it first.
func TestRefundsUnderWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		end    func(w *world.World, id string) error
		status string
		kinds  map[string]int // beside refund.created, charge.refunded
	}{
		{
			func(w *world.World, id string) error { return w.Sim.EndRefund(id, "succeeded") },
			"succeeded", map[string]int{"refund.updated": 1},
		},
		{
			func(w *world.World, id string) error { return w.Sim.EndRefund(id, "requires_action") },
			"requires_action", map[string]int{"refund.updated": 1},
		},
		{
			func(w *world.World, id string) error { return w.Sim.EndRefund(id, "canceled") },
			"canceled",
			map[string]int{"refund.updated": 1, "refund.failed": 1, "charge.updated": 1},
		},
		{
			func(w *world.World, id string) error { return w.Sim.FailRefund(id, "insufficient_funds") },
			"failed", map[string]int{"refund.updated": 1, "refund.failed": 1, "charge.updated": 1},
		},
	} {
		for _, first := range []string{"news", "reconciler"} {
			for _, ours := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, ours %t", c.status, first, ours), func(t *testing.T) {
					t.Parallel()
					w := world.New(t)
					i := w.Start()
					events, in := w.ProviderEvents(i, nil), w.Inbox(i)
					charge := debit(w, i, "k")
					id := w.ProviderCharge()
					if err := w.Sim.EndDebit(id, ""); err != nil {
						t.Fatal(err)
					}
					learn(w, in, "charge.succeeded", id)
					var refund string
					if ours {
						refund = i.MustRefund("r", charge, 500)
					} else {
						refund = inDashboard(w, id, 500)
						learn(w, in, "refund.created", refund)
					}
					ask(w, events)
					holdsRefunded(w, 500, 1)
					if err := c.end(w, refund); err != nil {
						t.Fatal(err)
					}
					w.Exec(`DELETE FROM provider_events`)
					if first == "news" {
						learn(w, in, "charge.refund.updated", refund)
					}
					ask(w, events)
					learn(w, in, "refund.updated", refund)
					if n := w.Count(
						`SELECT count(*) FROM refunds WHERE status = $1`, c.status,
					); n != 1 {
						t.Errorf("it is not %s", c.status)
					}
					want := map[string]int{
						"charge.pending": 1, "charge.succeeded": 1, "refund.created": 1,
						"charge.refunded": 1,
					}
					for kind, n := range c.kinds {
						want[kind] = n
					}
					wantEvents(w, want)
					if got, err := w.Provider.GetCharge(t.Context(), id); err != nil ||
						w.Count(`SELECT amount_refunded FROM charges`) != int(got.AmountRefunded) {
						t.Errorf("the sum is not the provider's, %+v, %v", got, err)
					}
				})
			}
		}
	}
}

// What the provider cannot tell now is asked for again.
func TestUnderWayThatCannotBeAskedFor(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	events := w.ProviderEvents(i, nil)
	debit(w, i, "k")
	if err := w.Sim.EndDebit(w.ProviderCharge(), ""); err != nil {
		t.Fatal(err)
	}
	w.LookUpFault(1, stripesim.Fault{Type: stripesim.StatusBefore, Status: 500})
	ask(w, events)
	if n := w.Count(`SELECT count(*) FROM charges WHERE status = 'pending'`); n != 1 {
		t.Error("it ended by a read that told nothing")
	}
	ask(w, events)
	if n := w.Count(`SELECT count(*) FROM charges WHERE status = 'succeeded'`); n != 1 {
		t.Error("it was not asked for again")
	}
}
