package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// paidonce is the API.
type paidonce struct {
	url, key string
	client   http.Client
}

// charge is what a shop needs of a charge.
type charge struct {
	ID, Status     string
	FailureMessage string `json:"failure_message"`
	NextAction     *struct {
		RedirectToURL *struct{ URL string } `json:"redirect_to_url"`
	} `json:"next_action"`
}

// errUnknown says that the same request, under the same key, has to be sent again.
var errUnknown = errors.New("the outcome is not known yet")

// create charges once for the key. Errors: errUnknown; anything else will not get better.
func (p *paidonce) create(ctx context.Context, key string, order map[string]any) (charge, error) {
	body, err := json.Marshal(order)
	if err != nil {
		return charge{}, err
	}
	return p.call(ctx, http.MethodPost, "/v1/charges", key, body)
}

// get reads a charge as it is now.
func (p *paidonce) get(ctx context.Context, id string) (charge, error) {
	return p.call(ctx, http.MethodGet, "/v1/charges/"+id, "", nil)
}

// bodyMax is more than any charge has, in bytes.
const bodyMax = 1 << 20

func (p *paidonce) call(
	ctx context.Context, method, path, key string, body []byte,
) (charge, error) {
	req, err := http.NewRequestWithContext(
		ctx, method, strings.TrimSuffix(p.url, "/")+path, bytes.NewReader(body),
	)
	if err != nil {
		return charge{}, err
	}
	req.Header.Set("Authorization", "Bearer "+p.key)
	if key != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return charge{}, fmt.Errorf("%w: %w", errUnknown, err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(res.Body, bodyMax))
	if err != nil {
		return charge{}, fmt.Errorf("%w: %w", errUnknown, err)
	}
	if res.StatusCode < http.StatusMultipleChoices {
		var c charge
		return c, json.Unmarshal(got, &c)
	}
	var problem struct {
		Error struct{ Charge, Message, Advice string }
	}
	_ = json.Unmarshal(got, &problem) // without our own body it is unknown
	switch e := problem.Error; {
	case res.StatusCode == http.StatusPaymentRequired:
		return charge{ID: e.Charge, Status: "failed", FailureMessage: e.Message}, nil
	case e.Advice == "" || e.Advice == "retry_same_key":
		return charge{}, fmt.Errorf("%w: %s %s", errUnknown, res.Status, e.Message)
	}
	return charge{}, fmt.Errorf("%s %s: %s: %s", method, path, res.Status, problem.Error.Message)
}
