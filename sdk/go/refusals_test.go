package paidonce

import (
	"errors"
	"fmt"
	"testing"
)

// A decline is kept like a success: one day the server forgets it, and would charge.
func TestDeclineIsKept(t *testing.T) {
	t.Parallel()
	s := serveAll(t, refusal(402, "card_error", "card_declined", "fix_and_use_new_key"), reply{
		status: 201, body: chargeJSON,
	})
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

var (
	refused = refusal(400, "invalid_request_error", "parameter_invalid", "fix_and_use_new_key")
	replay  = reply{status: 400, body: refused.body, replayed: true}
	missing = refusal(404, "invalid_request_error", "resource_missing", "stop")
)

// keyKept has a charge refused by the answers, and reports whether a later call goes on under the
// same key.
func keyKept(t *testing.T, answers ...reply) bool {
	t.Helper()
	s := serveAll(t, append(answers, reply{status: 201, body: chargeJSON})...)
	c := s.client(t, nil)
	var e *Error
	if _, err := c.CreateCharge(t.Context(), "op", twenty); !errors.As(err, &e) ||
		errors.Is(err, ErrNoOutcome) || e.Status != answers[len(answers)-1].status {
		t.Fatalf("%v: %v", answers, err)
	}
	open, err := c.Unfinished(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, kept := twenty, len(open) == 1
	if !kept {
		p.Amount = 1
	}
	if _, err := c.CreateCharge(t.Context(), "op", p); err != nil ||
		(s.sent[0].key == s.sent[len(s.sent)-1].key) != kept {
		t.Fatalf("%v: %v, sent %v", answers, err, s.sent)
	}
	return kept
}

// An answer that is not from Paidonce is neither a decline nor a refusal.
func TestPagesAreNoRefusals(t *testing.T) {
	t.Parallel()
	for _, status := range []int{307, 400, 401, 402, 403, 404, 405, 413, 415, 422} {
		for _, page := range []string{"", "<html>", "null", "[]", `{"error":"x"}`, `{"error":null}`,
			`{"error":{"code":400,"message":"x"}}`, `{"message":"Forbidden"}`} {
			if !keyKept(t, reply{status: status, body: page}) {
				t.Errorf("%d %s frees the name", status, page)
			}
		}
	}
	if !keyKept(t, refusal(402, "api_error", "", "stop")) {
		t.Error("a 402 that is no card_error frees the name")
	}
	if _, err := serveAll(t, reply{status: 404, body: "<html>"}).client(t, nil).Charge(t.Context(),
		"ch_1"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("a proxy knows nothing of charges: %v", err)
	}
}

// A refusal of the only attempt frees the name when the request is at fault.
func TestRefusalOfTheOnlyAttempt(t *testing.T) {
	t.Parallel()
	for _, a := range []reply{
		refused, refusal(413, "invalid_request_error", "body_too_large", "fix_and_use_new_key"),
		refusal(415, "invalid_request_error", "media_type_unsupported", "fix_and_use_new_key"),
		missing,
	} {
		if keyKept(t, a) {
			t.Errorf("%v keeps the name", a)
		}
	}
	for _, a := range []reply{
		refusal(401, "authentication_error", "api_key_invalid", "stop"),
		refusal(403, "authentication_error", "", "stop"),
		refusal(404, "invalid_request_error", "route_unknown", "stop"),
		refusal(405, "invalid_request_error", "method_not_allowed", "stop"),
		refusal(422, "idempotency_error", "idempotency_key_reused", "fix_and_use_new_key"),
		refusal(500, "api_error", "operation_parked", "stop"),
	} {
		if !keyKept(t, a) {
			t.Errorf("%v frees the name", a)
		}
	}
	for object, call := range map[string]func(*Client, string) error{
		"charge": func(c *Client, id string) error {
			_, err := c.CaptureCharge(t.Context(), "op", id, CaptureParams{})
			return err
		},
		"refund": func(c *Client, id string) error {
			_, err := c.CreateRefund(t.Context(), "op", RefundParams{Charge: &id})
			return err
		},
	} {
		s := serveAll(t, missing, reply{status: 200, body: fmt.Sprintf(`{"object":%q}`, object)})
		c := s.client(t, nil)
		if err := call(c, "ch_wrong"); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		if err := call(c, "ch_right"); err != nil || s.sent[0].key == s.sent[1].key {
			t.Errorf("%v, sent %v", err, s.sent)
		}
	}
}

// A refusal after an attempt without an answer keeps the key, unless it is stored.
func TestRefusalAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for _, before := range []reply{{}, refusal(503, "api_error", "outcome_unknown",
		"retry_same_key"), {status: 200, body: "<html>"}} {
		if !keyKept(t, before, refused) || !keyKept(t, before, missing) ||
			keyKept(t, before, replay) {
			t.Errorf("after %v", before)
		}
	}
}

// What an earlier run of the program sent is not known to have been refused, so its key is kept
// until the server says that the refusal is stored.
func TestRefusalOfAResumedOperation(t *testing.T) {
	t.Parallel()
	s := serveAll(t, refused, refused, replay)
	store := FileStore(t.TempDir())
	if err := BeginCharge(t.Context(), store, "op", twenty); err != nil {
		t.Fatal(err)
	}
	c := s.client(t, func(cfg *Config) { cfg.Store = store })
	_, created := c.CreateCharge(t.Context(), "op", twenty)
	_, resumed := c.Resume(t.Context(), "op")
	open, _ := c.Unfinished(t.Context())
	if created == nil || resumed == nil || len(open) != 1 || s.sent[0] != s.sent[1] ||
		s.sent[0].key != open[0].Key {
		t.Errorf("%v, %v, kept %v, sent %v", created, resumed, open, s.sent)
	}
	_, last := c.Resume(t.Context(), "op")
	if open, err := c.Unfinished(t.Context()); last == nil || err != nil || len(open) != 0 {
		t.Errorf("%v, kept %v %v", last, open, err)
	}
}
