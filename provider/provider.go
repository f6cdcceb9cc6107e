// Package provider is the port to the payment provider: what Paidonce asks of one, and what the answers mean.
//
// There is one rule, and every adapter keeps it:
//
//   - a returned outcome is definitive, declines and refusals included: asking again would not change it;
//   - a returned error means that no outcome is known. It is an [*Error] whose Kind says what is known instead.
//
// So the code that calls a provider needs no taxonomy of failures. Adapters never retry: one call is one attempt, within
// the caller's context and the adapter's own timeout, whichever ends first. All methods are safe for concurrent use.
package provider

import (
	"context"
	"fmt"
	"time"
)

// Metadata names under which every object we create at a provider carries who made it. Look-ups match on them.
const (
	MetadataOperation    = "paidonce_operation"
	MetadataInstallation = "paidonce_installation"
	// MetadataClaim carries what is needed to rebuild the operation from the provider's books, should
	// our database forget it. A pair of its own: look-ups, those of earlier versions too, compare the
	// other two as a whole.
	MetadataClaim = "paidonce_claim"
)

// Provider is a payment provider. provider/stripe is the real one.
type Provider interface {
	// Charge creates a charge under r.IdempotencyKey.
	Charge(ctx context.Context, r ChargeRequest) (ChargeOutcome, error)
	// FindCharge looks for the charge that an operation made, through a listing that is consistent. It may end at the first hits.
	// Zero hits in a complete answer is a miss; an incomplete answer is an error.
	FindCharge(ctx context.Context, l Lookup) ([]Charge, error)
	// Now returns the provider's own time: that of its last answer, carried on by this machine's
	// monotonic clock. ok is false before the first answer that told one.
	Now() (at time.Time, ok bool)
	// Told reads the charge or the refund out of a signed event of the provider, without asking: for news
	// of an account that our credentials are not for. Both are nil when it has neither, or one that cannot
	// be judged.
	Told(payload []byte) (*Charge, *Refund)
	// Account returns whose account our credentials are for. A credential that may not ask is a
	// [*Error] with Alert set; a provider that knows no accounts answers one without an id.
	Account(ctx context.Context) (Account, error)
	// ListCharges hands every charge that was created from from (included) to to (excluded) to each, newest first, in one complete
	// walk; it ends with each's error. An incomplete walk is an error. Both times are the provider's; a zero to leaves that end open.
	ListCharges(ctx context.Context, from, to time.Time, each func(Charge) error) error
	// ListRefunds does for refunds what ListCharges does for charges.
	ListRefunds(ctx context.Context, from, to time.Time, each func(Refund) error) error
	// ListIntents does so for intents. Their charges are given by id alone.
	ListIntents(ctx context.Context, from, to time.Time, each func(Intent) error) error
	// GetCharge reads one charge by the provider's id. A charge that does not exist is nil, nil.
	GetCharge(ctx context.Context, id string) (*Charge, error)
	// Capture captures an authorised charge, wholly or in part; through its intent when r.IntentID is set.
	Capture(ctx context.Context, r CaptureRequest) (ChargeOutcome, error)
	// Refund gives money of a captured charge back.
	Refund(ctx context.Context, r RefundRequest) (RefundOutcome, error)
	// FindRefund looks for the refund that an operation made, among the refunds of one charge.
	FindRefund(ctx context.Context, l Lookup) ([]Refund, error)
	// GetRefund reads one refund by the provider's id. A refund that does not exist is nil, nil.
	GetRefund(ctx context.Context, id string) (*Refund, error)
	// GetDispute reads one dispute by the provider's id. A dispute that does not exist is nil, nil.
	GetDispute(ctx context.Context, id string) (*Dispute, error)
	// CreateIntent creates an intent for a charge, unconfirmed, under r.IdempotencyKey. No money moves. returnURL is for providers
	// that bind it to the intent; Stripe takes it with the confirmation.
	CreateIntent(ctx context.Context, r ChargeRequest, returnURL string) (IntentOutcome, error)
	// ConfirmIntent charges what an intent was created for.
	ConfirmIntent(ctx context.Context, r ConfirmRequest) (IntentOutcome, error)
	// GetIntent reads one intent with its latest charge, by the provider's id. The read is consistent, and an id never expires.
	// An intent that does not exist is nil, nil.
	GetIntent(ctx context.Context, id string) (*Intent, error)
	// FindIntent looks for the intent that an operation made, as FindCharge does for charges.
	FindIntent(ctx context.Context, l Lookup) ([]Intent, error)
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

// ChargeRequest is everything that is sent for a charge. It is frozen (as JSON) when the idempotency key is claimed, so that
// each attempt sends the same parameters under the same derived key. Fields may be added, never renamed.
type ChargeRequest struct {
	IdempotencyKey string `json:"idempotency_key"` // derived, ours to the provider; never the client's
	Tags           Tags   `json:"tags"`
	Account        int16  `json:"account,omitempty"` // our number of the account that it is for; not sent
	// Sender marks the credentials that it is sent with while nothing tells whose account they are for; not sent.
	Sender   string `json:"sender,omitempty"`
	Livemode bool   `json:"livemode"` // the mode we believe to be in; not sent, compared with what comes back
	Amount   int64  `json:"amount"`   // minor units
	Currency string `json:"currency"` // ISO 4217, lower case
	// Exactly one of Customer and Source is set.
	Customer                  string            `json:"customer,omitempty"`
	Source                    string            `json:"source,omitempty"`
	Capture                   bool              `json:"capture"`
	Description               string            `json:"description,omitempty"`
	ReceiptEmail              string            `json:"receipt_email,omitempty"`     // where the provider mails a receipt
	OwnReceiptEmail           string            `json:"own_receipt_email,omitempty"` // where we mail one instead; not sent, and at most one of the two is set
	StatementDescriptorSuffix string            `json:"statement_descriptor_suffix,omitempty"`
	Metadata                  map[string]string `json:"metadata,omitempty"` // the client's, sent beside our tags
	// Claim is what the operation can be rebuilt from, sent under MetadataClaim; at most 500
	// characters. Empty: nothing is sent, as by versions before there were claims.
	Claim string `json:"claim,omitempty"`
	// ProviderTime is what the provider's clock said at the claim, in seconds since 1970; 0: not known. Not sent: look-ups begin there.
	ProviderTime int64 `json:"provider_time,omitempty"`
	// ClaimedAt is when the operation was claimed, in seconds since 1970, by our database's clock: the
	// last word of the claim.
	ClaimedAt int64 `json:"claimed_at,omitempty"`
}

// CaptureRequest captures Amount minor units of the provider's charge ChargeID.
type CaptureRequest struct {
	IdempotencyKey string `json:"idempotency_key"`
	Tags           Tags   `json:"tags"`
	ChargeID       string `json:"charge_id"`
	Amount         int64  `json:"amount"`
	// IntentID is the intent that made the charge, if one did: such a charge can only be captured through it.
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
	// ChargeID limits a refund look-up to the refunds of this charge; unused for charges and intents.
	ChargeID string
	// The attempts lie between From and To, in the provider's time; the adapter widens the window by an allowance of its own. A zero
	// From or To leaves that side open.
	From, To time.Time
	// Near is where the attempts are likeliest to lie; zero: at From. A long look-up begins there.
	Near time.Time
	// Within: a look-up that has read something after this long, and not all, ends as incomplete; 0: it has the context's time.
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
	// Outcome is the provider's own assessment (network status, risk level, …); nil when it gave none.
	Outcome *Assessment
	Tags    Tags   // empty where the metadata carries none
	Terms   *Terms // only of ListCharges
}

// Terms are what an object was made with, as the provider keeps it.
type Terms struct {
	Claim                     string // under MetadataClaim
	Customer                  string
	Description               string
	ReceiptEmail              string
	StatementDescriptorSuffix string
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
	ChargeID      string
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

// ChargeOutcome is the definitive answer to Charge or Capture: exactly one of Charge and Refusal is set. What the provider's answer leaves out, as
// some versions and imitations of an API do, is as it was asked for; what the request didn't say either, such as a capture's currency, is empty.
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

// Refusal is a definitive no: a decline of the card, or a request that the provider will not carry out. No money moved.
type Refusal struct {
	// Decline tells a card's decline (true) from a refused request (false).
	Decline bool
	// ChargeID is the failed charge that the provider recorded, if any.
	ChargeID    string
	Code        string
	DeclineCode string
	Message     string // cleaned: valid UTF-8 without NUL, at most 500 bytes
	Param       string
}

// Kind says what is known when no outcome is.
type Kind string

const (
	// Unknown says that the call may or may not have had its effect (timeout, reset, 5xx, an answer that cannot be read).
	Unknown Kind = "unknown"
	// NotExecuted says that the call is known to have had no effect (connection refused, 401, 403, 429). Same key again, later.
	NotExecuted Kind = "not_executed"
	// InFlight says that another attempt under the same derived key is alive at the provider.
	InFlight Kind = "in_flight"
	// Conflict says that the provider knows the derived key with other parameters, or answered with something that contradicts
	// what was asked. A person has to look; the operation is parked.
	Conflict Kind = "conflict"
)

// Error says that no outcome is known. Message is cleaned and carries no secret.
type Error struct {
	Kind       Kind
	HTTPStatus int    // 0 when no answer came
	Code       string // the provider's, may be empty
	RequestID  string // the provider's, may be empty
	Message    string
	// ServerError is set for a failure that the provider has stored under the key and replays for ever: sending again will not help, a
	// look-up will. That is a 500; a refusal that may be about an earlier call; and whatever else says nothing, such as a 502, only when
	// it is marked as a replay: else it passes.
	ServerError bool
	// Alert is set when an operator has to act (401 and 403: our credentials).
	Alert bool
	// RetryAfter is what the provider asked us to wait; 0 when it said nothing.
	RetryAfter time.Duration
	// Incomplete is set for a look-up that found nothing in the time it had, and has more to look
	// through. It goes on there when it is asked for again.
	Incomplete bool
}

func (e *Error) Error() string {
	if e.HTTPStatus == 0 {
		return fmt.Sprintf("provider: %s: %s", e.Kind, e.Message)
	}
	return fmt.Sprintf("provider: %s: HTTP %d %s: %s", e.Kind, e.HTTPStatus, e.Code, e.Message)
}
