package db_test

import (
	"context"
	"fmt"
	"math"
	"time"

	"paidonce/db"
)

// batch is how many rows the statements for several are asked for.
const batch = 64

// hot are the statements that run for every charge, event or delivery, or whose cost must not grow
// with what is kept, with what they may look at and the indexes that are meant for them. Their
// arguments are of the rows of done and burst.
func hot(q *db.Queries) []statement {
	const (
		operation = "idempotency_keys_operation"
		keys      = "idempotency_keys_pkey|" + operation
	)
	order := "order9"
	longAgo, farOff := time.Unix(0, 0), time.Now().Add(24*time.Hour)
	return []statement{
		{name: "ChargeClaim", call: with(q.ChargeClaim, db.ChargeClaimParams{
			ApiKeyIds: many("k"), AccountIds: many("a"), Keys: each("n"), OperationIds: each("n"), Kinds: many("charge.create"),
			HashVersions: many(int16(1)), RequestHashes: many(make([]byte, 32)), RequestIds: many("r"), Params: many([]byte("{}")),
			RecoveryPoints: many("started"), LeaseTokens: each("t"), ChargeIds: each("cn"), Amounts: many(int64(5)),
			Currencies: many("usd"), Captures: many(true), Customers: many(""), Descriptions: many(""), Metadata: many("{}"),
			ReceiptEmails: many(""), Suffixes: many(""), Shippings: many(""), Descriptors: many(""), Livemodes: many(false), OwnReceipts: many(false),
			MerchantReferences: each("order"), DuplicatesOf: many(""),
		}), rows: batch, indexes: []string{"recovered_keys_pkey", "charges_of_reference|charges_one_live_reference"}},
		{
			name: "ChargeByReference", call: with(q.ChargeByReference, db.ChargeByReferenceParams{AccountID: "a", Reference: &order}),
			rows: 1, indexes: []string{"charges_of_reference"},
		},
		{name: "ChargeSettle", call: with(q.ChargeSettle, db.ChargeSettleParams{
			AccountIds: many("a"), Keys: each("u"), OperationIds: each("u"), LeaseTokens: each("t"), RecoveryPoints: many("started"),
			KeyStatuses: many("completed"), ResponseCodes: many(int16(201)), ResponseHeaders: many([]byte("{}")),
			ResponseBodies: many([]byte("{}")), ChargeIds: each("cu"), Statuses: many("succeeded"), AmountsCaptured: many(int64(5)),
			Captured: many(true), Disputed: many(false), FailureCodes: many(""), FailureMessages: many(""), Outcomes: many(""),
			ProviderIds: each("cx"), EventIds: each("ecx"), EventTypes: many("charge.succeeded"), EventPayloads: many([]byte("{}")),
			LogEvents: many("settled"), LogActors: many("request"), LogDetails: many(""), IntentIds: many(""), NextActions: many(""), Details: many(""),
			KeyTtl: time.Hour,
		}), rows: batch, indexes: []string{keys, "charges_pkey"}},
		{
			name: "KeyClaim", call: with(q.KeyClaim, db.KeyClaimParams{AccountID: "a", Key: "n", OperationID: "n", Kind: "refund.create", RequestHash: make([]byte, 32), Params: []byte("{}"), ResourceID: "n", RecoveryPoint: "started", LeaseToken: "t", ApiKeyID: "k"}),
			indexes: []string{"recovered_keys_pkey"},
		},
		{
			name: "KeyClaimable", call: with(q.KeyClaimable, db.KeyClaimableParams{AccountID: "a", Key: "f9", ApiKeyID: "k"}),
			indexes: []string{keys, "recovered_keys_pkey"},
		},
		{
			name: "KeyRead", call: with(q.KeyRead, db.KeyReadParams{AccountID: "a", Key: "f9", ApiKeyID: "k"}),
			indexes: []string{keys},
		},
		{
			name: "KeyRecovered", call: with(q.KeyRecovered, db.KeyRecoveredParams{AccountID: "a", Key: "g900"}),
			indexes: []string{"recovered_keys_pkey"},
		},
		{
			name: "KeyTakeOver", call: with(q.KeyTakeOver, db.KeyTakeOverParams{AccountID: "a", Key: "u3", OperationID: "u3", SeenAttempts: 1, LeaseToken: "x", Actor: "request"}),
			indexes: []string{keys},
		},
		{
			name: "KeyRelease", call: with(q.KeyRelease, db.KeyReleaseParams{AccountID: "a", Key: "u4", OperationID: "u4", LeaseToken: "t4", RecoveryPoint: "started", Actor: "request"}),
			indexes: []string{keys},
		},
		{
			name: "KeyPark", call: with(q.KeyPark, db.KeyParkParams{AccountID: "a", Key: "u4", OperationID: "u4", LeaseToken: "t4", RecoveryPoint: "started", Actor: "request"}),
			indexes: []string{keys},
		},
		{
			name: "KeyFinish", call: with(q.KeyFinish, db.KeyFinishParams{AccountID: "a", Key: "u4", OperationID: "u4", LeaseToken: "t4", RecoveryPoint: "started", Status: "completed", ResponseCode: 201, ResponseHeaders: []byte("{}"), ResponseBody: []byte("{}"), LogEvent: "settled"}),
			indexes: []string{keys},
		},
		{
			name: "KeyAdvance", call: with(q.KeyAdvance, db.KeyAdvanceParams{AccountID: "a", Key: "u4", OperationID: "u4", LeaseToken: "t4", RecoveryPoint: "started", NextPoint: "sent", Params: []byte("{}")}),
			indexes: []string{keys},
		},
		{
			name: "KeyAdvanced", call: with(q.KeyAdvanced, db.KeyAdvancedParams{AccountID: "a", Key: "u4", OperationID: "u4", LeaseToken: "t4", RecoveryPoint: "started"}),
			indexes: []string{keys},
		},
		{
			name: "KeyForget", call: with(q.KeyForget, db.KeyForgetParams{AccountID: "a", Key: "f9", OperationID: "f9"}),
			indexes: []string{keys},
		},
		{
			name: "KeyUnpark", call: with(q.KeyUnpark, db.KeyUnparkParams{OperationID: "u9"}),
			indexes: []string{operation},
		},
		{
			name: "KeyLeaseDue", call: with(q.KeyLeaseDue, db.KeyLeaseDueParams{PassStart: time.Now().Add(time.Hour), StaleAfter: time.Hour, MaxRows: batch, LeaseToken: "x", Actor: "reconcile"}),
			rows: 20 * batch, indexes: []string{keys, "idempotency_keys_unfinished"},
		},
		{
			name: "KeyLeasedDue", call: with(q.KeyLeasedDue, db.KeyLeasedDueParams{LeaseToken: "t4"}),
			rows: waiting, indexes: []string{"idempotency_keys_unfinished"},
		},
		{
			name: "KeySweep", call: with(q.KeySweep, batch),
			rows: batch, indexes: []string{"idempotency_keys_expiry"},
		},
		{
			name: "KeyGauges", call: with(q.KeyGauges, time.Minute),
			rows: waiting, indexes: []string{"idempotency_keys_unfinished", "idempotency_keys_expiry"},
		},
		{name: "OperationKey", call: with(q.OperationKey, "f9"), indexes: []string{operation}},
		{
			name: "ProviderAccountOfOperation", call: with(q.ProviderAccountOfOperation, "f9"),
			indexes: []string{operation, "charges_pkey"},
		},
		{name: "OperationLog", call: with(q.OperationLog, "f9"), indexes: []string{"operation_log_pkey"}},
		{
			name: "OperationLogSweep", call: with(q.OperationLogSweep, db.OperationLogSweepParams{AfterAt: longAgo, Ttl: time.Minute, MaxRows: batch}),
			rows: batch, indexes: []string{"operation_log_at", "operation_log_pkey", operation},
		},
		{
			name: "ChargeGet", call: with(q.ChargeGet, db.ChargeGetParams{AccountID: "a", ID: "cf9"}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeLock", call: with(q.ChargeLock, db.ChargeLockParams{AccountID: "a", ID: "cf9"}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeCapture", call: with(q.ChargeCapture, db.ChargeCaptureParams{AccountID: "a", ID: "cf9", OperationID: "f9", AmountCaptured: 5}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeReserveCapture", call: with(q.ChargeReserveCapture, db.ChargeReserveCaptureParams{AccountID: "a", ID: "cf9", OperationID: "f9"}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeReserveForgotten", call: with(q.ChargeReserveForgotten, db.ChargeReserveForgottenParams{AccountID: "a", ID: "cf9", OperationID: "f9"}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeReleaseCapture", call: with(q.ChargeReleaseCapture, db.ChargeReleaseCaptureParams{AccountID: "a", ID: "cf9", OperationID: "f9"}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeReserveRefund", call: with(q.ChargeReserveRefund, db.ChargeReserveRefundParams{AccountID: "a", ID: "cf9", Amount: 1}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeSettleRefund", call: with(q.ChargeSettleRefund, db.ChargeSettleRefundParams{AccountID: "a", ID: "cf9"}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeAddRefunded", call: with(q.ChargeAddRefunded, db.ChargeAddRefundedParams{ID: "cf9", Amount: 0}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeSetRefunded", call: told(q.ChargeSetRefunded, db.ChargeSetRefundedParams{ID: "cf9", AmountRefunded: 1}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeCaptureFound", call: with(q.ChargeCaptureFound, db.ChargeCaptureFoundParams{ID: "cf9", AmountCaptured: 5}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeChange", call: told(q.ChargeChange, db.ChargeChangeParams{ID: "cu9", Status: "pending"}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeCountEvent", call: with(q.ChargeCountEvent, "cf9"),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeOperation", call: with(q.ChargeOperation, "cf9"),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeByProvider", call: with(q.ChargeByProvider, text("ch9")),
			indexes: []string{"charges_at_provider"},
		},
		{
			name: "ChargeByProviderID", call: with(q.ChargeByProviderID, text("ch9")),
			indexes: []string{"charges_at_provider"},
		},
		{
			name: "ChargeOfProviderEvent", call: with(q.ChargeOfProviderEvent, db.ChargeOfProviderEventParams{ProviderID: "ch9", OperationID: "f9"}),
			indexes: []string{"charges_pkey", "charges_at_provider"},
		},
		{
			name: "ChargeOfOperationLock", call: with(q.ChargeOfOperationLock, "f9"),
			indexes: []string{"charges_operation"},
		},
		{
			name: "ChargesOfOperations", call: with(q.ChargesOfOperations, db.ChargesOfOperationsParams{StaleAfter: time.Minute, OperationIds: each("f")}),
			// with the refunds of each
			rows: 40 * batch, indexes: []string{"charges_operation", "refunds_of_charge"},
		},
		{name: "OperationsUnknown", call: with(q.OperationsUnknown, each("f")), rows: batch},
		{
			name: "ChargeTakeHeld", call: with(q.ChargeTakeHeld, batch),
			rows: 2 * batch, indexes: []string{"charges_held"},
		},
		{
			name: "ChargeReserveRelease", call: with(q.ChargeReserveRelease, db.ChargeReserveReleaseParams{AccountID: "a", ID: "ch9", OperationID: "f9"}),
			indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeTakeAwaiting", call: with(q.ChargeTakeAwaiting, db.ChargeTakeAwaitingParams{PayerWindow: time.Hour, MaxRows: batch}),
			rows: batch, indexes: []string{"charges_awaiting"},
		},
		{
			name: "ChargeTakeUnderWay", call: with(q.ChargeTakeUnderWay, batch),
			rows: batch, indexes: []string{"charges_under_way"},
		},
		{
			name: "ChargeList", call: with(q.ChargeList, db.ChargeListParams{Sorts: []bool{false, true}, Pending: true, AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 20, indexes: []string{"charges_listed"},
		},
		{
			name: "ChargeListPending", call: with(q.ChargeListPending, db.ChargeListPendingParams{AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 10, indexes: []string{"charges_pending"},
		},
		{
			name: "ChargeListOfCustomer", call: with(q.ChargeListOfCustomer, db.ChargeListOfCustomerParams{Sorts: []bool{false, true}, Customer: "cus9", Pending: true, AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 20, indexes: []string{"charges_of_customer"},
		},
		{
			name: "ChargeListOfIntent", call: with(q.ChargeListOfIntent, db.ChargeListOfIntentParams{IntentID: "pi9", AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 10, indexes: []string{"charges_of_intent"},
		},
		{
			name: "ChargeListOfReference", call: with(q.ChargeListOfReference, db.ChargeListOfReferenceParams{Reference: order, Sorts: []bool{false, true}, AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 1, indexes: []string{"charges_of_reference"},
		},
		{
			name: "ChargeListOfReferenceBefore", call: with(q.ChargeListOfReferenceBefore, db.ChargeListOfReferenceBeforeParams{Reference: order, Sorts: []bool{false, true}, AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 1, indexes: []string{"charges_of_reference"},
		},
		{
			name: "ChargeListOfIntentBefore", call: with(q.ChargeListOfIntentBefore, db.ChargeListOfIntentBeforeParams{IntentID: "pi9", AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 10, indexes: []string{"charges_of_intent"},
		},
		{
			name: "ChargesOfIDs", call: with(q.ChargesOfIDs, db.ChargesOfIDsParams{AccountID: "a", Ids: each("cf")}),
			rows: batch, indexes: []string{"charges_pkey"},
		},
		{
			name: "ChargeListBefore", call: with(q.ChargeListBefore, db.ChargeListBeforeParams{Sorts: []bool{false, true}, Pending: true, AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 20, indexes: []string{"charges_listed"},
		},
		{
			name: "ChargeListPendingBefore", call: with(q.ChargeListPendingBefore, db.ChargeListPendingBeforeParams{AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 10, indexes: []string{"charges_pending"},
		},
		{
			name: "ChargeListOfCustomerBefore", call: with(q.ChargeListOfCustomerBefore, db.ChargeListOfCustomerBeforeParams{Sorts: []bool{false, true}, Customer: "cus9", Pending: true, AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 20, indexes: []string{"charges_of_customer"},
		},
		{
			name: "DisputeList", call: with(q.DisputeList, db.DisputeListParams{AccountID: "a", BelowAt: farOff, AboveAt: longAgo, MaxRows: 10}),
			rows: 10, indexes: []string{"disputes_newest"},
		},
		{
			name: "DisputeListBefore", call: with(q.DisputeListBefore, db.DisputeListBeforeParams{AccountID: "a", BelowAt: farOff, AboveAt: longAgo, MaxRows: 10}),
			rows: 10, indexes: []string{"disputes_newest"},
		},
		{
			name: "DisputeListOfCharge", call: with(q.DisputeListOfCharge, db.DisputeListOfChargeParams{ChargeID: "cf9", AccountID: "a", BelowAt: farOff, AboveAt: longAgo, MaxRows: 10}),
			rows: 10, indexes: []string{"disputes_of_charge"},
		},
		{
			name: "DisputeListOfChargeBefore", call: with(q.DisputeListOfChargeBefore, db.DisputeListOfChargeBeforeParams{ChargeID: "cf9", AccountID: "a", BelowAt: farOff, AboveAt: longAgo, MaxRows: 10}),
			rows: 10, indexes: []string{"disputes_of_charge"},
		},
		{
			name: "DisputesOpen", call: with(q.DisputesOpen, db.DisputesOpenParams{MaxRows: 10}),
			rows: 10, indexes: []string{"disputes_open"},
		},
		{
			name: "RefundList", call: with(q.RefundList, db.RefundListParams{AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 10, indexes: []string{"refunds_newest"},
		},
		{
			name: "RefundListBefore", call: with(q.RefundListBefore, db.RefundListBeforeParams{AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 10, indexes: []string{"refunds_newest"},
		},
		{
			name: "RefundListOfCharge", call: with(q.RefundListOfCharge, db.RefundListOfChargeParams{ChargeID: "cf9", AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 10, indexes: []string{"refunds_of_charge"},
		},
		{
			name: "RefundListOfChargeBefore", call: with(q.RefundListOfChargeBefore, db.RefundListOfChargeBeforeParams{ChargeID: "cf9", AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 10, indexes: []string{"refunds_of_charge"},
		},
		{
			name: "RefundListOfIntent", call: with(q.RefundListOfIntent, db.RefundListOfIntentParams{IntentID: "pi9", AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 10, indexes: []string{"charges_of_intent", "refunds_of_charge"},
		},
		{
			name: "RefundListOfIntentBefore", call: with(q.RefundListOfIntentBefore, db.RefundListOfIntentBeforeParams{IntentID: "pi9", AccountID: "a", AboveAt: longAgo, BelowAt: farOff, MaxRows: 10}),
			rows: 10, indexes: []string{"charges_of_intent", "refunds_of_charge"},
		},
		{
			name: "RefundsOfCharges", call: with(q.RefundsOfCharges, db.RefundsOfChargesParams{AccountID: "a", ChargeIds: each("cf"), MaxRows: 11}),
			rows: batch, indexes: []string{"refunds_of_charge"},
		},
		{
			name: "RefundGet", call: with(q.RefundGet, db.RefundGetParams{AccountID: "a", ID: "rf9"}),
			indexes: []string{"refunds_pkey"},
		},
		{name: "RefundLock", call: with(q.RefundLock, "rf9"), indexes: []string{"refunds_pkey"}},
		{
			name: "RefundCountEvent", call: with(q.RefundCountEvent, "rf9"),
			indexes: []string{"refunds_pkey"},
		},
		{
			name: "RefundChange", call: told(q.RefundChange, db.RefundChangeParams{ID: "rf9", Status: "failed"}),
			indexes: []string{"refunds_pkey"},
		},
		{
			name: "RefundByProviderID", call: with(q.RefundByProviderID, text("re9")),
			indexes: []string{"refunds_provider_.*"},
		},
		{
			name: "RefundOfOperation", call: with(q.RefundOfOperation, "rf9"),
			indexes: []string{"refunds_operation"},
		},
		{
			name: "RefundSettle", call: with(q.RefundSettle, db.RefundSettleParams{ID: "ru9", OperationID: "ru9", Status: "failed"}),
			indexes: []string{"refunds_(pkey|operation)"},
		},
		{
			name: "EventGet", call: with(q.EventGet, db.EventGetParams{AccountID: "a", EventID: "ecf9"}),
			indexes: []string{"outbox_pkey"},
		},
		{name: "EventFind", call: with(q.EventFind, "ecf9"), indexes: []string{"outbox_pkey"}},
		{
			name: "EventList", call: with(q.EventList, db.EventListParams{AccountID: "a", Below: math.MaxInt64, MaxRows: 10}),
			rows: 10, indexes: []string{"outbox_listed"},
		},
		{
			name: "EventListBefore", call: with(q.EventListBefore, db.EventListBeforeParams{AccountID: "a", Below: kept, MaxRows: 10}),
			rows: 10, indexes: []string{"outbox_listed"},
		},
		{
			name: "EventListOfTypes", call: with(q.EventListOfTypes, db.EventListOfTypesParams{AccountID: "a", Types: []string{"charge.failed", "charge.succeeded"}, Below: math.MaxInt64, MaxRows: 10}),
			rows: 20, indexes: []string{"outbox_listed_by_type"},
		},
		{
			name: "EventListOfTypesBefore", call: with(q.EventListOfTypesBefore, db.EventListOfTypesBeforeParams{AccountID: "a", Types: []string{"charge.failed", "charge.succeeded"}, Below: kept, MaxRows: 10}),
			rows: 20, indexes: []string{"outbox_listed_by_type"},
		},
		{
			name: "EventPositionAt", call: with(q.EventPositionAt, db.EventPositionAtParams{AccountID: "a", At: time.Now()}),
			rows: 40, indexes: []string{"outbox_listed"},
		},
		{
			name: "EventsClean", call: with(q.EventsClean, db.EventsCleanParams{Ttl: time.Minute, MaxRows: batch}),
			rows: batch, indexes: []string{"outbox_position"},
		},
		{
			name: "OutboxHasNew", call: with(q.OutboxHasNew, longAgo),
			indexes: []string{"outbox_unnumbered", "outbox_position"},
		},
		{
			name: "OutboxNumber", call: with(q.OutboxNumber, db.OutboxNumberParams{Since: longAgo, MaxRows: batch}),
			rows: batch, indexes: []string{"outbox_unnumbered", "outbox_pkey"},
		},
		{
			name: "StreamEvents", call: with(q.StreamEvents, db.StreamEventsParams{After: kept, MaxRows: 10}),
			rows: 10, indexes: []string{"outbox_position"},
		},
		{name: "StreamGauges", call: without(q.StreamGauges), indexes: []string{"outbox_position"}},
		{
			name: "EventGauges", call: with(q.EventGauges, db.EventGaugesParams{LateCommit: time.Minute, PendingMax: 100}),
			rows: 100, indexes: []string{"outbox_unnumbered", "outbox_position", "deliveries_due"},
		},
		{
			name: "DeliveriesQueue", call: with(q.DeliveriesQueue, batch),
			rows: batch, indexes: []string{"outbox_position"},
		},
		{
			name: "DeliveriesOfNobody", call: without(q.DeliveriesOfNobody),
			rows: 20, indexes: []string{"deliveries_(due|order)"},
		},
		{
			name: "DeliveryDueEndpoints", call: without(q.DeliveryDueEndpoints),
			rows: 10, indexes: []string{"deliveries_due"},
		},
		{
			name: "DeliveryClaim", call: with(q.DeliveryClaim, db.DeliveryClaimParams{Lease: time.Minute, Endpoints: []int64{1, 2}, Limits: []int32{batch, batch}, BlockingAttempts: 5}),
			rows: 2 * batch, indexes: []string{"deliveries_due", "deliveries_order", "deliveries_(pkey|event)", "outbox_pkey"},
		},
		{name: "DeliverySettle", call: with(q.DeliverySettle, db.DeliverySettleParams{
			Endpoints: many(int64(1)), EventIds: each("ecf"), Claims: many(int64(0)), Delivered: many(true), Gone: many(false),
			PauseMs: many(int64(0)), Statuses: many(int16(200)), Bodies: many([]byte{}), Errors: many(""), AttemptsMin: 5,
			Patience: time.Hour, HalfPatience: time.Hour,
		}), rows: batch, indexes: []string{"deliveries_(pkey|event)"}},
		{
			name: "EventDeliveries", call: with(q.EventDeliveries, "ecf9"),
			rows: 10, indexes: []string{"deliveries_(event|pkey)"},
		},
		{
			name: "EventResend", call: with(q.EventResend, db.EventResendParams{AccountID: "a", EventID: "ecf9"}),
			rows: 10, indexes: []string{"outbox_pkey"},
		},
		{name: "InboxStore", call: with(q.InboxStore, db.InboxStoreParams{
			Ids: each("n"), Types: many("charge.succeeded"), ObjectIds: each("ch"), Livemodes: many(false),
			Payloads: many([]byte("{}")), Kept: many(false), Results: many(""),
			Unreadable: many(""),
		}), rows: batch, indexes: []string{"charges_at_provider"}},
		{
			name: "InboxTake", call: with(q.InboxTake, db.InboxTakeParams{Lease: time.Minute, MaxRows: batch}),
			rows: batch, indexes: []string{"provider_events_due"},
		},
		{name: "InboxGet", call: with(q.InboxGet, "f9"), indexes: []string{"provider_events_pkey"}},
		{
			name: "InboxDone", call: with(q.InboxDone, db.InboxDoneParams{ID: "u9", Result: "done"}),
			indexes: []string{"provider_events_pkey"},
		},
		{
			name: "InboxFailed", call: with(q.InboxFailed, db.InboxFailedParams{ID: "u9"}),
			indexes: []string{"provider_events_pkey"},
		},
		{
			name: "InboxPark", call: with(q.InboxPark, db.InboxParkParams{ID: "u9"}),
			indexes: []string{"provider_events_pkey"},
		},
		{
			name: "InboxSweep", call: with(q.InboxSweep, db.InboxSweepParams{Ttl: time.Minute, MaxRows: batch}),
			rows: batch, indexes: []string{"provider_events_processed"},
		},
		{
			name: "InboxGauges", call: without(q.InboxGauges),
			rows: waiting, indexes: []string{"provider_events_due"},
		},
		{name: "ReceiptsHaveNew", call: without(q.ReceiptsHaveNew), indexes: []string{"outbox_position"}},
		{
			name: "ReceiptsRead", call: with(q.ReceiptsRead, db.ReceiptsReadParams{MaxRows: batch, Oldest: 24 * time.Hour}),
			rows: batch, indexes: []string{"outbox_position", "charges_pkey"},
		},
		{
			name: "ReceiptsClaim", call: with(q.ReceiptsClaim, db.ReceiptsClaimParams{Oldest: 24 * time.Hour, MaxRows: batch}),
			rows: batch, indexes: []string{"receipts_due", "receipts_pkey", "charges_pkey"},
		},
		{
			name: "ReceiptSettle", call: with(q.ReceiptSettle, db.ReceiptSettleParams{ChargeID: "cu9", Attempts: 1, State: "sent"}),
			indexes: []string{"receipts_pkey"},
		},
		{
			name: "ReceiptsAbandoned", call: with(q.ReceiptsAbandoned, time.Minute),
			rows: batch, indexes: []string{"receipts_sending"},
		},
		{
			name: "ReceiptsClean", call: with(q.ReceiptsClean, db.ReceiptsCleanParams{Ttl: time.Minute, MaxRows: batch}),
			rows: batch, indexes: []string{"receipts_created", "receipts_pkey"},
		},
		{
			name: "ReceiptGauge", call: with(q.ReceiptGauge, 24*time.Hour),
			indexes: []string{"outbox_position", "receipts_due"},
		},
	}
}

// with calls a statement that has arguments.
func with[A, R any](q func(context.Context, db.DBTX, A) (R, error), args A) call {
	return func(ctx context.Context, t db.DBTX) error {
		_, err := q(ctx, t, args)
		return err
	}
}

// told calls one that returns nothing.
func told[A any](q func(context.Context, db.DBTX, A) error, args A) call {
	return func(ctx context.Context, t db.DBTX) error { return q(ctx, t, args) }
}

// without calls one that has no arguments.
func without[R any](q func(context.Context, db.DBTX) (R, error)) call {
	return func(ctx context.Context, t db.DBTX) error {
		_, err := q(ctx, t)
		return err
	}
}

// many is one value for each row of a batch.
func many[T any](value T) []T {
	all := make([]T, batch)
	for i := range all {
		all[i] = value
	}
	return all
}

// each is an id for each row of a batch, of every second operation: those that are leased.
func each(prefix string) []string {
	all := make([]string, batch)
	for i := range all {
		all[i] = fmt.Sprint(prefix, 2*i+2)
	}
	return all
}

func text(s string) *string { return &s }
