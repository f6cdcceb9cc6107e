package stripesim

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The payer's browser reads and confirms an intent with a publishable key, which everybody may
// know, and the intent's client secret.

// browserParams are those of a confirmation that Stripe.js may send.
const browserParams = "client_secret expected_payment_method_type key payment_method receipt_email return_url setup_future_usage use_stripe_sdk"

func publishable(key string) bool { return strings.HasPrefix(key, "pk_") }

// forBrowsers reports whether a call is one that a publishable key may make.
func (c *call) forBrowsers() bool {
	p := c.parts
	switch {
	case len(p) < 2 || p[0] != "payment_intents":
		return false
	case c.method == http.MethodGet:
		return len(p) == 2
	}
	return c.method == http.MethodPost && len(p) == 3 && p[2] == "confirm"
}

// open checks the client secret of a call: a publishable key needs it, others may send it.
func (in *intent) open(c *call) *apiError {
	secret, given := c.params.lookup("client_secret")
	switch {
	case !given && c.public:
		return missing("client_secret")
	case given && secret != in.secret():
		return invalid("", "client_secret", "The client_secret provided does not match the client_secret associated with the PaymentIntent.")
	}
	return nil
}

// ConfirmInBrowser confirms an intent as the payer's browser does, with a payment method or a
// token. Its error is what Stripe.js would be told, such as a decline.
func (s *Server) ConfirmInBrowser(id, paymentMethod, returnURL string) error {
	in := s.intentOf(id)
	if in == nil {
		return errNotThere
	}
	form := url.Values{"client_secret": {in.secret()}}
	if strings.HasPrefix(paymentMethod, "tok_") {
		form.Set("payment_method_data[type]", "card")
		form.Set("payment_method_data[card][token]", paymentMethod)
	} else if paymentMethod != "" {
		form.Set("payment_method", paymentMethod)
	}
	if returnURL != "" {
		form.Set("return_url", returnURL)
	}
	p, bad := parseParams(form.Encode())
	if bad != nil {
		return errors.New(bad.Message)
	}
	a := s.run(&call{
		method: http.MethodPost, path: "/v1/payment_intents/" + id + "/confirm", parts: []string{"payment_intents", id, "confirm"},
		params: p, live: in.Live, public: true, request: newID("req_"), started: time.Now(),
	})
	s.hooks.tell(a.events)
	if a.status == http.StatusOK {
		return nil
	}
	var told struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(a.body, &told); err != nil {
		return errClosed
	}
	return errors.New(told.Error.Code + ": " + told.Error.Message)
}
