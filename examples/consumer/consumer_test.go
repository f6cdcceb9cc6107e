package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"paidonce/internal/dbtest"
)

// shop is a consumer with a database of its own, and who sends to it.
type shop struct {
	*consumer
	t *testing.T
}

var secrets = []string{
	"whsec_" + base64.StdEncoding.EncodeToString([]byte("the secret until yesterday")),
	"whsec_" + base64.StdEncoding.EncodeToString([]byte("the secret since then")),
}

func newShop(t *testing.T) *shop {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dbtest.NewEmpty(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := &shop{consumer: &consumer{db: pool}, t: t}
	for range 2 { // at each start
		s.exec(schema)
	}
	for _, secret := range secrets {
		hook, err := standard.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		s.secrets = append(s.secrets, hook)
	}
	return s
}

func (s *shop) exec(sql string) {
	s.t.Helper()
	if _, err := s.db.Exec(s.t.Context(), sql); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) count(sql string) (n int) {
	s.t.Helper()
	if err := s.db.QueryRow(s.t.Context(), sql).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// holds checks how many events are remembered, how many lines there are, and what they come to.
func (s *shop) holds(events, lines, sum int) {
	s.t.Helper()
	e, l, n := s.count(`SELECT count(*) FROM books.seen_events`),
		s.count(`SELECT count(*) FROM books.ledger`),
		s.count(`SELECT coalesce(sum(amount), 0) FROM books.ledger`)
	if e != events || l != lines || n != sum {
		s.t.Errorf("%d events, %d lines, %d in all; want %d, %d, %d", e, l, n, events, lines, sum)
	}
}

// send delivers a body that was signed at that time, after change has changed the request, and
// returns the status.
func (s *shop) send(
	body string, by *standard.Webhook, at time.Time, change func(*http.Request),
) int {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/events", strings.NewReader(body))
	signature, err := by.Sign("evt_1", at, []byte(body))
	if err != nil {
		s.t.Error(err)
	}
	r.Header.Set(standard.HeaderWebhookID, "evt_1")
	r.Header.Set(standard.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	r.Header.Set(standard.HeaderWebhookSignature, signature)
	if change != nil {
		change(r)
	}
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	return answer.Code
}

func (s *shop) deliver(body string) int {
	s.t.Helper()
	return s.send(body, s.secrets[1], time.Now(), nil)
}

// told is an event.
func told(id, typ string, sequence int, object string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","type":%q,"sequence":%d,"data":{"object":%s}}`,
		id, typ, sequence, object)
}

func charge(captured, refunded int) string {
	return fmt.Sprintf(
		`{"id":"ch_1","object":"charge","amount":2000,"amount_captured":%d,"amount_refunded":%d,"currency":"usd","status":"succeeded"}`, captured, refunded)
}

// Each event has its effect once, also when it comes many times at once.
func TestOnce(t *testing.T) {
	s := newShop(t)
	body := told("evt_1", "charge.succeeded", 1, charge(2000, 0))
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 100 { // a serializable transaction may lose; then it comes again
				if s.deliver(body) == http.StatusOK {
					return
				}
			}
			t.Error("not taken")
		})
	}
	group.Wait()
	s.holds(1, 1, 2000)
}

// The log tells a repetition from what had its effect, and from what failed.
func TestLogTellsRepetitions(t *testing.T) {
	var said bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	defer slog.SetDefault(was)
	s := newShop(t)
	s.exec(`ALTER TABLE books.ledger ADD CONSTRAINT broken CHECK (amount < 0)`)
	body := told("evt_1", "charge.succeeded", 1, charge(2000, 0))
	s.deliver(body)
	s.exec(`ALTER TABLE books.ledger DROP CONSTRAINT broken`)
	for range 3 {
		for range 100 { // a serializable transaction may lose; then it comes again
			if s.deliver(body) == http.StatusOK {
				break
			}
		}
	}
	if taken, had := strings.Count(said.String(), "msg=taken"),
		strings.Count(said.String(), `msg="had already"`); taken != 1 || had != 2 {
		t.Errorf("taken %d times, had already %d times:\n%s", taken, had, said.String())
	}
	s.holds(1, 1, 2000)
}

// What was not signed with one of our secrets, now, over these bytes, leaves no trace.
func TestRefused(t *testing.T) {
	s := newShop(t)
	stranger, err := standard.NewWebhook("whsec_" +
		base64.StdEncoding.EncodeToString([]byte("a stranger's")))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	good := told("evt_1", "charge.succeeded", 1, charge(2000, 0))
	for name, status := range map[string]int{
		"a stranger's secret": s.send(good, stranger, now, nil),
		"an hour old":         s.send(good, s.secrets[1], now.Add(-time.Hour), nil),
		"an hour ahead":       s.send(good, s.secrets[1], now.Add(time.Hour), nil),
		"another id": s.send(good, s.secrets[1], now, func(r *http.Request) {
			r.Header.Set(standard.HeaderWebhookID, "evt_2")
		}),
		"no signature": s.send(good, s.secrets[1], now, func(r *http.Request) {
			r.Header.Del(standard.HeaderWebhookSignature)
		}),
		"other bytes": s.send(good, s.secrets[1], now, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(good, "2000", "9000", 1)))
		}),
		"too long": s.send(strings.Repeat(" ", bodyMax)+good, s.secrets[1], now, nil),
		"no JSON":  s.send("charge.succeeded", s.secrets[1], now, nil),
	} {
		if status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, status)
		}
	}
	s.holds(0, 0, 0)
	for i, hook := range s.secrets { // while one is changed for the other
		if status := s.send(told(fmt.Sprint("evt_", i), "charge.succeeded", 1, charge(2000, 0)),
			hook, now, nil); status != http.StatusOK {
			t.Errorf("signed with secret %d: %d", i, status)
		}
	}
	s.holds(2, 2, 2000)
}

// When the effect fails the event is not remembered either, and is taken when it comes again.
func TestNeitherIfNotBoth(t *testing.T) {
	s := newShop(t)
	s.exec(`ALTER TABLE books.ledger ADD CONSTRAINT broken CHECK (amount < 0)`)
	body := told("evt_1", "charge.succeeded", 1, charge(2000, 0))
	for range 3 {
		if status := s.deliver(body); status != http.StatusServiceUnavailable {
			t.Errorf("%d", status)
		}
	}
	s.holds(0, 0, 0)
	s.exec(`ALTER TABLE books.ledger DROP CONSTRAINT broken`)
	if status := s.deliver(body); status != http.StatusOK {
		t.Errorf("%d", status)
	}
	s.holds(1, 1, 2000)
}

// What nobody knows yet is no failure.
func TestUnknownType(t *testing.T) {
	s := newShop(t)
	for _, body := range []string{
		told("evt_1", "payout.paid", 1,
			`{"id":"po_1","object":"payout","amount":7,"status":"paid"}`),
		`{"id":"evt_2","object":"event","type":"x","data":{}}`,
		told("evt_3", "refund.created", 1,
			`{"id":"re_1","object":"refund","amount":500,"status":"succeeded","charge":"ch_1"}`),
		strings.Replace(told("evt_4", "charge.frobbed", 1, charge(2000, 0)), `"type"`,
			`"fresh":[1],"type"`, 1),
	} {
		if status := s.deliver(body); status != http.StatusOK {
			t.Errorf("%s: %d", body, status)
		}
	}
	s.holds(4, 1, 2000)
}

// Events of a charge in any order come to the same.
func TestAnyOrder(t *testing.T) {
	events := []string{
		told("evt_1", "charge.succeeded", 1, charge(0, 0)),
		told("evt_2", "charge.captured", 2, charge(1500, 0)),
		told("evt_3", "charge.refunded", 3, charge(1500, 500)), told("evt_4", "charge.updated", 4,
			charge(1500, 0)), told("evt_5", "charge.refunded", 5, charge(1500, 300)),
	}
	for _, order := range []string{"12345", "54321", "35142", "13524", "52143"} {
		s := newShop(t)
		for _, n := range []byte(order) {
			if status := s.deliver(events[n-'1']); status != http.StatusOK {
				t.Fatalf("%c: %d", n, status)
			}
		}
		s.holds(5, 5, 1200)
		if n := s.count(
			`SELECT count(*) FROM books.charges WHERE id = 'ch_1' AND status = 'succeeded' AND amount = 1200 AND sequence = 5`); n != 1 {
			t.Errorf("in the order %s the charge is not what its newest event says", order)
		}
	}
}

// The database is away: that is said, so that the event comes again.
func TestWithoutDatabase(t *testing.T) {
	s := newShop(t)
	s.db.Close()
	if status := s.deliver(told("evt_1", "charge.succeeded", 1, charge(2000, 0))); status != http.StatusServiceUnavailable {
		t.Errorf("%d", status)
	}
}

// An empty secret is one that everybody knows.
func TestSettings(t *testing.T) {
	url := dbtest.NewEmpty(t)
	for name, c := range map[string]struct {
		env  [4]string // DATABASE_URL, WEBHOOK_SECRET, PAIDONCE_URL, PAIDONCE_API_KEY
		pull bool
		want string
	}{
		"no database":      {[4]string{"", secrets[0]}, false, "DATABASE_URL"},
		"no secret":        {[4]string{url}, false, "PAIDONCE_URL"},
		"nowhere to read":  {[4]string{url, secrets[0]}, true, "PAIDONCE_URL"},
		"empty secret":     {[4]string{url, "whsec_"}, false, "WEBHOOK_SECRET"},
		"one of two empty": {[4]string{url, secrets[0] + ","}, false, "WEBHOOK_SECRET"},
		"garbage":          {[4]string{url, "whsec_%"}, false, "WEBHOOK_SECRET"},
		"no Paidonce": {
			[4]string{url, "", "http://127.0.0.1:1", "sk_test_x"}, false, "refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i, variable := range []string{"DATABASE_URL", "WEBHOOK_SECRET", "PAIDONCE_URL",
				"PAIDONCE_API_KEY"} {
				t.Setenv(variable, c.env[i])
			}
			t.Setenv("LISTEN", "127.0.0.1:0")
			if err := run(t.Context(), c.pull); err == nil || !strings.Contains(err.Error(),
				c.want) || strings.Contains(err.Error(), secrets[0]) {
				t.Errorf("%v, want something about %s", err, c.want)
			}
		})
	}
}
