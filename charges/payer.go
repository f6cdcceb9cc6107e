package charges

import (
	"net/url"
	"regexp"
	"strings"

	"paidonce/problem"
	"paidonce/provider"
)

// What a charge has to do with a payer who authenticates: only charges through payment intents.

// returnURLMax is what browsers, proxies and Stripe's own redirects carry without trouble, in
// bytes.
const returnURLMax = 2048

var (
	// an address of the web or of an app, such as shop://paid: a scheme and what follows it, in the
	// characters that an address may have
	returnURLForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[!#-;=?-\[\]_a-z~%]+$`)
	// schemes that run or show what the address itself contains, or a file of the payer's machine
	notForPayers = map[string]bool{
		"javascript": true, "vbscript": true, "data": true, "blob": true, "file": true,
		"filesystem": true, "about": true, "view-source": true,
	}
)

func (p Params) checkReturnURL() *problem.Error {
	s := p.ReturnURL
	if s == "" {
		return nil
	}
	if len(s) > returnURLMax {
		return problem.ParameterTooLong.Of(
			"return_url", "return_url may have at most %d characters.", returnURLMax,
		)
	}
	u, err := url.Parse(s)
	if err != nil || !returnURLForm.MatchString(s) || notForPayers[strings.ToLower(u.Scheme)] ||
		u.User != nil || (isWeb(u) && u.Hostname() == "") {
		return problem.ParameterInvalid.Of(
			"return_url",
			"return_url must be a whole address, https://…, or one of an app, such as shop://paid.",
		)
	}
	return nil
}

func isWeb(u *url.URL) bool {
	return strings.EqualFold(u.Scheme, "http") || strings.EqualFold(u.Scheme, "https")
}

// checkNoPayer refuses what only a charge through a payment intent can do.
func (p Params) checkNoPayer() *problem.Error {
	var name string
	switch {
	case p.ReturnURL != "":
		name = "return_url"
	case p.OffSession != nil:
		name = "off_session"
	default:
		return nil
	}
	return problem.ParameterInvalid.Of(
		name, "%s needs a server with STRIPE_FLOW=payment_intents: with STRIPE_FLOW=charges no "+
			"payer is asked to authenticate.", name,
	)
}

// NextAction is what the payer has to do before a pending charge can go on, with Stripe's names.
// Where there is no address to send the payer to, the client secret lets the provider's library in
// the browser go on.
type NextAction struct {
	Type          string          `json:"type"`
	RedirectToURL *RedirectToURL  `json:"redirect_to_url,omitempty"`
	PaymentIntent string          `json:"payment_intent,omitempty"`
	ClientSecret  provider.Secret `json:"client_secret,omitempty"`
}

// RedirectToURL is where to send the payer.
type RedirectToURL struct {
	URL string `json:"url"`
}

func nextActionOf(in *provider.Intent) *NextAction {
	n := in.NextAction
	if n == nil {
		return nil
	}
	a := &NextAction{Type: n.Type, PaymentIntent: in.ID}
	if n.RedirectURL != "" {
		a.RedirectToURL = &RedirectToURL{URL: n.RedirectURL}
	} else {
		a.ClientSecret = n.ClientSecret
	}
	return a
}

// WithoutSecrets is a charge as events show it, which go to many, and as callers see it who may
// only read: what lets somebody go on with the payment, an address too, is for callers who may
// charge.
func (c Charge) WithoutSecrets() Charge {
	if c.NextAction != nil {
		c.NextAction = &NextAction{Type: c.NextAction.Type, PaymentIntent: c.NextAction.PaymentIntent}
	}
	return c
}
