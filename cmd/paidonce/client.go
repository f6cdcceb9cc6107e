package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	sdk "paidonce/sdk/go"
)

const (
	apiURLVariable = "PAIDONCE_URL"
	apiKeyVariable = "PAIDONCE_API_KEY" //nolint:gosec // the name of a variable
	// A call to the API may last as long as the provider takes, and a little longer.
	apiTimeout = 60 * time.Second
)

// apiClient calls the API through the Go SDK. It is not for concurrent use.
type apiClient struct {
	base, key string
	missing   string // what to do if the object that a call names does not exist
	transport http.Transport
}

// newAPIClient reads the API's address and key from the environment.
func newAPIClient() (*apiClient, error) {
	c := &apiClient{
		base: os.Getenv(apiURLVariable), key: os.Getenv(apiKeyVariable),
		missing: "look for it: paidonce charges list",
	}
	c.transport.Proxy = http.ProxyFromEnvironment
	if c.base == "" {
		c.base = "http://127.0.0.1:8080"
	}
	if u, err := url.Parse(c.base); err != nil || u.Host == "" || u.Scheme != "http" &&
		u.Scheme != "https" || strings.ContainsAny(c.base, "?#") {
		return nil, fmt.Errorf("%s is %q: it has to be a URL such as http://127.0.0.1:8080",
			apiURLVariable, c.base)
	}
	if c.key == "" {
		return nil, fmt.Errorf("%s is not set: take the key that paidonce dev prints, or make "+
			"one: paidonce apikeys create --account NAME", apiKeyVariable)
	}
	return c, nil
}

// typed is an [sdk.Store] of one operation. A command line needs no other: it can be repeated with
// its --key.
type typed struct {
	sdk.Store // its other methods are not called
	op        sdk.Operation
}

func (t typed) Find(context.Context, string) (*sdk.Operation, error) { return &t.op, nil }
func (typed) Finish(context.Context, sdk.Operation) error            { return nil }
func (typed) Forget(context.Context, string) error                   { return nil }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// create creates what op describes and retries for as long as wait. It returns the answer's bytes
// unchanged. Errors: [apiError].
func (c *apiClient) create(
	ctx context.Context, op sdk.Operation, wait time.Duration,
) ([]byte, error) {
	answer, err := c.do(ctx, op, wait, func(ctx context.Context, client *sdk.Client) error {
		_, err := client.Resume(ctx, op.Name)
		return err
	})
	if errors.Is(err, sdk.ErrNoOutcome) {
		err = fmt.Errorf("%w; it may have gone through: repeat the command with --key %s", err,
			op.Key)
	}
	return answer, err
}

// read makes a call that changes nothing and retries for as long as wait; with 0 it tries once. It
// returns the answer's bytes unchanged. Errors: [apiError].
func (c *apiClient) read(
	ctx context.Context, wait time.Duration, call func(context.Context, *sdk.Client) error,
) ([]byte, error) {
	return c.do(ctx, sdk.Operation{}, wait, call)
}

// firstPage reads the first page of a list.
func firstPage[T any](list iter.Seq2[T, error]) error {
	next, stop := iter.Pull2(list)
	defer stop()
	_, err, _ := next()
	return err
}

func (c *apiClient) do(
	ctx context.Context, op sdk.Operation, wait time.Duration,
	call func(context.Context, *sdk.Client) error,
) ([]byte, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	until := time.Now().Add(wait)
	var status string
	var answer []byte
	// The SDK decides what is retried and when. Its limit covers the whole call; here, an attempt
	// that began in time may finish.
	attempt := func(req *http.Request) (*http.Response, error) {
		res, err := c.transport.RoundTrip(req)
		if err == nil {
			defer res.Body.Close() //nolint:errcheck // it is read
			status = res.Status
			answer, err = io.ReadAll(res.Body)
			res.Body = io.NopCloser(bytes.NewReader(answer))
		}
		if !time.Now().Before(until) {
			stop()
		}
		if err != nil {
			return nil, err
		}
		return res, nil
	}
	client, err := sdk.New(sdk.Config{
		BaseURL: c.base, APIKey: c.key, Store: typed{op: op}, Deadline: wait + apiTimeout,
		Attempt: apiTimeout, HTTP: &http.Client{Transport: roundTripper(attempt)},
	})
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %s", apiURLVariable, apiKeyVariable, plain(err))
	}
	if err := call(ctx, client); err != nil {
		return nil, apiError{c.explain(err, status), err}
	}
	return answer, nil
}

// apiError turns an error of the SDK into a message that says what to do next.
type apiError struct {
	error
	cause error
}

func (e apiError) Unwrap() []error { return []error{e.error, e.cause} }

// errNotPaidonce says that something else than Paidonce answered.
var errNotPaidonce = errors.New("not as Paidonce does: check " + apiURLVariable)

func (c *apiClient) explain(err error, status string) error {
	var refused *sdk.Error
	var network *url.Error
	switch {
	case errors.As(err, &refused) && refused.Type != "":
		return c.refusal(refused)
	case errors.As(err, &network):
		return fmt.Errorf("no answer from %s (is it running? %s says where it is): %w", c.base,
			apiURLVariable, network)
	case status == "": // nothing was sent
		return errors.New(plain(err))
	}
	return fmt.Errorf("%s answered %s, and %w", c.base, oneLine(status), errNotPaidonce)
}

// plain returns the text of an SDK error without the name of the SDK: our own messages begin with
// ours.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "paidonce: ") }

// next returns what to do about an error whose message does not say it.
var next = map[string]string{
	"card_declined": "try another card under a new --key",
	"api_key_invalid": "set " + apiKeyVariable +
		" to a key of this installation: paidonce apikeys create --account NAME",
	"idempotency_key_reused": "repeat it exactly as it was, or take a new --key for a new payment",
	"route_unknown":          "check " + apiURLVariable,
	"operation_parked":       "the operator finds it with: paidonce ops list",
}

// refusal returns what Paidonce answered, and what to do about it.
func (c *apiClient) refusal(e *sdk.Error) error {
	said := fmt.Sprintf("%s (%d %s, request %s)", oneLine(strings.TrimSuffix(e.Message, ".")),
		e.Status, oneLine(e.Code), oneLine(e.RequestID))
	advice := next[e.Code]
	switch {
	case e.Code == "resource_missing":
		advice = c.missing
	case advice == "" && errors.Is(e, sdk.ErrDeclined):
		advice = next["card_declined"]
	}
	if advice != "" {
		said += "; " + advice
	}
	if e.Charge != "" && e.Code != "operation_parked" {
		said += "; the charge: paidonce charges get " + oneLine(e.Charge)
	}
	return errors.New(said)
}
