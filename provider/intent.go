package provider

import "time"

// An intent is a charge in two steps: creating it moves nothing and gives it an id, confirming it charges. From the first step on
// what became of the operation is one read by that id, which is consistent and, unlike an idempotency key, never forgotten.

// Intent is a payment intent as the provider has it.
type Intent struct {
	ID       string
	Status   IntentStatus
	Amount   int64  // minor units
	Currency string // lower case
	Livemode bool
	Created  time.Time
	Tags     Tags    // empty where the metadata carries none
	Terms    *Terms  // only of ListIntents
	ChargeID string  // of the latest charge; empty as long as there was no attempt
	Charge   *Charge // the latest charge; nil also where the provider gave only its id, as FindIntent's list does
	// NextAction is what the payer has to do; only with IntentRequiresAction.
	NextAction *NextAction
	// Failure is why the last attempt came to nothing, when it did. No money moved in it.
	Failure *Refusal
}

// IntentStatus is where an intent stands.
type IntentStatus string

// The states of an intent. Only of the last four has money moved, or can it move without another call of ours.
const (
	IntentRequiresPaymentMethod IntentStatus = "requires_payment_method" // new without a source, or declined: see Failure
	IntentRequiresConfirmation  IntentStatus = "requires_confirmation"
	IntentCanceled              IntentStatus = "canceled"
	IntentRequiresAction        IntentStatus = "requires_action" // the payer has to authenticate
	IntentProcessing            IntentStatus = "processing"
	IntentRequiresCapture       IntentStatus = "requires_capture" // authorised
	IntentSucceeded             IntentStatus = "succeeded"
)

// NextAction is what the payer has to do before the charge can go on.
type NextAction struct {
	Type        string // the provider's: redirect_to_url, use_stripe_sdk, …
	RedirectURL string // where to send the payer; only for redirect_to_url
}

// ConfirmRequest confirms an intent, which charges what it was created with.
type ConfirmRequest struct {
	IdempotencyKey string `json:"idempotency_key"`
	Tags           Tags   `json:"tags"`
	IntentID       string `json:"intent_id"`
	ReturnURL      string `json:"return_url,omitempty"` // where the payer comes back to from an authentication
}

// IntentOutcome is the definitive answer to CreateIntent or ConfirmIntent: exactly one of Intent and Refusal is set. A confirmation
// that waits for the payer is an Intent too: it is GetIntent that tells how it ends.
type IntentOutcome struct {
	Intent    *Intent
	Refusal   *Refusal
	RequestID string // the provider's, for the log
}

// Dispute is a payer's objection to a charge, as the provider has it.
type Dispute struct {
	ID       string
	ChargeID string
	Status   string // Stripe's word: needs_response, under_review, warning_…, won, lost, …
	Reason   string
	Amount   int64 // minor units
	Currency string
	Livemode bool
	Created  time.Time
}
