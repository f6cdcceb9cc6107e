package paidonce

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func TestEachAttemptIsTheSame(t *testing.T) {
	t.Parallel()
	for _, status := range []int{408, 409, 425, 429, 500, 502, 503, 504, 0} {
		s := serve(t, status, status, 201)
		if r, err := s.client(t, nil).CreateCharge(t.Context(), "op", twenty); err != nil ||
			r.Data.ID != "ch_1" {
			t.Fatalf("%d: %+v %v", status, r, err)
		}
		if len(s.sent) != 3 || s.sent[0] != s.sent[1] || s.sent[1] != s.sent[2] ||
			s.sent[0].key == "" {
			t.Errorf("%d: sent %v", status, s.sent)
		}
	}
}

// says answers every request with a page, and takes no time.
type says string

func (page says) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK,
		Body: io.NopCloser(strings.NewReader(string(page)))}, nil
}

// A success that is not what was asked for is no answer: a proxy's page, or the beginning of one.
func TestPagesAreNoAnswers(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"", "<html>Sign in</html>", `{"id":"ch_`, "null", "[]",
		`"charge"`, "{}", `{"status":"ok"}`, `{"id":"re_1","object":"refund"}`,
		`[{"object":"charge"}]`} {
		s := serveAll(t, reply{status: 200, body: page}, reply{status: 201, body: chargeJSON})
		c := s.client(t, nil)
		nothingElse := func(cfg *Config) {
			cfg.Store, cfg.Deadline, cfg.HTTP = c.cfg.Store, 50*time.Millisecond, &http.Client{
				Transport: says(page),
			}
		}
		if _, err := s.client(t, nothingElse).CreateCharge(t.Context(), "op", twenty); !errors.Is(err, ErrNoOutcome) || !strings.Contains(err.Error(), "not from Paidonce") {
			t.Errorf("%q: %v", page, err)
		}
		if r, err := c.Resume(t.Context(), "op"); err != nil || r.Status != 201 {
			t.Errorf("%q: %+v %v", page, r, err)
		}
		if len(s.sent) != 2 || s.sent[0] != s.sent[1] {
			t.Errorf("%q: sent %v", page, s.sent)
		}
		s = serveAll(t, reply{status: 200, body: page}, reply{status: 200, body: chargeJSON})
		if r, err := s.client(t, nil).Charge(t.Context(), "ch_1"); err != nil ||
			r.Data.ID != "ch_1" {
			t.Errorf("%q: %+v %v", page, r, err)
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
	s := serveAll(t, refusal(500, "api_error", "operation_parked", "stop"))
	if _, err := s.client(t, nil).CreateCharge(t.Context(), "op", twenty); err == nil ||
		errors.Is(err, ErrNoOutcome) || len(s.sent) != 1 {
		t.Errorf("stop: %v, sent %d times", err, len(s.sent))
	}
}

func TestPauses(t *testing.T) {
	t.Parallel()
	s := serve(t, 503, 201)
	s.header = http.Header{"Retry-After": {"1"}}
	begun := time.Now()
	if _, err := s.client(t, nil).CreateCharge(t.Context(), "op", twenty); err != nil ||
		time.Since(begun) < time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	if pauseAfter(0, time.Minute, 0) < time.Minute {
		t.Error("less than the server asks for")
	}
	if pauseAfter(3, 0, 0) == pauseAfter(3, 0, 0.5) || pauseAfter(60, 0, 1) != longestPause {
		t.Error("pauses are not random, or not bounded")
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(1994, 11, 6, 8, 49, 0, 0, time.UTC)
	for asked, want := range map[string]time.Duration{
		"": 0, "2": 2 * time.Second, "0": 0, "-1": 0, "1.5": 0, "soon": 0, "3600": time.Hour,
		"4294967295": time.Hour, "9223372036854775807": time.Hour, "-9223372036854775808": 0, "99999999999999999999": 0,
		"Sun, 06 Nov 1994 08:49:37 GMT": 37 * time.Second, "Sun, 06 Nov 1994 08:48:37 GMT": 0, "Fri, 31 Dec 9999 23:59:59 GMT": time.Hour,
	} {
		if got := retryAfter(http.Header{"Retry-After": {asked}}, now); got != want {
			t.Errorf("%q: %v, want %v", asked, got, want)
		}
	}
	// A date is one by the server's clock, whatever ours says.
	theirs := http.Header{"Retry-After": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Date": {"Sun, 06 Nov 1994 08:49:07 GMT"}}
	if got := retryAfter(theirs, now.Add(24*time.Hour)); got != 30*time.Second {
		t.Errorf("by the server's clock: %v", got)
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
	if _, err := c.Resume(ctx, "op"); !errors.Is(err, ErrNoOutcome) ||
		!errors.Is(err, context.Canceled) {
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
	if err != nil || !again.Replayed || again.Data.ID != "ch_1" || len(s.sent) != 1 {
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
	if _, err := c.CaptureCharge(t.Context(), "op", "ch_2", CaptureParams{}); !errors.Is(err,
		ErrMismatch) {
		t.Error(err)
	}
}

// net/http would send a request again by itself when a connection that it used before dies, and a
// refusal of that second one would look like one of the first.
func TestNothingIsSentBehindOurBack(t *testing.T) {
	t.Parallel()
	s := serveAll(t, reply{status: 201, body: chargeJSON}, reply{}, refused)
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
	if r, err := c.CreateCharge(ctx, "op", twenty); err != nil || r.Data.ID != "ch_1" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestStale(t *testing.T) {
	t.Parallel()
	s := serve(t, 503)
	c := s.client(t, func(cfg *Config) {
		cfg.Deadline, cfg.MaxAge = time.Millisecond, time.Millisecond
	})
	_, _ = c.CreateCharge(t.Context(), "op", twenty)
	sent := len(s.sent)
	time.Sleep(5 * time.Millisecond)
	if _, err := c.Resume(t.Context(), "op"); !errors.Is(err, ErrStale) || len(s.sent) != sent {
		t.Error(err)
	}
}

func TestMain(m *testing.M) {
	if name := os.Getenv("PAIDONCE_TEST_CRASH"); name != "" {
		crash(name)
	}
	os.Exit(m.Run())
}
