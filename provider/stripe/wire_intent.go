package stripe

import (
	"net/url"
	"strings"
	"time"
	"unicode"

	json "github.com/go-json-experiment/json"
	sdk "github.com/stripe/stripe-go/v76"

	"paidonce/provider"
)

type wireIntent struct {
	sdk.APIResource `json:"-"`
	intentFields
}

type intentFields struct {
	ID            string       `json:"id"`
	Object        string       `json:"object"`
	Status        string       `json:"status"`
	Amount        *int64       `json:"amount"`
	Currency      string       `json:"currency"`
	Livemode      *bool        `json:"livemode"`
	Created       int64        `json:"created"`
	CaptureMethod string       `json:"capture_method"`
	LatestCharge  wireLatest   `json:"latest_charge"`
	NextAction    *wireAction  `json:"next_action"`
	LastError     *wireFailure `json:"last_payment_error"`
	Metadata      wireTags     `json:"metadata"`
}

type wireAction struct {
	Type     string `json:"type"`
	Redirect struct {
		URL string `json:"url"`
	} `json:"redirect_to_url"`
}

type wireFailure struct {
	Type        string `json:"type"`
	Code        string `json:"code"`
	DeclineCode string `json:"decline_code"`
	Message     string `json:"message"`
	Param       string `json:"param"`
	Charge      string `json:"charge"`
}

// wireLatest is a charge, or only its id where it wasn't expanded.
type wireLatest struct {
	ID     string
	charge *chargeFields
}

func (l *wireLatest) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '{' {
		return json.Unmarshal(b, &l.ID, decoding)
	}
	l.charge = &chargeFields{}
	err := json.Unmarshal(b, l.charge, decoding)
	l.ID = l.charge.ID
	return err
}

func (i *wireIntent) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &i.intentFields, decoding)
}

func (i *intentFields) name() string { return i.ID }

// whole tells whether this is an intent at all, with a whole charge if it has one.
func (i *intentFields) whole() bool {
	if i.LatestCharge.charge != nil && !i.LatestCharge.charge.whole() {
		return false
	}
	switch provider.IntentStatus(i.Status) {
	case provider.IntentRequiresPaymentMethod, provider.IntentRequiresConfirmation, provider.IntentRequiresAction, provider.IntentProcessing,
		provider.IntentRequiresCapture, provider.IntentSucceeded, provider.IntentCanceled:
		return i.ID != "" && i.Object == "payment_intent" && i.Amount != nil && i.Currency != "" && i.Livemode != nil
	}
	return false
}

// idle tells that no money has moved, and that none will without a further call.
func (i *intentFields) idle() bool {
	switch provider.IntentStatus(i.Status) {
	case provider.IntentRequiresPaymentMethod, provider.IntentRequiresConfirmation, provider.IntentCanceled:
		return true
	}
	return false
}

func (p *Provider) intent(i *intentFields) *provider.Intent {
	out := &provider.Intent{
		ID: p.clean(i.ID), Status: provider.IntentStatus(i.Status), Amount: *i.Amount, Currency: i.Currency, Livemode: *i.Livemode,
		Created: time.Unix(i.Created, 0).UTC(), Tags: i.Metadata.tags(), ChargeID: p.clean(i.LatestCharge.ID),
	}
	if i.LatestCharge.charge != nil {
		out.Charge = p.charge(i.LatestCharge.charge)
	}
	if a := i.NextAction; a != nil && out.Status == provider.IntentRequiresAction {
		out.NextAction = &provider.NextAction{Type: p.clean(a.Type), RedirectURL: webAddress(a.Redirect.URL)}
	}
	if i.LastError != nil && i.idle() {
		out.Failure = p.failedAttempt(i.LastError)
	}
	return out
}

// failedAttempt is a confirmation that came to nothing. An authentication that failed counts as a decline: Stripe files it under
// invalid requests, but it was the payer or the bank that didn't agree.
func (p *Provider) failedAttempt(f *wireFailure) *provider.Refusal {
	return &provider.Refusal{
		Decline:  f.Type == string(sdk.ErrorTypeCard) || f.Code == string(sdk.ErrorCodePaymentIntentAuthenticationFailure),
		ChargeID: p.clean(f.Charge), Code: p.clean(f.Code), DeclineCode: p.clean(f.DeclineCode), Message: p.clean(f.Message), Param: p.clean(f.Param),
	}
}

const maxAddress = 4096 // bytes

// webAddress lets a web address through as it is, or not at all: it may contain a publishable key and be longer than a text, so
// cleaning it as one would break it.
func webAddress(s string) string {
	u, err := url.Parse(s)
	if err != nil || len(s) > maxAddress || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' }) {
		return ""
	}
	return s
}

// wireCustomer is what a customer pays with.
type wireCustomer struct {
	sdk.APIResource `json:"-"`
	customerFields
}

type customerFields struct {
	ID            string `json:"id"`
	Object        string `json:"object"`
	DefaultSource string `json:"default_source"`
	Invoices      struct {
		DefaultMethod string `json:"default_payment_method"`
	} `json:"invoice_settings"`
}

func (c *wireCustomer) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &c.customerFields, decoding)
}
