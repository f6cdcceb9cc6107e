package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"paidonce/api"
	"paidonce/api/apitest"
	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/inbox"
)

// Capture and Refund are answered as a test has charges answered, as they would be.
func (d domain) Capture(ctx context.Context, r idemkeys.Request, p charges.CaptureParams) (idemkeys.Result, error) {
	d.edge.moved(r, p)
	res, err := d.edge.create(ctx, r, charges.Params{})
	if res.Answer.Code == http.StatusCreated {
		res.Answer.Code = http.StatusOK
		delete(res.Answer.Header, "Location")
	}
	return res, err
}

func (d domain) Refund(ctx context.Context, r idemkeys.Request, p charges.RefundParams) (idemkeys.Result, error) {
	d.edge.moved(r, p)
	res, err := d.edge.create(ctx, r, charges.Params{})
	if res.Answer.Code == http.StatusCreated {
		res.Answer.Header["Location"], res.Answer.Body = "/v1/refunds/"+refundID, idemkeys.Render(refund(refundID))
	}
	return res, err
}

func (e *edge) moved(r idemkeys.Request, params any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.created, e.last = append(e.created, r), params
}

func (d domain) GetRefund(_ context.Context, account, _ string) (charges.Refund, error) {
	if account != "acct_A" {
		return charges.Refund{}, charges.ErrNotFound
	}
	return refund(refundID), d.edge.refundErr // whatever id it has
}

func (d domain) ListRefunds(_ context.Context, _ string, f charges.RefundFilter) (charges.RefundPage, error) {
	return d.edge.listRefunds(f)
}

func (d domain) Expects(lines []string) error {
	if len(lines) != 1 || lines[0] == "" {
		return inbox.ErrSignature
	}
	return nil
}

func (d domain) Receive(_ context.Context, body []byte, signature string) error {
	return d.edge.receive(body, signature)
}

const refundID = "re_01KB7Y9B2J4N6P8R0T2V4X6Z8A"

func refund(id string) charges.Refund {
	return charges.Refund{
		ID: id, Object: "refund", Amount: 500, Charge: chargeID, Created: 1764403200, Currency: "usd", Metadata: map[string]string{},
		Provider: charges.Provider{Name: "stripe"}, Status: "pending",
	}
}

func TestRefundParameters(t *testing.T) {
	e := newEdge(t)
	for body, want := range map[string]charges.RefundParams{
		`{"charge":"ch_1"}`: {Charge: "ch_1"},
		`{"charge":"ch_1","amount":1,"reason":"fraudulent","metadata":{"a":"b"}}`: {Charge: "ch_1", Amount: 1, Reason: "fraudulent", Metadata: map[string]string{"a": "b"}},
		`charge=ch_1&amount=99999999&metadata[a]=b`:                               {Charge: "ch_1", Amount: 99999999, Metadata: map[string]string{"a": "b"}},
	} {
		mediaType := "application/json"
		if body[0] != '{' {
			mediaType = "application/x-www-form-urlencoded"
		}
		a := e.Post("/v1/refunds", "K", body, "Content-Type", mediaType)
		if a.Code != 201 || a.Header.Get("Location") != "/v1/refunds/"+refundID || !reflect.DeepEqual(e.last, want) {
			t.Errorf("%s: got %d %s, %+v", body, a.Code, a.Body, e.last)
		}
	}
	asked := e.creations()
	for _, tc := range []struct{ body, code, param string }{
		{``, "parameter_missing", "charge"}, {`{}`, "parameter_missing", "charge"}, {`{"charge":""}`, "parameter_invalid_empty", "charge"},
		{`{"charge":"` + strings.Repeat("c", 256) + `"}`, "parameter_invalid", "charge"}, {`{"charge":"ch_1","amount":0}`, "parameter_invalid_integer", "amount"},
		{`{"charge":"ch_1","amount":-1}`, "parameter_invalid_integer", "amount"}, {`{"charge":"ch_1","amount":100000000}`, "parameter_invalid_integer", "amount"},
		{`{"charge":"ch_1","amount":null}`, "parameter_invalid", "amount"}, {`{"charge":"ch_1","amount":1.0}`, "parameter_invalid_integer", "amount"},
		{`{"charge":"ch_1","reason":"because"}`, "parameter_invalid", "reason"}, {`{"charge":"ch_1","currency":"usd"}`, "parameter_unknown", "currency"},
		{`{"charge":"ch_1","metadata":{"paidonce_x":"1"}}`, "parameter_invalid", "metadata[paidonce_x]"}, {`{"charge":"a\u0000"}`, "parameter_invalid", "charge"},
	} {
		wants(t, e.Post("/v1/refunds", "K", tc.body), 400, tc.code, tc.param)
	}
	wants(t, e.Post("/v1/refunds", "", `{"charge":"ch_1"}`), 400, "idempotency_key_missing", "")
	wants(t, e.Post("/v1/refunds", " ", `{"charge":"ch_1"}`), 400, "idempotency_key_invalid", "") // PB-122
	wants(t, e.As("sk_x").Post("/v1/refunds", "K", `{"charge":"ch_1"}`), 401, "api_key_invalid", "")
	if e.creations() != asked {
		t.Error("the domain was asked")
	}
}

// PB-167: a capture needs no body, however nothing is said.
func TestCapturesWithAndWithoutABody(t *testing.T) {
	e := newEdge(t)
	two := httptest.NewUnstartedServer(e.server)
	two.EnableHTTP2 = true
	two.StartTLS()
	defer two.Close()
	h2 := apitest.NewClient(t, two.URL, secret)
	h2.HTTP.Transport.(*apitest.Checker).Base = two.Client().Transport
	path := "/v1/charges/" + chargeID + "/capture"
	var first idemkeys.Request
	for i, c := range []*apitest.Client{e.Client, h2} {
		for _, mediaType := range []string{"", "application/json", "application/x-www-form-urlencoded"} {
			for _, chunked := range []bool{false, true} {
				req := c.Request("POST", path, "", "Idempotency-Key", "K")
				if mediaType != "" {
					req.Header.Set("Content-Type", mediaType)
				}
				if chunked {
					req.Body, req.ContentLength = io.NopCloser(strings.NewReader("")), -1
				}
				if a := c.Do(req); a.Code != 200 || a.Header.Get("Location") != "" {
					t.Errorf("HTTP/%d, %q, chunked %t: got %d %s", i+1, mediaType, chunked, a.Code, a.Body)
					continue
				}
				last := e.created[len(e.created)-1]
				if first.Key == "" {
					first = last
				}
				version, hash := first.Fingerprint.Current()
				if same, _ := last.Fingerprint.Matches(version, hash); !same || e.last != any(charges.CaptureParams{Charge: chargeID}) {
					t.Errorf("another request: %+v", e.last)
				}
			}
		}
	}
	for _, body := range []string{`{"amount":7}`, "amount=7"} {
		mediaType := map[bool]string{true: "application/json", false: "application/x-www-form-urlencoded"}[body[0] == '{']
		if a := e.Post(path, "K", body, "Content-Type", mediaType); a.Code != 200 || e.last != any(charges.CaptureParams{Charge: chargeID, Amount: 7}) {
			t.Errorf("got %d, %+v", a.Code, e.last)
		}
	}
	asked := e.creations()
	wants(t, e.Post(path, "K", `{"amount":0}`), 400, "parameter_invalid_integer", "amount")
	wants(t, e.Post(path, "K", `{"amount":-5}`), 400, "parameter_invalid_integer", "amount")
	wants(t, e.Post(path, "K", `{"amount_to_capture":5}`), 400, "parameter_unknown", "amount_to_capture")
	wants(t, e.Post(path, "", ""), 400, "idempotency_key_missing", "")
	for _, id := range []string{"%00", "%ff", strings.Repeat("x", 256)} {
		wants(t, e.Post("/v1/charges/"+id+"/capture", "K", ""), 404, "resource_missing", "id")
	}
	if e.creations() != asked {
		t.Error("the domain was asked")
	}
	for _, id := range []string{"a%2Fb", "a%2Fcapture", "100%25"} {
		if a := e.Post("/v1/charges/"+id+"/capture", "K", ""); a.Code != 200 || strings.Contains(fmt.Sprint(e.last), "%2F") {
			t.Errorf("%s: got %d, %+v", id, a.Code, e.last)
		}
	}
}

// What the domain refuses is said as it says it, and the key is not spent.
func TestRefusalsOfTheDomain(t *testing.T) {
	e := newEdge(t)
	refusal := func(status int, code, param string, advice idemkeys.Advice) error {
		return &idemkeys.Refused{Code: status, Problem: idemkeys.Problem{Type: "invalid_request_error", Code: code, Param: param, Message: "m.", Charge: chargeID, Advice: advice}}
	}
	capture := "/v1/charges/" + chargeID + "/capture"
	for _, tc := range []struct {
		path, body           string
		status               int
		code, param          string
		says                 string // the parameter as the answer names it
		advice, retry, after string
	}{
		{"/v1/refunds", `{"charge":"ch_1"}`, 409, "charge_pending", "charge", "charge", "retry_same_key", "true", "2"},
		{"/v1/refunds", `{"charge":"ch_1"}`, 400, "charge_already_refunded", "charge", "charge", "fix_and_use_new_key", "false", ""},
		{"/v1/refunds", `{"charge":"ch_1"}`, 404, "resource_missing", "charge", "charge", "stop", "false", ""},
		{capture, "", 409, "capture_pending", "charge", "id", "retry_same_key", "true", "2"},
		{capture, "", 400, "amount_too_large", "amount", "amount", "fix_and_use_new_key", "false", ""},
		{capture, "", 404, "resource_missing", "charge", "id", "stop", "false", ""},
	} {
		advice := idemkeys.FixAndUseNewKey
		if tc.status == 409 {
			advice = idemkeys.RetrySameKey
		}
		e.answers(nil, refusal(tc.status, tc.code, tc.param, advice))
		a := e.Post(tc.path, "K", tc.body)
		wants(t, a, tc.status, tc.code, tc.says)
		h, p := a.Header, a.Error()
		if p.Advice != tc.advice || h.Get("Stripe-Should-Retry") != tc.retry || h.Get("Retry-After") != tc.after || p.Charge == "" || h.Get("Idempotency-Key") != "K" {
			t.Errorf("%s: got %+v %v", tc.code, p, h)
		}
	}
	// A refund without an outcome is told by its charge.
	e.answers(nil, &idemkeys.Unknown{ResourceID: refundID})
	if p := e.Post("/v1/refunds", "K", `{"charge":"`+chargeID+`"}`).Error(); p.Code != "outcome_unknown" || p.Charge != chargeID {
		t.Errorf("got %+v", p)
	}
}

func TestRefundsAreShown(t *testing.T) {
	e := newEdge(t)
	if a := e.Get("/v1/refunds/" + refundID); a.Code != 200 || a.ID() != refundID {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	wants(t, e.As("sk_B").Get("/v1/refunds/"+refundID), 404, "resource_missing", "id")
	wants(t, e.Get("/v1/refunds/%00"), 404, "resource_missing", "id")
	wants(t, e.Get("/v1/refunds/"+refundID+"?x=1"), 400, "parameter_unknown", "x")
	e.refundErr = errors.New("SQLSTATE 57P01")
	wants(t, e.Get("/v1/refunds/"+refundID), 503, "unavailable", "")
	var f charges.RefundFilter
	e.listRefunds = func(got charges.RefundFilter) (charges.RefundPage, error) {
		f = got
		return charges.RefundPage{Refunds: []charges.Refund{refund(refundID)}, HasMore: true}, nil
	}
	for query, want := range map[string]charges.RefundFilter{
		"": {Limit: 10}, "?charge=ch_1&limit=3": {Limit: 3, Charge: "ch_1"}, "?starting_after=re_1": {Limit: 10, StartingAfter: "re_1"}, "?ending_before=re_1": {Limit: 10, EndingBefore: "re_1"},
	} {
		a := e.Get("/v1/refunds" + query)
		if a.Code != 200 || f != want || !strings.HasPrefix(string(a.Body), `{"object":"list","url":"/v1/refunds","has_more":true,"data":[{"id":"`+refundID) {
			t.Errorf("%s: got %d, %+v, %s", query, a.Code, f, a.Body)
		}
	}
	for _, tc := range []struct{ query, code, param string }{
		{"limit=0", "parameter_invalid_integer", "limit"}, {"limit=101", "parameter_invalid_integer", "limit"}, {"customer=c", "parameter_unknown", "customer"},
		{"charge=" + strings.Repeat("c", 256), "parameter_invalid", "charge"}, {"starting_after=a&ending_before=b", "parameter_invalid", "ending_before"},
	} {
		wants(t, e.Get("/v1/refunds?"+tc.query), 400, tc.code, tc.param)
	}
	for err, want := range map[error]string{charges.ErrNotFound: "resource_missing", errors.New("SQLSTATE 57P01"): "unavailable"} {
		e.listRefunds = func(charges.RefundFilter) (charges.RefundPage, error) { return charges.RefundPage{}, err }
		if a := e.Get("/v1/refunds?ending_before=re_x"); a.Error().Code != want {
			t.Errorf("%v: got %d %s", err, a.Code, a.Body)
		}
	}
	e.listRefunds = func(charges.RefundFilter) (charges.RefundPage, error) { return charges.RefundPage{}, nil }
	if a := e.Get("/v1/refunds"); !strings.Contains(string(a.Body), `"data":[]`) {
		t.Errorf("got %s", a.Body)
	}
	for path, allowed := range map[string]string{"/v1/charges/" + chargeID + "/capture": "POST", "/v1/refunds": "POST", "/v1/refunds/" + refundID: "GET", webhooks: "POST"} {
		if a := e.Do(e.Request("DELETE", path, "")); a.Code != 405 || !strings.Contains(a.Header.Get("Allow"), allowed) {
			t.Errorf("%s: got %d %v", path, a.Code, a.Header)
		}
	}
	for _, path := range []string{"/v1/charges/" + chargeID + "/capture/", "/v1/charges/" + chargeID + "/captures", "/v1/charges//capture", "/v1/refunds/", "/v1/refunds/a/b", webhooks + "/"} {
		wants(t, e.Post(path, "K", "{}"), 404, "route_unknown", "")
	}
}

const webhooks = "/v1/provider/stripe/webhooks"

func TestEventsAreTakenAsTheyCome(t *testing.T) {
	e := newEdge(t, func(c *api.Config) { c.RateLimit, c.MaxBody = 0.001, 100 })
	var body, signature string
	e.receive = func(b []byte, s string) error { body, signature = string(b), s; return nil }
	send := func(target, text string, header ...string) apitest.Answer {
		req := e.Request("POST", target, text, append(header, "Stripe-Signature", "t=1,v1=ab, v1=cd")...)
		req.Header["Authorization"] = nil
		return e.Do(req)
	}
	// PB-176: neither query nor media type matter, and the bytes arrive as they are.
	for _, tc := range [][]string{
		{webhooks}, {webhooks + "?account=1&%zz;"}, {webhooks, "Content-Type", "text/plain"}, {webhooks, "Content-Type", "application/json; charset=latin1"},
		{webhooks, "Idempotency-Key", "a", "Idempotency-Key", "b"}, {webhooks, "Content-Type", "a", "Content-Type", "b"}, {webhooks, "Prefer", "a"},
	} {
		text := " {\"a\" : 1.0}\r\n\xe9\x00"
		a := send(tc[0], text, tc[1:]...)
		if a.Code != 200 || string(a.Body) != "{\"received\":true}\n" || body != text || signature != "t=1,v1=ab, v1=cd" {
			t.Errorf("%v: got %d %s; %q, %q", tc, a.Code, a.Body, body, signature)
		}
	}
	const newsMax = 1 << 20 // whatever clients of our own may send
	if a := send(webhooks, strings.Repeat("x", newsMax)); a.Code != 200 || len(body) != newsMax {
		t.Errorf("the largest: got %d, and %d bytes came", a.Code, len(body))
	}
	wants(t, send(webhooks, strings.Repeat("x", newsMax+1)), 413, "body_too_large", "")
	wants(t, send(webhooks, "{}", "Content-Encoding", "gzip"), 415, "content_encoding_unsupported", "")
	wants(t, send(webhooks, "{}", "Stripe-Signature", "t=1,v1=ef"), 400, "signature_invalid", "")
	for _, header := range [][]string{nil, {"Stripe-Signature", ""}} {
		wants(t, e.Do(e.Request("POST", webhooks, "{}", header...)), 400, "signature_invalid", "")
	}
	for _, tc := range []struct {
		err    error
		status int
		code   string
	}{
		{inbox.ErrSignature, 400, "signature_invalid"}, {inbox.ErrMalformed, 400, "body_malformed"}, {errors.New("SQLSTATE 57P01 jenny"), 503, "unavailable"},
	} {
		e.receive = func([]byte, string) error { return tc.err }
		a := send(webhooks, "{}")
		wants(t, a, tc.status, tc.code, "")
		if strings.Contains(string(a.Body), "SQLSTATE") || (a.Header.Get("Retry-After") != "") != (tc.status == 503) {
			t.Errorf("got %s %v", a.Body, a.Header)
		}
	}
	e.receive = func([]byte, string) error { return nil }
	send(webhooks, "for jenny's eyes")
	if log := e.log.String(); strings.Contains(log, "eyes") || strings.Contains(log, "v1=ab") || !strings.Contains(log, webhooks) {
		t.Errorf("the log: %s", log)
	}
	off := newEdge(t, func(c *api.Config) { c.News = nil })
	wants(t, off.Do(off.Request("POST", webhooks, "{}", "Stripe-Signature", "t=1,v1=ab")), 400, "webhooks_not_configured", "")
	off.server.Drain()
	wants(t, off.Do(off.Request("POST", webhooks, "{}")), 503, "shutting_down", "")
}
