package paidonce

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// These run against a real server with the simulated provider; e2e/sdk_go_test.go starts them.
// PAIDONCE_URL, PAIDONCE_API_KEY, SIM_URL and SDK_DATABASE_URL say where they are.

func live(t *testing.T, store Store) *Client {
	t.Helper()
	if os.Getenv("PAIDONCE_URL") == "" {
		t.Skip("PAIDONCE_URL is not set")
	}
	c, err := New(Config{
		BaseURL: os.Getenv("PAIDONCE_URL"), APIKey: os.Getenv("PAIDONCE_API_KEY"), Store: store,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sim sets a switch of the provider, or reads its counts.
func sim(t *testing.T, path string, body any) (stats struct {
	Charges  int `json:"charges"`
	Requests int `json:"charge_requests"`
}) {
	t.Helper()
	method, sent := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		sent, _ = json.Marshal(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, os.Getenv("SIM_URL")+"/_sim/"+path,
		bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || json.NewDecoder(res.Body).Decode(&stats) != nil {
		t.Fatalf("%s: %s", path, res.Status)
	}
	return stats
}

func strike(t *testing.T, fault map[string]any) {
	t.Helper()
	sim(t, "faults", map[string]any{
		"match": map[string]string{"method": "POST", "path": "/v1/charges"}, "count": 1,
		"fault": fault,
	})
}

func TestLiveCharge(t *testing.T) {
	store := FileStore(t.TempDir())
	c := live(t, store)
	made, err := c.CreateCharge(t.Context(), "go-1", twenty)
	if err != nil || made.Status != http.StatusCreated || made.Data.Status != "succeeded" ||
		made.RequestID == "" || made.Replayed {
		t.Fatalf("%+v %v", made, err)
	}
	op, err := store.Find(t.Context(), "go-1")
	if err != nil {
		t.Fatal(err)
	}
	// A program that knows only the key gets the server's replay; one that holds another request
	// under it a 422.
	elsewhere := FileStore(t.TempDir())
	op.Answer = nil
	if _, err := elsewhere.Begin(t.Context(), *op); err != nil {
		t.Fatal(err)
	}
	replay, err := live(t, elsewhere).CreateCharge(t.Context(), "go-1", twenty)
	if err != nil || replay.Data.ID != made.Data.ID || !replay.Replayed ||
		replay.Header.Get("Original-Request") != made.RequestID {
		t.Errorf("%+v %v", replay, err)
	}
	op.Name, op.Body = "stolen", []byte(`{"amount":1,"currency":"usd","source":"tok_visa"}`)
	if _, err := elsewhere.Begin(t.Context(), *op); err != nil {
		t.Fatal(err)
	}
	if _, err := live(t, elsewhere).Resume(t.Context(), "stolen"); !errors.Is(err, ErrKeyReused) {
		t.Error(err)
	}
	if k, err := c.IdempotencyKey(t.Context(), op.Key); err != nil ||
		k.Data.Resource != made.Data.ID {
		t.Errorf("%+v %v", k, err)
	}
}

func TestLiveDecline(t *testing.T) {
	c := live(t, FileStore(t.TempDir()))
	p := twenty
	p.Source = Ptr("tok_chargeDeclinedInsufficientFunds")
	for i := range 2 {
		_, err := c.CreateCharge(t.Context(), "go-declined", p)
		var e *Error
		if !errors.Is(err, ErrDeclined) || !errors.As(err, &e) ||
			e.DeclineCode != "insufficient_funds" || e.Replayed != (i > 0) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestLiveInUseAndLost(t *testing.T) {
	c := live(t, FileStore(t.TempDir()))
	strike(t, map[string]any{"type": "delay", "delay_ms": 800})
	ids := make(chan string, 2)
	for range 2 {
		go func() {
			r, err := c.CreateCharge(t.Context(), "go-both", twenty)
			if err != nil {
				t.Error(err)
				ids <- ""
				return
			}
			ids <- r.Data.ID
		}()
	}
	if a, b := <-ids, <-ids; a == "" || a != b {
		t.Errorf("two callers learnt %q and %q", a, b)
	}
	for _, kind := range []string{"drop_after", "drop_before", "garbage"} {
		before := sim(t, "stats", nil).Charges
		strike(t, map[string]any{"type": kind})
		if _, err := c.CreateCharge(t.Context(), "go-lost-"+kind, twenty); err != nil {
			t.Error(err)
		}
		if n := sim(t, "stats", nil).Charges - before; n != 1 {
			t.Errorf("%s: %d charges", kind, n)
		}
	}
}

func TestLiveCaptureRefundList(t *testing.T) {
	c := live(t, FileStore(t.TempDir()))
	p := twenty
	p.Capture = Ptr(false)
	held, err := c.CreateCharge(t.Context(), "go-held", p)
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := c.CaptureCharge(t.Context(), "go-held/capture", held.Data.ID,
		CaptureParams{Amount: Ptr[int64](800)}); err != nil || taken.Data.AmountCaptured != 800 {
		t.Errorf("%+v %v", taken, err)
	}
	refund, err := c.CreateRefund(t.Context(), "go-held/refund", RefundParams{
		Charge: &held.Data.ID, Amount: Ptr[int64](300),
	})
	if err != nil || refund.Data.Status != "succeeded" {
		t.Fatalf("%+v %v", refund, err)
	}
	if got, err := c.Refund(t.Context(), refund.Data.ID); err != nil || got.Data.Amount != 300 {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := c.Charge(t.Context(), held.Data.ID); err != nil ||
		got.Data.AmountRefunded != 300 {
		t.Errorf("%+v %v", got, err)
	}
	hold, err := c.CreateCharge(t.Context(), "go-hold", p)
	if err != nil {
		t.Fatal(err)
	}
	if gone, err := c.CancelCharge(t.Context(), "go-hold/cancel", hold.Data.ID); err != nil ||
		gone.Data.Captured || !gone.Data.Refunded {
		t.Errorf("%+v %v", gone, err)
	}
	n, seen := 0, map[string]bool{}
	for ch, err := range c.Charges(t.Context(), ChargeQuery{Limit: Ptr(2)}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		seen[ch.ID] = true
	}
	if n < 3 || len(seen) != n {
		t.Errorf("listed %d charges, %d different", n, len(seen))
	}
	for r, err := range c.Refunds(t.Context(), RefundQuery{Charge: &held.Data.ID}) {
		if err != nil || r.ID != refund.Data.ID {
			t.Errorf("%+v %v", r, err)
		}
	}
	if _, err := c.Charge(t.Context(), "ch_nothing"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestLiveEvents(t *testing.T) {
	c := live(t, FileStore(t.TempDir()))
	// Events of refunds that were made before get their places when somebody reads; a charge's has
	// one at once.
	for _, err := range c.Events(t.Context(), EventQuery{Limit: Ptr(1)}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	first, err := c.CreateCharge(t.Context(), "go-event-1", twenty)
	if err != nil {
		t.Fatal(err)
	}
	var last string // the newest, in an order of one
	for e, err := range c.Events(t.Context(), EventQuery{Order: Ptr(NewestFirst), Limit: Ptr(1)}) {
		if last = e.ID; err != nil || !bytes.Contains(e.Data.Object, []byte(first.Data.ID)) {
			t.Fatalf("%+v %v", e, err)
		}
		break
	}
	var made []string
	for _, name := range []string{"go-event-2", "go-event-3", "go-event-4"} {
		r, err := c.CreateCharge(t.Context(), name, twenty)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, r.Data.ID)
	}
	var told []string
	for e, err := range c.Events(t.Context(),
		EventQuery{StartingAfter: &last, Limit: Ptr(2), Type: Ptr("charge.succeeded")}) {
		var ch Charge
		if err != nil || json.Unmarshal(e.Data.Object, &ch) != nil ||
			e.Type != "charge.succeeded" || e.Sequence != 1 {
			t.Fatalf("%+v %v", e, err)
		}
		told = append(told, ch.ID)
		last = e.ID
	}
	if !slices.Equal(told, made) {
		t.Errorf("told of %v, made %v", told, made)
	}
	if e, err := c.Event(t.Context(), last); err != nil || e.Data.ID != last ||
		!bytes.Contains(e.Data.Data.Object, []byte(made[2])) {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := c.Event(t.Context(), "evt_nothing"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	for _, err := range c.Events(t.Context(), EventQuery{StartingAfter: Ptr("evt_nothing")}) {
		var e *Error
		if !errors.As(err, &e) || e.Code != "resource_missing" || e.Param != "starting_after" {
			t.Error(err)
		}
	}
	tryEndpoints(t, c, last)
}

// tryEndpoints goes through the life of a webhook endpoint, to which an event of a type that it
// does not want is resent.
func tryEndpoints(t *testing.T, c *Client, event string) {
	t.Helper()
	var e *Error
	if _, err := c.PutWebhookEndpoint(t.Context(), "go hook/1",
		WebhookEndpointParams{URL: "https://203.0.114.7/in"}); !errors.As(err, &e) ||
		e.Status != 400 || e.Param != "id" {
		// in the path it is one segment, so it is this that is refused
		t.Errorf("an id that is none: %v", err)
	}
	p := WebhookEndpointParams{
		URL: "https://203.0.114.7/in", EnabledEvents: []string{"charge.refunded"},
		Description: Ptr("Go"),
	}
	made, err := c.PutWebhookEndpoint(t.Context(), "go", p)
	if err != nil || made.Status != http.StatusCreated || made.Data.Secret == "" ||
		made.Data.URL != p.URL {
		t.Fatalf("%+v %v", made, err)
	}
	if again, err := c.PutWebhookEndpoint(t.Context(), "go", p); err != nil ||
		again.Status != http.StatusOK || again.Data.Secret != made.Data.Secret {
		t.Errorf("%+v %v", again, err)
	}
	rotated, err := c.RotateWebhookEndpointSecret(t.Context(), "go")
	if err != nil || rotated.Data.Secret == made.Data.Secret {
		t.Errorf("%+v %v", rotated, err)
	}
	if got, err := c.WebhookEndpoint(t.Context(), "go"); err != nil ||
		got.Data.Secret != rotated.Data.Secret ||
		!slices.Equal(got.Data.EnabledEvents, p.EnabledEvents) {
		t.Errorf("%+v %v", got, err)
	}
	if all, err := c.WebhookEndpoints(t.Context()); err != nil || len(all) != 1 ||
		all[0].ID != "go" {
		t.Errorf("%+v %v", all, err)
	}
	for endpoint, want := range map[string]int{"": 0, "go": 1} {
		var p EventResendParams
		if endpoint != "" {
			p.WebhookEndpoint = &endpoint
		}
		if r, err := c.ResendEvent(t.Context(), event, p); err != nil ||
			r.Data.Deliveries != want || r.Data.Event != event {
			t.Errorf("resent to %q: %+v %v", endpoint, r, err)
		}
	}
	if _, err := c.ResendEvent(t.Context(), event,
		EventResendParams{WebhookEndpoint: Ptr("nowhere")}); !errors.Is(err, ErrNotFound) ||
		!errors.As(err, &e) || e.Param != "webhook_endpoint" {
		t.Error(err)
	}
	if gone, err := c.DeleteWebhookEndpoint(t.Context(), "go"); err != nil || !gone.Data.Deleted {
		t.Errorf("%+v %v", gone, err)
	}
	if _, err := c.DeleteWebhookEndpoint(t.Context(), "go"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestLiveSQLStore(t *testing.T) {
	address := os.Getenv("SDK_DATABASE_URL")
	if address == "" {
		t.Skip("SDK_DATABASE_URL is not set")
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), SQLSchema); err != nil {
		t.Fatal(err)
	}
	tryStore(t, SQLStore{db})
	c := live(t, SQLStore{db})
	for i, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(BeginCharge(t.Context(), SQLStore{tx}, "go-in-tx", twenty), end(tx)); err != nil {
			t.Fatal(err)
		}
		if open, err := c.Unfinished(t.Context()); err != nil || len(open) != i {
			t.Errorf("%v %v", open, err)
		}
	}
	if r, err := c.Resume(t.Context(), "go-in-tx"); err != nil || r.Status != http.StatusCreated {
		t.Errorf("%+v %v", r, err)
	}
}

const crashStore = "PAIDONCE_TEST_CRASH_STORE"

// crash is the program that is killed while it charges.
func crash(name string) {
	c, err := New(Config{
		BaseURL: os.Getenv("PAIDONCE_URL"), APIKey: os.Getenv("PAIDONCE_API_KEY"),
		Store: FileStore(os.Getenv(crashStore)),
	})
	if err == nil {
		_, err = c.CreateCharge(context.Background(), name, twenty)
	}
	_ = err
	time.Sleep(time.Minute)
}

func TestLiveCrash(t *testing.T) {
	store := FileStore(t.TempDir())
	c := live(t, store)
	for _, fault := range []map[string]any{{"type": "drop_after"}, {"type": "drop_before"},
		{"type": "delay", "delay_ms": 300}} {
		name := "go-crash-" + fault["type"].(string)
		before := sim(t, "stats", nil)
		strike(t, fault)
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), "PAIDONCE_TEST_CRASH="+name, crashStore+"="+string(store))
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); sim(t,
			"stats", nil).Requests == before.Requests; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the provider was not asked")
			}
		}
		_ = child.Process.Kill()
		_ = child.Wait()
		open, err := store.Find(t.Context(), name)
		if err != nil || open == nil || open.Answer != nil {
			t.Fatalf("%+v %v: the key was not kept before the first attempt", open, err)
		}
		r, err := c.Resume(t.Context(), name)
		if err != nil || r.Status != http.StatusCreated {
			t.Fatalf("%+v %v", r, err)
		}
		if n := sim(t, "stats", nil).Charges - before.Charges; n != 1 {
			t.Errorf("%v: %d charges", fault, n)
		}
	}
}

// A delivery that arrived at a receiver; e2e/sdk_webhook_test.go gives it.
func TestLiveWebhook(t *testing.T) {
	if os.Getenv("DELIVERY") == "" {
		t.Skip("DELIVERY is not set")
	}
	text, err := os.ReadFile(os.Getenv("DELIVERY"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Secret, Body string
		Headers      map[string]string
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	for name, value := range d.Headers {
		h.Set(name, value)
	}
	e, err := VerifyWebhook([]byte(d.Body), h, d.Secret)
	if err != nil || e.Type != "charge.succeeded" || e.Sequence != 1 ||
		!bytes.Contains(e.Data.Object, []byte(`"amount":2000`)) {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := VerifyWebhook([]byte(d.Body+" "), h, d.Secret); !errors.Is(err, ErrSignature) {
		t.Error(err)
	}
}
