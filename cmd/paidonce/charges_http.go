package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	apiURLVariable = "PAIDONCE_URL"
	apiKeyVariable = "PAIDONCE_API_KEY" //nolint:gosec // the name of a variable
	// A call at the API may last as long as one at the provider, and somewhat.
	apiTimeout    = 60 * time.Second
	longestAnswer = 16 << 20
)

// apiTarget reads where the API is and who we are.
func apiTarget() (base, key string, err error) {
	base, key = os.Getenv(apiURLVariable), os.Getenv(apiKeyVariable)
	if base == "" {
		base = "http://127.0.0.1:8080"
	}
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", fmt.Errorf("%s is %q: it has to be a URL such as http://127.0.0.1:8080", apiURLVariable, base)
	}
	if key == "" {
		return "", "", fmt.Errorf("%s is not set: take the key that paidonce dev prints, or make one: paidonce apikeys create --account NAME", apiKeyVariable)
	}
	return strings.TrimSuffix(base, "/"), key, nil
}

// tryAgain is an error after which the same request may be sent again, and has to be for an outcome.
type tryAgain struct {
	error
	after time.Duration // what the server asks for; 0: it does not say
}

func (e tryAgain) Unwrap() error { return e.error }

// attempt sends it once. Errors: [tryAgain], and those that are final.
func (c apiCall) attempt(ctx context.Context, base, apiKey string) (answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, c.method, base+c.path, strings.NewReader(c.form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	if c.key != "" {
		req.Header.Set("Idempotency-Key", c.key)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	// A redirect would carry the key to another place.
	client := http.Client{Timeout: apiTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, tryAgain{error: fmt.Errorf("no answer from %s (is it running? %s says where it is): %w", base, apiURLVariable, err)}
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(res.Body, longestAnswer))
	if err != nil {
		return nil, tryAgain{error: fmt.Errorf("the answer of %s broke off: %w", base, err)}
	}
	if res.StatusCode < http.StatusMultipleChoices {
		var got struct{ Object string }
		if json.Unmarshal(answer, &got) != nil || got.Object == "" {
			return nil, tryAgain{error: notPaidonce(res)} // a proxy's page: what became of the request is not known
		}
		return answer, nil
	}
	if err = c.refusal(res, answer); retryable(res) {
		err = tryAgain{err, retryAfter(res.Header)}
	}
	return nil, err
}

// retryAfterMost bounds what a server may ask for: one that wants to be left alone for longer than an hour has a clock or a proxy that is wrong.
const retryAfterMost = time.Hour

// retryAfter reads the header, which is a number of seconds or a date by the clock that the answer's own Date tells; 0 when it is neither.
func retryAfter(h http.Header) time.Duration {
	pause, asked := time.Duration(0), h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(asked, 10, 32); err == nil {
		pause = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(asked); err == nil {
		now, err := http.ParseTime(h.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		pause = at.Sub(now)
	}
	return min(max(pause, 0), retryAfterMost)
}

func retryable(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return res.StatusCode >= http.StatusInternalServerError && res.Header.Get("Stripe-Should-Retry") != "false"
}

// next is what to do about an error, for those where its message does not say.
var next = map[string]string{
	"card_declined":          "try another card under a new --key",
	"api_key_invalid":        "set " + apiKeyVariable + " to a key of this installation: paidonce apikeys create --account NAME",
	"idempotency_key_reused": "repeat it exactly as it was, or take a new --key for a new payment",
	"resource_missing":       "look for it: paidonce charges list",
	"route_unknown":          "check " + apiURLVariable,
	"operation_parked":       "the operator finds it with: paidonce ops list",
}

// errNotPaidonce: somebody else answered.
var errNotPaidonce = errors.New("not as Paidonce does: check " + apiURLVariable)

func notPaidonce(res *http.Response) error {
	return fmt.Errorf("%s answered %s, and %w", res.Request.URL.Host, res.Status, errNotPaidonce)
}

// refusal makes an error of an answer.
func (c apiCall) refusal(res *http.Response, answer []byte) error {
	var body struct {
		Error struct{ Type, Code, Message, Charge string } `json:"error"`
	}
	if json.Unmarshal(answer, &body) != nil || body.Error.Message == "" {
		return notPaidonce(res)
	}
	e := body.Error
	said := fmt.Sprintf("%s (%d %s, request %s)", oneLine(strings.TrimSuffix(e.Message, ".")), res.StatusCode, oneLine(e.Code), oneLine(res.Header.Get("Request-Id")))
	advice := next[e.Code]
	if e.Code == "resource_missing" && c.missing != "" {
		advice = c.missing
	}
	if advice == "" && e.Type == "card_error" {
		advice = next["card_declined"]
	}
	if advice != "" {
		said += "; " + advice
	}
	if e.Charge != "" && e.Code != "operation_parked" {
		said += "; the charge: paidonce charges get " + oneLine(e.Charge)
	}
	return fmt.Errorf("%s", said)
}
