import { canonical, Operations, resultOf } from './operations.js';
import { Exchanger } from './retry.js';
/** Milliseconds: below the 24 hours for which a server keeps its keys unless configured otherwise. */
const maxAge = 23 * 3600 * 1000;
/** The most that a list returns at once. */
const fullPage = 100;
/** A client of a Paidonce installation. */
export class Paidonce {
    operations;
    #exchanger;
    constructor(options) {
        const { store, maxAgeMs = maxAge } = options;
        if (!(maxAgeMs > 0))
            throw new TypeError('maxAgeMs has to be a positive number of milliseconds');
        this.#exchanger = new Exchanger(options);
        this.operations = new Operations(this.#exchanger, store, maxAgeMs);
    }
    /** Taking money. Each write takes the name of its operation, your own, first: it is done once for the name. */
    charges = {
        /** Charges once for the operation's name, however often and from wherever it is called. */
        create: async (operation, params) => this.operations.run(operation, '/v1/charges', params),
        /** Takes the money of a charge that was made with `capture: false`, all of it or the amount that the parameters name. */
        capture: async (operation, id, params = {}) => this.operations.run(operation, `/v1/charges/${segment(id)}/capture`, params),
        /** Lets go of a charge that was made with `capture: false`, or ends one that waits for its payer. */
        cancel: async (operation, id) => this.operations.run(operation, `/v1/charges/${segment(id)}/cancel`, {}),
        retrieve: async (id) => this.#get(`/v1/charges/${segment(id)}`, 'charge'),
        /** A page of charges, newest first. */
        list: async (query = {}) => this.#get(`/v1/charges${queryOf(query)}`, 'list'),
        /** All charges, newest first, page after page. */
        all: (query = {}) => walk(query, (q) => this.charges.list(q)),
    };
    /** Taking money from payers who may have to do something first. Each write that can move money takes the name of its operation first. */
    paymentIntents = {
        /** Makes a payment intent once for the operation's name; with `confirm: true` it is confirmed at once. */
        create: async (operation, params) => this.operations.run(operation, intents, params),
        /** Charges what the intent was made for. After a decline, confirm it again under another operation's name. */
        confirm: async (operation, id, params = {}) => this.operations.run(operation, `${intent(id)}/confirm`, params),
        /** Takes the money of an intent that was made with `capture_method: 'manual'`, all of it or the amount that the parameters name. */
        capture: async (operation, id, params = {}) => this.operations.run(operation, `${intent(id)}/capture`, params),
        /** Ends an intent that nobody has paid, or lets go of what it holds. */
        cancel: async (operation, id, params = {}) => this.operations.run(operation, `${intent(id)}/cancel`, params),
        /** Changes what the parameters name of an intent; what was paid, only in words. */
        update: async (id, params) => this.#call({ method: 'POST', path: intent(id), object: 'payment_intent', body: canonical(params), key: crypto.randomUUID() }),
        retrieve: async (id) => this.#get(intent(id), 'payment_intent'),
        /** A page of payment intents, newest first. */
        list: async (query = {}) => this.#get(intents + queryOf(query), 'list'),
        /** All payment intents, newest first, page after page. */
        all: (query = {}) => walk(query, (q) => this.paymentIntents.list(q)),
    };
    /** Giving money back. */
    refunds = {
        /** Gives money back, once for the operation's name. */
        create: async (operation, params) => this.operations.run(operation, '/v1/refunds', params),
        retrieve: async (id) => this.#get(`/v1/refunds/${segment(id)}`, 'refund'),
        /** A page of refunds, newest first. */
        list: async (query = {}) => this.#get(`/v1/refunds${queryOf(query)}`, 'list'),
        /** All refunds, newest first, page after page. */
        all: (query = {}) => walk(query, (q) => this.refunds.list(q)),
    };
    /** What payers dispute with their bank; read only. */
    disputes = {
        retrieve: async (id) => this.#get(`/v1/disputes/${segment(id)}`, 'dispute'),
        /** A page of disputes, newest first. */
        list: async (query = {}) => this.#get(`/v1/disputes${queryOf(query)}`, 'list'),
        /** All disputes, newest first, page after page. */
        all: (query = {}) => walk(query, (q) => this.disputes.list(q)),
    };
    idempotencyKeys = {
        /** What became of a key. */
        retrieve: async (key) => this.#get(`/v1/idempotency_keys/${segment(key)}`, 'idempotency_key'),
    };
    /** What happened. */
    events = {
        retrieve: async (id) => this.#get(`/v1/events/${segment(id)}`, 'event'),
        /** A page of events, oldest first unless the query says otherwise. */
        list: async (query = {}) => this.#get(`/v1/events${queryOf(query)}`, 'list'),
        /**
         * All events there are now, oldest first unless the query says otherwise, page after page. Keep the id of the last one and come back later
         * with it as `starting_after`: nothing is missed, and nothing comes twice. An InvalidRequestError with the code `resource_missing` says that
         * the event of `starting_after` is no longer kept.
         */
        all: (query = {}) => walk(query, (q) => this.events.list(q)),
        /**
         * Has the event delivered once more, under the same id: to all endpoints that want it, or to the one that the parameters name. Once for each
         * call, whatever answers are lost.
         */
        resend: async (id, params = {}) => this.#call({ method: 'POST', path: `/v1/events/${segment(id)}/resend`, object: 'event_resend', body: canonical(params), key: crypto.randomUUID() }),
    };
    /** Where events are delivered. You name an endpoint, so putting the same once more changes nothing and no operation is kept. */
    webhookEndpoints = {
        /**
         * Registers an endpoint under an id of your choice, or replaces what was registered under it; the secret stays. It may be repeated as often
         * as you like, so call it whenever your program starts. The answer has the secret that signs.
         */
        put: async (id, params) => this.#call({ method: 'PUT', path: endpoint(id), object: 'webhook_endpoint', body: canonical(params) }),
        /** Registers an endpoint under a new id. One for each call, whatever answers are lost: a program that registers itself whenever it starts puts. */
        create: async (params) => this.#call({ method: 'POST', path: '/v1/webhook_endpoints', object: 'webhook_endpoint', body: canonical(params), key: crypto.randomUUID() }),
        /** Changes what the parameters name. The answer has no secret. */
        update: async (id, params) => this.#call({ method: 'POST', path: endpoint(id), object: 'webhook_endpoint', body: canonical(params), key: crypto.randomUUID() }),
        retrieve: async (id) => this.#get(endpoint(id), 'webhook_endpoint'),
        /** All endpoints, 50 at most, the newest first. */
        list: async () => this.#get('/v1/webhook_endpoints', 'list'),
        /** Forgets an endpoint and what is queued for it. A 404 may mean that an earlier attempt of yours did it. */
        delete: async (id) => this.#call({ method: 'DELETE', path: endpoint(id), object: 'webhook_endpoint' }),
        /** Makes a new secret; the ones before sign, too, for another 24 hours. One for each call, whatever answers are lost. */
        rotateSecret: async (id) => this.#call({ method: 'POST', path: `${endpoint(id)}/rotate_secret`, object: 'webhook_endpoint', key: crypto.randomUUID() }),
    };
    #get(path, object) {
        return this.#call({ method: 'GET', path, object });
    }
    /** Makes a call for which no operation is kept: it does the same when it is repeated, or has a key for its own attempts. */
    async #call(request) {
        return resultOf(await this.#exchanger.exchange(request));
    }
}
const intents = '/v1/payment_intents';
const intent = (id) => `${intents}/${segment(id)}`;
const endpoint = (id) => `/v1/webhook_endpoints/${segment(id)}`;
/** A part of a path. Without one, or with one that an URL does not keep, something else than is meant would be asked for. */
function segment(id) {
    if (typeof id !== 'string' || ['', '.', '..'].includes(id))
        throw new TypeError(`${JSON.stringify(id)} is not an id`);
    return encodeURIComponent(id);
}
/** Writes a query as the API reads it: `created[gte]=…` for what is nested. What is undefined is not there. */
function queryOf(query) {
    const pairs = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
        const members = Array.isArray(value) ? value.map((entry) => [name, entry]) : value !== null && typeof value === 'object' ? Object.entries(value).map(([inner, bound]) => [`${name}[${inner}]`, bound]) : [[name, value]];
        for (const [member, bound] of members) {
            if (bound === null)
                throw new TypeError(`${member} is null`);
            if (bound !== undefined)
                pairs.append(member, String(bound));
        }
    }
    const text = pairs.toString();
    return text && `?${text}`;
}
async function* walk(query, list) {
    let from = query.starting_after;
    for (;;) {
        const { data: page } = await list({ limit: fullPage, ...query, ...(from && { starting_after: from }) });
        yield* page.data;
        from = page.data.at(-1)?.id;
        if (!page.has_more || !from)
            return;
    }
}
