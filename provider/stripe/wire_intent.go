package stripe

import (
	"net/url"
	"strings"
	"unicode"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/stripe/stripe-go/v76"

	"paidonce/provider"
)

type wireIntent struct {
	sdk.APIResource `json:"-"`
	intentFields
}

type intentFields struct {
	ID            text                `json:"id"`
	Object        word                `json:"object"`
	Status        word                `json:"status"`
	Amount        amount              `json:"amount"`
	Currency      word                `json:"currency"`
	Livemode      flag                `json:"livemode"`
	Created       moment              `json:"created"`
	CaptureMethod word                `json:"capture_method"`
	LatestCharge  wireLatest          `json:"latest_charge"`
	NextAction    object[wireAction]  `json:"next_action"`
	ClientSecret  text                `json:"client_secret"`
	LastError     object[wireFailure] `json:"last_payment_error"`
	CancelReason  word                `json:"cancellation_reason"`
	PaymentMethod ref                 `json:"payment_method"`
	MethodTypes   texts               `json:"payment_method_types"`
	Metadata      wireTags            `json:"metadata"`
}

type wireAction struct {
	Type     text `json:"type"`
	Redirect object[struct {
		URL text `json:"url"`
	}] `json:"redirect_to_url"`
}

type wireFailure struct {
	Type        text `json:"type"`
	Code        text `json:"code"`
	DeclineCode text `json:"decline_code"`
	Message     text `json:"message"`
	Param       text `json:"param"`
	Charge      ref  `json:"charge"`
}

// wireLatest is a charge, or only its id where it wasn't expanded.
type wireLatest struct {
	ID     text
	charge *chargeFields
	odd    bool
}

func (l *wireLatest) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*l = wireLatest{}
	kind := d.PeekKind()
	if kind != '{' {
		l.odd = kind != '"' && kind != 'n'
		return l.ID.UnmarshalJSONFrom(d)
	}
	l.charge = &chargeFields{}
	err := json.UnmarshalDecode(d, l.charge)
	l.ID = l.charge.ID
	return err
}

func (i *wireIntent) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &i.intentFields, decoding)
}

func (i *intentFields) name() string { return string(i.ID) }

// known reports whether this is an intent at all, in a state that means something, as its charge is
// if it is there.
func (i *intentFields) known() bool {
	if i.LatestCharge.odd || i.LatestCharge.charge != nil && !i.LatestCharge.charge.known() {
		return false
	}
	switch provider.IntentStatus(i.Status) {
	case provider.IntentRequiresPaymentMethod, provider.IntentRequiresConfirmation, provider.IntentRequiresAction, provider.IntentProcessing,
		provider.IntentRequiresCapture, provider.IntentSucceeded, provider.IntentCanceled:
		return i.ID != "" && isOrUnsaid(i.Object, "payment_intent") && !i.Amount.odd && !i.Livemode.odd
	}
	return false
}

// whole lets intent and charge lend each other what they lack, and reports whether nothing is
// missing then.
func (i *intentFields) whole() bool {
	i.share()
	return i.known() && i.Amount.given && i.Currency != "" && (i.LatestCharge.charge == nil || i.LatestCharge.charge.whole())
}

// share lets intent and charge lend each other what they lack: a charge is over its intent's
// amount, and captured when the intent succeeded. One that failed may be over an earlier amount.
func (i *intentFields) share() {
	c := i.LatestCharge.charge
	if c == nil {
		return
	}
	i.Amount.lend(&c.Amount)
	if c.Status != "failed" {
		c.Amount.lend(&i.Amount)
	}
	i.Livemode.lend(&c.Livemode)
	c.Livemode.lend(&i.Livemode)
	if c.Currency == "" {
		c.Currency = i.Currency
	} else if i.Currency == "" {
		i.Currency = c.Currency
	}
	if c.Intent == "" {
		c.Intent = ref(i.ID)
	}
	if c.succeeded() && !c.AmountCaptured.given {
		switch provider.IntentStatus(i.Status) {
		case provider.IntentSucceeded:
			c.Captured.assume(true)
		case provider.IntentRequiresCapture:
			c.Captured.assume(false)
		}
	}
}

// idle reports whether no money has moved, and none will without a further call.
func (i *intentFields) idle() bool {
	switch provider.IntentStatus(i.Status) {
	case provider.IntentRequiresPaymentMethod, provider.IntentRequiresConfirmation, provider.IntentCanceled:
		return true
	}
	return false
}

func (p *Provider) intent(i *intentFields) *provider.Intent {
	out := &provider.Intent{
		ID: p.clean(string(i.ID)), Status: provider.IntentStatus(i.Status), Amount: i.Amount.n, Currency: p.currency(i.Currency),
		Livemode: p.mode(i.Livemode), Created: i.Created.Time, Tags: i.Metadata.tags(), ChargeID: p.clean(string(i.LatestCharge.ID)),
		PaymentMethod: p.clean(string(i.PaymentMethod)), ClientSecret: clientSecret(string(i.ID), string(i.ClientSecret)),
		CancellationReason: p.clean(string(i.CancelReason)),
	}
	for _, t := range i.MethodTypes {
		out.MethodTypes = append(out.MethodTypes, p.clean(string(t)))
	}
	if i.LatestCharge.charge != nil {
		out.Charge = p.charge(i.LatestCharge.charge)
	}
	if a := i.NextAction.at; a != nil && out.Status == provider.IntentRequiresAction {
		out.NextAction = &provider.NextAction{Type: p.clean(string(a.Type)), ClientSecret: out.ClientSecret}
		if to := a.Redirect.at; to != nil {
			out.NextAction.RedirectURL = webAddress(string(to.URL))
		}
	}
	out.Lapsed = out.Status == provider.IntentCanceled && out.CancellationReason == "automatic"
	if failed := i.LastError.at; failed != nil && i.idle() {
		out.Failure = p.failedAttempt(failed)
	}
	return out
}

// failedAttempt is a confirmation that came to nothing. An authentication that failed counts as a
// decline: Stripe files it under invalid requests, but it was the payer or the bank that didn't
// agree.
func (p *Provider) failedAttempt(f *wireFailure) *provider.Refusal {
	return &provider.Refusal{
		Decline:  f.Type == text(sdk.ErrorTypeCard) || f.Code == text(sdk.ErrorCodePaymentIntentAuthenticationFailure),
		ChargeID: p.clean(string(f.Charge)), Code: p.clean(string(f.Code)), DeclineCode: p.clean(string(f.DeclineCode)),
		Message: p.clean(string(f.Message)), Param: p.clean(string(f.Param)),
	}
}

// maxSecret is several times as long as Stripe's client secrets are; secretBytes is what they
// consist of.
const (
	maxSecret   = 255
	secretBytes = "_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// clientSecret lets the secret of an intent through as it is, or not at all: cleaned as a text, it
// would not be one any more.
func clientSecret(id, s string) provider.Secret {
	if len(s) > maxSecret || !strings.HasPrefix(s, id+"_secret_") ||
		strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(secretBytes, r) }) {
		return ""
	}
	return provider.Secret(s)
}

const maxAddress = 4096 // bytes

// webAddress lets a web address through as it is, or not at all: it may contain a publishable key
// and be longer than a text, so cleaning it as one would break it.
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
	ID            text `json:"id"`
	Object        word `json:"object"`
	DefaultSource ref  `json:"default_source"`
	Invoices      object[struct {
		DefaultMethod ref `json:"default_payment_method"`
	}] `json:"invoice_settings"`
}

func (c *wireCustomer) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &c.customerFields, decoding)
}
