package inbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/db"
	"paidonce/internal/shop"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// events is how many events meet a condition.
func events(s *shop.Shop, t *testing.T, where string, args ...any) (n int) {
	t.Helper()
	if err := db.Retry(t.Context(), func(ctx context.Context) error {
		return s.Pool.QueryRow(
			ctx, "SELECT count(*) FROM provider_events WHERE "+where, args...,
		).Scan(&n)
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// The signature is over the bytes as they came, whatever they look like and whatever surrounds
// them.
func TestSignedBytesAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	for i, body := range []string{
		string(world.Event("evt_plain", "x.y", "o")),
		"{\n  \"type\" : \"x.y\",\n\t\"object\":\"event\", \"id\" : \"evt_pretty\"}\n",
		`{"id":"evt_\u0065scaped","object":"event","type":"x\u002ey"}`,
		`{"id":"evt_numbers","object":"event","type":"x.y","n":1.0,"m":1e400,"data":{"object":{"id":"o","amount":20.00}}}`,
		"{\"id\":\"evt_bytes\",\"object\":\"event\",\"type\":\"x.y\",\"data\":{\"object\":{\"id\":\"o\",\"description\":\"\xe9\"}}}",
		`{"id":"evt_nul","object":"event","type":"x.y","data":{"object":{"id":"o","description":"\u0000"}}}`,
		`{"id":"evt_twice","id":"evt_twice","object":"event","type":"x.y"}`,
	} {
		header := [][]string{
			nil, {"Content-Type", "application/json"}, {"Content-Type", "text/plain"},
		}[i%3]
		signed := world.Signed([]byte(body), world.Secret, time.Now())
		for range 3 { // a repeated delivery is one event
			if a := s.Send(body, signed, header...); a.Code != 200 {
				t.Errorf("%q: got %d %s", body, a.Code, a.Body)
			}
		}
		if n := events(s, t, "payload = $1", []byte(body)); n != 1 {
			t.Errorf("%q: stored %d times as it came", body, n)
		}
		for _, other := range []string{
			body + " ", body[:len(body)-1], strings.Replace(body, "x", "y", 1), " " + body,
		} {
			apitest.Wants(t, s.Send(other, signed, header...), 400, "signature_invalid", "")
		}
	}
	if n := events(s, t, "true"); n != 7 {
		t.Errorf("%d events are stored", n)
	}
	s.Process() // and none of them stands in the way
	if n := events(s, t, "processed_at IS NULL"); n != 0 {
		t.Errorf("%d events are not processed", n)
	}
}

// Only a signature of the body as it came counts, with one of our secrets, at about this time.
func TestSignaturesThatCount(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	both := apitest.NewClient(t, s.Serve(world.OldSecret, world.Secret).URL, s.APIKey)
	body, now := string(world.Event("evt_1", "x.y", "o")), time.Now()
	good := world.Signed([]byte(body), world.Secret, now)
	at, v1, _ := strings.Cut(good, ",v1=")
	for name, header := range map[string]string{
		"garbage": "garbage", "another secret": world.Signed([]byte(body), "whsec_other", now),
		"the old secret":    world.Signed([]byte(body), world.OldSecret, now),
		"an hour old":       world.Signed([]byte(body), world.Secret, now.Add(-time.Hour)),
		"ten minutes ahead": world.Signed([]byte(body), world.Secret, now.Add(10*time.Minute)),
		"ten years ahead":   world.Signed([]byte(body), world.Secret, now.AddDate(10, 0, 0)),
		"another time":      fmt.Sprintf("t=%d,v1=%s", now.Unix()+1, v1),
		"another body":      world.Signed(world.Event("evt_2", "x.y", "o"), world.Secret, now),
		"no time":           "v1=" + v1, "no signature": at, "empty signature": at + ",v1=",
		"odd length": at + ",v1=" + v1[1:], "not hex": at + ",v1=zz",
		"equals inside": at + ",v1=a=b", "another scheme": at + ",v0=" + v1,
		"no secret": world.Signed([]byte(body), "", now),
		"long":      strings.Repeat("v1=ab,", 1000) + at,
		// Whoever reads one of two times and somebody else the other would not agree on when it was
		// signed.
		"two times":              at + "," + good,
		"an old time, too":       fmt.Sprintf("t=%d,", now.Unix()-3600) + good,
		"a new time behind":      good + fmt.Sprintf(",t=%d", now.Unix()+1),
		"an empty time, too":     "t=," + good,
		"a time with a sign":     strings.Replace(good, "t=", "t=+", 1),
		"a negative time":        strings.Replace(good, "t=", "t=-", 1),
		"a time with a blank":    strings.Replace(good, "t=", "t= ", 1),
		"hexadecimal time":       strings.Replace(good, "t=", "t=0x", 1),
		"a time with a fraction": strings.Replace(good, ",", ".0,", 1),
		"a time of all digits":   "t=" + strings.Repeat("9", 30) + ",v1=" + v1,
		"ends with a comma":      good + ",", "begins with one": "," + good,
		"no equals sign": good + ",v2", "blanks behind commas": strings.ReplaceAll(good, ",", ", "),
		"semicolons": strings.ReplaceAll(good, ",", ";"),
		"too many":   good + strings.Repeat(",v0=", 40),
	} {
		a := s.Send(body, header)
		if a.Code != 400 || a.Error().Code != "signature_invalid" {
			t.Errorf("%s: got %d %s", name, a.Code, a.Body)
		}
	}
	if n := events(s, t, "true"); n != 0 {
		t.Errorf("%d events are stored", n)
	}
	for name, header := range map[string]string{
		"good":                   good,
		"a minute ahead":         world.Signed([]byte(body), world.Secret, now.Add(time.Minute)),
		"four minutes old":       world.Signed([]byte(body), world.Secret, now.Add(-4*time.Minute)),
		"one of them not hex":    at + ",v1=zz,v1=" + v1,
		"capitals":               at + ",v1=" + strings.ToUpper(v1),
		"another scheme as well": good + ",v0=" + v1, "the time behind": "v1=" + v1 + "," + at,
	} {
		if a := s.Send(body, header); a.Code != 200 {
			t.Errorf("%s: got %d %s", name, a.Code, a.Body)
		}
	}
	for _, secret := range []string{world.OldSecret, world.Secret} { // while one is replaced
		if a := both.Do(
			both.Request(
				"POST", shop.Webhooks, body, "Stripe-Signature",
				world.Signed([]byte(body), secret, now),
			),
		); a.Code != 200 {
			t.Errorf("%s: got %d", secret, a.Code)
		}
	}
	if n := events(s, t, "true"); n != 1 {
		t.Errorf("%d events are stored", n)
	}
	s.Pool.Close()
	a := s.Send(body, good)
	if apitest.Wants(t, a, 503, "unavailable", ""); a.Header.Get("Retry-After") == "" {
		t.Errorf("got %v", a.Header)
	}
}

// What an event says of amounts is not believed; what the provider says when asked is.
func TestNewsSettlesWhatTheProviderHas(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	yen := `{"amount":8000,"currency":"jpy","source":"tok_visa"}`
	// the provider's stored 500
	s.PostFault(1, "/v1/charges", stripesim.Fault{Type: stripesim.StatusAfter})
	a := s.Charge("K", yen)
	apitest.Wants(t, a, 503, "outcome_unknown", "")
	id := a.Error().Charge
	for i, says := range []string{
		`"amount":80,"currency":"jpy"`, `"amount":8000,"currency":"usd"`,
		`"amount":8000,"currency":"jpy"`,
	} {
		body := fmt.Sprintf(
			`{"id":"evt_%d","object":"event","type":"charge.succeeded","data":{"object":{"id":%q,%s}}}`,
			i, s.ProviderID(), says,
		)
		for range 3 {
			if a := s.Send(
				body, world.Signed([]byte(body), world.Secret, time.Now()),
			); a.Code != 200 {
				t.Errorf("got %d %s", a.Code, a.Body)
			}
		}
		s.Process()
		if c := s.Show(id); c.Status != "succeeded" || c.Amount != 8000 ||
			c.AmountCaptured != 8000 || c.Currency != "jpy" {
			t.Errorf("after %s: %+v", says, c)
		}
	}
	if a := s.Charge("K", yen); a.Code != 201 || !a.Replayed() || a.ID() != id ||
		s.ChargeRequests() != 1 {
		t.Errorf("got %d %s, asked %d times", a.Code, a.Body, s.ChargeRequests())
	}
	var written int
	if err := s.Pool.QueryRow(
		t.Context(), "SELECT count(*) FROM outbox WHERE object_id = $1", id,
	).Scan(&written); err != nil || written != 1 {
		t.Errorf("%d events of our own, %v", written, err)
	}
}

// A dispute and a refund that fails after all, by the simulator's own deliveries.
func TestTheProvidersOwnDeliveries(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	s.World.Sim.SetWebhooks(
		[]stripesim.Endpoint{{URL: s.URL + shop.Webhooks, Secret: "whsec_next," + world.Secret}},
		stripesim.WebhookMode{BeforeAnswer: true, Duplicates: 1},
	)
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	// each event is there, and may be processed, before our own commit
	working.Go(func() { s.Inbox.Work(ctx) })
	defer working.Wait()
	defer stop()
	id := s.MustCharge("charge", `"amount":1000`)
	apitest.Created(t, s.Refund("refund", id, 400))
	book := s.Ledger()
	if err := s.World.Sim.FailRefund(book.Refunds[0].ID, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.World.Sim.DisputeCharge(s.ProviderID()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); events(
		s, t, "type IN ('refund.failed', 'charge.dispute.created') AND processed_at IS NOT NULL",
	) < 2 && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	s.Process()
	if c := s.Show(id); c.AmountRefunded != 0 {
		t.Errorf("the charge says %+v", c)
	}
	apitest.Wants(t, s.Refund("again", id, 0), 400, "charge_disputed", "charge")
	if a := s.Get("/v1/refunds?charge=" + id); !strings.Contains(
		string(a.Body), `"status":"failed"`,
	) || !strings.Contains(string(a.Body), `"failure_reason":"`) {
		t.Errorf("got %s", a.Body)
	}
	if n := s.World.Sim.Stats().Undelivered; n != 0 {
		t.Errorf("%d deliveries failed", n)
	}
	for kind, want := range map[string]int{
		"charge.succeeded": 1, "refund.created": 1, "charge.refunded": 1, "refund.failed": 1,
		"charge.dispute.created": 1,
	} {
		var n int
		if err := s.Pool.QueryRow(
			t.Context(), "SELECT count(*) FROM outbox WHERE type = $1", kind,
		).Scan(&n); err != nil || n != want {
			t.Errorf("%s: %d events of our own, want %d, %v", kind, n, want, err)
		}
	}
}

// A burst of events, most of types that nobody knows, while charges go on: each is acknowledged,
// those that matter are applied.
func TestABurstOfEvents(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	total, known := 2000, 20
	if testing.Short() {
		total = 400
	}
	var refunds []string
	id := s.MustCharge("charge", `"amount":1000`)
	for i := range known {
		apitest.Created(t, s.Refund(fmt.Sprint("R", i), id, 10))
	}
	book := s.Ledger()
	for _, r := range book.Refunds {
		refunds = append(refunds, r.ID)
		if err := s.World.Sim.FailRefund(r.ID, ""); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	var working, charging, sending sync.WaitGroup
	working.Go(func() { s.Inbox.Work(ctx) })
	defer working.Wait()
	defer stop()
	var done atomic.Bool
	for c := range 4 {
		charging.Go(func() {
			for i := 0; !done.Load(); i++ {
				apitest.Created(t, s.Charge(fmt.Sprint("C", c, "-", i), shop.Twenty))
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
					s.Deliver(fmt.Sprint("evt_known", i), "refund.failed", refunds[i/every])
				} else {
					s.Deliver(fmt.Sprint("evt_", i), "customer.subscription.updated", "sub_1")
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
	t.Logf(
		"%d events in %v, the slowest in %v", total, time.Since(start),
		time.Duration(slowest.Load()),
	)
	if n := events(s, t, "true"); n != total {
		t.Errorf("%d events are stored", n)
	}
	for deadline := time.Now().Add(time.Minute); events(
		s, t, "processed_at IS NULL",
	) > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	if c := s.Show(id); c.AmountRefunded != 0 || events(s, t, "processed_at IS NULL") != 0 {
		t.Errorf(
			"%d events are not processed; the charge says %+v",
			events(s, t, "processed_at IS NULL"), c,
		)
	}
}
