package provider

import "time"

// Dispute is a payer's objection to a charge, as the provider has it.
type Dispute struct {
	ID       string
	ChargeID string
	IntentID string // of the intent that made the charge; empty for a plain charge
	// Status is Stripe's word: needs_response, under_review, won, lost, warning_… for an inquiry,
	// which takes no money, or a new one.
	Status   string
	Reason   string
	Amount   int64 // minor units
	Currency string
	Livemode bool
	Created  time.Time
	// Refundable is whether the charge can still be refunded.
	Refundable bool
	// DueBy is until when evidence is accepted; zero: none is.
	DueBy       time.Time
	HasEvidence bool
	PastDue     bool // whether the last evidence came too late
	Submissions int64
}

// FraudWarning is a card network's early warning that a charge was fraudulent. A dispute usually
// follows.
type FraudWarning struct {
	ID         string
	ChargeID   string
	IntentID   string // as in Dispute
	FraudType  string // Stripe's word
	Actionable bool   // whether a refund can still prevent a dispute
	Livemode   bool
	Created    time.Time
}
