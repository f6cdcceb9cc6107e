package problem

import "iter"

// Code is a kind of error. Its number is of no meaning outside this process; clients see its name.
type Code uint8

// The codes. docs/errors.md says when each is returned.
const (
	// What is wrong with a request. Nothing was done, and its key is not spent.
	ParameterUnknown Code = iota
	ParameterDuplicate
	ParameterMissing
	ParameterInvalid
	ParameterEmpty
	ParameterInteger
	ParameterTooLong
	AmountTooLarge
	CurrencyInvalid
	EmailInvalid
	BodyMalformed
	BodyIncomplete
	QueryMalformed
	KeyMissing
	KeyInvalid
	CursorMissing // names nothing: clients see resource_missing, with 400
	APIKeyMissing
	APIKeyInvalid
	APIKeyReadOnly
	ResourceMissing
	RouteUnknown
	MethodNotAllowed
	TooManyEndpoints
	RequestTimeout
	BodyTooLarge
	MediaTypeUnsupported
	EncodingUnsupported
	RateLimited

	// What the provider answered. It is stored under the key.
	CardDeclined    // a decline, for which the provider may have a code of its own
	ProviderRefused // a refusal of the provider, under its own code, if it has one
	IntentCanceled
	IntentRequiresPaymentMethod
	ChargeReleased

	// The idempotency key.
	KeyInUse
	KeyReused

	// A charge or payment intent whose state does not allow what is asked. The key is not spent.
	ChargeNotSucceeded
	ChargeNotCaptured
	ChargeAlreadyCaptured
	ChargeAlreadyRefunded
	ChargeDisputed
	ProviderAccountChanged
	ChargePending
	CapturePending
	CancelPending
	RefundPending
	ConfirmPending
	PaymentIntentUnexpectedState

	// A reference that a live charge has. The key is not spent.
	ReferenceInProgress
	ReferenceAlreadyPaid

	// Events of the provider.
	SignatureInvalid
	WebhooksNotConfigured

	// The server and the provider.
	InternalError
	OperationParked
	OutcomeUnknown
	ProviderUnavailable
	ChargeNeverMade
	RefundNeverMade
	CaptureNeverMade
	CancelNeverMade
	IntentNeverMade
	ConfirmNeverMade
	Unavailable
	ShuttingDown

	codes int = iota // how many there are
)

// String is the code's name: what clients see.
func (c Code) String() string { return table[c].name }

// Status is the HTTP status that the error is answered with.
func (c Code) Status() int { return table[c].status }

// Type is the type of the error, with Stripe's name.
func (c Code) Type() string { return table[c].typ }

// Advice says what a program should do about the error.
func (c Code) Advice() Advice { return table[c].advice }

// Codes yields all codes, in the order of their declaration.
func Codes() iter.Seq[Code] {
	return func(yield func(Code) bool) {
		for c := range Code(codes) {
			if !yield(c) {
				return
			}
		}
	}
}
