package outbox

// The types of events, with Stripe's names where Stripe has one.
const (
	ChargePending   = "charge.pending" // the payer has to act
	ChargeSucceeded = "charge.succeeded"
	ChargeFailed    = "charge.failed"
	ChargeCaptured  = "charge.captured"
	ChargeRefunded  = "charge.refunded"
	// It was cancelled before its money was taken, or nobody took it in time.
	ChargeCanceled = "charge.canceled"
	ChargeExpired  = "charge.expired"
	// A refund failed after all, so less of it is refunded than before.
	ChargeUpdated        = "charge.updated"
	ChargeDisputeCreated = "charge.dispute.created"
	ChargeDisputeUpdated = "charge.dispute.updated"
	ChargeDisputeClosed  = "charge.dispute.closed"
	RefundCreated        = "refund.created"
	RefundUpdated        = "refund.updated"
	RefundFailed         = "refund.failed"
	FraudWarningCreated  = "radar.early_fraud_warning.created"

	PaymentIntentCreated          = "payment_intent.created"
	PaymentIntentRequiresAction   = "payment_intent.requires_action"
	PaymentIntentProcessing       = "payment_intent.processing"
	PaymentIntentAmountCapturable = "payment_intent.amount_capturable_updated"
	PaymentIntentSucceeded        = "payment_intent.succeeded"
	PaymentIntentPaymentFailed    = "payment_intent.payment_failed"
	PaymentIntentCanceled         = "payment_intent.canceled"
)

// Types are all of them, in the order in which an object usually goes through them.
var Types = []string{
	ChargePending, ChargeSucceeded, ChargeFailed, ChargeCaptured, ChargeCanceled, ChargeExpired,
	ChargeRefunded, ChargeUpdated,
	ChargeDisputeCreated, ChargeDisputeUpdated, ChargeDisputeClosed,
	RefundCreated, RefundUpdated, RefundFailed,
	FraudWarningCreated,
	PaymentIntentCreated, PaymentIntentRequiresAction, PaymentIntentProcessing,
	PaymentIntentPaymentFailed, PaymentIntentAmountCapturable, PaymentIntentSucceeded,
	PaymentIntentCanceled,
}
