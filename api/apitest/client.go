package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// idleMax lets as many concurrent callers as tests have keep their connections.
const idleMax = 64

// Client calls an API in tests. Each answer is checked; a failed check fails the test. Safe for
// concurrent use.
type Client struct {
	// HTTP is for calls that the methods do not cover; it checks as well.
	HTTP    *http.Client
	BaseURL string
	APIKey  string // sent as a bearer token; empty: none
	t       testing.TB
}

// NewClient returns a client of the API at baseURL.
func NewClient(t testing.TB, baseURL, apiKey string) *Client {
	t.Helper()
	base := &http.Transport{MaxIdleConnsPerHost: idleMax}
	t.Cleanup(base.CloseIdleConnections)
	return &Client{
		HTTP: &http.Client{
			Transport: NewChecker(t, base), Timeout: patience,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		BaseURL: strings.TrimSuffix(baseURL, "/"), APIKey: apiKey, t: t,
	}
}

// As returns the same client with another API key.
func (c *Client) As(apiKey string) *Client {
	other := *c
	other.APIKey = apiKey
	return &other
}

// Answer is an answer, read.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
	t      testing.TB
}

// Problem is the error object of an answer.
type Problem struct {
	Type, Code, Message, Param, Charge, Advice string

	DeclineCode string `json:"decline_code"`
	RequestID   string `json:"request_id"`
}

// Error reads the error object.
func (a Answer) Error() Problem {
	a.t.Helper()
	var e struct{ Error Problem }
	a.JSON(&e)
	return e.Error
}

// JSON reads the body.
func (a Answer) JSON(into any) {
	a.t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		a.t.Errorf("the answer is not JSON: %v: %q", err, a.Body)
	}
}

// ID reads the id of the object in the body.
func (a Answer) ID() string {
	a.t.Helper()
	var o struct{ ID string }
	a.JSON(&o)
	return o.ID
}

// Replayed reports whether the answer says that it was stored.
func (a Answer) Replayed() bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// Do sends a request as it is, with the client's API key unless it has an Authorization header. It
// may be called from any goroutine.
func (c *Client) Do(req *http.Request) Answer {
	c.t.Helper()
	if _, own := req.Header["Authorization"]; !own && c.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		c.t.Errorf("apitest: %v", err)
		return Answer{Header: http.Header{}, t: c.t}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Errorf("apitest: %v", err)
	}
	return Answer{Code: res.StatusCode, Header: res.Header, Body: body, t: c.t}
}

// Request makes a request; header is name, value, name, value, …
func (c *Client) Request(method, path, body string, header ...string) *http.Request {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.BaseURL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		c.t.Fatalf("apitest: %v", err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return req
}

// Get reads a path.
func (c *Client) Get(path string, header ...string) Answer {
	c.t.Helper()
	return c.Do(c.Request(http.MethodGet, path, "", header...))
}

// Charge posts a JSON body to /v1/charges under an idempotency key; "" sends none.
func (c *Client) Charge(key, body string, header ...string) Answer {
	c.t.Helper()
	return c.post("/v1/charges", key, "application/json", body, header)
}

// ChargeForm posts a form to /v1/charges under an idempotency key; "" sends none.
func (c *Client) ChargeForm(key, form string, header ...string) Answer {
	c.t.Helper()
	return c.post("/v1/charges", key, "application/x-www-form-urlencoded", form, header)
}

// Post posts a body, JSON unless a header says otherwise, under an idempotency key; "" sends none.
func (c *Client) Post(path, key, body string, header ...string) Answer {
	c.t.Helper()
	return c.post(path, key, "application/json", body, header)
}

func (c *Client) post(path, key, mediaType, body string, header []string) Answer {
	c.t.Helper()
	req := c.Request(http.MethodPost, path, body, header...)
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", mediaType)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return c.Do(req)
}

// Refund asks for a refund; amount 0 for all that is left.
func (c *Client) Refund(key, charge string, amount int64) Answer {
	c.t.Helper()
	body := fmt.Sprintf(`{"charge":%q,"amount":%d}`, charge, amount)
	if amount == 0 {
		body = fmt.Sprintf(`{"charge":%q}`, charge)
	}
	return c.Post("/v1/refunds", key, body)
}

// Capture asks for a capture; amount 0 for all, without a body.
func (c *Client) Capture(key, charge string, amount int64) Answer {
	c.t.Helper()
	body := ""
	if amount != 0 {
		body = fmt.Sprintf(`{"amount":%d}`, amount)
	}
	return c.Post("/v1/charges/"+charge+"/capture", key, body)
}

func decode(body []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var data any
	err := d.Decode(&data)
	return data, err
}
