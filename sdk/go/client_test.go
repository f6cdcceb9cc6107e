package paidonce

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

var twenty = ChargeParams{Amount: 2000, Currency: "usd", Source: Ptr("tok_visa"), Metadata: map[string]string{"b": "1", "a": "2"}}

const chargeJSON = `{"id":"ch_1","object":"charge"}`

type request struct{ key, body string }

// server answers in turn, the last for ever: 0 is a lost connection. It keeps what was sent.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	sent    []request
	answers []int
	body    string // of errors
	header  http.Header
}

func serve(t *testing.T, answers ...int) *server {
	t.Helper()
	s := &server{answers: answers, body: `{"error":{"type":"api_error","message":"m","advice":"retry_same_key","request_id":"r"}}`}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, request{r.Header.Get("Idempotency-Key"), string(body)})
		status := s.answers[0]
		if len(s.answers) > 1 {
			s.answers = s.answers[1:]
		}
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		for name, values := range s.header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		if status < 300 {
			_, _ = io.WriteString(w, chargeJSON)
			return
		}
		_, _ = io.WriteString(w, s.body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) client(t *testing.T, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{BaseURL: s.URL, APIKey: "sk_x", Store: FileStore(t.TempDir()), Deadline: 5 * time.Second}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEachAttemptIsTheSame(t *testing.T) {
	t.Parallel()
	for _, status := range []int{408, 409, 425, 429, 500, 502, 503, 504, 0} {
		s := serve(t, status, status, 201)
		if r, err := s.client(t, nil).CreateCharge(t.Context(), "op", twenty); err != nil || r.Data.Id != "ch_1" {
			t.Fatalf("%d: %+v %v", status, r, err)
		}
		if len(s.sent) != 3 || s.sent[0] != s.sent[1] || s.sent[1] != s.sent[2] || s.sent[0].key == "" {
			t.Errorf("%d: sent %v", status, s.sent)
		}
	}
}

// What does the same when it is repeated needs no key, and is sent as often as is needed, each time the same.
func TestRepeatableCalls(t *testing.T) {
	t.Parallel()
	for want, call := range map[request]func(context.Context, *Client) error{
		{"", `{"url":"https://x/"}`}: func(ctx context.Context, c *Client) error {
			_, err := c.PutWebhookEndpoint(ctx, "a/b", WebhookEndpointParams{Url: "https://x/"})
			return err
		},
		{"", `{"webhook_endpoint":"hook"}`}: func(ctx context.Context, c *Client) error {
			_, err := c.ResendEvent(ctx, "evt_1", EventResendParams{WebhookEndpoint: Ptr("hook")})
			return err
		},
		{}: func(ctx context.Context, c *Client) error {
			_, err := c.RotateWebhookEndpointSecret(ctx, "hook")
			return err
		},
	} {
		s := serve(t, 0, 503, 200)
		if err := call(t.Context(), s.client(t, nil)); err != nil || !slices.Equal(s.sent, []request{want, want, want}) {
			t.Errorf("%v, sent %v", err, s.sent)
		}
	}
}

func TestNothingElseIsRetried(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 307, 400, 401, 402, 403, 404, 405, 410, 413, 415, 422} {
		s := serve(t, status)
		s.header = http.Header{"Location": {"/elsewhere"}}
		_, err := s.client(t, nil).CreateCharge(t.Context(), "op", twenty)
		var e *Error
		if !errors.As(err, &e) || e.Status != status || len(s.sent) != 1 {
			t.Errorf("%d: %v, sent %d times", status, err, len(s.sent))
		}
	}
	s := serve(t, 500)
	s.body = `{"error":{"type":"api_error","code":"operation_parked","message":"m","advice":"stop","request_id":"r"}}`
	if _, err := s.client(t, nil).CreateCharge(t.Context(), "op", twenty); err == nil || errors.Is(err, ErrNoOutcome) || len(s.sent) != 1 {
		t.Errorf("stop: %v, sent %d times", err, len(s.sent))
	}
}

func TestPauses(t *testing.T) {
	t.Parallel()
	s := serve(t, 503, 201)
	s.header = http.Header{"Retry-After": {"1"}}
	begun := time.Now()
	if _, err := s.client(t, nil).CreateCharge(t.Context(), "op", twenty); err != nil || time.Since(begun) < time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	now := time.Unix(4, 0)
	if d := retryAfter(http.Header{"Retry-After": {"Thu, 01 Jan 1970 00:00:10 GMT"}}, now); d != 6*time.Second {
		t.Errorf("a date: %v", d)
	}
	if d := retryAfter(http.Header{"Retry-After": {"soon"}}, now); d != 0 {
		t.Errorf("nonsense: %v", d)
	}
	if pauseAfter(3, 0, 0) == pauseAfter(3, 0, 0.5) || pauseAfter(60, 0, 1) != longestPause {
		t.Error("pauses are not random, or not bounded")
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	s := serve(t, 503)
	c := s.client(t, func(cfg *Config) { cfg.Deadline = 500 * time.Millisecond })
	_, err := c.CreateCharge(t.Context(), "op", twenty)
	var e *Error
	if !errors.Is(err, ErrNoOutcome) || !errors.As(err, &e) || e.Status != 503 {
		t.Error(err)
	}
	open, err := c.Unfinished(t.Context())
	if err != nil || len(open) != 1 || open[0].Key != s.sent[0].key {
		t.Errorf("%v %v", open, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Resume(ctx, "op"); !errors.Is(err, ErrNoOutcome) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMismatchAndMemory(t *testing.T) {
	t.Parallel()
	s := serve(t, 201)
	c := s.client(t, nil)
	if _, err := c.CreateCharge(t.Context(), "op", twenty); err != nil {
		t.Fatal(err)
	}
	other := twenty
	other.Amount = 1
	if _, err := c.CreateCharge(t.Context(), "op", other); !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
	again, err := c.CreateCharge(t.Context(), "op", twenty)
	if err != nil || !again.Replayed || again.Data.Id != "ch_1" || len(s.sent) != 1 {
		t.Errorf("%+v %v, sent %d times", again, err, len(s.sent))
	}
	if _, err := c.Resume(t.Context(), "none"); !errors.Is(err, ErrUnknownOperation) {
		t.Error(err)
	}
}

// The same parameters for another charge are another request.
func TestMismatchOfPaths(t *testing.T) {
	t.Parallel()
	s := serve(t, 200)
	c := s.client(t, nil)
	if _, err := c.CaptureCharge(t.Context(), "op", "ch_1", CaptureParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CaptureCharge(t.Context(), "op", "ch_2", CaptureParams{}); !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
}

// A decline is kept like a success: one day the server forgets it, and would charge.
func TestDeclineIsKept(t *testing.T) {
	t.Parallel()
	s := serve(t, 402, 201)
	s.body = `{"error":{"type":"card_error","code":"card_declined","message":"m","advice":"fix_and_use_new_key","request_id":"r"}}`
	c := s.client(t, nil)
	for range 2 {
		if _, err := c.CreateCharge(t.Context(), "op", twenty); !errors.Is(err, ErrDeclined) {
			t.Error(err)
		}
	}
	if len(s.sent) != 1 {
		t.Errorf("sent %d times", len(s.sent))
	}
}

// net/http would send a request again by itself when a connection that it used before dies, and a refusal of that second one would look
// like one of the first.
func TestNothingIsSentBehindOurBack(t *testing.T) {
	t.Parallel()
	s := serve(t, 201, 0, 400)
	c := s.client(t, nil)
	if _, err := c.CreateCharge(t.Context(), "first", twenty); err != nil {
		t.Fatal(err)
	}
	_, refused := c.CreateCharge(t.Context(), "second", twenty)
	if open, _ := c.Unfinished(t.Context()); refused == nil || len(open) != 1 || len(s.sent) != 3 {
		t.Errorf("%v, kept %v, sent %v", refused, open, s.sent)
	}
}

// hangsUp ends the caller's patience the moment the answer is there.
type hangsUp struct{ cancel context.CancelFunc }

func (h hangsUp) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	h.cancel()
	return res, err
}

// careful keeps nothing for a caller who is gone, as a database would not.
type careful struct{ Store }

func (c careful) Finish(ctx context.Context, op Operation) error {
	return errors.Join(ctx.Err(), c.Store.Finish(ctx, op))
}

func TestAnAnswerIsKeptForACallerWhoIsGone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, 201).client(t, func(cfg *Config) {
		cfg.Store, cfg.HTTP = careful{cfg.Store}, &http.Client{Transport: hangsUp{cancel}}
	})
	if r, err := c.CreateCharge(ctx, "op", twenty); err != nil || r.Data.Id != "ch_1" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestRefusalFreesTheNameOnlyWhenNothingMoved(t *testing.T) {
	t.Parallel()
	first := serve(t, 400, 201)
	c := first.client(t, nil)
	_, refused := c.CreateCharge(t.Context(), "op", twenty)
	other := twenty
	other.Amount = 1
	if _, err := c.CreateCharge(t.Context(), "op", other); refused == nil || err != nil || first.sent[0].key == first.sent[1].key {
		t.Errorf("%v, %v, %v", refused, err, first.sent)
	}
	later := serve(t, 0, 400)
	c = later.client(t, nil)
	_, refused = c.CreateCharge(t.Context(), "op", twenty)
	if open, _ := c.Unfinished(t.Context()); refused == nil || len(open) != 1 {
		t.Errorf("%v, kept %v", refused, open)
	}
}

// What an earlier run of the program sent is not known to have been refused, so its key is kept.
func TestRefusalOfAResumedOperationKeepsTheKey(t *testing.T) {
	t.Parallel()
	s := serve(t, 400)
	store := FileStore(t.TempDir())
	if err := BeginCharge(t.Context(), store, "op", twenty); err != nil {
		t.Fatal(err)
	}
	c := s.client(t, func(cfg *Config) { cfg.Store = store })
	_, created := c.CreateCharge(t.Context(), "op", twenty)
	_, resumed := c.Resume(t.Context(), "op")
	open, _ := c.Unfinished(t.Context())
	if created == nil || resumed == nil || len(open) != 1 || s.sent[0] != s.sent[1] || s.sent[0].key != open[0].Key {
		t.Errorf("%v, %v, kept %v, sent %v", created, resumed, open, s.sent)
	}
}

func TestStale(t *testing.T) {
	t.Parallel()
	s := serve(t, 503)
	c := s.client(t, func(cfg *Config) { cfg.Deadline, cfg.MaxAge = time.Millisecond, time.Millisecond })
	_, _ = c.CreateCharge(t.Context(), "op", twenty)
	sent := len(s.sent)
	time.Sleep(5 * time.Millisecond)
	if _, err := c.Resume(t.Context(), "op"); !errors.Is(err, ErrStale) || len(s.sent) != sent {
		t.Error(err)
	}
}

func TestFileStore(t *testing.T) {
	t.Parallel()
	tryStore(t, FileStore(t.TempDir()))
}

// tryStore holds a store to what the interface says.
func tryStore(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	const name = `a/b "c" '; ü`
	keys := make([]string, 20)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			op, err := s.Begin(ctx, Operation{Name: name, Key: string(rune('a' + i)), Path: "/v1/charges", Body: []byte(`{}`), Begun: time.UnixMilli(7)})
			if err != nil {
				t.Error(err)
			}
			keys[i] = op.Key
		})
	}
	all.Wait()
	if slices.Sort(keys); keys[0] != keys[19] {
		t.Errorf("several keys were taken for one operation: %v", keys)
	}
	if open, err := s.Unfinished(ctx); err != nil || len(open) != 1 {
		t.Errorf("%v %v", open, err)
	}
	op, err := s.Find(ctx, name)
	if err != nil || op == nil || op.Key != keys[0] || string(op.Body) != `{}` || op.Begun.UnixMilli() != 7 {
		t.Fatalf("%+v %v", op, err)
	}
	op.Answer = &Answer{Status: 201, RequestID: "req_1", Body: []byte(chargeJSON)}
	if err := s.Finish(ctx, *op); err != nil {
		t.Fatal(err)
	}
	got, err := s.Find(ctx, name)
	if err != nil || got.Answer == nil || got.Answer.Status != 201 || string(got.Answer.Body) != chargeJSON || !json.Valid(got.Answer.Body) {
		t.Errorf("%+v %v", got, err)
	}
	if open, err := s.Unfinished(ctx); err != nil || len(open) != 0 {
		t.Errorf("%v %v", open, err)
	}
	if err := s.Forget(ctx, name); err != nil {
		t.Error(err)
	}
	if got, err := s.Find(ctx, name); err != nil || got != nil {
		t.Errorf("%+v %v", got, err)
	}
}

func TestMain(m *testing.M) {
	if name := os.Getenv("PAIDONCE_TEST_CRASH"); name != "" {
		crash(name)
	}
	os.Exit(m.Run())
}
