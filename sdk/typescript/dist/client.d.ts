import type { CaptureParams, Charge, ChargeList, ChargeParams, DeletedWebhookEndpoint, Event, EventList, EventResend, EventResendParams, IdempotencyKey, ListChargesData, ListEventsData, ListRefundsData, Refund, RefundList, RefundParams, WebhookEndpoint, WebhookEndpointList, WebhookEndpointParams } from './generated/types.gen.js';
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
        retrieve: (id: string) => Promise<Result<Charge>>;
        /** A page of charges, newest first. */
        list: (query?: Query<ListChargesData>) => Promise<Result<ChargeList>>;
        /** All charges, newest first, page after page. */
        all: (query?: Query<ListChargesData>) => AsyncGenerator<Charge>;
    };
    /** Giving money back. */
    readonly refunds: {
        /** Gives money back, once for the operation's name. */
        create: (operation: string, params: RefundParams) => Promise<Result<Refund>>;
        retrieve: (id: string) => Promise<Result<Refund>>;
        /** A page of refunds, newest first. */
        list: (query?: Query<ListRefundsData>) => Promise<Result<RefundList>>;
        /** All refunds, newest first, page after page. */
        all: (query?: Query<ListRefundsData>) => AsyncGenerator<Refund>;
    };
    readonly idempotencyKeys: {
        /** What became of a key. */
        retrieve: (key: string) => Promise<Result<IdempotencyKey>>;
    };
    /** What came true. */
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
        retrieve: (id: string) => Promise<Result<WebhookEndpoint>>;
        /** All endpoints, 50 at most; there are no pages. */
        list: () => Promise<Result<WebhookEndpointList>>;
        /** Forgets an endpoint and what is queued for it. A 404 may mean that an earlier attempt of yours did it. */
        delete: (id: string) => Promise<Result<DeletedWebhookEndpoint>>;
        /** Makes a new secret; the ones before sign, too, for another 24 hours. One for each call, whatever answers are lost. */
        rotateSecret: (id: string) => Promise<Result<WebhookEndpoint>>;
    };
}
export {};
