package paidonce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"paidonce/sdk/go/rest"
)

// A call that moves no money has a key for its own attempts if it is a POST, and is the same each
// time.
func TestCallsThatMoveNoMoney(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, body, object string
		call               func(ctx context.Context, c *Client) error
	}{
		{"PUT /v1/webhook_endpoints/a%2Fb", `{"url":"https://x/"}`, "webhook_endpoint",
			func(ctx context.Context, c *Client) error {
				_, err := c.PutWebhookEndpoint(ctx, "a/b", WebhookEndpointParams{URL: "https://x/"})
				return err
			}},
		{"POST /v1/events/evt_1/resend", `{"webhook_endpoint":"hook"}`, "event_resend",
			func(ctx context.Context, c *Client) error {
				_, err := c.ResendEvent(ctx, "evt_1", EventResendParams{
					WebhookEndpoint: Ptr("hook"),
				})
				return err
			}},
		{"POST /v1/webhook_endpoints/hook/rotate_secret", "", "webhook_endpoint",
			func(ctx context.Context, c *Client) error {
				_, err := c.RotateWebhookEndpointSecret(ctx, "hook")
				return err
			}},
		{"DELETE /v1/webhook_endpoints/hook", "", "webhook_endpoint",
			func(ctx context.Context, c *Client) error {
				_, err := c.DeleteWebhookEndpoint(ctx, "hook")
				return err
			}},
	} {
		done := reply{status: 200, body: fmt.Sprintf(`{"object":%q}`, c.object)}
		s := serveAll(t, reply{}, refusal(503, "api_error", "unavailable", "retry_same_key"), done)
		client := s.client(t, nil)
		if err := errors.Join(c.call(t.Context(), client), c.call(t.Context(), client)); err != nil {
			t.Fatal(err)
		}
		each := request{s.sent[0].key, c.body}
		if !slices.Equal(s.sent[:3], []request{each, each, each}) ||
			!slices.Equal(slices.Compact(s.paths), []string{c.path}) {
			t.Errorf("sent %v to %v", s.sent, s.paths)
		}
		isPost := strings.HasPrefix(c.path, "POST")
		if (each.key != "") != isPost || (s.sent[3].key != each.key) != isPost {
			t.Errorf("%s: the keys %v", c.path, s.sent)
		}
	}
}

func TestInstallationBelowAPath(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"/pay", "/pay/"} {
		s := serveAll(t, reply{status: 201, body: chargeJSON}, reply{status: 200, body: chargeJSON},
			reply{status: 200, body: `{"object":"list","data":[]}`})
		c := s.client(t, func(cfg *Config) { cfg.BaseURL += base })
		_, created := c.CreateCharge(t.Context(), "op", twenty)
		_, read := c.Charge(t.Context(), "ch/1")
		for _, err := range c.Charges(t.Context(),
			ChargeQuery{Limit: Ptr(3), Customer: Ptr("ü&")}) {
			t.Error(err)
		}
		want := []string{
			"POST /pay/v1/charges", "GET /pay/v1/charges/ch%2F1",
			"GET /pay/v1/charges?limit=3&customer=%C3%BC%26",
		}
		if created != nil || read != nil || !slices.Equal(s.paths, want) {
			t.Errorf("%v %v, asked for %v", created, read, s.paths)
		}
	}
}

func TestWhatWouldAskForSomethingElse(t *testing.T) {
	t.Parallel()
	s := serve(t, 200)
	c := s.client(t, nil)
	ctx := t.Context()
	for _, id := range []string{"", ".", ".."} {
		for i, call := range []func() error{
			func() error { _, err := c.Charge(ctx, id); return err },
			func() error { _, err := c.CaptureCharge(ctx, "op", id, CaptureParams{}); return err },
			func() error { _, err := c.CancelCharge(ctx, "op", id); return err },
			func() error { _, err := c.Refund(ctx, id); return err },
			func() error { _, err := c.IdempotencyKey(ctx, id); return err },
			func() error { _, err := c.Event(ctx, id); return err },
			func() error { _, err := c.ResendEvent(ctx, id, EventResendParams{}); return err },
			func() error {
				_, err := c.PutWebhookEndpoint(ctx, id, WebhookEndpointParams{})
				return err
			},
			func() error { _, err := c.WebhookEndpoint(ctx, id); return err },
			func() error { _, err := c.DeleteWebhookEndpoint(ctx, id); return err },
			func() error { _, err := c.RotateWebhookEndpointSecret(ctx, id); return err },
		} {
			if err := call(); err == nil {
				t.Errorf("call %d with %q", i, id)
			}
		}
	}
	if _, err := c.CreateCharge(ctx, "", twenty); err == nil {
		t.Error("an operation without a name")
	}
	if open, err := c.Unfinished(ctx); err != nil || len(open) != 0 || len(s.sent) != 0 {
		t.Errorf("kept %v %v, sent %v", open, err, s.sent)
	}
	for _, base := range []string{"", "127.0.0.1:8080", "ftp://h", "http://u:p@h", "http://h?x",
		"http://h#x", "http://:80"} {
		if _, err := New(Config{BaseURL: base, APIKey: "k", Store: c.cfg.Store}); err == nil {
			t.Errorf("%q was taken for an installation", base)
		}
	}
	for _, key := range []string{"", "k\n", "k k", "ключ"} {
		if _, err := New(Config{BaseURL: s.URL, APIKey: key, Store: c.cfg.Store}); err == nil {
			t.Errorf("%q was taken for an API key", key)
		}
	}
}

// A refund or dispute with its whole charge could not be read, so it is not asked for.
func TestWholeChargesAreNotAskedFor(t *testing.T) {
	t.Parallel()
	s := serveAll(t, reply{status: 201, body: `{"id":"re_1","object":"refund","charge":{}}`})
	c := s.client(t, nil)
	charge := "ch_1"
	_, created := c.CreateRefund(t.Context(), "op", RefundParams{
		Charge: &charge, Expand: []rest.RefundExpand{"customer", "charge"},
	})
	if open, err := c.Unfinished(t.Context()); len(open) != 0 || err != nil {
		t.Errorf("begun: %v, %v", open, err)
	}
	errs := []error{created}
	for _, err := range c.Refunds(t.Context(), RefundQuery{
		Expand: []rest.RefundListExpand{"data.charge"},
	}) {
		errs = append(errs, err)
	}
	for _, err := range c.Disputes(t.Context(), DisputeQuery{
		Expand: []rest.DisputeListExpand{"data.charge"},
	}) {
		errs = append(errs, err)
	}
	for _, err := range errs {
		if !errors.Is(err, errWholeCharge) {
			t.Error(err)
		}
	}
	if len(errs) != 3 || len(s.sent) != 0 {
		t.Errorf("%v, sent %v", errs, s.sent)
	}
}

// The refunds of a charge are read where they are asked for.
func TestRefundsOfACharge(t *testing.T) {
	t.Parallel()
	s := serveAll(t, reply{status: 200, body: `{"object":"list","has_more":false,"data":[` +
		`{"id":"ch_1","object":"charge","refunds":{"object":"list","data":[{"id":"re_1"}]}}]}`})
	for ch, err := range s.client(t, nil).Charges(t.Context(), ChargeQuery{
		Expand: []rest.ChargeListExpand{"data.refunds"},
	}) {
		if err != nil || ch.Refunds == nil || ch.Refunds.Data[0].ID != "re_1" {
			t.Errorf("%+v, %v", ch, err)
		}
	}
	if len(s.paths) != 1 || !strings.Contains(s.paths[0], "expand%5B%5D=data.refunds") {
		t.Errorf("asked for %v", s.paths)
	}
}
