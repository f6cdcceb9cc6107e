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
	"time"

	"paidonce/api"
	"paidonce/api/apitest"
	"paidonce/charges"
	"paidonce/idemkeys"
	online "paidonce/internal/shop"
	"paidonce/internal/world"
	"paidonce/problem"
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

func (d domain) Cancel(ctx context.Context, r idemkeys.Request, p charges.CancelParams) (idemkeys.Result, error) {
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
		res.Answer.Header["Location"], res.Answer.Body = "/v1/refunds/"+refundID, problem.Render(refund(refundID))
	}
	return res, err
}

func (e *edge) moved(r idemkeys.Request, params any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.created, e.last = append(e.created, r), params
}

func (d domain) GetRefund(_ context.Context, account, _ string, _ bool) (charges.Refund, error) {
	if account != "acct_A" {
		return charges.Refund{}, charges.ErrNotFound
	}
	return refund(refundID), d.edge.refundErr // whatever id it has
}

func (d domain) ListRefunds(_ context.Context, _ string, f charges.RefundFilter) (charges.RefundPage, error) {
	return d.edge.listRefunds(f)
}

func (d domain) GetDispute(_ context.Context, account, id string, _ bool) (charges.Dispute, error) {
	if account != "acct_A" {
		return charges.Dispute{}, charges.ErrNotFound
	}
	return disputeOf(id), nil
}

func (d domain) ListDisputes(_ context.Context, _ string, f charges.DisputeFilter) (charges.DisputePage, error) {
	return d.edge.listDisputes(f)
}

const refundID = "re_01KB7Y9B2J4N6P8R0T2V4X6Z8A"

func refund(id string) charges.Refund {
	return charges.Refund{
		ID: id, Object: "refund", MadeBy: "api", Amount: 500, Charge: charges.ChargeRef{ID: chargeID}, Created: 1764403200, Currency: "usd", Metadata: map[string]string{},
		Provider: charges.Provider{Name: "stripe"}, Status: "pending",
	}
}

func TestRefundParameters(t *testing.T) {
	e := newEdge(t)
	for body, want := range map[string]charges.RefundParams{
		`{"charge":"ch_1"}`: {Charge: "ch_1"},
		`{"charge":"ch_1","amount":1,"reason":"fraudulent","metadata":{"a":"b"}}`: {Charge: "ch_1", Amount: 1, Reason: "fraudulent", Metadata: map[string]string{"a": "b"}},
		`{"payment_intent":"pi_1"}`:                                  {PaymentIntent: "pi_1"},
		`charge=ch_1&amount=999999999999&metadata[a]=b&metadata[c]=`: {Charge: "ch_1", Amount: 999999999999, Metadata: map[string]string{"a": "b"}},
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
		{`{"charge":"ch_1","payment_intent":"pi_1"}`, "parameter_invalid", "payment_intent"}, {`{"payment_intent":""}`, "parameter_invalid_empty", "payment_intent"},
		{`{"payment_intent":"` + strings.Repeat("p", 256) + `"}`, "parameter_invalid", "payment_intent"},
		{``, "parameter_missing", "charge"}, {`{}`, "parameter_missing", "charge"}, {`{"charge":""}`, "parameter_invalid_empty", "charge"},
		{`{"charge":"` + strings.Repeat("c", 256) + `"}`, "parameter_invalid", "charge"}, {`{"charge":"ch_1","amount":0}`, "parameter_invalid_integer", "amount"},
		{`{"charge":"ch_1","amount":-1}`, "parameter_invalid_integer", "amount"}, {`{"charge":"ch_1","amount":1000000000000}`, "amount_too_large", "amount"},
		{`{"charge":"ch_1","amount":` + strings.Repeat("9", 40) + `}`, "amount_too_large", "amount"},
		{`{"charge":"ch_1","amount":null}`, "parameter_invalid", "amount"}, {`{"charge":"ch_1","amount":1.0}`, "parameter_invalid_integer", "amount"},
		{`{"charge":"ch_1","reason":"because"}`, "parameter_invalid", "reason"}, {`{"charge":"ch_1","currency":"usd"}`, "parameter_unknown", "currency"},
		{`{"charge":"ch_1","metadata":{"paidonce_x":"1"}}`, "parameter_invalid", "metadata[paidonce_x]"}, {`{"charge":"a\u0000"}`, "parameter_invalid", "charge"},
	} {
		wants(t, e.Post("/v1/refunds", "K", tc.body), 400, tc.code, tc.param)
	}
	wants(t, e.Post("/v1/refunds", "", `{"charge":"ch_1"}`), 400, "idempotency_key_missing", "")
	wants(t, e.Post("/v1/refunds", " ", `{"charge":"ch_1"}`), 400, "idempotency_key_invalid", "")
	wants(t, e.As("sk_x").Post("/v1/refunds", "K", `{"charge":"ch_1"}`), 401, "api_key_invalid", "")
	if e.creations() != asked {
		t.Error("the domain was asked")
	}
}

// A capture needs no body, however nothing is said.
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
	wants(t, e.Post(path, "K", `{"amount":null}`), 400, "parameter_invalid", "amount")
	wants(t, e.Post(path, "K", "amount=", "Content-Type", "application/x-www-form-urlencoded"), 400, "parameter_invalid_integer", "amount")
	wants(t, e.Post(path, "K", `{"amount":1000000000000}`), 400, "amount_too_large", "amount")
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
	refusal := func(code problem.Code, param string) error {
		e := code.Of(param, "m.")
		e.Charge = chargeID
		return &idemkeys.Refused{Reason: e}
	}
	capture := "/v1/charges/" + chargeID + "/capture"
	for _, tc := range []struct {
		path, body           string
		status               int
		code                 problem.Code
		param                string
		advice, retry, after string
	}{
		{"/v1/refunds", `{"charge":"ch_1"}`, 409, problem.ChargePending, "charge", "retry_same_key", "true", "2"},
		{"/v1/refunds", `{"charge":"ch_1"}`, 400, problem.ChargeAlreadyRefunded, "charge", "fix_and_use_new_key", "false", ""},
		{"/v1/refunds", `{"charge":"ch_1"}`, 404, problem.ResourceMissing, "charge", "stop", "false", ""},
		{capture, "", 409, problem.CapturePending, "id", "retry_same_key", "true", "2"},
		{capture, "", 400, problem.AmountTooLarge, "amount", "fix_and_use_new_key", "false", ""},
		{capture, "", 404, problem.ResourceMissing, "id", "stop", "false", ""},
	} {
		e.answers(nil, refusal(tc.code, tc.param))
		a := e.Post(tc.path, "K", tc.body)
		wants(t, a, tc.status, tc.code.String(), tc.param)
		h, p := a.Header, a.Error()
		if p.Advice != tc.advice || h.Get("Stripe-Should-Retry") != tc.retry || h.Get("Retry-After") != tc.after || p.Charge == "" || h.Get("Idempotency-Key") != "K" {
			t.Errorf("%s: got %+v %v", tc.code, p, h)
		}
	}
	// What is unknown is named by what the domain names: of a refund, the charge.
	e.answers(nil, &idemkeys.Unknown{ResourceID: chargeID})
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

const webhooks = online.Webhooks

// Of a delivery nothing matters but the signature and the bytes.
func TestEventsAreTakenAsTheyCome(t *testing.T) {
	e := newEdge(t, func(c *api.Config) { c.RateLimit, c.MaxBody = 0.001, 100 })
	send := func(target, text string, header ...string) apitest.Answer {
		req := e.Request("POST", target, text, append(header, "Stripe-Signature", world.Signed([]byte(text), whsec, time.Now()))...)
		req.Header["Authorization"] = nil
		return e.Do(req)
	}
	for i, tc := range [][]string{
		{webhooks}, {webhooks + "?account=1&%zz;"}, {webhooks, "Content-Type", "text/plain"}, {webhooks, "Content-Type", "application/json; charset=latin1"},
		{webhooks, "Idempotency-Key", "a", "Idempotency-Key", "b"}, {webhooks, "Content-Type", "a", "Content-Type", "b"}, {webhooks, "Prefer", "a"},
		{webhooks, "Content-Encoding", "gzip"},
	} {
		text := string(world.Event(fmt.Sprint("evt_", i), "x.y", "for jenny's eyes")) + "\r\n"
		if a := send(tc[0], text, tc[1:]...); a.Code != 200 || string(a.Body) != "{\"received\":true}\n" {
			t.Errorf("%v: got %d %s", tc, a.Code, a.Body)
		}
	}
	const newsMax = 1 << 20 // whatever clients of our own may send
	largest := string(world.Event("evt_large", "x.y", "o"))
	largest += strings.Repeat(" ", newsMax-len(largest))
	if a := send(webhooks, largest); a.Code != 200 {
		t.Errorf("the largest: got %d", a.Code)
	}
	wants(t, send(webhooks, largest+" "), 413, "body_too_large", "")
	wants(t, send(webhooks, "{}", "Stripe-Signature", "t=1,v1=ef"), 400, "signature_invalid", "")
	for _, header := range [][]string{nil, {"Stripe-Signature", ""}} {
		wants(t, e.Do(e.Request("POST", webhooks, "{}", header...)), 400, "signature_invalid", "")
	}
	if log := e.log.String(); strings.Contains(log, "eyes") || strings.Contains(log, "v1=") || !strings.Contains(log, webhooks) {
		t.Errorf("the log: %s", log)
	}
	off := newEdge(t, func(c *api.Config) { c.ProviderEvents = nil })
	wants(t, off.Do(off.Request("POST", webhooks, "{}", "Stripe-Signature", "t=1,v1=ab")), 400, "webhooks_not_configured", "")
	off.server.Drain()
	wants(t, off.Do(off.Request("POST", webhooks, "{}")), 503, "shutting_down", "")
}
