package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"paidonce/charges"
)

// piece draws text that is often wrong in one of the ways that matter.
func piece(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "0", "1", "50", "-1", "1.0", "1e0", "100", "101", "true", "null", "[]", "{}", `""`, `"usd"`, `"tok_visa"`, "usd", "tok_visa", "cus_1", "ch_1", "\x00", "\xff",
			`"\ud800"`, `"\u0000"`, "%00", "%ff", "%zz", ";", "&", "=", "[", "]", "a/b", "..", "é", "failed",
		}),
		rapid.StringN(0, 12, 40),
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "bytes")) }),
	).Draw(t, label)
}

func name(t *rapid.T) string {
	return rapid.OneOf(rapid.SampledFrom([]string{
		"amount", "currency", "source", "charge", "reason", "customer", "capture", "description", "metadata", "receipt_email", "statement_descriptor_suffix", "Amount", "statement_descriptor", "shipping", "shipping[name]", "shipping[address][city]", "shipping[address]",
		"metadata[a]", "metadata[a][b]", "limit", "order", "starting_after", "ending_before", "url", "type", "webhook_endpoint", "enabled_events", "enabled_events[]", "enabled_events[0]", "created[gt]", "created", "status", "expand[0]",
	}), rapid.StringN(0, 5, 20)).Draw(t, "name")
}

func body(t *rapid.T) string {
	var parts []string
	asJSON := rapid.Bool().Draw(t, "JSON")
	if rapid.Bool().Draw(t, "whole") {
		parts = []string{`"amount":50`, `"currency":"usd"`, `"source":"tok_visa"`}
		if !asJSON {
			parts = []string{"amount=50", "currency=usd", "source=tok_visa"}
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		if asJSON {
			parts = append(parts, `"`+name(t)+`":`+piece(t, "value"))
		} else {
			parts = append(parts, name(t)+"="+piece(t, "value"))
		}
	}
	if asJSON {
		return "{" + strings.Join(parts, ",") + "}" + rapid.SampledFrom([]string{"", " ", "x"}).Draw(t, "tail")
	}
	return strings.Join(parts, "&")
}

// Whatever comes in: the answer is as openapi.yaml says, it is never our own fault, and what gets
// through is fit for the database.
func TestAnyRequestHasADescribedAnswer(t *testing.T) {
	e := newEdge(t)
	e.get = func(string) (charges.Charge, error) { return charge(chargeID), nil }
	path := func(t *rapid.T) string {
		return rapid.OneOf(
			rapid.SampledFrom([]string{
				"/v1/charges", "/v1/charges", "/v1/refunds", "/v1/refunds", "/v1/charges/" + chargeID + "/capture", webhooks, "/v1/events", "/v1/webhook_endpoints", "/v1/webhook_endpoints/hook",
				"/v1/webhook_endpoints/hook/rotate_secret", "/v1/events/evt_1/resend", "/v1/charges/", "/healthz", "/readyz", "/",
			}),
			rapid.Custom(func(t *rapid.T) string {
				below := rapid.SampledFrom([]string{"/v1/charges/", "/v1/refunds/", "/v1/idempotency_keys/", "/v1/events/", "/v1/webhook_endpoints/", "/"}).Draw(t, "below") + url.PathEscape(piece(t, "id"))
				return below + rapid.SampledFrom([]string{"", "", "/capture", "/x"}).Draw(t, "further")
			}),
		).Draw(t, "path")
	}
	rapid.Check(t, func(t *rapid.T) {
		query := ""
		for range rapid.IntRange(0, 2).Draw(t, "pairs") {
			query += "&" + url.QueryEscape(name(t)) + "=" + url.QueryEscape(piece(t, "value"))
		}
		target := path(t)
		if query != "" {
			target += "?" + query[1:]
		}
		req := e.Request(rapid.SampledFrom([]string{"POST", "GET", "HEAD", "PUT", "DELETE"}).Draw(t, "method"), target, body(t))
		for _, header := range []string{"Idempotency-Key", "Content-Type", "Prefer", "Content-Encoding", "Stripe-Signature"} {
			lines := rapid.SampledFrom([][]string{
				nil, nil, {"K"}, {""}, {"application/json"}, {"application/json"}, {"application/x-www-form-urlencoded"}, {"wait=1"}, {"gzip"}, {"a", "b"}, {"é"},
			}).Draw(t, header)
			if header == "Idempotency-Key" && rapid.Bool().Draw(t, "keyed") {
				lines = []string{"K"}
			}
			if lines != nil {
				req.Header[header] = lines
			}
		}
		before := e.creations()
		a := e.Do(req)
		if a.Code == 0 || a.Code >= http.StatusInternalServerError {
			t.Fatalf("got %d %s", a.Code, a.Body)
		}
		if strings.HasPrefix(req.URL.Path, "/v1/webhook_endpoints") && a.Code == http.StatusCreated {
			return
		}
		capture := req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/capture")
		if through := e.creations() > before; through != (a.Code == http.StatusCreated || a.Code == http.StatusOK && capture) {
			t.Fatalf("got %d, and the domain was asked: %t", a.Code, through)
		} else if through {
			fit(t, e)
		}
	})
}

// fit fails when what the domain was last asked for is not what a database takes.
func fit(t *rapid.T, e *edge) {
	var texts []string
	var err error
	var metadata map[string]string
	switch p := e.last.(type) {
	case charges.Params:
		err, metadata = p.Validate(), p.Metadata
		texts = []string{p.Currency, p.Customer, p.Source, p.Description, p.ReceiptEmail, p.StatementDescriptorSuffix, p.StatementDescriptor}
		if p.Shipping != nil {
			for _, text := range p.Shipping.Texts() {
				texts = append(texts, *text.Text)
			}
		}
	case charges.RefundParams:
		err, metadata = p.Validate(), p.Metadata
		texts = []string{p.Charge, p.Reason}
	case charges.CaptureParams:
		err, texts = p.Validate(), []string{p.Charge}
	}
	if err != nil {
		t.Fatalf("%+v: %v", e.last, err)
	}
	for k, v := range metadata {
		texts = append(texts, k, v)
	}
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
			t.Fatalf("%+v", e.last)
		}
	}
}
