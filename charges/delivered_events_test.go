package charges_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/charges"
	"paidonce/internal/world"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// An event repairs a stored 500: the operation is settled through the fence, once, whatever comes
// twice, together or early.
func TestEventSettlesAnOpenOperation(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	in := w.Inbox(i)
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.StatusAfter, Status: 500})
	_, err := i.Charge("k")
	world.WantUnknown(t, err)
	id := w.ProviderCharge()
	for range 3 {
		w.Deliver(in, "evt_same", "charge.succeeded", id)
	}
	w.Deliver(in, "evt_twin", "charge.succeeded", id)
	w.Deliver(in, "evt_late", "charge.pending", id)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { w.Process(in) })
	}
	group.Wait()
	w.Process(in)
	w.CheckRecords(1)
	if n := w.Count(`SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("%d events went out", n)
	}
	if n := w.Count(`SELECT count(*) FROM provider_events WHERE processed_at IS NULL`); n != 0 {
		t.Errorf("%d events are not processed", n)
	}
	if res, err := i.Charge("k"); err != nil || !res.Replayed ||
		res.Answer.Code != http.StatusCreated {
		t.Errorf("replayed %v, %v", res.Replayed, err)
	}
}

// News that arrives while the owner is still at work waits for it.
func TestEventBeforeOurCommit(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	in := w.Inbox(i)
	slow := w.Paused()
	done := make(chan error, 1)
	go func() { _, err := w.StartWith(nil, slow).Charge("k"); done <- err }()
	<-slow.Answered
	w.Deliver(in, "evt_1", "charge.succeeded", w.ProviderCharge())
	if n, err := in.RunOnce(t.Context(), 5); err != nil || n != 1 {
		t.Fatalf("got %d, %v, want 1", n, err)
	}
	if n := w.Count(
		`SELECT count(*) FROM provider_events WHERE processed_at IS NULL AND last_error LIKE '%works on the operation%'`,
	); n != 1 {
		t.Error("the news did not wait for the owner")
	}
	close(slow.Resume)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.Process(in)
	w.CheckRecords(1)
	if n := w.Count(`SELECT count(*) FROM provider_events WHERE result = 'nothing new'`); n != 1 {
		t.Error("the news was not processed after the owner had finished")
	}
}

// News of strangers is stored and left.
func TestEventsOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	in := w.Inbox(i)
	i.MustCharge("k", world.Twenty)
	w.Deliver(in, "evt_unknown", "charge.succeeded", "ch_nobody")
	w.Deliver(in, "evt_type", "customer.created", "cus_1")
	live := []byte(
		strings.Replace(
			string(world.Event("evt_live", "charge.succeeded", w.ProviderCharge())),
			`"livemode":false`, `"livemode":true`, 1,
		),
	)
	if err := in.Receive(
		t.Context(), live, world.Signed(live, world.Secret, time.Now()),
	); err != nil {
		t.Fatal(err)
	}
	id := w.ProviderCharge()
	w.Exec(`DELETE FROM charges`) // a restore lost it, say
	w.Exec(`DELETE FROM idempotency_keys`)
	w.Deliver(in, "evt_orphan", "charge.succeeded", id)
	w.Process(in)
	if n := w.Count(`SELECT count(*) FROM provider_events WHERE processed_at IS NOT NULL`); n != 4 {
		t.Errorf("%d are processed", n)
	}
	if n := w.Count(
		`SELECT count(*) FROM provider_events WHERE result LIKE 'books differ: an orphan%'`,
	); n != 1 {
		t.Error("the orphan is not told")
	}
	if n := w.Count(`SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("%d events went out", n)
	}
}

// Disputes, a refund that fails days later, a refund made elsewhere: state moves forward, with one
// event each.
func TestEventsMoveStateForward(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	in := w.Inbox(i)
	charge := i.MustCharge("k", world.Twenty)
	id := w.ProviderCharge()
	res, err := i.Refund("r", charge, 500)
	if err != nil {
		t.Fatal(err)
	}
	var refund charges.Refund
	if err := json.Unmarshal(res.Answer.Body, &refund); err != nil {
		t.Fatal(err)
	}
	if err := w.Sim.FailRefund(*refund.Provider.ID, "lost_or_stolen_card"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.Deliver(in, "evt_failed", "refund.failed", *refund.Provider.ID)
		w.Deliver(in, "evt_updated", "charge.refund.updated", *refund.Provider.ID)
	}
	w.Process(in)
	if n := w.Count(`SELECT amount_refunded FROM charges`); n != 0 {
		t.Errorf("%d are still counted as refunded", n)
	}
	for _, typ := range []string{"refund.failed", "charge.updated"} {
		if n := w.Count(`SELECT count(*) FROM outbox WHERE type = $1`, typ); n != 1 {
			t.Errorf("%d events %s", n, typ)
		}
	}
	if n := w.Count(
		`SELECT (convert_from(payload, 'UTF8')::jsonb #>> '{data,object,amount_refunded}')::int FROM outbox WHERE type = 'charge.updated'`,
	); n != 0 {
		t.Errorf("charge.updated tells of %d refunded", n)
	}
	if res, err := i.Refund("r", charge, 500); err != nil || !res.Replayed {
		t.Errorf("the key's answer changed: %v", err)
	}
	if err := w.Sim.DisputeCharge(id); err != nil {
		t.Fatal(err)
	}
	dispute := w.Dispute()
	w.Deliver(in, "evt_dispute", "charge.dispute.created", dispute)
	w.Deliver(in, "evt_dispute2", "charge.dispute.updated", dispute)
	w.Process(in)
	if n := w.Count(`SELECT count(*) FROM outbox WHERE type = 'charge.dispute.created'`); n != 1 {
		t.Errorf("%d events charge.dispute.created", n)
	}
	if n := w.Count(`SELECT count(*) FROM charges WHERE disputed`); n != 1 {
		t.Error("the charge does not say that it is disputed")
	}
	// Won, the charge can be refunded again, and its later news does not bring the dispute back.
	if err := w.Sim.CloseDispute(dispute, "won"); err != nil {
		t.Fatal(err)
	}
	w.Deliver(in, "evt_won", "charge.dispute.closed", dispute)
	w.Process(in)
	if res, err := i.Refund("after", charge, 100); err != nil ||
		res.Answer.Code != http.StatusCreated {
		t.Fatalf("got %d %s, %v, want 201", res.Answer.Code, res.Answer.Body, err)
	}
	w.Deliver(in, "evt_refunded", "charge.refunded", id)
	w.Process(in)
	if n := w.Count(`SELECT count(*) FROM charges WHERE disputed`); n != 0 {
		t.Error("a dispute that was won came back")
	}
	if n := w.Count(`SELECT count(*) FROM outbox WHERE type LIKE 'charge.dispute.%'`); n != 2 {
		t.Errorf("%d events of the dispute", n)
	}
}

// Refunds made elsewhere, in the provider's dashboard say: our sum follows theirs, up and down, and
// waits while our own refunds are under way.
func TestRefundsMadeElsewhere(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	in := w.Inbox(i)
	charge := i.MustCharge("k", world.Twenty)
	id := w.ProviderCharge()
	elsewhere, err := w.Provider.Refund(t.Context(), provider.RefundRequest{
		IdempotencyKey: "dashboard",
		Tags:           provider.Tags{Operation: "op_x", Installation: "elsewhere"}, ChargeID: id,
		Amount: 300,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Sim.AddFault(
		stripesim.Rule{
			Match: stripesim.Match{Method: http.MethodPost, Path: "/v1/refunds"}, Count: 1,
			Fault: stripesim.Fault{Type: stripesim.DropBefore},
		},
	); err != nil {
		t.Fatal(err)
	}
	_, err = i.Refund("ours", charge, 800)
	world.WantUnknown(t, err)
	w.Deliver(in, "evt_1", "charge.refunded", id)
	w.Process(in)
	if n := w.Count(`SELECT count(*) FROM provider_events WHERE processed_at IS NOT NULL`); n != 0 {
		t.Error("news of the sum was used up while our own refund was under way")
	}
	w.Pass(i)
	w.Process(in)
	if n := w.Count(`SELECT amount_refunded FROM charges`); n != 1100 {
		t.Errorf("%d refunded, want 1100", n)
	}
	if err := w.Sim.FailRefund(elsewhere.Refund.ID, ""); err != nil {
		t.Fatal(err)
	}
	w.Deliver(in, "evt_2", "refund.failed", elsewhere.Refund.ID)
	w.Process(in)
	if n := w.Count(`SELECT amount_refunded FROM charges`); n != 800 {
		var why string
		_ = w.Pool.QueryRow(
			t.Context(),
			`SELECT coalesce(result, last_error, string_agg(id,'')) FROM provider_events WHERE id = 'evt_2' GROUP BY result, last_error`,
		).Scan(&why)
		t.Errorf("%d refunded after theirs failed, want 800: %s", n, why)
	}
	if n := w.Count(`SELECT count(*) FROM outbox WHERE type = 'charge.updated'`); n != 1 {
		t.Errorf("%d events charge.updated", n)
	}
}
