package problem

import (
	"net/http"
	"time"
)

// The types of errors, with Stripe's names.
const (
	typeAPI            = "api_error"
	typeAuthentication = "authentication_error"
	typeCard           = "card_error"
	typeIdempotency    = "idempotency_error"
	typeRequest        = "invalid_request_error"
	typeRateLimit      = "rate_limit_error"
)

const (
	// Soon is when to retry after a failure of the service that usually passes by itself (a
	// database that fails over, a process that is replaced), or while another operation has no
	// outcome yet. It is long enough to prevent a storm of retries, and short enough that a paying
	// customer still waits.
	Soon = 2 * time.Second
	// atOnce is when to retry what takes a moment: the same request is running, or another process
	// of this service will answer.
	atOnce = time.Second
	// never is for errors that waiting does not help.
	never = 0
)

// kind is everything about an error that does not depend on the request.
type kind struct {
	name       string
	status     int
	typ        string
	advice     Advice
	retryAfter time.Duration // 0: no Retry-After
	message    string        // the usual one
}

// table is the table of errors. docs/errors.md is its description; a test compares them.
var table = [codes]kind{
	ParameterUnknown: {
		"parameter_unknown", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"There is no such parameter.",
	},
	ParameterDuplicate: {
		"parameter_duplicate", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"A parameter is given more than once.",
	},
	ParameterMissing: {
		"parameter_missing", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"A parameter is missing.",
	},
	ParameterInvalid: {
		"parameter_invalid", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"A parameter is not valid.",
	},
	ParameterEmpty: {
		"parameter_invalid_empty", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"A parameter is empty.",
	},
	ParameterInteger: {
		"parameter_invalid_integer", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"A parameter is not an integer.",
	},
	ParameterTooLong: {
		"parameter_invalid_string_too_long", http.StatusBadRequest, typeRequest, FixAndUseNewKey,
		never,
		"A parameter is too long.",
	},
	AmountTooLarge: {
		"amount_too_large", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The amount is too large.",
	},
	CurrencyInvalid: {
		"invalid_currency", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"There is no such currency.",
	},
	EmailInvalid: {
		"email_invalid", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"This is not an e-mail address.",
	},
	BodyMalformed: {
		"body_malformed", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The body is not well-formed.",
	},
	BodyIncomplete: {
		"body_incomplete", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The body ended before it was complete. Nothing was done.",
	},
	QueryMalformed: {
		"query_malformed", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The query is not well-formed.",
	},
	KeyMissing: {
		"idempotency_key_missing", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"An Idempotency-Key header is required: a new random value for each payment, the same " +
			"one for each retry of it.",
	},
	KeyInvalid: {
		"idempotency_key_invalid", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The Idempotency-Key header must be one line of 1 to 255 printable ASCII characters.",
	},
	CursorMissing: {
		"resource_missing", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The cursor names no object of the account.",
	},
	APIKeyMissing: {
		"api_key_missing", http.StatusUnauthorized, typeAuthentication, Stop, never,
		"An API key is required: Authorization: Bearer sk_…, or HTTP Basic with the key as " +
			"user name.",
	},
	APIKeyInvalid: {
		"api_key_invalid", http.StatusUnauthorized, typeAuthentication, Stop, never,
		"The API key is not valid.",
	},
	// It says stop: under another key, what this one may stand for already would be done again.
	APIKeyReadOnly: {
		"api_key_read_only", http.StatusForbidden, typeAuthentication, Stop, never,
		"The API key may only read. Nothing was done; use a key that may write.",
	},
	ResourceMissing: {
		"resource_missing", http.StatusNotFound, typeRequest, Stop, never,
		"There is no such object.",
	},
	RouteUnknown: {
		"route_unknown", http.StatusNotFound, typeRequest, Stop, never,
		"There is nothing at this path; the reference is at /docs.",
	},
	MethodNotAllowed: {
		"method_not_allowed", http.StatusMethodNotAllowed, typeRequest, Stop, never,
		"This path does not have the method; the Allow header lists those that it has.",
	},
	TooManyEndpoints: {
		"too_many_endpoints", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The account has as many webhook endpoints as it can have; delete one first.",
	},
	RequestTimeout: {
		"request_timeout", http.StatusRequestTimeout, typeRequest, RetrySameKey, never,
		"The body took too long to arrive. Nothing was done.",
	},
	BodyTooLarge: {
		"body_too_large", http.StatusRequestEntityTooLarge, typeRequest, FixAndUseNewKey, never,
		"The body is too large.",
	},
	MediaTypeUnsupported: {
		"media_type_unsupported", http.StatusUnsupportedMediaType, typeRequest, FixAndUseNewKey,
		never,
		"The body must be application/json or application/x-www-form-urlencoded, in UTF-8.",
	},
	EncodingUnsupported: {
		"content_encoding_unsupported", http.StatusUnsupportedMediaType, typeRequest,
		FixAndUseNewKey, never,
		"The body must not be compressed.",
	},
	RateLimited: {
		"rate_limited", http.StatusTooManyRequests, typeRateLimit, RetrySameKey, atOnce,
		"Too many requests. Nothing was done.",
	},

	CardDeclined: {
		"card_declined", http.StatusPaymentRequired, typeCard, FixAndUseNewKey, never,
		"The payment provider refused the charge.",
	},
	ProviderRefused: {
		"", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The payment provider refused the request.",
	},
	IntentCanceled: {
		"payment_intent_canceled", http.StatusPaymentRequired, typeCard, FixAndUseNewKey, never,
		"The payment was not completed.",
	},
	IntentRequiresPaymentMethod: {
		"payment_intent_requires_payment_method", http.StatusPaymentRequired, typeCard,
		FixAndUseNewKey, never,
		"The payment was not completed.",
	},
	ChargeReleased: {
		"charge_released", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The payment provider has let go of the authorised money: nothing was captured.",
	},

	KeyInUse: {
		"idempotency_key_in_use", http.StatusConflict, typeIdempotency, RetrySameKey, atOnce,
		"The same request is running. Send it again with the same key to learn its result.",
	},
	KeyReused: {
		"idempotency_key_reused", http.StatusUnprocessableEntity, typeIdempotency, FixAndUseNewKey,
		never,
		"The key stands for another request. Use a new key for a new request.",
	},

	ChargeNotSucceeded: {
		"charge_not_succeeded", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The charge failed.",
	},
	ChargeNotCaptured: {
		"charge_not_captured", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The charge is authorised and not captured: there is nothing to give back.",
	},
	ChargeAlreadyCaptured: {
		"charge_already_captured", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The charge has been captured already.",
	},
	ChargeAlreadyRefunded: {
		"charge_already_refunded", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The charge has been refunded already.",
	},
	ChargeDisputed: {
		"charge_disputed", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The charge is disputed.",
	},
	ProviderAccountChanged: {
		"provider_account_changed", http.StatusBadRequest, typeRequest, FixAndUseNewKey, never,
		"The charge was made at an account of the payment provider that this installation no longer uses: " +
			"it can be captured and refunded there only.",
	},
	ChargePending: {
		"charge_pending", http.StatusConflict, typeRequest, RetrySameKey, Soon,
		"The outcome of the charge is not known yet.",
	},
	ReferenceInProgress: {
		"reference_in_progress", http.StatusConflict, typeRequest, RetrySameKey, Soon,
		"Another charge has this reference, and its outcome is not known yet.",
	},
	ReferenceAlreadyPaid: {
		"reference_already_paid", http.StatusBadRequest, typeRequest, UseExisting, never,
		"Another charge has this reference, and it succeeded.",
	},
	CapturePending: {
		"capture_pending", http.StatusConflict, typeRequest, RetrySameKey, Soon,
		"The charge is being captured.",
	},
	CancelPending: {
		"cancel_pending", http.StatusConflict, typeRequest, RetrySameKey, Soon,
		"The charge is being cancelled.",
	},
	RefundPending: {
		"refund_pending", http.StatusConflict, typeRequest, RetrySameKey, Soon,
		"What is left of the charge is reserved for refunds whose outcome is not known yet.",
	},
	ConfirmPending: {
		"confirm_pending", http.StatusConflict, typeRequest, RetrySameKey, Soon,
		"The payment intent is being confirmed, changed or cancelled, and the outcome is not known " +
			"yet.",
	},
	PaymentIntentUnexpectedState: {
		"payment_intent_unexpected_state", http.StatusBadRequest, typeRequest, FixAndUseNewKey,
		never,
		"The payment intent's status does not allow this.",
	},

	SignatureInvalid: {
		"signature_invalid", http.StatusBadRequest, typeRequest, Stop, never,
		"The signature does not match the body, or not at this time. Nothing was stored.",
	},
	WebhooksNotConfigured: {
		"webhooks_not_configured", http.StatusBadRequest, typeRequest, Stop, never,
		"This installation takes no events: STRIPE_WEBHOOK_SECRET is not set.",
	},

	InternalError: {
		"internal_error", http.StatusInternalServerError, typeAPI, RetrySameKey, never,
		"Something went wrong here. Sending the same request again with the same key is safe.",
	},
	OperationParked: {
		"operation_parked", http.StatusInternalServerError, typeAPI, Stop, never,
		"What became of this request cannot be found out automatically. The operator has to " +
			"decide; do not repeat it under another key.",
	},
	OutcomeUnknown: {
		"outcome_unknown", http.StatusServiceUnavailable, typeAPI, RetrySameKey, Soon,
		"The outcome is not known yet; the payment provider may or may not have acted. Send " +
			"the same request again with the same key.",
	},
	ProviderUnavailable: {
		"provider_unavailable", http.StatusServiceUnavailable, typeAPI, RetrySameKey, Soon,
		"The payment provider could not be reached; no money was moved yet. Send the same " +
			"request again with the same key.",
	},
	ChargeNeverMade: {
		"charge_never_made", http.StatusServiceUnavailable, typeAPI, RetrySameKey, Soon,
		"The payment provider never made this charge, and no money moved. The same request " +
			"under the same key makes a new one.",
	},
	RefundNeverMade: {
		"refund_never_made", http.StatusServiceUnavailable, typeAPI, RetrySameKey, Soon,
		"The payment provider never made this refund, and no money moved. The same request " +
			"under the same key makes a new one.",
	},
	CaptureNeverMade: {
		"capture_never_made", http.StatusServiceUnavailable, typeAPI, RetrySameKey, Soon,
		"The payment provider never made this capture, and no money moved. The same request " +
			"under the same key makes a new one.",
	},
	CancelNeverMade: {
		"cancel_never_made", http.StatusServiceUnavailable, typeAPI, RetrySameKey, Soon,
		"The payment provider never let go of this charge; the same request tries again.",
	},
	IntentNeverMade: {
		"intent_never_made", http.StatusServiceUnavailable, typeAPI, RetrySameKey, Soon,
		"The payment provider never made this payment intent, and no money moved. The same request " +
			"under the same key makes a new one.",
	},
	ConfirmNeverMade: {
		"confirm_never_made", http.StatusServiceUnavailable, typeAPI, RetrySameKey, Soon,
		"The payment provider never confirmed this payment intent, and no money moved. The same " +
			"request under the same key confirms it.",
	},
	Unavailable: {
		"unavailable", http.StatusServiceUnavailable, typeAPI, RetrySameKey, Soon,
		"The service is not able to answer at the moment. Send the same request again with the " +
			"same key.",
	},
	ShuttingDown: {
		"shutting_down", http.StatusServiceUnavailable, typeAPI, RetrySameKey, atOnce,
		"This process is shutting down. Nothing was done; send the same request again with the " +
			"same key.",
	},
}
