package charges_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/charges"
	"paidonce/history"
	"paidonce/inbox"
	"paidonce/internal/world"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

// disputed is a world with one charge, which the payer may dispute.
type disputed struct {
	*world.World
	i        world.Instance
	in       *inbox.Inbox
	charge   string // ours
	provider string // theirs
	told     int    // events of the provider that were delivered
}

func newDisputed(t *testing.T) *disputed {
	t.Helper()
	d := &disputed{World: world.New(t)}
	d.i = d.Start()
	d.in = d.Inbox(d.i)
	d.charge = d.i.MustCharge("k", world.Twenty)
	d.provider = d.ProviderCharge()
	return d
}

// open opens a dispute, and tells of it.
func (d *disputed) open(terms stripesim.DisputeTerms) (id string) {
	d.T.Helper()
	id, err := d.Sim.OpenDispute(d.provider, terms)
	if err != nil {
		d.T.Fatal(err)
	}
	d.tell("charge.dispute.created", id)
	return id
}

// end ends a dispute, and tells of it.
func (d *disputed) end(id, status string) {
	d.T.Helper()
	if err := d.Sim.CloseDispute(id, status); err != nil {
		d.T.Fatal(err)
	}
	d.tell("charge.dispute.closed", id)
}

func (d *disputed) tell(typ, object string) {
	d.T.Helper()
	d.told++
	d.Deliver(d.in, fmt.Sprintf("evt_%d", d.told), typ, object)
	d.Process(d.in)
}

// events are the events of disputes, with the state of the dispute and whether the charge is
// disputed.
func (d *disputed) events() (told []string) {
	d.T.Helper()
	rows, err := d.Pool.Query(d.T.Context(), `SELECT type, payload FROM outbox
		WHERE type LIKE 'charge.dispute.%' ORDER BY (convert_from(payload, 'UTF8')::jsonb ->> 'sequence')::int`)
	if err != nil {
		d.T.Fatal(err)
	}
	for rows.Next() {
		var typ string
		var payload []byte
		var e struct {
			Data struct{ Object charges.Charge }
		}
		if err := errors.Join(rows.Scan(&typ, &payload), json.Unmarshal(payload, &e)); err != nil {
			d.T.Fatal(err)
		}
		o := e.Data.Object
		if o.Dispute == nil || o.Dispute.Charge.ID != o.ID || o.ID != d.charge {
			d.T.Fatalf("the event has no dispute of the charge: %s", payload)
		}
		told = append(told, fmt.Sprintf(
			"%s %s %d %t", strings.TrimPrefix(typ, "charge.dispute."), o.Dispute.Status, o.Dispute.Amount, o.Disputed,
		))
	}
	return told
}

func (d *disputed) wants(events ...string) {
	d.T.Helper()
	if got := d.events(); !slices.Equal(got, events) {
		d.T.Errorf("told was\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(events, "\n"))
	}
	shown, err := d.i.Charges.Get(d.T.Context(), d.Key.AccountID, d.charge, false)
	want := len(events) > 0 && strings.HasSuffix(events[len(events)-1], " true")
	if err != nil || shown.Disputed != want || shown.Dispute != nil {
		d.T.Errorf("the charge is shown as %+v, %v; want disputed %t", shown, err, want)
	}
	if n := d.Count(`SELECT count(*) FROM provider_events WHERE processed_at IS NULL`); n != 0 {
		d.T.Errorf("%d events of the provider are not processed", n)
	}
}

// refund tries to refund, and returns the status of the answer.
func (d *disputed) refund(key string, amount int64) string {
	d.T.Helper()
	res, err := d.i.Refund(key, d.charge, amount)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(res.Answer.Code)
}

// Each dispute of a charge stands by itself: the first one that is won leaves the second open.
func TestSeveralDisputesOfACharge(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	first := d.open(stripesim.DisputeTerms{Amount: 800})
	second := d.open(stripesim.DisputeTerms{Amount: 1200, Reason: "duplicate"})
	d.end(first, "won")
	d.wants("created needs_response 800 true", "created needs_response 1200 true", "closed won 800 true")
	if got := d.refund("r", 100); !strings.Contains(got, "disputed") {
		t.Errorf("refund while one is open: %s", got)
	}
	d.end(second, "lost")
	d.wants("created needs_response 800 true", "created needs_response 1200 true", "closed won 800 true", "closed lost 1200 false")
	if got := d.refund("r", 100); !strings.Contains(got, "disputed") {
		t.Errorf("refund after one was lost: %s", got)
	}
	page, err := d.i.Charges.ListDisputes(t.Context(), d.Key.AccountID, charges.DisputeFilter{Limit: 10, Charge: d.charge})
	if err != nil || len(page.Disputes) != 2 || page.HasMore {
		t.Fatal(page, err)
	}
	lost := page.Disputes[slices.IndexFunc(page.Disputes, func(d charges.Dispute) bool { return d.Status == "lost" })]
	if *lost.Provider.ID != second || lost.Amount != 1200 || lost.Reason != "duplicate" || lost.IsChargeRefundable || lost.EvidenceDetails.DueBy == nil {
		t.Errorf("%+v", lost)
	}
	one, err := d.i.Charges.GetDispute(t.Context(), d.Key.AccountID, lost.ID, false)
	if err != nil || one.ID != lost.ID {
		t.Error(one, err)
	}
	if one, err = d.i.Charges.GetDispute(t.Context(), d.Key.AccountID, second, false); err != nil || one.ID != lost.ID {
		t.Errorf("by the provider's id: %v, %v", one, err)
	}
	theirs := charges.DisputeFilter{Limit: 1, Charge: d.provider, StartingAfter: page.Disputes[0].ID}
	if rest, err := d.i.Charges.ListDisputes(t.Context(), d.Key.AccountID, theirs); err != nil || len(rest.Disputes) != 1 || rest.Disputes[0].ID != page.Disputes[1].ID {
		t.Errorf("by the provider's id of the charge: %v, %v", rest, err)
	}
	for _, account := range []string{"acct_other", ""} {
		if _, err := d.i.Charges.GetDispute(t.Context(), account, second, true); !errors.Is(err, charges.ErrNotFound) {
			t.Errorf("another account, by the provider's id: %v", err)
		}
		if _, err := d.i.Charges.GetDispute(t.Context(), account, lost.ID, true); !errors.Is(err, charges.ErrNotFound) {
			t.Errorf("another account: %v", err)
		}
		page, err := d.i.Charges.ListDisputes(t.Context(), account, charges.DisputeFilter{Limit: 10, Charge: d.charge})
		if err != nil || len(page.Disputes) != 0 {
			t.Errorf("another account: %v, %v", page, err)
		}
	}
}

// After a dispute was won the charge can be refunded once; a refund before it stays counted.
func TestRefundsAroundADispute(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	if got := d.refund("before", 400); got != "201" {
		t.Fatal(got)
	}
	id := d.open(stripesim.DisputeTerms{})
	if got := d.refund("during", 400); !strings.Contains(got, "disputed") {
		t.Error(got)
	}
	d.end(id, "won")
	for range 2 {
		if got := d.refund("during", 400); got != "201" {
			t.Error(got)
		}
	}
	if n := d.Count(`SELECT amount_refunded FROM charges`); n != 800 {
		t.Errorf("%d are refunded", n)
	}
}

// An inquiry takes no money: the refund that prevents a dispute is sent, and the provider decides.
func TestAnInquiryDoesNotBlockARefund(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	id := d.open(stripesim.DisputeTerms{Status: "warning_needs_response"})
	if got := d.refund("r", 100); got != "201" {
		t.Error(got)
	}
	no := false
	if err := d.Sim.ChangeDispute(id, stripesim.DisputeTerms{Refundable: &no}); err != nil {
		t.Fatal(err)
	}
	d.tell("charge.dispute.updated", id)
	if got := d.refund("r2", 100); !strings.Contains(got, "disputed") {
		t.Error(got)
	}
	d.end(id, "warning_closed")
	d.wants("created warning_needs_response 2000 true", "updated warning_needs_response 2000 true", "closed warning_closed 2000 false")
}

// Events that are late, out of order or repeated tell each change once, and what the provider says
// of its money is no change of the dispute.
func TestEventsOfDisputesInAnyOrder(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	id, err := d.Sim.OpenDispute(d.provider, stripesim.DisputeTerms{})
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []string{"funds_withdrawn", "updated", "created", "created"} {
		d.tell("charge.dispute."+typ, id)
	}
	d.wants("created needs_response 2000 true")
	if err := d.Sim.ChangeDispute(id, stripesim.DisputeTerms{Submitted: 1, Status: "under_review"}); err != nil {
		t.Fatal(err)
	}
	d.tell("charge.dispute.created", id)
	d.tell("charge.dispute.updated", id)
	d.end(id, "lost")
	d.tell("charge.dispute.updated", id)
	want := []string{"created needs_response 2000 true", "updated under_review 2000 true", "closed lost 2000 false"}
	d.wants(want...)
	// Decided otherwise after all, which is rare.
	if err := d.Sim.ChangeDispute(id, stripesim.DisputeTerms{Status: "won"}); err != nil {
		t.Fatal(err)
	}
	d.tell("charge.dispute.funds_reinstated", id)
	d.wants(append(want, "closed won 2000 false")...)
	t.Run("the first news is the last", func(t *testing.T) {
		d := newDisputed(t)
		id, err := d.Sim.OpenDispute(d.provider, stripesim.DisputeTerms{})
		if err != nil {
			t.Fatal(err)
		}
		d.end(id, "lost")
		d.tell("charge.dispute.created", id)
		d.wants("created lost 2000 false", "closed lost 2000 false")
	})
}

// One dispute is won while another is opened: whatever is processed last, one is open.
func TestDisputesRace(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	first := d.open(stripesim.DisputeTerms{})
	var second string
	if err := d.Sim.CloseDispute(first, "won"); err != nil {
		t.Fatal(err)
	}
	late(d.World, d.i, "charge.dispute.closed", first, func() {
		id, err := d.Sim.OpenDispute(d.provider, stripesim.DisputeTerms{Amount: 5})
		if err != nil {
			t.Fatal(err)
		}
		second = id
		learn(d.World, d.in, "charge.dispute.updated", second)
	})
	d.wants("created needs_response 2000 true", "created needs_response 5 true", "closed won 2000 true")
	d.end(second, "won")
	d.wants("created needs_response 2000 true", "created needs_response 5 true", "closed won 2000 true", "closed won 5 false")
}

// eventOf is an event that has its object as the provider has it now.
func (d *disputed) eventOf(id, typ, path string, created time.Time) []byte {
	d.T.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Authorization", "Bearer sk_test_x")
	w := httptest.NewRecorder()
	d.Sim.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		d.T.Fatalf("%d %s", w.Code, w.Body)
	}
	return fmt.Appendf(nil, `{"id":%q,"object":"event","created":%d,"type":%q,"livemode":false,"data":{"object":%s}}`,
		id, created.Unix(), typ, w.Body)
}

func (d *disputed) receive(body []byte) {
	d.T.Helper()
	if err := d.in.Receive(context.Background(), body, world.Signed(body, world.Secret, time.Now())); err != nil {
		d.T.Fatal(err)
	}
	d.Process(d.in)
}

// restrict replaces the API key by one that lacks rights.
func (d *disputed) restrict(rights ...string) {
	d.T.Helper()
	d.Sim.TakeRights(rights...)
	psp, err := stripe.New(stripe.Config{APIKey: "rk_test_restricted", BaseURL: d.SimURL})
	if err != nil {
		d.T.Fatal(err)
	}
	d.in = d.InboxWith(d.ProviderEvents(d.i, psp).Apply)
}

// A restricted key may not be allowed to read disputes. Then the signed event's own word counts,
// unless a later one was heard before.
func TestDisputesThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	d.restrict("rak_dispute_read")
	id, err := d.Sim.OpenDispute(d.provider, stripesim.DisputeTerms{})
	if err != nil {
		t.Fatal(err)
	}
	at, path := time.Now(), "/v1/disputes/"+id
	created := d.eventOf("evt_created", "charge.dispute.created", path, at)
	d.receive(created)
	d.wants("created needs_response 2000 true")
	if got := d.refund("r", 100); !strings.Contains(got, "disputed") {
		t.Error(got)
	}
	if err := d.Sim.ChangeDispute(id, stripesim.DisputeTerms{Status: "under_review"}); err != nil {
		t.Fatal(err)
	}
	updated := d.eventOf("evt_updated", "charge.dispute.updated", path, at.Add(time.Minute))
	if err := d.Sim.CloseDispute(id, "won"); err != nil {
		t.Fatal(err)
	}
	d.receive(d.eventOf("evt_closed", "charge.dispute.closed", path, at.Add(time.Hour)))
	d.receive(updated)
	d.Exec(`UPDATE provider_events SET processed_at = NULL, result = NULL, next_run_at = clock_timestamp(), attempts = 0`)
	d.Process(d.in)
	d.wants("created needs_response 2000 true", "closed won 2000 false")
	if got := d.refund("r", 100); got != "201" {
		t.Error(got)
	}
}

// A dispute that the provider does not have is not believed, whatever a signed event says of it.
func TestDisputesThatAreNotThere(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	id, err := d.Sim.OpenDispute(d.provider, stripesim.DisputeTerms{})
	if err != nil {
		t.Fatal(err)
	}
	body := d.eventOf("evt_1", "charge.dispute.created", "/v1/disputes/"+id, time.Now())
	d.receive([]byte(strings.ReplaceAll(string(body), id, "dp_forged")))
	if n := d.Count(`SELECT count(*) FROM provider_events WHERE result = 'the provider has no such dispute'`); n != 1 {
		t.Error("it is not noted")
	}
	d.wants()
}

// What disputed a charge before disputes were kept was told then: it is not told again.
func TestDisputesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	d.Exec(`UPDATE charges SET disputed = true`)
	id, err := d.Sim.OpenDispute(d.provider, stripesim.DisputeTerms{})
	if err != nil {
		t.Fatal(err)
	}
	d.end(id, "lost")
	d.wants("closed lost 2000 false")
}

// An early fraud warning is told once, however often and in whatever order the provider tells it.
func TestEarlyFraudWarnings(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	id, err := d.Sim.WarnOfFraud(d.provider, "fraudulent_card_application")
	if err != nil {
		t.Fatal(err)
	}
	d.tell("radar.early_fraud_warning.updated", id)
	d.tell("radar.early_fraud_warning.created", id)
	d.tell("radar.early_fraud_warning.created", "issfr_none")
	second, err := d.Sim.WarnOfFraud(d.provider, "")
	if err != nil {
		t.Fatal(err)
	}
	d.restrict("rak_early_fraud_warning_read")
	d.receive(d.eventOf("evt_denied", "radar.early_fraud_warning.created", "/v1/radar/early_fraud_warnings/"+second, time.Now()))
	for _, c := range []struct{ id, fraud string }{{id, "fraudulent_card_application"}, {second, "made_with_stolen_card"}} {
		var payload []byte
		err := d.Pool.QueryRow(t.Context(), `SELECT payload FROM outbox WHERE type = 'radar.early_fraud_warning.created' AND object_id = $1`, c.id).Scan(&payload)
		var e struct {
			Sequence int
			Data     struct{ Object charges.FraudWarning }
		}
		if err := errors.Join(err, json.Unmarshal(payload, &e)); err != nil {
			t.Fatal(err)
		}
		if o := e.Data.Object; o.Charge != d.charge || o.FraudType != c.fraud || !o.Actionable || *o.Provider.ID != c.id || e.Sequence != 1 {
			t.Errorf("told is %s", payload)
		}
	}
	if n := d.Count(`SELECT count(*) FROM outbox WHERE type = 'radar.early_fraud_warning.created'`); n != 2 {
		t.Errorf("%d events", n)
	}
	d.wants()
}

// After a restore disputes are learnt again from the provider's list, and what became of those that
// were open; what was told before is told under the same ids.
func TestDisputesAreLearntAgain(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	first := d.open(stripesim.DisputeTerms{})
	second := d.open(stripesim.DisputeTerms{Amount: 700})
	d.end(first, "lost")
	ids := func() (ids []string) {
		t.Helper()
		rows, err := d.Pool.Query(t.Context(), `SELECT event_id FROM outbox WHERE type LIKE 'charge.dispute.%' ORDER BY event_id`)
		if err != nil {
			t.Fatal(err)
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	told := ids()
	rebuild := func() {
		t.Helper()
		r := charges.NewRebuilder(d.i.Store, d.Provider, charges.Config{Installation: world.Installation}, world.Quiet)
		err := r.Rebuild(t.Context(), time.Now(), func(context.Context, history.Counts) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"created needs_response 2000 true", "created needs_response 700 true", "closed lost 2000 true"}
	rebuild()
	d.wants(want...)
	d.Exec(`DELETE FROM disputes`)
	d.Exec(`DELETE FROM outbox WHERE type LIKE 'charge.dispute.%'`)
	d.Exec(`UPDATE charges SET disputed = false, events = 1`)
	rebuild()
	rebuild()
	if again := ids(); !slices.Equal(again, told) {
		t.Errorf("told was %v, and again %v", told, again)
	}
	if err := d.Sim.CloseDispute(second, "won"); err != nil {
		t.Fatal(err)
	}
	rebuild()
	if got := d.events(); got[len(got)-1] != "closed won 700 false" {
		t.Error(got)
	}
}
