// Package provider is the port to the payment provider: what Paidonce asks of one, and what the
// answers mean.
//
// There is one rule, and every adapter keeps it:
//
//   - a returned outcome is definitive, declines and refusals included: asking again would not
//     change it;
//   - a returned error means that no outcome is known. It is an [*Error] whose Kind says what is
//     known instead.
//
// So the code that calls a provider needs no taxonomy of failures. Adapters never retry: one call
// is one attempt, within the caller's context and the adapter's own timeout, whichever ends first.
// All methods are safe for concurrent use.
package provider

import (
	"context"
	"time"
)

// Metadata names under which every object we create at a provider carries who made it. Look-ups
// match on them.
const (
	MetadataOperation    = "paidonce_operation"
	MetadataInstallation = "paidonce_installation"
	// MetadataClaim carries what is needed to rebuild the operation from the provider's records,
	// should our database forget it. A pair of its own: look-ups, those of earlier versions too,
	// compare the other two as a whole.
	MetadataClaim = "paidonce_claim"
	// MetadataReference and MetadataDuplicateOf carry what the merchant says is paid for.
	MetadataReference   = "paidonce_reference"
	MetadataDuplicateOf = "paidonce_duplicate_of"
)

// Provider is a payment provider. provider/stripe is the real one.
type Provider interface {
	// Charge creates a charge under r.IdempotencyKey. It does not change r.
	Charge(ctx context.Context, r *ChargeRequest) (ChargeOutcome, error)
	// FindCharge looks for the charge that an operation made, through a listing that is consistent.
	// It may end at the first hits. Zero hits in a complete answer is a miss; an incomplete one is
	// an error, of the kind [Incomplete] when there is just more to read.
	FindCharge(ctx context.Context, l Lookup) ([]Charge, error)
	// Now returns the provider's own time: that of its last answer, carried on by this machine's
	// monotonic clock. ok is false before the first answer that told one.
	Now() (at time.Time, ok bool)
	// EventObject reads the object out of a signed event of the provider, without asking: for
	// events of an account that our credentials are not for, and of objects that they may not
	// read.
	EventObject(payload []byte) EventObject
	// Account returns whose account our credentials are for. Credentials that may not ask are an
	// error of the kind [Credentials]; a provider that knows no accounts answers one without an id.
	Account(ctx context.Context) (Account, error)
	// ListCharges hands every charge that was created from from (included) to to (excluded) to
	// each, newest first, in one complete walk; it ends with each's error. An incomplete walk is an
	// error. Both times are the provider's; a zero to leaves that end open.
	ListCharges(ctx context.Context, from, to time.Time, each func(Charge) error) error
	// ListRefunds does for refunds what ListCharges does for charges.
	ListRefunds(ctx context.Context, from, to time.Time, each func(Refund) error) error
	// ListIntents does so for intents. Their charges are given by id alone.
	ListIntents(ctx context.Context, from, to time.Time, each func(Intent) error) error
	// ListDisputes does so for disputes.
	ListDisputes(ctx context.Context, from, to time.Time, each func(Dispute) error) error
	// GetCharge reads one charge by the provider's id. A charge that does not exist is nil, nil.
	GetCharge(ctx context.Context, id string) (*Charge, error)
	// Capture captures an authorised charge, wholly or in part; through its intent when r.IntentID
	// is set.
	Capture(ctx context.Context, r CaptureRequest) (ChargeOutcome, error)
	// Refund gives money of a captured charge back, or lets go of one that is only authorised and
	// was made without an intent.
	Refund(ctx context.Context, r RefundRequest) (RefundOutcome, error)
	// FindRefund looks for the refund that an operation made, among the refunds of one charge.
	FindRefund(ctx context.Context, l Lookup) ([]Refund, error)
	// RefundsOf returns all refunds of one charge, newest first, whoever made them. One that the
	// provider made of an authorisation that lapsed has the reason [ReasonLapsed].
	RefundsOf(ctx context.Context, chargeID string) ([]Refund, error)
	// GetRefund reads one refund by the provider's id. A refund that does not exist is nil, nil.
	GetRefund(ctx context.Context, id string) (*Refund, error)
	// GetDispute reads one dispute by the provider's id. A dispute that does not exist is nil, nil.
	GetDispute(ctx context.Context, id string) (*Dispute, error)
	// GetFraudWarning does so for early fraud warnings.
	GetFraudWarning(ctx context.Context, id string) (*FraudWarning, error)
	// CreateIntent creates an intent for a charge, unconfirmed, under r.IdempotencyKey. No money
	// moves. returnURL is for providers that bind it to the intent; Stripe takes it with the
	// confirmation. r is not changed.
	CreateIntent(ctx context.Context, r *ChargeRequest, returnURL string) (IntentOutcome, error)
	// UpdateIntent changes an intent that has not charged yet.
	UpdateIntent(ctx context.Context, r UpdateIntentRequest) (IntentOutcome, error)
	// ConfirmIntent charges what an intent was created for. One that was declined may be confirmed
	// again, with another source.
	ConfirmIntent(ctx context.Context, r ConfirmRequest) (IntentOutcome, error)
	// CancelIntent cancels an intent: what it waits for can no longer happen, and what it holds of
	// a card is let go. The provider decides between this and a payer who is just authenticating:
	// an intent that has succeeded is a refusal. So is one that is cancelled already, perhaps by
	// our own earlier call: whoever gets a refusal reads the intent.
	CancelIntent(ctx context.Context, r CancelRequest) (IntentOutcome, error)
	// GetIntent reads one intent with its latest charge, by the provider's id. The read is
	// consistent, and an id never expires. An intent that does not exist is nil, nil.
	GetIntent(ctx context.Context, id string) (*Intent, error)
	// FindIntent looks for the intent that an operation made, as FindCharge does for charges.
	FindIntent(ctx context.Context, l Lookup) ([]Intent, error)
}

// EventObject is what an event is about. One is set at most: none when it is about something else,
// or about something that cannot be judged.
type EventObject struct {
	At      time.Time // when the event occurred, in the provider's time; zero when it does not say
	Charge  *Charge
	Refund  *Refund
	Dispute *Dispute
	Warning *FraudWarning
}

// Account is an account at the provider, in one of its modes.
type Account struct {
	ID       string // empty where the provider has no such thing
	Livemode bool
}

// Tags name the operation and the installation that make a call. They travel as metadata.
type Tags struct {
	Operation    string `json:"operation"`
	Installation string `json:"installation"`
}

// ChargeRequest is everything that is sent for a charge. It is frozen (as JSON) when the
// idempotency key is claimed, so that each attempt sends the same parameters under the same derived
// key. Fields may be added, never renamed.
type ChargeRequest struct {
	// derived, ours to the provider; never the client's
	IdempotencyKey string `json:"idempotency_key"`
	Tags           Tags   `json:"tags"`
	// our number of the account that it is for; not sent
	Account int16 `json:"account,omitempty"`
	// Sender marks the credentials that it is sent with while nothing tells whose account they are
	// for; not sent.
	Sender string `json:"sender,omitempty"`
	// the mode we believe to be in; not sent, compared with what comes back
	Livemode bool   `json:"livemode"`
	Amount   int64  `json:"amount"`   // minor units
	Currency string `json:"currency"` // ISO 4217, lower case
	// At least one of Customer and Source is set: Customer alone pays with its default, and Source
	// with it is one of its cards. PayLater does without both.
	Customer    string `json:"customer,omitempty"`
	Source      string `json:"source,omitempty"`
	Capture     bool   `json:"capture"`
	Description string `json:"description,omitempty"`
	// where the provider mails a receipt
	ReceiptEmail string `json:"receipt_email,omitempty"`
	// where we mail one instead; not sent, and at most one of the two is set
	OwnReceiptEmail           string `json:"own_receipt_email,omitempty"`
	StatementDescriptorSuffix string `json:"statement_descriptor_suffix,omitempty"`
	// Not of charges through intents: there Stripe refuses it for cards.
	StatementDescriptor string    `json:"statement_descriptor,omitempty"`
	Shipping            *Shipping `json:"shipping,omitempty"`
	// the client's, sent beside our tags
	Metadata map[string]string `json:"metadata,omitempty"`
	// Where the payer comes back to from an authentication, whether nobody is there to
	// authenticate, and whether what needs that is declined although somebody is. Only of charges
	// through intents; sent with the confirmation.
	ReturnURL             string `json:"return_url,omitempty"`
	OffSession            bool   `json:"off_session,omitempty"`
	ErrorOnRequiresAction bool   `json:"error_on_requires_action,omitempty"`
	// PayLater is of an intent whose payer says later how to pay: nothing is sent when Source is
	// empty, not even the customer's default. How one may pay is PaymentMethodTypes or
	// AutomaticMethods; the provider's default without them. Without PayLater it is a card then.
	PayLater           bool              `json:"pay_later,omitempty"`
	PaymentMethodTypes []string          `json:"payment_method_types,omitempty"`
	AutomaticMethods   *AutomaticMethods `json:"automatic_payment_methods,omitempty"`
	// whether the source is kept for later payments: on_session or off_session; only of intents
	SetupFutureUsage string `json:"setup_future_usage,omitempty"`
	// Claim is what the operation can be rebuilt from, sent under MetadataClaim; at most 500
	// characters. Empty: nothing is sent, as by versions before there were claims.
	Claim string `json:"claim,omitempty"`
	// Reference is the merchant's name of what is paid for, sent under MetadataReference, and
	// DuplicateOf our own charge beside which this one is meant, sent under
	// MetadataDuplicateOf.
	Reference   string `json:"reference,omitempty"`
	DuplicateOf string `json:"duplicate_of,omitempty"`
	// WithRefunds: the answer shows the charge's refunds; not sent.
	WithRefunds bool `json:"with_refunds,omitempty"`
	// ProviderTime is what the provider's clock said at the claim, in seconds since 1970; 0: not
	// known. Not sent: look-ups begin there.
	ProviderTime int64 `json:"provider_time,omitempty"`
	// ClaimedAt is when the operation was claimed, in seconds since 1970, by our database's clock:
	// the last word of the claim.
	ClaimedAt int64 `json:"claimed_at,omitempty"`
}

// CaptureRequest captures Amount minor units of the provider's charge ChargeID.
type CaptureRequest struct {
	IdempotencyKey string `json:"idempotency_key"`
	Tags           Tags   `json:"tags"`
	ChargeID       string `json:"charge_id"`
	Amount         int64  `json:"amount"`
	// IntentID is the intent that made the charge, if one did: such a charge can only be captured
	// through it.
	IntentID string `json:"intent_id,omitempty"`
}

// RefundRequest refunds Amount minor units of the provider's charge ChargeID.
type RefundRequest struct {
	IdempotencyKey string            `json:"idempotency_key"`
	Tags           Tags              `json:"tags"`
	ChargeID       string            `json:"charge_id"`
	Amount         int64             `json:"amount"`
	Reason         string            `json:"reason,omitempty"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	Claim          string            `json:"claim,omitempty"` // as in ChargeRequest
}

// Lookup says which objects to look for.
type Lookup struct {
	Tags Tags
	// ChargeID limits a refund look-up to the refunds of this charge; unused for charges and
	// intents.
	ChargeID string
	// The attempts lie between From and To, in the provider's time; the adapter widens the window
	// by an allowance of its own. A zero From or To leaves that side open.
	From, To time.Time
	// Near is where the attempts are likeliest to lie; zero: at From. A long look-up begins there.
	Near time.Time
	// Within: a look-up that has read something after this long, and not all, ends as incomplete;
	// 0: it has the context's time.
	Within time.Duration
}

// Charge is a charge as the provider has it.
type Charge struct {
	ID             string
	IntentID       string // of the intent that made it; empty for a plain charge
	Status         Status
	Amount         int64 // minor units, as are the two below
	AmountCaptured int64
	AmountRefunded int64
	Currency       string // lower case
	Captured       bool
	Disputed       bool
	Livemode       bool
	Created        time.Time // zero where the provider doesn't say
	FailureCode    string
	FailureMessage string
	// Outcome is the provider's own assessment (network status, risk level, …); nil when it gave
	// none.
	Outcome *Assessment
	Details Details
	Tags    Tags   // empty where the metadata carries none
	Terms   *Terms // only of ListCharges
}

// Terms are what an object was made with, as the provider keeps it.
type Terms struct {
	Claim                     string // under MetadataClaim
	Reference, DuplicateOf    string // under MetadataReference, MetadataDuplicateOf
	Customer                  string
	Description               string
	ReceiptEmail              string
	StatementDescriptorSuffix string
	StatementDescriptor       string
	Shipping                  *Shipping         // nil: none
	Reason                    string            // of a refund
	Metadata                  map[string]string // the client's, without ours
}

// Assessment is a provider's explanation of a charge's result, with Stripe's names.
type Assessment struct {
	NetworkStatus string `json:"network_status"`
	Reason        string `json:"reason"`
	RiskLevel     string `json:"risk_level"`
	SellerMessage string `json:"seller_message"`
	Type          string `json:"type"`
}

// Refund is a refund as the provider has it.
type Refund struct {
	ID            string
	ChargeID      string // empty: of something else than a charge, as of a customer's balance
	Status        Status
	Amount        int64 // minor units
	Currency      string
	Reason        string
	FailureReason string
	Created       time.Time
	Tags          Tags
	Terms         *Terms // only of ListRefunds
}

// Status of an object at the provider.
type Status string

// The states that a provider's object can be in.
const (
	Pending        Status = "pending"
	Succeeded      Status = "succeeded"
	Failed         Status = "failed"
	Canceled       Status = "canceled"        // refunds only
	RequiresAction Status = "requires_action" // refunds only
)

// ChargeOutcome is the definitive answer to Charge or Capture: exactly one of Charge and Refusal is
// set. What the provider's answer leaves out, as some versions and imitations of an API do, is as
// it was asked for; what the request didn't say either, such as a capture's currency, is empty.
type ChargeOutcome struct {
	Charge    *Charge
	Refusal   *Refusal
	RequestID string // the provider's, for the log
}

// RefundOutcome is the definitive answer to Refund: exactly one of Refund and Refusal is set.
type RefundOutcome struct {
	Refund    *Refund
	Refusal   *Refusal
	RequestID string
}

// Refusal is a definitive no: a decline of the card, or a request that the provider will not carry
// out. No money moved.
type Refusal struct {
	// Decline tells a card's decline (true) from a refused request (false).
	Decline bool
	// ChargeID is the failed charge that the provider recorded, if any.
	ChargeID    string
	Code        string
	DeclineCode string
	Message     string // cleaned: valid UTF-8 without NUL, at most 500 bytes
	Param       string
	// AlreadyCaptured says that a capture was refused since its charge is captured: our own earlier
	// attempt may have done it.
	AlreadyCaptured bool
	// LastAttempt says that a confirmation was refused because of where its intent stands. All else
	// here is of the intent's last attempt that failed, perhaps an earlier one.
	LastAttempt bool
}
