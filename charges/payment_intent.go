package charges

import (
	"regexp"
	"slices"

	"paidonce/db"
	"paidonce/problem"
	"paidonce/provider"
)

// The kinds of operations of payment intents that clients make. An intent has one charge of its
// own from its creation on: pending, and in no list before the provider has a charge for it. What
// moves its money, its news, its capture and what gives it back are those of that charge. An
// attempt that was declined is a failed charge beside it.
const (
	KindPaymentIntentCreate  = "payment_intent.create"
	KindPaymentIntentConfirm = "payment_intent.confirm"
	KindPaymentIntentUpdate  = "payment_intent.update"
)

// The parameters.

// PaymentIntentParams are a client's parameters. Of [Params], Source is the means of payment, which
// may be named later, and ReturnURL and OffSession go with Confirm.
type PaymentIntentParams struct {
	Params
	PaymentTerms
	Confirm               bool
	ErrorOnRequiresAction bool // only with Confirm

	WithCharge bool // the answer shows the whole latest charge
}

// PaymentTerms say which means of payment an intent takes, and what they may be used for.
type PaymentTerms struct {
	AutomaticMethods   *AutomaticMethods // nil: not said
	PaymentMethodTypes []string
	SetupFutureUsage   string // empty: not said
}

// AutomaticMethods lets the provider choose the means of payment.
type AutomaticMethods = provider.AutomaticMethods

// ConfirmParams are a client's parameters. Empty means absent.
type ConfirmParams struct {
	Intent                string
	PaymentMethod         string // empty: the one that the intent has
	ReturnURL             string
	OffSession            *bool
	ErrorOnRequiresAction bool
	SetupFutureUsage      string
	ReceiptEmail          string

	WithCharge bool // the answer shows the whole latest charge
}

// PaymentIntentUpdateParams are a client's parameters. nil and 0: it stays as it is.
type PaymentIntentUpdateParams struct {
	Intent string
	// Description, ReceiptEmail and Metadata, with what takes them away; Charge is not used.
	UpdateParams
	Amount                    int64
	Currency                  string // with Amount
	Customer                  string
	PaymentMethod             string
	StatementDescriptorSuffix string
	PaymentMethodTypes        []string
	SetupFutureUsage          string

	WithCharge bool // the answer shows the whole latest charge
}

// PaymentIntentCaptureParams are a client's parameters.
type PaymentIntentCaptureParams struct {
	Intent string
	Amount int64 // minor units; 0: all that is authorised

	WithCharge bool // the answer shows the whole latest charge
}

// PaymentIntentCancelParams are a client's parameters.
type PaymentIntentCancelParams struct {
	Intent string
	Reason string // one of CancellationReasons, or empty

	WithCharge bool // the answer shows the whole latest charge
}

// CancellationReasons are Stripe's.
var CancellationReasons = []string{
	"abandoned", "duplicate", "fraudulent", "requested_by_customer",
}

// paymentMethodTypesMax bounds the list: Stripe has some fifty types, of which an account uses a
// handful.
const paymentMethodTypesMax = 30

var paymentMethodType = regexp.MustCompile(`^[a-z][a-z0-9_]{1,39}$`)

// Validate checks everything that can be known without asking the provider. The first fault is
// returned as a [*problem.Error].
func (p PaymentIntentParams) Validate() error {
	for _, check := range []func() *problem.Error{
		p.checkAmount, p.checkMethod, p.checkTerms, p.checkTexts, p.checkDescriptors, p.checkReturnURL,
		p.checkMetadata, p.checkGivenReference, p.checkUnconfirmed,
	} {
		if e := check(); e != nil {
			return e
		}
	}
	return nil
}

func (p PaymentIntentParams) checkMethod() *problem.Error {
	if e := checkProviderID("customer", p.Customer); e != nil {
		return e
	}
	return checkProviderID("payment_method", p.Source)
}

// checkUnconfirmed refuses what only a confirmation can do.
func (p PaymentIntentParams) checkUnconfirmed() *problem.Error {
	if p.Confirm {
		return nil
	}
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"return_url", p.ReturnURL != ""}, {"off_session", p.OffSession != nil},
		{"error_on_requires_action", p.ErrorOnRequiresAction},
	} {
		if f.given {
			return problem.ParameterInvalid.Of(f.name, "%s goes with confirm=true.", f.name)
		}
	}
	return nil
}

func (t PaymentTerms) checkTerms() *problem.Error {
	if len(t.PaymentMethodTypes) > 0 && t.AutomaticMethods != nil && t.AutomaticMethods.Enabled {
		return problem.ParameterInvalid.Of("payment_method_types",
			"payment_method_types and automatic_payment_methods exclude each other.")
	}
	if a := t.AutomaticMethods; a != nil && !slices.Contains(
		[]string{"", "always", "never"}, a.AllowRedirects,
	) {
		return problem.ParameterInvalid.Of("automatic_payment_methods[allow_redirects]",
			"automatic_payment_methods[allow_redirects] must be always or never.")
	}
	if len(t.PaymentMethodTypes) > paymentMethodTypesMax || slices.ContainsFunc(
		t.PaymentMethodTypes, func(s string) bool { return !paymentMethodType.MatchString(s) },
	) {
		return problem.ParameterInvalid.Of("payment_method_types",
			"payment_method_types must be at most %d types of the payment provider, such as card.",
			paymentMethodTypesMax)
	}
	return checkFutureUsage(t.SetupFutureUsage)
}

func checkFutureUsage(s string) *problem.Error {
	if !slices.Contains([]string{"", "on_session", "off_session"}, s) {
		return problem.ParameterInvalid.Of(
			"setup_future_usage", "setup_future_usage must be on_session or off_session.",
		)
	}
	return nil
}

// Validate does so for a confirmation.
func (p ConfirmParams) Validate() error {
	given := Params{ReturnURL: p.ReturnURL, ReceiptEmail: p.ReceiptEmail, OffSession: p.OffSession}
	for _, e := range []*problem.Error{
		checkProviderID("payment_method", p.PaymentMethod), given.checkTexts(),
		given.checkReturnURL(), checkFutureUsage(p.SetupFutureUsage),
	} {
		if e != nil {
			return e
		}
	}
	return nil
}

// Validate does so for an update.
func (p PaymentIntentUpdateParams) Validate() error {
	whole := Params{
		Amount: p.Amount, Currency: p.Currency, Description: db.OrEmpty(p.Description),
		ReceiptEmail: db.OrEmpty(p.ReceiptEmail), Metadata: p.Metadata,
		StatementDescriptorSuffix: p.StatementDescriptorSuffix,
	}
	terms := PaymentTerms{
		PaymentMethodTypes: p.PaymentMethodTypes, SetupFutureUsage: p.SetupFutureUsage,
	}
	faults := []*problem.Error{
		checkProviderID("customer", p.Customer), checkProviderID("payment_method", p.PaymentMethod),
		whole.checkTexts(), whole.checkDescriptors(), whole.checkMetadata(), terms.checkTerms(),
	}
	if p.Amount != 0 || p.Currency != "" {
		faults = append(faults, p.checkPrice())
	}
	for _, e := range faults {
		if e != nil {
			return e
		}
	}
	return nil
}

// checkPrice checks a new amount or currency, of which one may stay as it is.
func (p PaymentIntentUpdateParams) checkPrice() *problem.Error {
	price := Params{Amount: p.Amount, Currency: p.Currency}
	if price.Amount == 0 {
		price.Amount = AmountMin
	}
	if price.Currency == "" {
		price.Currency = "idr" // of those with the largest amounts; the intent's own decides
	}
	return price.checkAmount()
}

// Validate does so for a capture.
func (p PaymentIntentCaptureParams) Validate() error {
	switch {
	case p.Amount < 0:
		return problem.ParameterInteger.Of("amount_to_capture",
			"amount_to_capture must be at least %d, in minor units; leave it out to capture all.",
			AmountMin)
	case p.Amount > AmountMost:
		return problem.AmountTooLarge.Of("amount_to_capture",
			"amount_to_capture must be at most %d, in minor units.", AmountMost)
	}
	return nil
}

// Validate does so for a cancellation.
func (p PaymentIntentCancelParams) Validate() error {
	if p.Reason != "" && !slices.Contains(CancellationReasons, p.Reason) {
		return problem.ParameterInvalid.Of("cancellation_reason",
			"cancellation_reason must be abandoned, duplicate, fraudulent or requested_by_customer.")
	}
	return nil
}
