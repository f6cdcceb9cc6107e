package recovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"

	"paidonce/charges"
	"paidonce/inbox"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

const secret = "whsec_test"

// inboxOf is the inbox of an instance, processing by hand.
func (w *world) inboxOf(i instance, apply inbox.Apply) *inbox.Inbox {
	if apply == nil {
		l := charges.NewLearner(i.store, i.engine, w.psp, charges.Config{Installation: "test", LookupMisses: 3})
		apply = func(ctx context.Context, e inbox.Event, mark inbox.Mark) error {
			return l.Learn(ctx, charges.News{ID: e.ID, Type: e.Type, ObjectID: e.ObjectID, Livemode: e.Livemode, Payload: e.Payload}, charges.Mark(mark))
		}
	}
	return inbox.New(inbox.Config{Pool: w.pool, Secrets: []string{"whsec_old", secret}, Apply: apply, Log: quiet})
}

// event is a delivery such as Stripe sends: of an API version of its own, and with a state that nobody should believe.
func event(id, typ, object string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"object":"event","api_version":"2031-01-01.other","created":%d,"type":%q,"livemode":false,"data":{"object":{"id":%q,"amount":1,"status":"failed"}}}`,
		id, time.Now().Unix(), typ, object)
}

func signed(body []byte, secret string, at time.Time) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: secret, Timestamp: at}).Header
}

func (w *world) deliver(i *inbox.Inbox, id, typ, object string) {
	w.t.Helper()
	body := event(id, typ, object)
	if err := i.Receive(context.Background(), body, signed(body, secret, time.Now())); err != nil {
		w.t.Fatal(err)
	}
}

// process works off everything that is due, whatever its schedule says.
func (w *world) process(i *inbox.Inbox) {
	w.t.Helper()
	w.exec(`UPDATE provider_events SET next_run_at = clock_timestamp() WHERE next_run_at IS NOT NULL`)
	for {
		n, err := i.RunOnce(context.Background(), 5)
		if err != nil {
			w.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

func (w *world) providerCharge() string {
	w.t.Helper()
	hits, err := w.psp.FindCharge(context.Background(), w.lookup(w.t))
	if err != nil || len(hits) != 1 {
		w.t.Fatalf("%d charges, %v", len(hits), err)
	}
	return hits[0].ID
}

func TestReceiveVerifies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := w.inboxOf(w.start(nil, nil), nil)
	body := event("evt_1", "charge.succeeded", "ch_1")
	now := time.Now()
	good := signed(body, secret, now)
	v1 := good[strings.Index(good, "v1=")+3:]
	at := fmt.Sprint("t=", now.Unix())
	for name, header := range map[string]string{
		"none": "", "garbage": "garbage", "other secret": signed(body, "whsec_other", now), "an hour old": signed(body, secret, now.Add(-time.Hour)),
		"ten minutes ahead": signed(body, secret, now.Add(10*time.Minute)), "ten years ahead": signed(body, secret, now.AddDate(10, 0, 0)),
		"other time": fmt.Sprintf("t=%d,v1=%s", now.Unix()-1, v1), "no time": "v1=" + v1, "no signature": at, "empty signature": at + ",v1=",
		"other scheme": at + ",v0=" + v1, "other body": signed([]byte("{}"), secret, now), "time twice": "t=x," + good,
	} {
		if err := in.Receive(t.Context(), body, header); !errors.Is(err, inbox.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.count(`SELECT count(*) FROM provider_events`); n != 0 {
		t.Fatalf("%d events are stored", n)
	}
	for name, header := range map[string]string{
		"good": good, "old secret": signed(body, "whsec_old", now), "a minute ahead": signed(body, secret, now.Add(time.Minute)),
		"two signatures": at + ",v1=zz,v1=" + v1, "upper case": at + ",v1=" + strings.ToUpper(v1),
	} {
		if err := in.Receive(t.Context(), body, header); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.count(`SELECT count(*) FROM provider_events WHERE payload = $1`, body); n != 1 {
		t.Errorf("%d events with the raw bytes", n)
	}
	for _, bad := range []string{``, `[]`, `{"id":"evt_2"}`, `{"id":"evt_\u0000","object":"event","type":"x"}`, `{"id":"","object":"event","type":"x"}`, `{"id":"evt_3","object":"event","type":"a\u0000"}`} {
		if err := in.Receive(t.Context(), []byte(bad), signed([]byte(bad), secret, now)); !errors.Is(err, inbox.ErrMalformed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	// PB-148: odd bytes elsewhere in a signed body are kept as they are.
	odd := []byte("{\"id\":\"evt_odd\",\"object\":\"event\",\"type\":\"x.y\",\"data\":{\"object\":{\"id\":\"o\",\"description\":\"\xe9\\u0000\"}}}")
	if err := in.Receive(t.Context(), odd, signed(odd, secret, now)); err != nil {
		t.Errorf("%v", err)
	}
}

// A stored 500 heals by news: the operation is settled through the fence, once, whatever comes twice, together or early.
func TestNewsSettlesAnOpenOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	in := w.inboxOf(i, nil)
	w.fault(1, stripesim.Fault{Type: stripesim.StatusAfter, Status: 500})
	_, err := i.charge(w, "k")
	wantUnknown(t, err)
	id := w.providerCharge()
	for range 3 {
		w.deliver(in, "evt_same", "charge.succeeded", id)
	}
	w.deliver(in, "evt_twin", "charge.succeeded", id)
	w.deliver(in, "evt_late", "charge.pending", id)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { w.process(in) })
	}
	group.Wait()
	w.process(in)
	w.books(1)
	if n := w.count(`SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("%d events went out", n)
	}
	if n := w.count(`SELECT count(*) FROM provider_events WHERE processed_at IS NULL`); n != 0 {
		t.Errorf("%d events are not processed", n)
	}
	if res, err := i.charge(w, "k"); err != nil || !res.Replayed || res.Answer.Code != http.StatusCreated {
		t.Errorf("replayed %v, %v", res.Replayed, err)
	}
}

// Trap 46: news that arrives while the owner is still at work waits for it.
func TestNewsBeforeOurCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	in := w.inboxOf(i, nil)
	slow := pausedProvider{Provider: w.psp, answered: make(chan struct{}), resume: make(chan struct{})}
	done := make(chan error, 1)
	go func() { _, err := w.start(nil, slow).charge(w, "k"); done <- err }()
	<-slow.answered
	w.deliver(in, "evt_1", "charge.succeeded", w.providerCharge())
	if n, err := in.RunOnce(t.Context(), 5); err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	if n := w.count(`SELECT count(*) FROM provider_events WHERE processed_at IS NULL AND last_error LIKE '%works on the operation%'`); n != 1 {
		t.Error("the news did not wait for the owner")
	}
	close(slow.resume)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.process(in)
	w.books(1)
	if n := w.count(`SELECT count(*) FROM provider_events WHERE result = 'nothing new'`); n != 1 {
		t.Error("the news was not processed after the owner had finished")
	}
}

// News of strangers is stored and left.
func TestNewsOfOthersIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	in := w.inboxOf(i, nil)
	i.made(w, "k", twenty)
	w.deliver(in, "evt_unknown", "charge.succeeded", "ch_nobody")
	w.deliver(in, "evt_type", "customer.created", "cus_1")
	live := []byte(strings.Replace(string(event("evt_live", "charge.succeeded", w.providerCharge())), `"livemode":false`, `"livemode":true`, 1))
	if err := in.Receive(t.Context(), live, signed(live, secret, time.Now())); err != nil {
		t.Fatal(err)
	}
	id := w.providerCharge()
	w.exec(`DELETE FROM charges`) // a restore lost it, say
	w.exec(`DELETE FROM idempotency_keys`)
	w.deliver(in, "evt_orphan", "charge.succeeded", id)
	w.process(in)
	if n := w.count(`SELECT count(*) FROM provider_events WHERE processed_at IS NOT NULL`); n != 4 {
		t.Errorf("%d are processed", n)
	}
	if n := w.count(`SELECT count(*) FROM provider_events WHERE result LIKE 'books differ: an orphan%'`); n != 1 {
		t.Error("the orphan is not told")
	}
	if n := w.count(`SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("%d events went out", n)
	}
}

// Disputes, a refund that fails days later, a refund made elsewhere: state moves forward, with one event each.
func TestNewsMovesStateForward(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	in := w.inboxOf(i, nil)
	charge := i.made(w, "k", twenty)
	id := w.providerCharge()
	res, err := i.refund(w, "r", charge, 500)
	if err != nil {
		t.Fatal(err)
	}
	var refund charges.Refund
	if err := json.Unmarshal(res.Answer.Body, &refund); err != nil {
		t.Fatal(err)
	}
	if err := w.sim.FailRefund(*refund.Provider.ID, "lost_or_stolen_card"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.deliver(in, "evt_failed", "refund.failed", *refund.Provider.ID)
		w.deliver(in, "evt_updated", "charge.refund.updated", *refund.Provider.ID)
	}
	w.process(in)
	if n := w.count(`SELECT amount_refunded FROM charges`); n != 0 {
		t.Errorf("%d are still counted as refunded", n)
	}
	for _, typ := range []string{"refund.failed", "charge.updated"} {
		if n := w.count(`SELECT count(*) FROM outbox WHERE type = $1`, typ); n != 1 {
			t.Errorf("%d events %s", n, typ)
		}
	}
	if n := w.count(`SELECT (convert_from(payload, 'UTF8')::jsonb #>> '{data,object,amount_refunded}')::int FROM outbox WHERE type = 'charge.updated'`); n != 0 {
		t.Errorf("charge.updated tells of %d refunded", n)
	}
	if res, err := i.refund(w, "r", charge, 500); err != nil || !res.Replayed {
		t.Errorf("the key's answer changed: %v", err)
	}
	if err := w.sim.DisputeCharge(id); err != nil {
		t.Fatal(err)
	}
	dispute := w.dispute()
	w.deliver(in, "evt_dispute", "charge.dispute.created", dispute)
	w.deliver(in, "evt_dispute2", "charge.dispute.updated", dispute)
	w.process(in)
	if n := w.count(`SELECT count(*) FROM outbox WHERE type = 'charge.dispute.created'`); n != 1 {
		t.Errorf("%d events charge.dispute.created", n)
	}
	if n := w.count(`SELECT count(*) FROM charges WHERE disputed`); n != 1 {
		t.Error("the charge does not say that it is disputed")
	}
	// PB-124: won, the charge can be refunded again, and its later news does not bring the dispute back.
	if err := w.sim.CloseDispute(dispute, "won"); err != nil {
		t.Fatal(err)
	}
	w.deliver(in, "evt_won", "charge.dispute.closed", dispute)
	w.process(in)
	if res, err := i.refund(w, "after", charge, 100); err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	w.deliver(in, "evt_refunded", "charge.refunded", id)
	w.process(in)
	if n := w.count(`SELECT count(*) FROM charges WHERE disputed`); n != 0 {
		t.Error("a dispute that was won came back")
	}
	if n := w.count(`SELECT count(*) FROM outbox WHERE type LIKE 'charge.dispute.%'`); n != 2 {
		t.Errorf("%d events of the dispute", n)
	}
}

// dispute is the id of the only dispute at the provider.
func (w *world) dispute() string {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/v1/disputes", nil)
	r.Header.Set("Authorization", "Bearer sk_test_x")
	rec := httptest.NewRecorder()
	w.sim.ServeHTTP(rec, r)
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || len(list.Data) != 1 {
		w.t.Fatalf("%s, %v", rec.Body, err)
	}
	return list.Data[0].ID
}

// Refunds made elsewhere, in the provider's dashboard say: our sum follows theirs, up and down, and waits while refunds of ours are under way.
func TestRefundsMadeElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	in := w.inboxOf(i, nil)
	charge := i.made(w, "k", twenty)
	id := w.providerCharge()
	elsewhere, err := w.psp.Refund(t.Context(), provider.RefundRequest{
		IdempotencyKey: "dashboard", Tags: provider.Tags{Operation: "op_x", Installation: "elsewhere"}, ChargeID: id, Amount: 300,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.sim.AddFault(stripesim.Rule{Match: stripesim.Match{Method: http.MethodPost, Path: "/v1/refunds"}, Count: 1, Fault: stripesim.Fault{Type: stripesim.DropBefore}}); err != nil {
		t.Fatal(err)
	}
	_, err = i.refund(w, "ours", charge, 800)
	wantUnknown(t, err)
	w.deliver(in, "evt_1", "charge.refunded", id)
	w.process(in)
	if n := w.count(`SELECT count(*) FROM provider_events WHERE processed_at IS NOT NULL`); n != 0 {
		t.Error("news of the sum was used up while a refund of ours was under way")
	}
	w.pass(i)
	w.process(in)
	if n := w.count(`SELECT amount_refunded FROM charges`); n != 1100 {
		t.Errorf("%d refunded, want 1100", n)
	}
	if err := w.sim.FailRefund(elsewhere.Refund.ID, ""); err != nil {
		t.Fatal(err)
	}
	w.deliver(in, "evt_2", "refund.failed", elsewhere.Refund.ID)
	w.process(in)
	if n := w.count(`SELECT amount_refunded FROM charges`); n != 800 {
		var why string
		_ = w.pool.QueryRow(t.Context(), `SELECT coalesce(result, last_error, string_agg(id,'')) FROM provider_events WHERE id = 'evt_2' GROUP BY result, last_error`).Scan(&why)
		t.Errorf("%d refunded after theirs failed, want 800: %s", n, why)
	}
	if n := w.count(`SELECT count(*) FROM outbox WHERE type = 'charge.updated'`); n != 1 {
		t.Errorf("%d events charge.updated", n)
	}
}

// Trap 64: an event that fails is tried again on its own schedule; a poison one is listed, and a mended version replays it. Others go on.
func TestPoisonAndReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.start(nil, nil)
	tries := map[string]int{}
	broken := true
	in := w.inboxOf(i, func(ctx context.Context, e inbox.Event, mark inbox.Mark) error {
		tries[e.ID]++
		switch {
		case e.ID == "evt_third" && tries[e.ID] <= 3:
			return errors.New("not yet")
		case e.ID == "evt_poison" && broken:
			panic("a parser's bug")
		}
		_, err := mark(ctx, w.pool, "done")
		return err
	})
	for _, id := range []string{"evt_poison", "evt_third", "evt_good"} {
		w.deliver(in, id, "x.y", "o")
	}
	for range 25 {
		w.process(in)
	}
	if tries["evt_good"] != 1 || tries["evt_third"] != 4 || tries["evt_poison"] != 20 {
		t.Errorf("tries: %v", tries)
	}
	list, err := in.List(t.Context(), inbox.Filter{Since: time.Now().Add(-time.Hour), Unprocessed: true, Most: 10})
	if err != nil || len(list) != 1 || list[0].ID != "evt_poison" || list[0].ParkedAt == nil || !strings.Contains(list[0].LastError, "panic") {
		t.Fatalf("%+v, %v", list, err)
	}
	broken = false
	if n, err := in.Replay(t.Context(), "", time.Now().Add(-time.Hour), "x.y"); err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
	w.process(in)
	if n := w.count(`SELECT count(*) FROM provider_events WHERE result = 'done'`); n != 3 {
		t.Errorf("%d are done", n)
	}
}

// A burst is acknowledged whole, and stored once.
func TestBurst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := w.inboxOf(w.start(nil, nil), nil)
	var group sync.WaitGroup
	for n := range 500 {
		group.Go(func() {
			body := event(fmt.Sprint("evt_", n/2), "unknown.type", "o") // each twice
			if err := in.Receive(context.Background(), body, signed(body, secret, time.Now())); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := w.count(`SELECT count(*) FROM provider_events`); n != 250 {
		t.Errorf("%d are stored", n)
	}
}
