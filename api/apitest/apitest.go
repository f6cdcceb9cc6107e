// Package apitest is an HTTP client for tests that holds every answer against openapi.yaml: its
// status, its headers and its body must be declared for the operation. Requests may be as wrong as
// a test likes.
package apitest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"paidonce"
)

// patience bounds an exchange: above the longest wait that a client may prefer, so that only what
// hangs fails.
const patience = 60 * time.Second

// Checker is an http.RoundTripper that fails with an error when an answer is not what openapi.yaml
// says.
type Checker struct {
	Base http.RoundTripper
	spec *openapi3.T
	find routers.Router
}

// Spec reads openapi.yaml, anew for each caller.
func Spec() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(paidonce.OpenAPI) }

// load reads the description once for all tests of a process.
var load = sync.OnceValues(func() (*Checker, error) {
	spec, err := Spec()
	if err != nil {
		return nil, err
	}
	spec.Servers = nil // else the host would have to be that of the description
	router, err := gorillamux.NewRouter(spec)
	if err != nil {
		return nil, err
	}
	return &Checker{spec: spec, find: router}, nil
})

// NewChecker returns a checker on top of base.
func NewChecker(t testing.TB, base http.RoundTripper) *Checker {
	t.Helper()
	loaded, err := load()
	if err != nil {
		t.Fatalf("apitest: openapi.yaml: %v", err)
	}
	c := *loaded
	c.Base = base
	return &c
}

// RoundTrip sends the request and checks the answer.
func (c *Checker) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := c.Base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	if err := c.check(req, res, body); err != nil {
		return nil, fmt.Errorf("%s %.300s was answered %d %s\nwhich is not as openapi.yaml says: %w", req.Method, req.URL.Path, res.StatusCode, body, err)
	}
	return res, nil
}

// transport are the headers that belong to HTTP itself, or to browsers' rules, and are not
// described.
var transport = map[string]bool{
	"Date": true, "Content-Length": true, "Content-Type": true, "Connection": true, "Transfer-Encoding": true,
	"Vary": true, "Access-Control-Allow-Origin": true, "Access-Control-Expose-Headers": true,
}

// unrouted are the answers to requests for which there is no operation.
var unrouted = map[int]string{
	http.StatusNotFound: "NotFound", http.StatusMethodNotAllowed: "MethodNotAllowed", http.StatusInternalServerError: "InternalError",
	http.StatusServiceUnavailable: "Unavailable",
}

func (c *Checker) check(req *http.Request, res *http.Response, body []byte) error {
	if req.Method == http.MethodOptions && res.StatusCode == http.StatusNoContent {
		return nil // echo's answer; OPTIONS is not described
	}
	lookup := req.Clone(req.Context())
	lookup.Body = http.NoBody
	if req.Method == http.MethodHead {
		lookup.Method = http.MethodGet
	}
	route, params, err := c.find.FindRoute(lookup)
	if err != nil {
		return c.checkUnrouted(res, body)
	}
	declared := route.Operation.Responses.Status(res.StatusCode)
	if declared == nil {
		return fmt.Errorf("the operation %s declares no %d", route.Operation.OperationID, res.StatusCode)
	}
	if err := checkHeaders(declared.Value, res); err != nil {
		return err
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: lookup, PathParams: params, Route: route},
		Status:                 res.StatusCode,
		Header:                 res.Header,
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: req.Method == http.MethodHead},
	}
	return openapi3filter.ValidateResponse(req.Context(), input.SetBodyBytes(body))
}

func (c *Checker) checkUnrouted(res *http.Response, body []byte) error {
	declared := c.spec.Components.Responses[unrouted[res.StatusCode]]
	if declared == nil {
		return fmt.Errorf("there is no such operation, and %d does not say so", res.StatusCode)
	}
	if err := checkHeaders(declared.Value, res); err != nil {
		return err
	}
	if res.Request != nil && res.Request.Method == http.MethodHead {
		return nil
	}
	return checkBody(declared.Value, body)
}

func checkBody(declared *openapi3.Response, body []byte) error {
	data, err := decode(body)
	if err != nil {
		return err
	}
	return declared.Content.Get("application/json").Schema.Value.VisitJSON(data, openapi3.VisitAsResponse())
}

func checkHeaders(declared *openapi3.Response, res *http.Response) error {
	for name := range res.Header {
		if !transport[name] && declaredHeader(declared, name) == nil {
			return fmt.Errorf("the header %s is not declared", name)
		}
	}
	for name, h := range declared.Headers {
		if h.Value.Required && res.Header.Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	if got := res.Header.Get("Content-Type"); got != "application/json" {
		return fmt.Errorf("the Content-Type is %q", got)
	}
	return nil
}

func declaredHeader(declared *openapi3.Response, canonical string) *openapi3.HeaderRef {
	for name, h := range declared.Headers {
		if http.CanonicalHeaderKey(name) == canonical {
			return h
		}
	}
	return nil
}
