import { errorOf, OperationMismatchError, PaidonceError, StaleOperationError } from './errors.js';
import { exchange, type RetryOptions } from './retry.js';
import type { Operation, OperationStore } from './store.js';

export interface Result<T> {
  data: T;
  status: number;
  headers: Headers;
  requestId: string | undefined;
  /** Whether the answer was stored by an earlier request: at the server, or here. */
  replayed: boolean;
}

export interface OperationsOptions extends RetryOptions {
  apiKey: string;
  baseUrl: string;
  store: OperationStore;
  maxAgeMs?: number;
}

const day = 24 * 3600 * 1000;

/**
 * The client's half of the contract: a key is made once for each operation and kept before the first attempt, and each attempt sends the
 * bytes of the first, also after a crash.
 */
export class Operations {
  readonly #options: OperationsOptions;
  readonly #store: OperationStore;

  constructor(options: OperationsOptions) {
    this.#options = options;
    this.#store = options.store;
  }

  /** Begins the operation, or goes on with it when it was begun. */
  async run<T>(name: string, path: string, params: object): Promise<Result<T>> {
    const fresh = newOperation(name, path, params);
    const kept = await this.#store.begin(fresh);
    if (kept.path !== path || kept.body !== fresh.body) {
      throw new OperationMismatchError(`The operation ${name} was begun with another request. Nothing was sent.`);
    }
    return this.#drive<T>(kept, kept.key === fresh.key);
  }

  /** Goes on with an operation that was begun, without its parameters. */
  async resume<T>(name: string): Promise<Result<T>> {
    const kept = await this.#store.find(name);
    if (!kept) throw new PaidonceError(`There is no operation ${name}.`);
    return this.#drive<T>(kept, false);
  }

  /** Operations without an answer: resume each of them when your program starts. */
  unfinished(): Promise<Operation[]> {
    return this.#store.unfinished();
  }

  /** Lets the name be used anew, under a new key. Only for an operation whose outcome you know. */
  forget(name: string): Promise<void> {
    return this.#store.forget(name);
  }

  async #drive<T>(operation: Operation, first: boolean): Promise<Result<T>> {
    if (operation.answer) return learnt<T>(operation.answer);
    if (Date.now() - operation.begun > (this.#options.maxAgeMs ?? day - 3600 * 1000)) {
      throw new StaleOperationError(`The operation ${operation.name} was begun too long ago to be sent again. Find out what became of it.`);
    }
    const answer = await exchange(new URL(operation.path, this.#options.baseUrl).href, this.#request(operation), this.#options);
    const { status, headers, text } = answer;
    const requestId = headers.get('Request-Id') ?? undefined;
    const ok = status < 300;
    if (ok || status === 402) {
      await this.#store.finish({ ...operation, answer: { status, requestId: requestId ?? '', body: text } });
    } else if (first && !answer.uncertain && [400, 413, 415].includes(status)) {
      // Refused at the first attempt, so nothing moved, and the corrected request may have the name. After an attempt without an answer
      // a refusal proves nothing about that attempt, and the key is kept.
      await this.#store.forget(operation.name);
    }
    if (!ok) throw errorOf(status, headers, text);
    return { data: JSON.parse(text) as T, status, headers, requestId, replayed: headers.get('Idempotent-Replayed') === 'true' };
  }

  #request({ method, body, key }: Operation): RequestInit {
    return {
      method,
      body,
      headers: { Authorization: `Bearer ${this.#options.apiKey}`, 'Content-Type': 'application/json', 'Idempotency-Key': key },
    };
  }
}

/** An answer that is kept here is given again without asking: the server forgets its keys one day. */
function learnt<T>({ status, requestId, body }: NonNullable<Operation['answer']>): Result<T> {
  const headers = new Headers({ 'Request-Id': requestId, 'Idempotent-Replayed': 'true' });
  if (status >= 300) throw errorOf(status, headers, body);
  return { data: JSON.parse(body) as T, status, headers, requestId, replayed: true };
}

/** An operation to be kept by `begin` of a store, such as one within the transaction that makes your order; `resume` sends it later. */
export function newOperation(name: string, path: string, params: object): Operation {
  return { name, key: crypto.randomUUID(), method: 'POST', path, body: canonical(params), begun: Date.now() };
}

/** JSON with the members in one order, so that the same parameters are the same bytes however the caller wrote them. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
