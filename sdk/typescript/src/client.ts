import { createClient } from './generated/client/index.js';
import {
  deleteWebhookEndpoint, getCharge, getEvent, getIdempotencyKey, getRefund, getWebhookEndpoint, listCharges, listEvents, listRefunds,
  listWebhookEndpoints, putWebhookEndpoint, resendEvent, rotateWebhookEndpointSecret,
} from './generated/sdk.gen.js';
import type {
  CaptureParams, Charge, ChargeParams, DeletedWebhookEndpoint, Event, EventResend, EventResendParams, IdempotencyKey, ListChargesData,
  ListEventsData, ListRefundsData, Refund, RefundParams, WebhookEndpoint, WebhookEndpointParams,
} from './generated/types.gen.js';
import { Operations, type Result } from './operations.js';
import { exchange, type RetryOptions } from './retry.js';
import { errorOf } from './errors.js';
import type { OperationStore } from './store.js';

export interface PaidonceOptions extends RetryOptions {
  apiKey: string;
  /** Such as `http://127.0.0.1:8080`. */
  baseUrl: string;
  /** Where operations are kept. */
  store: OperationStore;
  /** From what age on an unfinished operation is not sent again; below the server's retention of keys. Default: 23 hours. */
  maxAgeMs?: number;
}

type Query<T extends { query?: unknown }> = NonNullable<T['query']>;
type Page<T> = { has_more: boolean; data: Array<T> };
type Fields<T> = { data?: T | undefined; error?: unknown; response?: Response };

/** A client of a Paidonce installation. */
export class Paidonce {
  readonly operations: Operations;
  readonly #calls;

  constructor(options: PaidonceOptions) {
    this.operations = new Operations(options);
    this.#calls = createClient({
      baseUrl: options.baseUrl,
      auth: options.apiKey,
      // What does the same when it is repeated is retried as well, without an operation; what is answered in the end is handed on as it came.
      fetch: async (request) => {
        const { url, method, headers } = request as Request;
        const body = await (request as Request).text();
        const answer = await exchange(url, { method, headers, ...(body && { body }) }, options);
        return new Response(answer.text, { status: answer.status, headers: answer.headers });
      },
    });
  }

  readonly charges = {
    /** Charges once for the operation's name, however often and from wherever it is called. */
    create: (operation: string, params: ChargeParams): Promise<Result<Charge>> => this.operations.run<Charge>(operation, '/v1/charges', params),
    /** Takes the money of a charge that was made with `capture: false`. */
    capture: (operation: string, id: string, params: CaptureParams = {}): Promise<Result<Charge>> =>
      this.operations.run<Charge>(operation, `/v1/charges/${encodeURIComponent(id)}/capture`, params),
    retrieve: async (id: string): Promise<Result<Charge>> => result(await getCharge({ client: this.#calls, path: { id } })),
    list: async (query: Query<ListChargesData> = {}): Promise<Result<Page<Charge>>> => result(await listCharges({ client: this.#calls, query })),
    /** All charges, newest first, page after page. */
    all: (query: Query<ListChargesData> = {}): AsyncGenerator<Charge> => walk(query, (q) => this.charges.list(q)),
  };

  readonly refunds = {
    create: (operation: string, params: RefundParams): Promise<Result<Refund>> => this.operations.run<Refund>(operation, '/v1/refunds', params),
    retrieve: async (id: string): Promise<Result<Refund>> => result(await getRefund({ client: this.#calls, path: { id } })),
    list: async (query: Query<ListRefundsData> = {}): Promise<Result<Page<Refund>>> => result(await listRefunds({ client: this.#calls, query })),
    all: (query: Query<ListRefundsData> = {}): AsyncGenerator<Refund> => walk(query, (q) => this.refunds.list(q)),
  };

  readonly events = {
    retrieve: async (id: string): Promise<Result<Event>> => result(await getEvent({ client: this.#calls, path: { id } })),
    /** A page, the oldest first unless `order` says otherwise. */
    list: async (query: Query<ListEventsData> = {}): Promise<Result<Page<Event>>> => result(await listEvents({ client: this.#calls, query })),
    /**
     * All events, page after page, up to the last there is now. To read on later give the id of the last one as `starting_after`: nothing is
     * missed, and nothing comes twice. An error with the code `resource_missing` says that this event is no longer kept.
     */
    all: (query: Query<ListEventsData> = {}): AsyncGenerator<Event> => walk(query, (q) => this.events.list(q)),
    /** Delivers an event again, under the same id: to all endpoints that want it, or to `webhook_endpoint`. */
    resend: async (id: string, params: EventResendParams = {}): Promise<Result<EventResend>> =>
      result(await resendEvent({ client: this.#calls, path: { id }, body: params })),
  };

  readonly webhookEndpoints = {
    /**
     * Registers an endpoint under an id of your choice, or replaces what was registered under it; the secret stays. It may be repeated as often
     * as you like, so call it whenever your program starts.
     */
    put: async (id: string, params: WebhookEndpointParams): Promise<Result<WebhookEndpoint>> =>
      result(await putWebhookEndpoint({ client: this.#calls, path: { id }, body: params })),
    retrieve: async (id: string): Promise<Result<WebhookEndpoint>> => result(await getWebhookEndpoint({ client: this.#calls, path: { id } })),
    /** All of them; there are 50 at most. */
    list: async (): Promise<Result<Page<WebhookEndpoint>>> => result(await listWebhookEndpoints({ client: this.#calls })),
    /** Forgets an endpoint and what is queued for it. A 404 may also mean that an attempt whose answer was lost has deleted it. */
    delete: async (id: string): Promise<Result<DeletedWebhookEndpoint>> => result(await deleteWebhookEndpoint({ client: this.#calls, path: { id } })),
    /** A new secret; those before it sign as well for a day. After a lost answer it is rotated once more, which does no harm. */
    rotateSecret: async (id: string): Promise<Result<WebhookEndpoint>> =>
      result(await rotateWebhookEndpointSecret({ client: this.#calls, path: { id } })),
  };

  readonly idempotencyKeys = {
    /** What became of a key. */
    retrieve: async (key: string): Promise<Result<IdempotencyKey>> => result(await getIdempotencyKey({ client: this.#calls, path: { key } })),
  };
}

function result<T>({ data, error, response }: Fields<T>): Result<T> {
  // Without an answer there is only the error that the exchange raised.
  if (!response) throw error;
  if (!response.ok || data === undefined) {
    throw errorOf(response.status, response.headers, typeof error === 'string' ? error : JSON.stringify(error));
  }
  return { data, status: response.status, headers: response.headers, requestId: response.headers.get('Request-Id') ?? undefined, replayed: false };
}

async function* walk<T extends { id: string }, Q extends { starting_after?: string; limit?: number }>(
  query: Q,
  list: (query: Q) => Promise<Result<Page<T>>>,
): AsyncGenerator<T> {
  let from = query.starting_after;
  for (;;) {
    const { data: page } = await list({ limit: 100, ...query, ...(from && { starting_after: from }) });
    yield* page.data;
    from = page.data.at(-1)?.id;
    if (!page.has_more || !from) return;
  }
}
