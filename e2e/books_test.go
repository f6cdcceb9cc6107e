package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/api/apitest"
)

// checkBooks holds our books against the provider's once everything is over: every operation is
// finished and has one charge, one event, and at most one charge at the provider, of the same
// amount and outcome.
func (w *world) checkBooks() {
	w.t.Helper()
	theirs := map[string]simCharge{}
	for _, c := range w.sim.charges() {
		op := c.Metadata["paidonce_operation"]
		if other, twice := theirs[op]; twice {
			w.t.Errorf("the provider charged twice for %s: %s and %s", op, other.ID, c.ID)
		}
		theirs[op] = c
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, w.dbURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx,
		`SELECT k.operation_id, k.status, coalesce(c.status, 'none'), coalesce(c.amount, 0), coalesce(c.provider_id, ''),
		(SELECT count(*) FROM outbox o WHERE o.operation_id = k.operation_id)
		FROM idempotency_keys k LEFT JOIN charges c ON c.operation_id = k.operation_id`)
	if err != nil {
		w.t.Fatal(err)
	}
	ours := 0
	for rows.Next() {
		var op, key, charge, providerID string
		var amount int64
		var events int
		if err := rows.Scan(&op, &key, &charge, &amount, &providerID, &events); err != nil {
			w.t.Fatal(err)
		}
		ours++
		their := theirs[op]
		delete(theirs, op)
		if key != "completed" || events != 1 || charge == "pending" || charge == "none" {
			w.t.Errorf("%s: key %s, charge %s, %d events; want a completed key, a settled "+
				"charge, one event", op, key, charge, events)
		}
		if their.ID != providerID || (charge == "succeeded") != (their.Status == "succeeded") ||
			(their.ID != "" && their.Amount != amount) {
			w.t.Errorf("%s: we have %s %d %s, the provider %+v", op, charge, amount, providerID,
				their)
		}
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	for op, c := range theirs {
		w.t.Errorf("the provider has %s of %s, which we do not know", c.ID, op)
	}
}

// order is a body for /v1/charges.
func order(amount int) string {
	return fmt.Sprintf(`{"amount":%d,"currency":"usd","source":"tok_visa"}`, amount)
}

var twenty = order(2000)

// try sends a charge that may meet a connection which ends: then it returns an error rather than
// failing the test. An answer that is not as openapi.yaml says does fail it.
func try(
	t testing.TB, c *apitest.Client, key, body string, header ...string,
) (apitest.Answer, error) {
	t.Helper()
	return tryPost(t, c, "/v1/charges", key, body, header...)
}

// tryPost is [try] of any path.
func tryPost(
	t testing.TB, c *apitest.Client, path, key, body string, header ...string,
) (apitest.Answer, error) {
	t.Helper()
	req := c.Request(http.MethodPost, path, body, append(header, "Content-Type",
		"application/json", "Idempotency-Key", key, "Authorization", "Bearer "+c.APIKey)...)
	return do(t, c, req)
}

func do(t testing.TB, c *apitest.Client, req *http.Request) (apitest.Answer, error) {
	t.Helper()
	lost := &lostAnswers{base: c.HTTP.Transport}
	hc, cc := *c.HTTP, *c
	hc.Transport, cc.HTTP = lost, &hc
	a := cc.Do(req)
	return a, lost.err
}

// lostAnswers puts an empty answer in the place of a connection that ended, or of a gateway's own
// word for that, either of which the client would take for a failure of the test.
type lostAnswers struct {
	base http.RoundTripper
	err  error
}

func (l *lostAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := l.base.RoundTrip(req)
	if err == nil || (strings.Contains(err.Error(), "openapi.yaml") &&
		!strings.Contains(err.Error(), "was answered 502")) {
		return res, err
	}
	l.err = err
	return &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{},
		Body: http.NoBody, Request: req}, nil
}

// until sends a charge again and again, as a client should: after lost connections, 409, 429 and
// 5xx, and after nothing else. next names the client of each try.
func until(
	t testing.TB, next func() *apitest.Client, key, body string,
) (last apitest.Answer, tries int) {
	t.Helper()
	return untilPosted(t, next, "/v1/charges", key, body)
}

// untilPosted is [until] of any path.
func untilPosted(
	t testing.TB, next func() *apitest.Client, path, key, body string,
) (last apitest.Answer, tries int) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); tries++ {
		a, err := tryPost(t, next(), path, key, body)
		if err == nil {
			if last = a; !mayRetry(t, a) {
				return a, tries
			}
		}
		// Sooner than Retry-After says, so that the test is over sooner; a lease that runs is not
		// disturbed by it.
		time.Sleep(150 * time.Millisecond)
	}
	t.Errorf("key %s has no final answer; the last: %d %s", key, last.Code, last.Body)
	return last, tries
}

// mayRetry reports whether an answer asks to be retried, and checks that it says so properly.
func mayRetry(t testing.TB, a apitest.Answer) bool {
	t.Helper()
	switch a.Code {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return false
	}
	if n, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || n < 1 {
		t.Errorf("%d with Retry-After %q", a.Code, a.Header.Get("Retry-After"))
	}
	if advice := a.Error().Advice; advice != "retry_same_key" {
		t.Errorf("%d advises %q", a.Code, advice)
	}
	return true
}
