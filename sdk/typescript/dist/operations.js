import { errorOf, OperationMismatchError, StaleOperationError, UnknownOperationError } from './errors.js';
/**
 * The client's half of the contract: a key is made once for each operation and kept before the first attempt, and each attempt sends the
 * bytes of the first, also after a crash.
 */
export class Operations {
    #exchanger;
    #store;
    #maxAgeMs;
    constructor(exchanger, store, maxAgeMs) {
        this.#exchanger = exchanger;
        this.#store = store;
        this.#maxAgeMs = maxAgeMs;
    }
    /** Begins the operation, or goes on with it when it was begun. */
    async run(name, path, params) {
        const { kept, first } = await begin(this.#store, name, path, params);
        return this.#drive(kept, first);
    }
    /** Goes on with an operation that was begun, without its parameters. Raises UnknownOperationError when it was not. */
    async resume(name) {
        const kept = await this.#store.find(name);
        if (!kept)
            throw new UnknownOperationError(`There is no operation ${name}.`);
        return this.#drive(kept, false);
    }
    /** Operations without an answer: resume each of them when your program starts. */
    unfinished() {
        return this.#store.unfinished();
    }
    /** Lets the name be used anew, under a new key. Only for an operation whose outcome you know. */
    forget(name) {
        return this.#store.forget(name);
    }
    async #drive(operation, first) {
        if (operation.answer)
            return known(operation.answer);
        if (Date.now() - operation.begun > this.#maxAgeMs) {
            throw new StaleOperationError(`The operation ${operation.name} was begun too long ago to be sent again. Find out what became of it.`);
        }
        const { path, body, key } = operation;
        const exchange = await this.#exchanger.exchange({ method: 'POST', path, object: objectAt(path), body, key });
        const { status, headers, text, error } = exchange;
        if (!error || (status === 402 && error.type === 'card_error')) {
            await this.#store.finish({ ...operation, answer: { status, requestId: headers.get('Request-Id') ?? '', body: text } });
        }
        else if (refuses(error) && (error.replayed || (first && !exchange.uncertain))) {
            // The corrected request may have the name, under a new key, as nothing was done under this one, nor will be: its only attempt was refused, or the
            // refusal is stored. A refusal after an attempt without an answer proves less, though the server looks at a key that is taken before it refuses a
            // capture or a refund: it says that nothing was begun so far. The lost attempt may still arrive, and pass when the charge has changed by then, or
            // another version of the server reads it. Under the same key that is no harm, beside a new one it would be the second payment.
            await this.#store.forget(operation.name);
        }
        return resultOf(exchange);
    }
}
/**
 * Reports whether Paidonce itself finds fault with the request, and not with who asks, as by a 401: then the same request is right once that is fixed.
 * A 404 is of the second kind, unless it is what the request names that is not there.
 */
function refuses({ type, advice, status, code }) {
    return type === 'invalid_request_error' && (advice === 'fix_and_use_new_key' || (status === 404 && code === 'resource_missing'));
}
/** Raises the error of an exchange that has one. */
export function resultOf({ status, headers, data, error }) {
    if (error)
        throw error;
    const requestId = headers.get('Request-Id') ?? undefined;
    return { data: data, status, headers, requestId, replayed: headers.get('Idempotent-Replayed') === 'true' };
}
/** An answer that is kept here is given again without asking: the server forgets its keys one day. */
function known({ status, requestId, body }) {
    const headers = new Headers({ 'Request-Id': requestId, 'Idempotent-Replayed': 'true' });
    if (status >= 300)
        throw errorOf(status, headers, body);
    return { data: JSON.parse(body), status, headers, requestId, replayed: true };
}
/** Keeps the operation, unless it was begun before; then it must have been the same. */
async function begin(store, name, path, params) {
    const fresh = newOperation(name, path, params);
    const kept = await store.begin(fresh);
    if (kept.path !== path || kept.body !== fresh.body) {
        throw new OperationMismatchError(`The operation ${name} was begun with another request. Nothing was sent.`);
    }
    return { kept, first: kept.key === fresh.key };
}
/** An operation to be kept by `begin` of a store, such as one within the transaction that makes your order; `resume` sends it later. */
export function newOperation(name, path, params) {
    if (typeof name !== 'string' || !name)
        throw new TypeError('an operation needs a name');
    return { name, key: crypto.randomUUID(), method: 'POST', path, body: canonical(params), begun: Date.now() };
}
/**
 * Keeps a charge to be made and sends nothing: with a store within the transaction that makes your order, the order and its payment are begun
 * together or not at all. Resume it after the commit. Raises OperationMismatchError when the name was begun with another request.
 */
export async function beginCharge(store, name, params) {
    await begin(store, name, '/v1/charges', params);
}
/** JSON with the members in one order, so that the same parameters are the same bytes however the caller wrote them. */
export function canonical(value) {
    return JSON.stringify(value, (_, inner) => inner && typeof inner === 'object' && !Array.isArray(inner)
        ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
        : inner);
}
/** What the answer to an operation is. */
function objectAt(path) {
    if (path === '/v1/refunds')
        return 'refund';
    return path.startsWith('/v1/payment_intents') ? 'payment_intent' : 'charge';
}
