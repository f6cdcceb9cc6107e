import type {
  CaptureParams, Charge, ChargeList, ChargeParams, DeletedWebhookEndpoint, Dispute, DisputeList, Event, EventList, EventResend, EventResendParams,
  IdempotencyKey, ListChargesData, ListDisputesData, ListEventsData, ListPaymentIntentsData, ListRefundsData, PaymentIntent,
  PaymentIntentCancelParams, PaymentIntentCaptureParams, PaymentIntentConfirmParams, PaymentIntentList, PaymentIntentParams,
  PaymentIntentUpdateParams, Refund, RefundList, RefundParams, WebhookEndpoint,
  WebhookEndpointCreateParams, WebhookEndpointList, WebhookEndpointParams, WebhookEndpointUpdated, WebhookEndpointUpdateParams,
} from './generated/types.gen.js';
import { canonical, Operations, resultOf, type Result } from './operations.js';
import { Exchanger, type ExchangerOptions, type Outgoing } from './retry.js';
import type { OperationStore } from './store.js';

export interface PaidonceOptions extends ExchangerOptions {
  /** Where operations are kept. */
  store: OperationStore;
  /** From what age on an unfinished operation is not sent again, in milliseconds; below the server's retention of keys. Default: 23 hours. */
  maxAgeMs?: number;
}

type Query<T extends { query?: unknown }> = NonNullable<T['query']>;
/** A refund or dispute has the id of its charge here; to read the whole charge, retrieve it. */
type IdOnly<T> = Omit<T, 'expand' | 'expand[]'>;
type Page<T> = { has_more: boolean; data: Array<T> };

/** Milliseconds: below the 24 hours for which a server keeps its keys unless configured otherwise. */
const maxAge = 23 * 3600 * 1000;
/** The most that a list returns at once. */
const fullPage = 100;

/** A client of a Paidonce installation. */
export class Paidonce {
  readonly operations: Operations;
  readonly #exchanger: Exchanger;

  constructor(options: PaidonceOptions) {
    const { store, maxAgeMs = maxAge } = options;
    if (!(maxAgeMs > 0)) throw new TypeError('maxAgeMs has to be a positive number of milliseconds');
    this.#exchanger = new Exchanger(options);
    this.operations = new Operations(this.#exchanger, store, maxAgeMs);
  }

  /** Taking money. Each write takes the name of its operation, your own, first: it is done once for the name. */
  readonly charges = {
    /** Charges once for the operation's name, however often and from wherever it is called. */
    create: async (operation: string, params: ChargeParams): Promise<Result<Charge>> => this.operations.run(operation, '/v1/charges', params),
    /** Takes the money of a charge that was made with `capture: false`, all of it or the amount that the parameters name. */
    capture: async (operation: string, id: string, params: CaptureParams = {}): Promise<Result<Charge>> =>
      this.operations.run(operation, `/v1/charges/${segment(id)}/capture`, params),
    /** Lets go of a charge that was made with `capture: false`, or ends one that waits for its payer. */
    cancel: async (operation: string, id: string): Promise<Result<Charge>> => this.operations.run(operation, `/v1/charges/${segment(id)}/cancel`, {}),
    retrieve: async (id: string): Promise<Result<Charge>> => this.#get(`/v1/charges/${segment(id)}`, 'charge'),
    /** A page of charges, newest first. */
    list: async (query: Query<ListChargesData> = {}): Promise<Result<ChargeList>> => this.#get(`/v1/charges${queryOf(query)}`, 'list'),
    /** All charges, newest first, page after page. */
    all: (query: Query<ListChargesData> = {}): AsyncGenerator<Charge> => walk(query, (q) => this.charges.list(q)),
  };

  /** Taking money from payers who may have to do something first. Each write that can move money takes the name of its operation first. */
  readonly paymentIntents = {
    /** Makes a payment intent once for the operation's name; with `confirm: true` it is confirmed at once. */
    create: async (operation: string, params: PaymentIntentParams): Promise<Result<PaymentIntent>> => this.operations.run(operation, intents, params),
    /** Charges what the intent was made for. After a decline, confirm it again under another operation's name. */
    confirm: async (operation: string, id: string, params: PaymentIntentConfirmParams = {}): Promise<Result<PaymentIntent>> =>
      this.operations.run(operation, `${intent(id)}/confirm`, params),
    /** Takes the money of an intent that was made with `capture_method: 'manual'`, all of it or the amount that the parameters name. */
    capture: async (operation: string, id: string, params: PaymentIntentCaptureParams = {}): Promise<Result<PaymentIntent>> =>
      this.operations.run(operation, `${intent(id)}/capture`, params),
    /** Ends an intent that nobody has paid, or lets go of what it holds. */
    cancel: async (operation: string, id: string, params: PaymentIntentCancelParams = {}): Promise<Result<PaymentIntent>> =>
      this.operations.run(operation, `${intent(id)}/cancel`, params),
    /** Changes what the parameters name of an intent; what was paid, only in words. */
    update: async (id: string, params: PaymentIntentUpdateParams): Promise<Result<PaymentIntent>> =>
      this.#call({ method: 'POST', path: intent(id), object: 'payment_intent', body: canonical(params), key: crypto.randomUUID() }),
    retrieve: async (id: string): Promise<Result<PaymentIntent>> => this.#get(intent(id), 'payment_intent'),
    /** A page of payment intents, newest first. */
    list: async (query: Query<ListPaymentIntentsData> = {}): Promise<Result<PaymentIntentList>> => this.#get(intents + queryOf(query), 'list'),
    /** All payment intents, newest first, page after page. */
    all: (query: Query<ListPaymentIntentsData> = {}): AsyncGenerator<PaymentIntentList['data'][number]> => walk(query, (q) => this.paymentIntents.list(q)),
  };

  /** Giving money back. */
  readonly refunds = {
    /** Gives money back, once for the operation's name. */
    create: async (operation: string, params: IdOnly<RefundParams>): Promise<Result<Refund>> => this.operations.run(operation, '/v1/refunds', params),
    retrieve: async (id: string): Promise<Result<Refund>> => this.#get(`/v1/refunds/${segment(id)}`, 'refund'),
    /** A page of refunds, newest first. */
    list: async (query: IdOnly<Query<ListRefundsData>> = {}): Promise<Result<RefundList>> => this.#get(`/v1/refunds${queryOf(query)}`, 'list'),
    /** All refunds, newest first, page after page. */
    all: (query: IdOnly<Query<ListRefundsData>> = {}): AsyncGenerator<Refund> => walk(query, (q) => this.refunds.list(q)),
  };

  /** What payers dispute with their bank; read only. */
  readonly disputes = {
    retrieve: async (id: string): Promise<Result<Dispute>> => this.#get(`/v1/disputes/${segment(id)}`, 'dispute'),
    /** A page of disputes, newest first. */
    list: async (query: IdOnly<Query<ListDisputesData>> = {}): Promise<Result<DisputeList>> => this.#get(`/v1/disputes${queryOf(query)}`, 'list'),
    /** All disputes, newest first, page after page. */
    all: (query: IdOnly<Query<ListDisputesData>> = {}): AsyncGenerator<Dispute> => walk(query, (q) => this.disputes.list(q)),
  };

  readonly idempotencyKeys = {
    /** What became of a key. */
    retrieve: async (key: string): Promise<Result<IdempotencyKey>> => this.#get(`/v1/idempotency_keys/${segment(key)}`, 'idempotency_key'),
  };

  /** What happened. */
  readonly events = {
    retrieve: async (id: string): Promise<Result<Event>> => this.#get(`/v1/events/${segment(id)}`, 'event'),
    /** A page of events, oldest first unless the query says otherwise. */
    list: async (query: Query<ListEventsData> = {}): Promise<Result<EventList>> => this.#get(`/v1/events${queryOf(query)}`, 'list'),
    /**
     * All events there are now, oldest first unless the query says otherwise, page after page. Keep the id of the last one and come back later
     * with it as `starting_after`: nothing is missed, and nothing comes twice. An InvalidRequestError with the code `resource_missing` says that
     * the event of `starting_after` is no longer kept.
     */
    all: (query: Query<ListEventsData> = {}): AsyncGenerator<Event> => walk(query, (q) => this.events.list(q)),
    /**
     * Has the event delivered once more, under the same id: to all endpoints that want it, or to the one that the parameters name. Once for each
     * call, whatever answers are lost.
     */
    resend: async (id: string, params: EventResendParams = {}): Promise<Result<EventResend>> =>
      this.#call({ method: 'POST', path: `/v1/events/${segment(id)}/resend`, object: 'event_resend', body: canonical(params), key: crypto.randomUUID() }),
  };

  /** Where events are delivered. You name an endpoint, so putting the same once more changes nothing and no operation is kept. */
  readonly webhookEndpoints = {
    /**
     * Registers an endpoint under an id of your choice, or replaces what was registered under it; the secret stays. It may be repeated as often
     * as you like, so call it whenever your program starts. The answer has the secret that signs.
     */
    put: async (id: string, params: WebhookEndpointParams): Promise<Result<WebhookEndpoint>> =>
      this.#call({ method: 'PUT', path: endpoint(id), object: 'webhook_endpoint', body: canonical(params) }),
    /** Registers an endpoint under a new id. One for each call, whatever answers are lost: a program that registers itself whenever it starts puts. */
    create: async (params: WebhookEndpointCreateParams): Promise<Result<WebhookEndpoint>> =>
      this.#call({ method: 'POST', path: '/v1/webhook_endpoints', object: 'webhook_endpoint', body: canonical(params), key: crypto.randomUUID() }),
    /** Changes what the parameters name. The answer has no secret. */
    update: async (id: string, params: WebhookEndpointUpdateParams): Promise<Result<WebhookEndpointUpdated>> =>
      this.#call({ method: 'POST', path: endpoint(id), object: 'webhook_endpoint', body: canonical(params), key: crypto.randomUUID() }),
    retrieve: async (id: string): Promise<Result<WebhookEndpoint>> => this.#get(endpoint(id), 'webhook_endpoint'),
    /** All endpoints, 50 at most, the newest first. */
    list: async (): Promise<Result<WebhookEndpointList>> => this.#get('/v1/webhook_endpoints', 'list'),
    /** Forgets an endpoint and what is queued for it. A 404 may mean that an earlier attempt of yours did it. */
    delete: async (id: string): Promise<Result<DeletedWebhookEndpoint>> =>
      this.#call({ method: 'DELETE', path: endpoint(id), object: 'webhook_endpoint' }),
    /** Makes a new secret; the ones before sign, too, for another 24 hours. One for each call, whatever answers are lost. */
    rotateSecret: async (id: string): Promise<Result<WebhookEndpoint>> =>
      this.#call({ method: 'POST', path: `${endpoint(id)}/rotate_secret`, object: 'webhook_endpoint', key: crypto.randomUUID() }),
  };

  #get<T>(path: string, object: string): Promise<Result<T>> {
    return this.#call({ method: 'GET', path, object });
  }

  /** Makes a call for which no operation is kept: it does the same when it is repeated, or has a key for its own attempts. */
  async #call<T>(request: Outgoing): Promise<Result<T>> {
    return resultOf(await this.#exchanger.exchange(request));
  }
}

const intents = '/v1/payment_intents';
const intent = (id: string): string => `${intents}/${segment(id)}`;
const endpoint = (id: string): string => `/v1/webhook_endpoints/${segment(id)}`;

/** A part of a path. Without one, or with one that an URL does not keep, something else than is meant would be asked for. */
function segment(id: string): string {
  if (typeof id !== 'string' || ['', '.', '..'].includes(id)) throw new TypeError(`${JSON.stringify(id)} is not an id`);
  return encodeURIComponent(id);
}

/** Writes a query as the API reads it: `created[gte]=…` for what is nested. What is undefined is not there. */
function queryOf(query: object): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    const members = Array.isArray(value) ? value.map((entry) => [name, entry]) : value !== null && typeof value === 'object' ? Object.entries(value).map(([inner, bound]) => [`${name}[${inner}]`, bound]) : [[name, value]];
    for (const [member, bound] of members) {
      if (bound === null) throw new TypeError(`${member} is null`);
      if (bound !== undefined) pairs.append(member, String(bound));
    }
  }
  const text = pairs.toString();
  return text && `?${text}`;
}

async function* walk<T extends { id: string }, Q extends { starting_after?: string; limit?: number }>(
  query: Q,
  list: (query: Q) => Promise<Result<Page<T>>>,
): AsyncGenerator<T> {
  let from = query.starting_after;
  for (;;) {
    const { data: page } = await list({ limit: fullPage, ...query, ...(from && { starting_after: from }) });
    yield* page.data;
    from = page.data.at(-1)?.id;
    if (!page.has_more || !from) return;
  }
}
