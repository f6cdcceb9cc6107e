import { createClient } from './generated/client/index.js';
import { getCharge, getIdempotencyKey, getRefund, listCharges, listRefunds } from './generated/sdk.gen.js';
import type { CaptureParams, Charge, ChargeParams, IdempotencyKey, ListChargesData, ListRefundsData, Refund, RefundParams } from './generated/types.gen.js';
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
  readonly #reads;

  constructor(options: PaidonceOptions) {
    this.operations = new Operations(options);
    this.#reads = createClient({
      baseUrl: options.baseUrl,
      auth: options.apiKey,
      // Reads are retried as well; what they answer in the end is handed on as it came.
      fetch: async (request) => {
        const { url, method, headers } = request as Request;
        const answer = await exchange(url, { method, headers }, options);
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
    retrieve: async (id: string): Promise<Result<Charge>> => result(await getCharge({ client: this.#reads, path: { id } })),
    list: async (query: Query<ListChargesData> = {}): Promise<Result<Page<Charge>>> => result(await listCharges({ client: this.#reads, query })),
    /** All charges, newest first, page after page. */
    all: (query: Query<ListChargesData> = {}): AsyncGenerator<Charge> => walk(query, (q) => this.charges.list(q)),
  };

  readonly refunds = {
    create: (operation: string, params: RefundParams): Promise<Result<Refund>> => this.operations.run<Refund>(operation, '/v1/refunds', params),
    retrieve: async (id: string): Promise<Result<Refund>> => result(await getRefund({ client: this.#reads, path: { id } })),
    list: async (query: Query<ListRefundsData> = {}): Promise<Result<Page<Refund>>> => result(await listRefunds({ client: this.#reads, query })),
    all: (query: Query<ListRefundsData> = {}): AsyncGenerator<Refund> => walk(query, (q) => this.refunds.list(q)),
  };

  readonly idempotencyKeys = {
    /** What became of a key. */
    retrieve: async (key: string): Promise<Result<IdempotencyKey>> => result(await getIdempotencyKey({ client: this.#reads, path: { key } })),
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
