export type ClientOptions = {
    baseUrl: `${string}://${string}` | (string & {});
};
/**
 * Exactly one of `customer` and `source` is required.
 */
export type ChargeParams = {
    /**
     * In minor units of the currency, 2000 being $20.00 and ¥2000. The provider may have a higher minimum.
     */
    amount: number;
    /**
     * The ISO 4217 code, in any letter case; answered in lower case.
     */
    currency: string;
    /**
     * A customer of the payment provider.
     */
    customer?: string;
    /**
     * A token of the payment provider. Card numbers are refused and not stored.
     */
    source?: string;
    /**
     * `false` authorises only.
     */
    capture?: boolean;
    /**
     * Your text.
     */
    description?: string;
    /**
     * Your own pairs of text: keys of 1 to 40 characters without square brackets, values of up to 500 characters. In a
     * form, `metadata[order]=6735`, and `metadata=` for no pairs. Keys that begin with `paidonce_` are reserved.
     *
     */
    metadata?: {
        [key: string]: string;
    };
    /**
     * What the card's statement shows after the operator's name. Printable ASCII without angle brackets, backslashes, asterisks and quotation marks.
     */
    statement_descriptor_suffix?: string;
    /**
     * Where a receipt is sent when the money is taken. By the provider, or, if the operator has set up a mail server, by this one, at most once.
     */
    receipt_email?: string;
};
/**
 * How much of the authorised payment to take.
 */
export type CaptureParams = {
    /**
     * How much to take, in minor units; all that is authorised when it is left out.
     */
    amount?: number;
};
/**
 * Which charge to give money of back, and how much.
 */
export type RefundParams = {
    /**
     * The charge to give money of back.
     */
    charge: string;
    /**
     * How much to give back, in minor units; all that is left when it is left out.
     */
    amount?: number;
    reason?: RefundReason;
    /**
     * Your own pairs of text, as those of a charge.
     */
    metadata?: {
        [key: string]: string;
    };
};
/**
 * Why: `duplicate`, `requested_by_customer`, or `fraudulent`, from which the provider learns.
 */
export type RefundReason = 'duplicate' | 'fraudulent' | 'requested_by_customer';
/**
 * A refund, with Stripe's names and types.
 */
export type Refund = {
    /**
     * Names the refund, here; later ones sort after it.
     */
    id: string;
    object: 'refund';
    /**
     * Minor units.
     */
    amount: number;
    /**
     * The charge whose money is given back.
     */
    charge: string;
    /**
     * Unix seconds.
     */
    created: number;
    /**
     * The charge's, an ISO 4217 code in lower case.
     */
    currency: string;
    /**
     * Why it failed, for programs.
     */
    failure_reason: string | null;
    /**
     * Your own pairs of text.
     */
    metadata: {
        [key: string]: string;
    };
    provider: ProviderReference;
    /**
     * One of those of the request, or null.
     */
    reason: string | null;
    /**
     * `pending`: no outcome is known yet, or the provider is at it; `requires_action`: it waits for the payer; `succeeded`, which may
     * still become `failed` days later; `failed` and `canceled`: no money was given back.
     *
     */
    status: 'pending' | 'requires_action' | 'succeeded' | 'failed' | 'canceled';
};
/**
 * A page of refunds, the newest first.
 */
export type RefundList = {
    object: 'list';
    url: '/v1/refunds';
    /**
     * Whether there are more, in the direction of the walk.
     */
    has_more: boolean;
    /**
     * Whole refunds, as `GET /v1/refunds/{id}` shows them.
     */
    data: Array<Refund>;
};
/**
 * An event of Stripe. Only these members are read, to know where it belongs.
 */
export type StripeEvent = {
    /**
     * An event is stored once by it.
     */
    id: string;
    object: 'event';
    /**
     * What happened; types that mean nothing here are stored only.
     */
    type: string;
    /**
     * `true`: real money; anything else: test money.
     */
    livemode?: boolean | null;
    /**
     * What the event is about.
     */
    data?: {
        /**
         * The provider's object, of which nothing but its id is believed.
         */
        object?: {
            /**
             * The object that it speaks of.
             */
            id?: string | null;
        } | null;
    } | null;
};
/**
 * That the event was taken.
 */
export type Received = {
    received: true;
};
/**
 * `pending`: no outcome is known yet; `succeeded`; `failed`: declined, refused, or proven not to have been made.
 */
export type ChargeStatus = 'pending' | 'succeeded' | 'failed';
/**
 * A charge, with Stripe's names and types.
 */
export type Charge = {
    /**
     * Names the charge, here; later ones sort after it.
     */
    id: string;
    object: 'charge';
    /**
     * Minor units.
     */
    amount: number;
    /**
     * Minor units taken.
     */
    amount_captured: number;
    /**
     * Minor units given back.
     */
    amount_refunded: number;
    /**
     * Whether the money was taken, rather than only authorised.
     */
    captured: boolean;
    /**
     * Unix seconds.
     */
    created: number;
    /**
     * An ISO 4217 code in lower case.
     */
    currency: string;
    /**
     * The provider's customer who pays; null when a source does.
     */
    customer: string | null;
    /**
     * Your text, as it was given.
     */
    description: string | null;
    /**
     * Whether the payer has, or had, the payment disputed with the bank.
     */
    disputed: boolean;
    /**
     * Why it failed, for programs.
     */
    failure_code: string | null;
    /**
     * Why it failed, for people.
     */
    failure_message: string | null;
    /**
     * `false`: test money.
     */
    livemode: boolean;
    /**
     * Your own pairs of text.
     */
    metadata: {
        [key: string]: string;
    };
    next_action?: NextAction;
    outcome: ChargeOutcome;
    /**
     * Whether the payment succeeded, or was authorised.
     */
    paid: boolean;
    provider: ProviderReference;
    /**
     * Where a receipt goes.
     */
    receipt_email: string | null;
    /**
     * Whether all of it was given back.
     */
    refunded: boolean;
    /**
     * What the card's statement shows after the operator's name.
     */
    statement_descriptor_suffix: string | null;
    status: ChargeStatus;
};
/**
 * What the payer has to do before a pending charge can go on; only there while that is so, with `STRIPE_FLOW=payment_intents`.
 */
export type NextAction = {
    /**
     * What to do, named like the member that has the details.
     */
    type: string;
    /**
     * Where the payer can authenticate.
     */
    redirect_to_url?: {
        /**
         * Where to send the payer.
         */
        url: string;
    };
};
/**
 * The provider's assessment; null until there is one.
 */
export type ChargeOutcome = {
    /**
     * What the card's network answered.
     */
    network_status: string | null;
    /**
     * Why, when there is a reason.
     */
    reason: string | null;
    /**
     * How risky the provider finds the payment.
     */
    risk_level: string | null;
    /**
     * The same for people, not for the payer.
     */
    seller_message: string | null;
    /**
     * The assessment in a word: whether it was authorised, and who declined it.
     */
    type: string;
} | null;
/**
 * Where it is found at the payment provider.
 */
export type ProviderReference = {
    /**
     * Which payment provider it is.
     */
    name: string;
    /**
     * The id there; null until the provider is known to have it.
     */
    id: string | null;
};
/**
 * A page of charges, the newest first.
 */
export type ChargeList = {
    object: 'list';
    url: '/v1/charges';
    /**
     * Whether there are more, in the direction of the walk.
     */
    has_more: boolean;
    /**
     * Whole charges, as `GET /v1/charges/{id}` shows them.
     */
    data: Array<Charge>;
};
/**
 * What came true.
 */
export type EventType = 'charge.pending' | 'charge.succeeded' | 'charge.failed' | 'charge.captured' | 'charge.refunded' | 'charge.updated' | 'charge.dispute.created' | 'charge.dispute.closed' | 'refund.created' | 'refund.updated' | 'refund.failed';
/**
 * Something that came true. Its bytes never change: every reader, every delivery and every stream gets the same. `docs/events.md` says when
 * each type comes true.
 *
 */
export type Event = {
    /**
     * Dedupe by it: an event is delivered at least once.
     */
    id: string;
    object: 'event';
    /**
     * The version of Stripe's API whose shapes these are.
     */
    api_version: string;
    /**
     * In Unix seconds.
     */
    created: number;
    /**
     * What it came true of.
     */
    data: {
        /**
         * The whole object as `GET` showed it when the event came true.
         */
        object: Charge | Refund;
    };
    /**
     * `false`: test money.
     */
    livemode: boolean;
    /**
     * Of the events of one object, from 1 without gaps: a higher one is newer, whatever arrived first.
     */
    sequence: number;
    type: EventType;
};
/**
 * `asc`: the oldest event first; `desc`: the newest first.
 */
export type EventOrder = 'asc' | 'desc';
/**
 * A page of events, in the order that was asked for.
 */
export type EventList = {
    object: 'list';
    url: '/v1/events';
    /**
     * Whether there are more already.
     */
    has_more: boolean;
    /**
     * The events, each with the bytes that are delivered.
     */
    data: Array<Event>;
};
/**
 * To whom to deliver the event again.
 */
export type EventResendParams = {
    /**
     * The id of the one endpoint that gets the event; all that want it when it is left out.
     */
    webhook_endpoint?: string;
};
/**
 * A repeated delivery of an event.
 */
export type EventResend = {
    object: 'event_resend';
    /**
     * The event that is delivered again.
     */
    event: string;
    /**
     * How many endpoints it is queued for; a disabled one takes none.
     */
    deliveries: number;
};
/**
 * All that is to be known of an endpoint.
 */
export type WebhookEndpointParams = {
    /**
     * Your text.
     */
    description?: string;
    /**
     * The types of events that are sent, or `["*"]` for all, those of later versions too.
     *
     */
    enabled_events?: Array<string>;
    /**
     * Where events are sent by POST: http or https, without user, password or fragment, on the public Internet.
     */
    url: string;
};
/**
 * The same as a form.
 */
export type WebhookEndpointForm = {
    /**
     * Your text.
     */
    description?: string;
    /**
     * `enabled_events[]=charge.succeeded`, once for each type, or with indices as Stripe's libraries write it: `enabled_events[0]=…`.
     *
     */
    'enabled_events[]'?: Array<string>;
    /**
     * Where events are sent by POST: http or https, without user, password or fragment, on the public Internet.
     */
    url: string;
};
/**
 * Where events of the account are sent.
 */
export type WebhookEndpoint = {
    /**
     * The name that you gave it.
     */
    id: string;
    object: 'webhook_endpoint';
    /**
     * When it was registered for the first time, in Unix seconds.
     */
    created: number;
    /**
     * Your text, as it was given.
     */
    description: string | null;
    /**
     * Since when nothing is sent, in Unix seconds; null while enabled. Registering it again enables it.
     */
    disabled_at: number | null;
    /**
     * Why it was disabled; null while enabled.
     */
    disabled_reason: string | null;
    /**
     * In sorted order, each once.
     */
    enabled_events: Array<string>;
    /**
     * What deliveries are signed with.
     */
    secret: string;
    /**
     * `enabled`: events are sent; `disabled`: they wait until it is registered again.
     */
    status: 'enabled' | 'disabled';
    /**
     * Where events are sent by POST.
     */
    url: string;
};
/**
 * All webhook endpoints of the account.
 */
export type WebhookEndpointList = {
    object: 'list';
    url: '/v1/webhook_endpoints';
    /**
     * `false`: there are never more.
     */
    has_more: boolean;
    /**
     * The endpoints, in the order of their ids.
     */
    data: Array<WebhookEndpoint>;
};
/**
 * What is left of a webhook endpoint that was deleted.
 */
export type DeletedWebhookEndpoint = {
    /**
     * The name that you gave it.
     */
    id: string;
    object: 'webhook_endpoint';
    /**
     * `true`.
     */
    deleted: boolean;
};
/**
 * Bounds on a time in Unix seconds; several hold together.
 */
export type TimeRange = {
    /**
     * Later than.
     */
    gt?: number;
    /**
     * At that time or later.
     */
    gte?: number;
    /**
     * Earlier than.
     */
    lt?: number;
    /**
     * At that time or earlier.
     */
    lte?: number;
};
/**
 * An idempotency key and the operation that it stands for.
 */
export type IdempotencyKey = {
    object: 'idempotency_key';
    /**
     * What the request named, without quotes.
     */
    key: string;
    /**
     * `in_progress`: no outcome is known yet; `completed`: the answer is stored and replayed; `failed`: proven that
     * nothing moved, and the same request under the same key runs anew.
     *
     */
    status: 'in_progress' | 'completed' | 'failed';
    /**
     * Where the operation stands and would be resumed, such as `started` or `finished`.
     */
    recovery_point: string;
    /**
     * How many times the operation was driven.
     */
    attempts: number;
    /**
     * Also in the provider's metadata.
     */
    operation: string;
    /**
     * The object that the operation makes or changes.
     */
    resource: string;
    /**
     * Whether a person has to decide.
     */
    parked: boolean;
    /**
     * The stored status; null until there is one.
     */
    response_code: number | null;
    /**
     * The `Request-Id` of the request that claimed the key.
     */
    original_request: string;
    /**
     * When the key was claimed, in Unix seconds.
     */
    created: number;
    /**
     * From when on the key may be used anew, in Unix seconds; null while unfinished.
     */
    expires_at: number | null;
};
/**
 * Every answer that is not a success. The section Errors lists all codes.
 */
export type Error = {
    /**
     * What is wrong, in Stripe's shape.
     */
    error: {
        /**
         * What sort of error it is: `invalid_request_error`, of the request; `card_error`, a declined payment; `idempotency_error`, of the
         * key; `authentication_error`, of the API key; `rate_limit_error`, too many requests; `api_error`, of this server or the provider.
         *
         */
        type: 'api_error' | 'authentication_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error' | 'rate_limit_error';
        /**
         * For programs; the section Errors lists them.
         */
        code?: string;
        /**
         * For people.
         */
        message: string;
        /**
         * The parameter at fault, such as `metadata[order]`.
         */
        param?: string;
        /**
         * Why the card's issuer declined, when it says.
         */
        decline_code?: string;
        /**
         * The charge that the request stands for.
         */
        charge?: string;
        /**
         * The `Request-Id` of the exchange that the error was made for.
         */
        request_id: string;
        /**
         * `retry_same_key`: send the same request again, with the same key; `fix_and_use_new_key`: change the request,
         * and send it under a new key; `stop`: no retry helps.
         *
         */
        advice: 'retry_same_key' | 'fix_and_use_new_key' | 'stop';
    };
};
/**
 * That the process, or the whole service, is well.
 */
export type Health = {
    status: 'ok';
};
/**
 * Names the work: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` names
 * the same key as `abc`. Use a new random value (a UUID, say) for each payment and the same one for each retry of it.
 *
 */
export type KeyHeader = string;
/**
 * Not needed here. With one, the work is done once for it, and every request of the same key and content gets the first answer; its form is the
 * same as elsewhere.
 *
 */
export type OptionalKeyHeader = string;
/**
 * RFC 7240. `wait=N` waits up to N seconds (at most 30) for a result of the same request that is running already,
 * instead of answering 409 at once. What cannot be read is ignored.
 *
 */
export type PreferHeader = string;
export type ListChargesData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * How many to return at most.
         */
        limit?: number;
        /**
         * The id of a charge; the page begins with the next older one. Not together with `ending_before`.
         */
        starting_after?: string;
        /**
         * The id of a charge; the page ends with the next newer one. Not together with `starting_after`.
         */
        ending_before?: string;
        /**
         * Bounds on the time of creation in Unix seconds, such as `created[gte]=1764403200`.
         */
        created?: TimeRange;
        /**
         * Only charges of this customer of the payment provider.
         */
        customer?: string;
        /**
         * Only charges in this state.
         */
        status?: ChargeStatus;
    };
    url: '/v1/charges';
};
export type ListChargesErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ListChargesError = ListChargesErrors[keyof ListChargesErrors];
export type ListChargesResponses = {
    /**
     * A page of charges.
     */
    200: ChargeList;
};
export type ListChargesResponse = ListChargesResponses[keyof ListChargesResponses];
export type CreateChargeData = {
    body: ChargeParams;
    headers: {
        /**
         * Names the work: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` names
         * the same key as `abc`. Use a new random value (a UUID, say) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. `wait=N` waits up to N seconds (at most 30) for a result of the same request that is running already,
         * instead of answering 409 at once. What cannot be read is ignored.
         *
         */
        Prefer?: string;
    };
    path?: never;
    query?: never;
    url: '/v1/charges';
};
export type CreateChargeErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge cannot be captured or refunded like that as things stand; or the provider
     * refused the request as such. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The payment was declined. This is an answer: it is stored and replayed.
     */
    402: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running.
     */
    409: Error;
    /**
     * The body is larger than this installation takes (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here, or the operation needs a person (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `refund_never_made`). The same request with the same key is the right retry.
     *
     */
    503: Error;
};
export type CreateChargeError = CreateChargeErrors[keyof CreateChargeErrors];
export type CreateChargeResponses = {
    /**
     * The charge was made. Its `status` is `succeeded`, or `pending` when the provider itself says so.
     */
    201: Charge;
};
export type CreateChargeResponse = CreateChargeResponses[keyof CreateChargeResponses];
export type GetChargeData = {
    body?: never;
    path: {
        /**
         * The charge's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/charges/{id}';
};
export type GetChargeErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * There is no such thing, or it is not yours.
     */
    404: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetChargeError = GetChargeErrors[keyof GetChargeErrors];
export type GetChargeResponses = {
    /**
     * The charge.
     */
    200: Charge;
};
export type GetChargeResponse = GetChargeResponses[keyof GetChargeResponses];
export type CaptureChargeData = {
    body?: CaptureParams;
    headers: {
        /**
         * Names the work: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` names
         * the same key as `abc`. Use a new random value (a UUID, say) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. `wait=N` waits up to N seconds (at most 30) for a result of the same request that is running already,
         * instead of answering 409 at once. What cannot be read is ignored.
         *
         */
        Prefer?: string;
    };
    path: {
        /**
         * The charge's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/charges/{id}/capture';
};
export type CaptureChargeErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge cannot be captured or refunded like that as things stand; or the provider
     * refused the request as such. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * There is no such charge, or it is not yours. The key is not spent.
     */
    404: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or an operation of the charge whose outcome is not known yet stands in the way
     * (`charge_pending`, `capture_pending`, `refund_pending`). The same request with the same key is the right retry.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation takes (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here, or the operation needs a person (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `refund_never_made`). The same request with the same key is the right retry.
     *
     */
    503: Error;
};
export type CaptureChargeError = CaptureChargeErrors[keyof CaptureChargeErrors];
export type CaptureChargeResponses = {
    /**
     * The charge, captured.
     */
    200: Charge;
};
export type CaptureChargeResponse = CaptureChargeResponses[keyof CaptureChargeResponses];
export type ListRefundsData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * Only refunds of this charge.
         */
        charge?: string;
        /**
         * How many to return at most.
         */
        limit?: number;
        /**
         * The id of a refund; the page begins with the next older one. Not together with `ending_before`.
         */
        starting_after?: string;
        /**
         * The id of a refund; the page ends with the next newer one. Not together with `starting_after`.
         */
        ending_before?: string;
    };
    url: '/v1/refunds';
};
export type ListRefundsErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ListRefundsError = ListRefundsErrors[keyof ListRefundsErrors];
export type ListRefundsResponses = {
    /**
     * A page of refunds.
     */
    200: RefundList;
};
export type ListRefundsResponse = ListRefundsResponses[keyof ListRefundsResponses];
export type CreateRefundData = {
    body: RefundParams;
    headers: {
        /**
         * Names the work: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` names
         * the same key as `abc`. Use a new random value (a UUID, say) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. `wait=N` waits up to N seconds (at most 30) for a result of the same request that is running already,
         * instead of answering 409 at once. What cannot be read is ignored.
         *
         */
        Prefer?: string;
    };
    path?: never;
    query?: never;
    url: '/v1/refunds';
};
export type CreateRefundErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge cannot be captured or refunded like that as things stand; or the provider
     * refused the request as such. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * There is no such charge, or it is not yours. The key is not spent.
     */
    404: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or an operation of the charge whose outcome is not known yet stands in the way
     * (`charge_pending`, `capture_pending`, `refund_pending`). The same request with the same key is the right retry.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation takes (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here, or the operation needs a person (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `refund_never_made`). The same request with the same key is the right retry.
     *
     */
    503: Error;
};
export type CreateRefundError = CreateRefundErrors[keyof CreateRefundErrors];
export type CreateRefundResponses = {
    /**
     * The refund was made. Its `status` is `succeeded`, or `pending` while the provider is at it.
     */
    201: Refund;
};
export type CreateRefundResponse = CreateRefundResponses[keyof CreateRefundResponses];
export type GetRefundData = {
    body?: never;
    path: {
        /**
         * The refund's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/refunds/{id}';
};
export type GetRefundErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * There is no such thing, or it is not yours.
     */
    404: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetRefundError = GetRefundErrors[keyof GetRefundErrors];
export type GetRefundResponses = {
    /**
     * The refund.
     */
    200: Refund;
};
export type GetRefundResponse = GetRefundResponses[keyof GetRefundResponses];
export type ListEventsData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * Only events of this type.
         */
        type?: EventType;
        /**
         * The id of an event, of any type; the page begins with the next one.
         */
        starting_after?: string;
        /**
         * `desc`: the newest first. Such a page tells where things stand (`order=desc&limit=1` is the last event); what comes later is
         * read forwards, from there on.
         *
         */
        order?: EventOrder;
        /**
         * How many to return at most.
         */
        limit?: number;
    };
    url: '/v1/events';
};
export type ListEventsErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ListEventsError = ListEventsErrors[keyof ListEventsErrors];
export type ListEventsResponses = {
    /**
     * A page of events. Each has the bytes that are delivered.
     */
    200: EventList;
};
export type ListEventsResponse = ListEventsResponses[keyof ListEventsResponses];
export type GetEventData = {
    body?: never;
    path: {
        /**
         * The event's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/events/{id}';
};
export type GetEventErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * There is no such thing, or it is not yours.
     */
    404: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetEventError = GetEventErrors[keyof GetEventErrors];
export type GetEventResponses = {
    /**
     * The event.
     */
    200: Event;
};
export type GetEventResponse = GetEventResponses[keyof GetEventResponses];
export type ResendEventData = {
    body?: EventResendParams;
    headers?: {
        /**
         * Not needed here. With one, the work is done once for it, and every request of the same key and content gets the first answer; its form is the
         * same as elsewhere.
         *
         */
        'Idempotency-Key'?: string;
    };
    path: {
        /**
         * The event's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/events/{id}/resend';
};
export type ResendEventErrors = {
    /**
     * A parameter, the body, or the `Idempotency-Key` is wrong; or the account has as many endpoints as it can have.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * There is no such thing, or it is not yours.
     */
    404: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The body is larger than this installation takes (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ResendEventError = ResendEventErrors[keyof ResendEventErrors];
export type ResendEventResponses = {
    /**
     * It is queued.
     */
    200: EventResend;
};
export type ResendEventResponse = ResendEventResponses[keyof ResendEventResponses];
export type ListWebhookEndpointsData = {
    body?: never;
    path?: never;
    query?: never;
    url: '/v1/webhook_endpoints';
};
export type ListWebhookEndpointsErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ListWebhookEndpointsError = ListWebhookEndpointsErrors[keyof ListWebhookEndpointsErrors];
export type ListWebhookEndpointsResponses = {
    /**
     * The endpoints.
     */
    200: WebhookEndpointList;
};
export type ListWebhookEndpointsResponse = ListWebhookEndpointsResponses[keyof ListWebhookEndpointsResponses];
export type DeleteWebhookEndpointData = {
    body?: never;
    path: {
        /**
         * The endpoint's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/webhook_endpoints/{id}';
};
export type DeleteWebhookEndpointErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * There is no such thing, or it is not yours.
     */
    404: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type DeleteWebhookEndpointError = DeleteWebhookEndpointErrors[keyof DeleteWebhookEndpointErrors];
export type DeleteWebhookEndpointResponses = {
    /**
     * It is deleted.
     */
    200: DeletedWebhookEndpoint;
};
export type DeleteWebhookEndpointResponse = DeleteWebhookEndpointResponses[keyof DeleteWebhookEndpointResponses];
export type GetWebhookEndpointData = {
    body?: never;
    path: {
        /**
         * The endpoint's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/webhook_endpoints/{id}';
};
export type GetWebhookEndpointErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * There is no such thing, or it is not yours.
     */
    404: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetWebhookEndpointError = GetWebhookEndpointErrors[keyof GetWebhookEndpointErrors];
export type GetWebhookEndpointResponses = {
    /**
     * The endpoint.
     */
    200: WebhookEndpoint;
};
export type GetWebhookEndpointResponse = GetWebhookEndpointResponses[keyof GetWebhookEndpointResponses];
export type PutWebhookEndpointData = {
    body: WebhookEndpointParams;
    path: {
        /**
         * Your name for the endpoint: letters, digits, dots, dashes and underscores, a letter or a digit first.
         */
        id: string;
    };
    query?: never;
    url: '/v1/webhook_endpoints/{id}';
};
export type PutWebhookEndpointErrors = {
    /**
     * A parameter, the body, or the `Idempotency-Key` is wrong; or the account has as many endpoints as it can have.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The body is larger than this installation takes (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type PutWebhookEndpointError = PutWebhookEndpointErrors[keyof PutWebhookEndpointErrors];
export type PutWebhookEndpointResponses = {
    /**
     * The endpoint, as it is now; it was registered before.
     */
    200: WebhookEndpoint;
    /**
     * The endpoint is new.
     */
    201: WebhookEndpoint;
};
export type PutWebhookEndpointResponse = PutWebhookEndpointResponses[keyof PutWebhookEndpointResponses];
export type RotateWebhookEndpointSecretData = {
    body?: never;
    headers?: {
        /**
         * Not needed here. With one, the work is done once for it, and every request of the same key and content gets the first answer; its form is the
         * same as elsewhere.
         *
         */
        'Idempotency-Key'?: string;
    };
    path: {
        /**
         * The endpoint's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/webhook_endpoints/{id}/rotate_secret';
};
export type RotateWebhookEndpointSecretErrors = {
    /**
     * A parameter, the body, or the `Idempotency-Key` is wrong; or the account has as many endpoints as it can have.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * There is no such thing, or it is not yours.
     */
    404: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The body is larger than this installation takes (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type RotateWebhookEndpointSecretError = RotateWebhookEndpointSecretErrors[keyof RotateWebhookEndpointSecretErrors];
export type RotateWebhookEndpointSecretResponses = {
    /**
     * The endpoint, with the new secret.
     */
    200: WebhookEndpoint;
};
export type RotateWebhookEndpointSecretResponse = RotateWebhookEndpointSecretResponses[keyof RotateWebhookEndpointSecretResponses];
export type ReceiveStripeEventData = {
    body: StripeEvent;
    headers: {
        /**
         * Stripe's signature of the body, one header line.
         */
        'Stripe-Signature': string;
    };
    path?: never;
    query?: never;
    url: '/v1/provider/stripe/webhooks';
};
export type ReceiveStripeEventErrors = {
    /**
     * The signature does not match, the body is not an event, or no secret is configured. Nothing is stored.
     */
    400: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The body is larger than this installation takes (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ReceiveStripeEventError = ReceiveStripeEventErrors[keyof ReceiveStripeEventErrors];
export type ReceiveStripeEventResponses = {
    /**
     * The event is stored, now or before.
     */
    200: Received;
};
export type ReceiveStripeEventResponse = ReceiveStripeEventResponses[keyof ReceiveStripeEventResponses];
export type GetIdempotencyKeyData = {
    body?: never;
    path: {
        /**
         * The key as it was sent in `Idempotency-Key`, percent-encoded where needed (`/` is `%2F`). One that was sent in
         * quotes, as a structured field is, is found with them (`%22…%22`) and without.
         *
         */
        key: string;
    };
    query?: never;
    url: '/v1/idempotency_keys/{key}';
};
export type GetIdempotencyKeyErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * There is no such thing, or it is not yours.
     */
    404: Error;
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetIdempotencyKeyError = GetIdempotencyKeyErrors[keyof GetIdempotencyKeyErrors];
export type GetIdempotencyKeyResponses = {
    /**
     * The key.
     */
    200: IdempotencyKey;
};
export type GetIdempotencyKeyResponse = GetIdempotencyKeyResponses[keyof GetIdempotencyKeyResponses];
export type GetHealthData = {
    body?: never;
    path?: never;
    query?: never;
    url: '/healthz';
};
export type GetHealthErrors = {
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * A fault here.
     */
    500: Error;
};
export type GetHealthError = GetHealthErrors[keyof GetHealthErrors];
export type GetHealthResponses = {
    /**
     * Yes.
     */
    200: Health;
};
export type GetHealthResponse = GetHealthResponses[keyof GetHealthResponses];
export type GetReadinessData = {
    body?: never;
    path?: never;
    query?: never;
    url: '/readyz';
};
export type GetReadinessErrors = {
    /**
     * The path does not have the method.
     */
    405: Error;
    /**
     * A fault here.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetReadinessError = GetReadinessErrors[keyof GetReadinessErrors];
export type GetReadinessResponses = {
    /**
     * Yes.
     */
    200: Health;
};
export type GetReadinessResponse = GetReadinessResponses[keyof GetReadinessResponses];
