package stripesim

import "math/rand/v2"

// The objects below are snapshots: once applied they are never changed, only replaced. So an answer
// that was stored under an idempotency key can point at the snapshot of its day and be rendered
// again, byte for byte, at any time.

// pair is one entry of metadata. A sorted slice takes less memory than a map and renders in a
// stable order.
type pair struct {
	K string `json:"k"`
	V string `json:"v"`
}

type charge struct {
	ID             string `json:"id"`
	Created        int64  `json:"created"` // unix seconds
	Live           bool   `json:"live,omitempty"`
	Amount         int64  `json:"amount"`
	AmountCaptured int64  `json:"amount_captured"`
	AmountRefunded int64  `json:"amount_refunded"`
	Captured       bool   `json:"captured"`
	Currency       string `json:"currency"`
	Customer       string `json:"customer,omitempty"`
	Source         string `json:"source,omitempty"` // the test token that was charged
	Description    string `json:"description,omitempty"`
	ReceiptEmail   string `json:"receipt_email,omitempty"`
	Suffix         string `json:"statement_descriptor_suffix,omitempty"`
	Descriptor     string `json:"statement_descriptor,omitempty"`
	Shipping       []pair `json:"shipping,omitempty"`
	Metadata       []pair `json:"metadata,omitempty"`
	Status         string `json:"status"`
	Decline        string `json:"decline,omitempty"` // decline_code of a failed charge
	Dispute        string `json:"dispute,omitempty"` // the newest
	Lapsed         bool   `json:"lapsed,omitempty"`  // nobody captured it in time
	Intent         string `json:"payment_intent,omitempty"`
	Method         string `json:"payment_method,omitempty"`
	Key            string `json:"idempotency_key,omitempty"`
}

// intent is a payment intent. Failure is why its last attempt came to nothing.
type intent struct {
	ID       string `json:"id"`
	Created  int64  `json:"created"`
	Live     bool   `json:"live,omitempty"`
	Amount   int64  `json:"amount"`
	Received int64  `json:"amount_received"`
	Currency string `json:"currency"`
	Manual   bool   `json:"manual,omitempty"` // captured by a call of its own
	// how the payer may pay: Redirects is always or never when Stripe chooses, else there are Types
	Redirects    string    `json:"allow_redirects,omitempty"`
	Types        []string  `json:"payment_method_types,omitempty"`
	Future       string    `json:"setup_future_usage,omitempty"`
	Customer     string    `json:"customer,omitempty"`
	Source       string    `json:"source,omitempty"` // the test token that pays
	Method       string    `json:"payment_method,omitempty"`
	Description  string    `json:"description,omitempty"`
	ReceiptEmail string    `json:"receipt_email,omitempty"`
	Suffix       string    `json:"statement_descriptor_suffix,omitempty"`
	Shipping     []pair    `json:"shipping,omitempty"`
	Metadata     []pair    `json:"metadata,omitempty"`
	Status       string    `json:"status"`
	Charge       string    `json:"latest_charge,omitempty"`
	Action       string    `json:"next_action,omitempty"`
	ReturnURL    string    `json:"return_url,omitempty"`
	Bank         string    `json:"bank,omitempty"` // the origin of the bank's page
	Failure      *apiError `json:"last_payment_error,omitempty"`
	CanceledAt   int64     `json:"canceled_at,omitempty"`
	Reason       string    `json:"cancellation_reason,omitempty"`
	Key          string    `json:"idempotency_key,omitempty"`
}

type refund struct {
	ID            string `json:"id"`
	Created       int64  `json:"created"`
	Live          bool   `json:"live,omitempty"`
	Charge        string `json:"charge"`
	Intent        string `json:"payment_intent,omitempty"`
	Amount        int64  `json:"amount"`
	Currency      string `json:"currency"`
	Reason        string `json:"reason,omitempty"`
	Status        string `json:"status"`
	FailureReason string `json:"failure_reason,omitempty"`
	Metadata      []pair `json:"metadata,omitempty"`
	Key           string `json:"idempotency_key,omitempty"`
}

type customer struct {
	ID          string `json:"id"`
	Created     int64  `json:"created"`
	Live        bool   `json:"live,omitempty"`
	Email       string `json:"email,omitempty"`
	Name        string `json:"name,omitempty"`
	Phone       string `json:"phone,omitempty"`
	Description string `json:"description,omitempty"`
	Source      string `json:"source,omitempty"`
	Metadata    []pair `json:"metadata,omitempty"`
}

type dispute struct {
	ID       string `json:"id"`
	Created  int64  `json:"created"`
	Live     bool   `json:"live,omitempty"`
	Charge   string `json:"charge"`
	Intent   string `json:"payment_intent,omitempty"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Reason   string `json:"reason,omitempty"` // empty: fraudulent
	Status   string `json:"status,omitempty"` // empty: needs_response
	// whether the charge may be refunded although it is disputed; nil: that of an inquiry
	Refundable  *bool `json:"refundable,omitempty"`
	DueBy       int64 `json:"due_by,omitempty"` // 0: a week after it was opened
	Submissions int64 `json:"submissions,omitempty"`
	Withdrawn   bool  `json:"withdrawn,omitempty"` // the money was taken back, and not given again
}

// warning is an early fraud warning of the card's network.
type warning struct {
	ID         string `json:"id"`
	Created    int64  `json:"created"`
	Live       bool   `json:"live,omitempty"`
	Charge     string `json:"charge"`
	Intent     string `json:"payment_intent,omitempty"`
	FraudType  string `json:"fraud_type"`
	Actionable bool   `json:"actionable,omitempty"`
}

type event struct {
	position
	id, kind string
	live     bool
	request  string // id of the request that caused it
	key      string
	object   renderer
}

// position orders objects: by time, and by arrival within one second.
type position struct{ created, seq int64 }

func (p position) at() position { return p }

func (p position) before(o position) bool {
	return p.created < o.created || p.created == o.created && p.seq < o.seq
}

// renderer is anything that Stripe would send as JSON.
type renderer interface{ render(e *enc) }

const idAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// newID makes an id of Stripe's look: a prefix and 24 letters and digits, random enough not to
// repeat in any ledger.
func newID(prefix string) string {
	b := make([]byte, 0, len(prefix)+24)
	b = append(b, prefix...)
	for range 3 {
		n := rand.Uint64() //nolint:gosec // ids, not secrets
		for range 8 {
			b = append(b, idAlphabet[n%62])
			n /= 62
		}
	}
	return string(b)
}
