package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
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

// attempt sends it once. again: the same request may be sent again, and has to be for an outcome.
func (c apiCall) attempt(ctx context.Context, base, apiKey string) (answer []byte, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, c.method, base+c.path, strings.NewReader(c.form.Encode()))
	if err != nil {
		return nil, false, err
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
		return nil, true, fmt.Errorf("no answer from %s (is it running? %s says where it is): %w", base, apiURLVariable, err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(res.Body, longestAnswer))
	if err != nil {
		return nil, true, fmt.Errorf("the answer of %s broke off: %w", base, err)
	}
	if res.StatusCode < http.StatusMultipleChoices {
		return answer, false, nil
	}
	return nil, retryable(res), refusal(res, answer)
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

// refusal makes an error of an answer.
func refusal(res *http.Response, answer []byte) error {
	var body struct {
		Error struct{ Type, Code, Message, Charge string } `json:"error"`
	}
	if json.Unmarshal(answer, &body) != nil || body.Error.Message == "" {
		return fmt.Errorf("%s answered %s, and not as Paidonce does: check %s", res.Request.URL.Host, res.Status, apiURLVariable)
	}
	e := body.Error
	said := fmt.Sprintf("%s (%d %s, request %s)", oneLine(strings.TrimSuffix(e.Message, ".")), res.StatusCode, oneLine(e.Code), oneLine(res.Header.Get("Request-Id")))
	advice := next[e.Code]
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
