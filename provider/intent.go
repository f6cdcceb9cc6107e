package provider

import "time"

// An intent is a charge in two steps: creating it moves nothing and gives it an id, confirming it
// charges. From the first step on what became of the operation is one read by that id, which is
// consistent and, unlike an idempotency key, never forgotten.
//
// A confirmation that is declined makes a failed charge and leaves an intent that can be confirmed
// again, with another source: by us, or by the payer in the browser with the intent's secret. At
// most one of its charges succeeds.

// Intent is a payment intent as the provider has it.
type Intent struct {
	ID       string
	Status   IntentStatus
	Amount   int64  // minor units
	Currency string // lower case
	Livemode bool
	Created  time.Time
	Tags     Tags   // empty where the metadata carries none
	Terms    *Terms // only of ListIntents
	ChargeID string // of the latest charge; empty as long as there was no attempt
	// the latest charge; nil also where the provider gave only its id, as FindIntent's list does
	Charge        *Charge
	PaymentMethod string   // what pays, by the provider's id; empty: nothing yet, or no more
	MethodTypes   []string // the types of means of payment that it takes
	// ClientSecret lets the payer's browser confirm the intent and go on with it.
	ClientSecret Secret
	// NextAction is what the payer has to do; only with IntentRequiresAction.
	NextAction *NextAction
	// CancellationReason is the provider's word for why it was cancelled.
	CancellationReason string
	// Lapsed says that a cancelled intent was cancelled by the provider itself: nobody captured it
	// in time.
	Lapsed bool
	// Failure is why the last attempt came to nothing, when it did. No money moved in it. An intent
	// that was updated since shows none: only its charge does.
	Failure *Refusal
}

// IntentStatus is where an intent stands.
type IntentStatus string

// The states of an intent. Only in the last four has money moved, or can it move without another
// call from us.
const (
	// new without a source, or declined: see Failure
	IntentRequiresPaymentMethod IntentStatus = "requires_payment_method"
	IntentRequiresConfirmation  IntentStatus = "requires_confirmation"
	IntentCanceled              IntentStatus = "canceled"
	IntentRequiresAction        IntentStatus = "requires_action" // the payer has to authenticate
	IntentProcessing            IntentStatus = "processing"
	IntentRequiresCapture       IntentStatus = "requires_capture" // authorised
	IntentSucceeded             IntentStatus = "succeeded"
)

// Paid reports whether the intent's charge has taken the money, or holds it.
func (i *Intent) Paid() bool {
	return i.Status == IntentSucceeded || i.Status == IntentRequiresCapture
}

// NextAction is what the payer has to do before the charge can go on.
type NextAction struct {
	Type        string // the provider's: redirect_to_url, use_stripe_sdk, …
	RedirectURL string // where to send the payer; only for redirect_to_url
	// ClientSecret lets the provider's library in the payer's browser go on with the intent.
	ClientSecret Secret
}

// Secret is a text that must not be printed: whoever has it can go on with a payer's intent, or
// see a payer's receipt. As JSON it is what it is.
type Secret string

func (Secret) String() string { return "[secret]" }

// GoString keeps it out of %#v, too.
func (Secret) GoString() string { return "[secret]" }

// AutomaticMethods lets the provider choose among the ways to pay that are switched on there.
type AutomaticMethods struct {
	Enabled        bool   `json:"enabled"`
	AllowRedirects string `json:"allow_redirects,omitempty"` // always or never
}

// UpdateIntentRequest changes an intent: what is zero stays as it is.
type UpdateIntentRequest struct {
	IdempotencyKey string `json:"idempotency_key"`
	Tags           Tags   `json:"tags"` // the intent's own, which are not changed
	IntentID       string `json:"intent_id"`
	Amount         int64  `json:"amount,omitempty"`   // minor units
	Currency       string `json:"currency,omitempty"` // lower case
	Customer       string `json:"customer,omitempty"`
	Source         string `json:"source,omitempty"`

	SetupFutureUsage          string   `json:"setup_future_usage,omitempty"`
	StatementDescriptorSuffix string   `json:"statement_descriptor_suffix,omitempty"`
	PaymentMethodTypes        []string `json:"payment_method_types,omitempty"`
	// an empty text takes away what is there
	Description  *string `json:"description,omitempty"`
	ReceiptEmail *string `json:"receipt_email,omitempty"`
	// The client's pairs that change; an empty value removes one. Ours stay.
	Metadata map[string]string `json:"metadata,omitempty"`
}

// ConfirmRequest confirms an intent, which charges what it was created with.
type ConfirmRequest struct {
	IdempotencyKey string `json:"idempotency_key"`
	Tags           Tags   `json:"tags"`
	IntentID       string `json:"intent_id"`
	// where the payer comes back to from an authentication
	ReturnURL string `json:"return_url,omitempty"`
	// nobody is there to authenticate: what needs that is declined
	OffSession bool `json:"off_session,omitempty"`
	// what needs an authentication is declined, although somebody is there
	ErrorOnRequiresAction bool `json:"error_on_requires_action,omitempty"`
	// Source pays instead of what the intent has: a payment method, card or token. The next two are
	// as in ChargeRequest; empty: as the intent has them.
	Source           string `json:"source,omitempty"`
	SetupFutureUsage string `json:"setup_future_usage,omitempty"`
	ReceiptEmail     string `json:"receipt_email,omitempty"`
}

// CancelRequest cancels an intent, so that nothing more can come of it.
type CancelRequest struct {
	IdempotencyKey string `json:"idempotency_key"`
	Tags           Tags   `json:"tags"`
	IntentID       string `json:"intent_id"`
	// Stripe's word for why, such as abandoned or requested_by_customer; may be empty
	Reason string `json:"reason,omitempty"`
}

// IntentOutcome is the definitive answer to a call that makes or changes an intent: exactly one of
// Intent and Refusal is set. A confirmation that waits for the payer is an Intent too: it is
// GetIntent that says how it ends.
type IntentOutcome struct {
	Intent    *Intent
	Refusal   *Refusal
	RequestID string // the provider's, for the log
}
