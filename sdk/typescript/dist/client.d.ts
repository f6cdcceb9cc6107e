import type { CaptureParams, Charge, ChargeList, ChargeParams, DeletedWebhookEndpoint, Dispute, DisputeList, Event, EventList, EventResend, EventResendParams, IdempotencyKey, ListChargesData, ListDisputesData, ListEventsData, ListPaymentIntentsData, ListRefundsData, PaymentIntent, PaymentIntentCancelParams, PaymentIntentCaptureParams, PaymentIntentConfirmParams, PaymentIntentList, PaymentIntentParams, PaymentIntentUpdateParams, Refund, RefundList, RefundParams, WebhookEndpoint, WebhookEndpointCreateParams, WebhookEndpointList, WebhookEndpointParams, WebhookEndpointUpdated, WebhookEndpointUpdateParams } from './generated/types.gen.js';
import { Operations, type Result } from './operations.js';
import { type ExchangerOptions } from './retry.js';
import type { OperationStore } from './store.js';
export interface PaidonceOptions extends ExchangerOptions {
    /** Where operations are kept. */
    store: OperationStore;
    /** From what age on an unfinished operation is not sent again, in milliseconds; below the server's retention of keys. Default: 23 hours. */
    maxAgeMs?: number;
}
type Query<T extends {
    query?: unknown;
}> = NonNullable<T['query']>;
/** A refund or dispute has the id of its charge here; to read the whole charge, retrieve it. */
type IdOnly<T> = Omit<T, 'expand' | 'expand[]'>;
/** A client of a Paidonce installation. */
export declare class Paidonce {
    #private;
    readonly operations: Operations;
    constructor(options: PaidonceOptions);
    /** Taking money. Each write takes the name of its operation, your own, first: it is done once for the name. */
    readonly charges: {
        /** Charges once for the operation's name, however often and from wherever it is called. */
        create: (operation: string, params: ChargeParams) => Promise<Result<Charge>>;
        /** Takes the money of a charge that was made with `capture: false`, all of it or the amount that the parameters name. */
        capture: (operation: string, id: string, params?: CaptureParams) => Promise<Result<Charge>>;
        /** Lets go of a charge that was made with `capture: false`, or ends one that waits for its payer. */
        cancel: (operation: string, id: string) => Promise<Result<Charge>>;
        retrieve: (id: string) => Promise<Result<Charge>>;
        /** A page of charges, newest first. */
        list: (query?: Query<ListChargesData>) => Promise<Result<ChargeList>>;
        /** All charges, newest first, page after page. */
        all: (query?: Query<ListChargesData>) => AsyncGenerator<Charge>;
    };
    /** Taking money from payers who may have to do something first. Each write that can move money takes the name of its operation first. */
    readonly paymentIntents: {
        /** Makes a payment intent once for the operation's name; with `confirm: true` it is confirmed at once. */
        create: (operation: string, params: PaymentIntentParams) => Promise<Result<PaymentIntent>>;
        /** Charges what the intent was made for. After a decline, confirm it again under another operation's name. */
        confirm: (operation: string, id: string, params?: PaymentIntentConfirmParams) => Promise<Result<PaymentIntent>>;
        /** Takes the money of an intent that was made with `capture_method: 'manual'`, all of it or the amount that the parameters name. */
        capture: (operation: string, id: string, params?: PaymentIntentCaptureParams) => Promise<Result<PaymentIntent>>;
        /** Ends an intent that nobody has paid, or lets go of what it holds. */
        cancel: (operation: string, id: string, params?: PaymentIntentCancelParams) => Promise<Result<PaymentIntent>>;
        /** Changes what the parameters name of an intent; what was paid, only in words. */
        update: (id: string, params: PaymentIntentUpdateParams) => Promise<Result<PaymentIntent>>;
        retrieve: (id: string) => Promise<Result<PaymentIntent>>;
        /** A page of payment intents, newest first. */
        list: (query?: Query<ListPaymentIntentsData>) => Promise<Result<PaymentIntentList>>;
        /** All payment intents, newest first, page after page. */
        all: (query?: Query<ListPaymentIntentsData>) => AsyncGenerator<PaymentIntentList["data"][number]>;
    };
    /** Giving money back. */
    readonly refunds: {
        /** Gives money back, once for the operation's name. */
        create: (operation: string, params: IdOnly<RefundParams>) => Promise<Result<Refund>>;
        retrieve: (id: string) => Promise<Result<Refund>>;
        /** A page of refunds, newest first. */
        list: (query?: IdOnly<Query<ListRefundsData>>) => Promise<Result<RefundList>>;
        /** All refunds, newest first, page after page. */
        all: (query?: IdOnly<Query<ListRefundsData>>) => AsyncGenerator<Refund>;
    };
    /** What payers dispute with their bank; read only. */
    readonly disputes: {
        retrieve: (id: string) => Promise<Result<Dispute>>;
        /** A page of disputes, newest first. */
        list: (query?: IdOnly<Query<ListDisputesData>>) => Promise<Result<DisputeList>>;
        /** All disputes, newest first, page after page. */
        all: (query?: IdOnly<Query<ListDisputesData>>) => AsyncGenerator<Dispute>;
    };
    readonly idempotencyKeys: {
        /** What became of a key. */
        retrieve: (key: string) => Promise<Result<IdempotencyKey>>;
    };
    /** What happened. */
    readonly events: {
        retrieve: (id: string) => Promise<Result<Event>>;
        /** A page of events, oldest first unless the query says otherwise. */
        list: (query?: Query<ListEventsData>) => Promise<Result<EventList>>;
        /**
         * All events there are now, oldest first unless the query says otherwise, page after page. Keep the id of the last one and come back later
         * with it as `starting_after`: nothing is missed, and nothing comes twice. An InvalidRequestError with the code `resource_missing` says that
         * the event of `starting_after` is no longer kept.
         */
        all: (query?: Query<ListEventsData>) => AsyncGenerator<Event>;
        /**
         * Has the event delivered once more, under the same id: to all endpoints that want it, or to the one that the parameters name. Once for each
         * call, whatever answers are lost.
         */
        resend: (id: string, params?: EventResendParams) => Promise<Result<EventResend>>;
    };
    /** Where events are delivered. You name an endpoint, so putting the same once more changes nothing and no operation is kept. */
    readonly webhookEndpoints: {
        /**
         * Registers an endpoint under an id of your choice, or replaces what was registered under it; the secret stays. It may be repeated as often
         * as you like, so call it whenever your program starts. The answer has the secret that signs.
         */
        put: (id: string, params: WebhookEndpointParams) => Promise<Result<WebhookEndpoint>>;
        /** Registers an endpoint under a new id. One for each call, whatever answers are lost: a program that registers itself whenever it starts puts. */
        create: (params: WebhookEndpointCreateParams) => Promise<Result<WebhookEndpoint>>;
        /** Changes what the parameters name. The answer has no secret. */
        update: (id: string, params: WebhookEndpointUpdateParams) => Promise<Result<WebhookEndpointUpdated>>;
        retrieve: (id: string) => Promise<Result<WebhookEndpoint>>;
        /** All endpoints, 50 at most, the newest first. */
        list: () => Promise<Result<WebhookEndpointList>>;
        /** Forgets an endpoint and what is queued for it. A 404 may mean that an earlier attempt of yours did it. */
        delete: (id: string) => Promise<Result<DeletedWebhookEndpoint>>;
        /** Makes a new secret; the ones before sign, too, for another 24 hours. One for each call, whatever answers are lost. */
        rotateSecret: (id: string) => Promise<Result<WebhookEndpoint>>;
    };
}
export {};
