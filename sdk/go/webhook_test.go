package paidonce

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The example of the Standard Webhooks specification, so that the signature is not only what we
// think it is.
const (
	exampleSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	exampleBody   = `{"test": 2432232314}`
	exampleTime   = 1614265330
)

func exampleHeader() http.Header {
	h := http.Header{}
	h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	return h
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(h http.Header)
		body   string
		after  time.Duration
		secret string
		good   bool
	}{
		{name: "as it is", good: true},
		{name: "five minutes late", after: 5 * time.Minute, good: true},
		{name: "several signatures", change: func(h http.Header) {
			h.Set("webhook-signature", "v1,AAAA v1a,x "+h.Get("webhook-signature"))
		}, good: true},
		{name: "too late", after: 301 * time.Second},
		{name: "too early", after: -301 * time.Second},
		{name: "another body", body: `{"test": 1}`},
		{name: "another secret", secret: "whsec_b3RoZXI="},
		{name: "another id", change: func(h http.Header) { h.Set("webhook-id", "msg_2") }},
		{name: "another time", change: func(h http.Header) {
			h.Set("webhook-timestamp", "1614265331")
		}},
		{name: "no time", change: func(h http.Header) { h.Set("webhook-timestamp", "soon") }},
		{name: "no id", change: func(h http.Header) { h.Del("webhook-id") }},
		{name: "no signature", change: func(h http.Header) { h.Del("webhook-signature") }},
		{name: "another version", change: func(h http.Header) {
			h.Set("webhook-signature", strings.Replace(h.Get("webhook-signature"), "v1", "v2", 1))
		}},
	} {
		h, body, secret := exampleHeader(), exampleBody, exampleSecret
		if c.change != nil {
			c.change(h)
		}
		if c.body != "" {
			body = c.body
		}
		if c.secret != "" {
			secret = c.secret
		}
		_, err := verifyWebhook([]byte(body), h, time.Unix(exampleTime, 0).Add(c.after),
			[]string{secret})
		if c.good && err != nil || !c.good && !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// With an empty key anybody can sign. It is refused at once, so that it is found with the first
// delivery: whatever that is, and whatever other secrets there are.
func TestWebhookSecretsThatAreNone(t *testing.T) {
	t.Parallel()
	now := time.Unix(exampleTime, 0)
	for _, none := range []string{"", " ", "\n", "whsec_", "whsec_\n", "whsec_*",
		"whsec_ü", exampleSecret + " " + exampleSecret} {
		for _, secrets := range [][]string{{none}, {exampleSecret, none}, {none, exampleSecret}} {
			for _, h := range []http.Header{exampleHeader(), {}} {
				if _, err := verifyWebhook([]byte(exampleBody), h, now, secrets); err == nil ||
					errors.Is(err, ErrSignature) {
					t.Errorf("%q: %v", secrets, err)
				}
			}
		}
	}
	if _, err := VerifyWebhook([]byte(exampleBody), exampleHeader()); err == nil ||
		errors.Is(err, ErrSignature) {
		t.Errorf("without a secret: %v", err)
	}
}
