package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"

	"paidonce/api/apitest"
	"paidonce/db"
	"paidonce/provider/stripesim"
)

const whsec = "whsec_test"

// news is a delivery such as Stripe sends, of an API version of its own, and with a state that nobody should believe.
func news(id, kind, object string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","api_version":"2031-01-01.other","type":%q,"livemode":false,"data":{"object":{"id":%q,"amount":1,"status":"failed"}}}`, id, kind, object)
}

func signature(body, secret string, at time.Time) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body), Secret: secret, Timestamp: at}).Header
}

// send delivers a body, without an API key, with a header as it is.
func (s *shop) send(body, signed string, header ...string) apitest.Answer {
	req := s.Request("POST", webhooks, body, append(header, "Stripe-Signature", signed)...)
	req.Header["Authorization"] = nil
	return s.Do(req)
}

func (s *shop) deliver(t *testing.T, id, kind, object string) {
	t.Helper()
	body := news(id, kind, object)
	if a := s.send(body, signature(body, whsec, time.Now())); a.Code != 200 {
		t.Errorf("%s %s: got %d %s", id, kind, a.Code, a.Body)
	}
}

// process works off everything that is due, whatever its schedule says.
func (s *shop) process(t *testing.T) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), "UPDATE provider_events SET next_run_at = clock_timestamp() WHERE next_run_at IS NOT NULL"); err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0; {
		var err error
		if n, err = s.inbox.RunOnce(context.Background(), 8); err != nil {
			t.Fatal(err)
		}
	}
}

// events is how many events meet a condition.
func (s *shop) events(t *testing.T, where string, args ...any) (n int) {
	t.Helper()
	if err := db.Retry(t.Context(), func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, "SELECT count(*) FROM provider_events WHERE "+where, args...).Scan(&n)
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// providerID is the provider's id of the latest charge there.
func (s *shop) providerID(t *testing.T, id string) string {
	t.Helper()
	var book struct{ Charges []struct{ ID string } }
	s.control(t, "ledger", &book)
	if len(book.Charges) == 0 {
		t.Fatalf("the provider has no charge for %s", id)
	}
	return book.Charges[len(book.Charges)-1].ID
}

// PB-207, PB-176, PB-148: the signature is over the bytes as they came, whatever they look like and whatever surrounds them.
func TestSignedBytesAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for i, body := range []string{
		news("evt_plain", "x.y", "o"), "{\n  \"type\" : \"x.y\",\n\t\"object\":\"event\", \"id\" : \"evt_pretty\"}\n", `{"id":"evt_\u0065scaped","object":"event","type":"x\u002ey"}`,
		`{"id":"evt_numbers","object":"event","type":"x.y","n":1.0,"m":1e400,"data":{"object":{"id":"o","amount":20.00}}}`,
		"{\"id\":\"evt_bytes\",\"object\":\"event\",\"type\":\"x.y\",\"data\":{\"object\":{\"id\":\"o\",\"description\":\"\xe9\"}}}",
		`{"id":"evt_nul","object":"event","type":"x.y","data":{"object":{"id":"o","description":"\u0000"}}}`, `{"id":"evt_twice","id":"evt_twice","object":"event","type":"x.y"}`,
	} {
		header := [][]string{nil, {"Content-Type", "application/json"}, {"Content-Type", "text/plain"}}[i%3]
		signed := signature(body, whsec, time.Now())
		for range 3 { // a repeated delivery is one event
			if a := s.send(body, signed, header...); a.Code != 200 {
				t.Errorf("%q: got %d %s", body, a.Code, a.Body)
			}
		}
		if n := s.events(t, "payload = $1", []byte(body)); n != 1 {
			t.Errorf("%q: stored %d times as it came", body, n)
		}
		for _, other := range []string{body + " ", body[:len(body)-1], strings.Replace(body, "x", "y", 1), " " + body} {
			wants(t, s.send(other, signed, header...), 400, "signature_invalid", "")
		}
	}
	for _, body := range []string{"", "null", "[]", "{}", `{"id":"evt_1","object":"charge","type":"x"}`, `{"id":"evt 1","object":"event","type":"x"}`} {
		wants(t, s.send(body, signature(body, whsec, time.Now())), 400, "body_malformed", "")
	}
	if n := s.events(t, "true"); n != 7 {
		t.Errorf("%d events are stored", n)
	}
	s.process(t) // PB-148: and none of them stands in the way
	if n := s.events(t, "processed_at IS NULL"); n != 0 {
		t.Errorf("%d events are not processed", n)
	}
}

// PB-095, PB-210, PB-212, PB-213
func TestSignaturesThatCount(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	both := apitest.NewClient(t, s.serve(t, "whsec_old", whsec).url, s.APIKey)
	body, now := news("evt_1", "x.y", "o"), time.Now()
	good := signature(body, whsec, now)
	at, v1, _ := strings.Cut(good, ",v1=")
	for name, header := range map[string]string{
		"garbage": "garbage", "another secret": signature(body, "whsec_other", now), "the old secret": signature(body, "whsec_old", now), "an hour old": signature(body, whsec, now.Add(-time.Hour)),
		"ten minutes ahead": signature(body, whsec, now.Add(10*time.Minute)), "ten years ahead": signature(body, whsec, now.AddDate(10, 0, 0)),
		"another time": fmt.Sprintf("t=%d,v1=%s", now.Unix()+1, v1), "another body": signature(news("evt_2", "x.y", "o"), whsec, now), "no time": "v1=" + v1, "no signature": at,
		"empty signature": at + ",v1=", "odd length": at + ",v1=" + v1[1:], "not hex": at + ",v1=zz", "equals inside": at + ",v1=a=b", "another scheme": at + ",v0=" + v1,
		"no secret": signature(body, "", now), "long": strings.Repeat("v1=ab,", 1000) + at,
		// Whoever reads one of two times and somebody else the other would not agree on when it was signed.
		"two times": at + "," + good, "an old time, too": fmt.Sprintf("t=%d,", now.Unix()-3600) + good, "a new time behind": good + fmt.Sprintf(",t=%d", now.Unix()+1),
		"an empty time, too": "t=," + good, "a time with a sign": strings.Replace(good, "t=", "t=+", 1), "a negative time": strings.Replace(good, "t=", "t=-", 1),
		"a time with a blank": strings.Replace(good, "t=", "t= ", 1), "hexadecimal time": strings.Replace(good, "t=", "t=0x", 1), "a time with a fraction": strings.Replace(good, ",", ".0,", 1),
		"a time of all digits": "t=" + strings.Repeat("9", 30) + ",v1=" + v1, "ends with a comma": good + ",", "begins with one": "," + good, "no equals sign": good + ",v2",
		"blanks behind commas": strings.ReplaceAll(good, ",", ", "), "semicolons": strings.ReplaceAll(good, ",", ";"), "too many": good + strings.Repeat(",v0=", 40),
	} {
		a := s.send(body, header)
		if a.Code != 400 || a.Error().Code != "signature_invalid" {
			t.Errorf("%s: got %d %s", name, a.Code, a.Body)
		}
	}
	if n := s.events(t, "true"); n != 0 {
		t.Errorf("%d events are stored", n)
	}
	for name, header := range map[string]string{
		"good": good, "a minute ahead": signature(body, whsec, now.Add(time.Minute)), "four minutes old": signature(body, whsec, now.Add(-4*time.Minute)),
		"one of them not hex": at + ",v1=zz,v1=" + v1, "capitals": at + ",v1=" + strings.ToUpper(v1),
		"another scheme as well": good + ",v0=" + v1, "the time behind": "v1=" + v1 + "," + at,
	} {
		if a := s.send(body, header); a.Code != 200 {
			t.Errorf("%s: got %d %s", name, a.Code, a.Body)
		}
	}
	for _, secret := range []string{"whsec_old", whsec} { // while one is replaced
		if a := both.Do(both.Request("POST", webhooks, body, "Stripe-Signature", signature(body, secret, now))); a.Code != 200 {
			t.Errorf("%s: got %d", secret, a.Code)
		}
	}
	if n := s.events(t, "true"); n != 1 {
		t.Errorf("%d events are stored", n)
	}
	s.pool.Close()
	a := s.send(body, good)
	if wants(t, a, 503, "unavailable", ""); a.Header.Get("Retry-After") == "" {
		t.Errorf("got %v", a.Header)
	}
}

// PB-134: what an event says of amounts is not believed; what the provider says when asked is.
func TestNewsSettlesWhatTheProviderHas(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	yen := `{"amount":8000,"currency":"jpy","source":"tok_visa"}`
	s.fault(t, 1, "/v1/charges", stripesim.Fault{Type: stripesim.StatusAfter}) // the provider's stored 500
	a := s.Charge("K", yen)
	wants(t, a, 503, "outcome_unknown", "")
	id := a.Error().Charge
	for i, says := range []string{`"amount":80,"currency":"jpy"`, `"amount":8000,"currency":"usd"`, `"amount":8000,"currency":"jpy"`} {
		body := fmt.Sprintf(`{"id":"evt_%d","object":"event","type":"charge.succeeded","data":{"object":{"id":%q,%s}}}`, i, s.providerID(t, id), says)
		for range 3 {
			if a := s.send(body, signature(body, whsec, time.Now())); a.Code != 200 {
				t.Errorf("got %d %s", a.Code, a.Body)
			}
		}
		s.process(t)
		if c := s.shows(t, id); c.Status != "succeeded" || c.Amount != 8000 || c.AmountCaptured != 8000 || c.Currency != "jpy" {
			t.Errorf("after %s: %+v", says, c)
		}
	}
	if a := s.Charge("K", yen); a.Code != 201 || !a.Replayed() || a.ID() != id || s.asked() != 1 {
		t.Errorf("got %d %s, asked %d times", a.Code, a.Body, s.asked())
	}
	var written int
	if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM outbox WHERE object_id = $1", id).Scan(&written); err != nil || written != 1 {
		t.Errorf("%d events of ours, %v", written, err)
	}
}

// A dispute and a refund that fails after all, by the simulator's own deliveries.
func TestTheProvidersOwnDeliveries(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.sim.SetWebhooks([]stripesim.Endpoint{{URL: s.url + webhooks, Secret: "whsec_next," + whsec}}, stripesim.WebhookMode{BeforeAnswer: true, Duplicates: 1})
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { s.inbox.Work(ctx) }) // each event is there, and may be processed, before our own commit
	defer working.Wait()
	defer stop()
	id := s.charged(t, "charge", `"amount":1000`)
	created(t, refundOf(s.Client, "refund", id, 400))
	var book struct{ Refunds []struct{ ID string } }
	s.control(t, "ledger", &book)
	if err := s.sim.FailRefund(book.Refunds[0].ID, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.sim.DisputeCharge(s.providerID(t, id)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); s.events(t, "type IN ('refund.failed', 'charge.dispute.created') AND processed_at IS NOT NULL") < 2 && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	s.process(t)
	if c := s.shows(t, id); c.AmountRefunded != 0 {
		t.Errorf("the charge says %+v", c)
	}
	wants(t, refundOf(s.Client, "again", id, 0), 400, "charge_disputed", "charge")
	if a := s.Get("/v1/refunds?charge=" + id); !strings.Contains(string(a.Body), `"status":"failed"`) || !strings.Contains(string(a.Body), `"failure_reason":"`) {
		t.Errorf("got %s", a.Body)
	}
	if n := s.sim.Stats().Undelivered; n != 0 {
		t.Errorf("%d deliveries failed", n)
	}
	for kind, want := range map[string]int{"charge.succeeded": 1, "refund.created": 1, "charge.refunded": 1, "refund.failed": 1, "charge.dispute.created": 1} {
		var n int
		if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM outbox WHERE type = $1", kind).Scan(&n); err != nil || n != want {
			t.Errorf("%s: %d events of ours, want %d, %v", kind, n, want, err)
		}
	}
}

// A burst of events, most of types that nobody knows (PB-239), while charges go on: each is acknowledged, those that matter are applied.
func TestABurstOfEvents(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	total, known := 2000, 20
	if testing.Short() {
		total = 400
	}
	var refunds []string
	id := s.charged(t, "charge", `"amount":1000`)
	for i := range known {
		created(t, refundOf(s.Client, fmt.Sprint("R", i), id, 10))
	}
	var book struct{ Refunds []struct{ ID string } }
	s.control(t, "ledger", &book)
	for _, r := range book.Refunds {
		refunds = append(refunds, r.ID)
		if err := s.sim.FailRefund(r.ID, ""); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	var working, charging, sending sync.WaitGroup
	working.Go(func() { s.inbox.Work(ctx) })
	defer working.Wait()
	defer stop()
	var done atomic.Bool
	for c := range 4 {
		charging.Go(func() {
			for i := 0; !done.Load(); i++ {
				created(t, s.Charge(fmt.Sprint("C", c, "-", i), b0))
			}
		})
	}
	const senders = 32
	start, slowest := time.Now(), atomic.Int64{}
	for n := range senders {
		sending.Go(func() {
			for i := n; i < total; i += senders {
				began := time.Now()
				if every := total / known; i%every == 0 && i/every < known {
					s.deliver(t, fmt.Sprint("evt_known", i), "refund.failed", refunds[i/every])
				} else {
					s.deliver(t, fmt.Sprint("evt_", i), "customer.subscription.updated", "sub_1")
				}
				for took := int64(time.Since(began)); ; {
					if was := slowest.Load(); took <= was || slowest.CompareAndSwap(was, took) {
						break
					}
				}
			}
		})
	}
	sending.Wait()
	done.Store(true)
	charging.Wait()
	t.Logf("%d events in %v, the slowest in %v", total, time.Since(start), time.Duration(slowest.Load()))
	if n := s.events(t, "true"); n != total {
		t.Errorf("%d events are stored", n)
	}
	for deadline := time.Now().Add(time.Minute); s.events(t, "processed_at IS NULL") > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	if c := s.shows(t, id); c.AmountRefunded != 0 || s.events(t, "processed_at IS NULL") != 0 {
		t.Errorf("%d events are not processed; the charge says %+v", s.events(t, "processed_at IS NULL"), c)
	}
}
