import { ApiConnectionError, ApiError, DeadlineError, errorOf, objectOf } from './errors.js';
/** Milliseconds. Long enough for a server that restarts to be noticed by few attempts, too short for a person to mind. */
const shortestPause = 200;
/** Milliseconds. Who waits for a server that is down for long asks six times a minute. */
const longestPause = 10_000;
/** Milliseconds: what the timers of JavaScript can count. */
const longestTimer = 2 ** 31 - 1;
const retried = new Set([408, 409, 425, 429]);
/** Milliseconds of a `Retry-After`, which is a number of seconds or a date. */
export function retryAfter(headers, now = Date.now()) {
    const value = headers.get('Retry-After');
    if (!value)
        return 0;
    const seconds = Number(value);
    const pause = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - now;
    return pause > 0 ? pause : 0;
}
/** How long to wait before the next attempt: never less than the server asks for, and never in step with other clients. */
export function pauseAfter(attempt, asked, random = Math.random()) {
    const most = Math.min(longestPause, shortestPause * 2 ** attempt);
    return asked + (most / 2) * (1 + random);
}
/** Knows the installation, the API key and how patient to be. */
export class Exchanger {
    #base;
    #host;
    #headers;
    #deadlineMs;
    #attemptMs;
    #send;
    constructor({ baseUrl, apiKey, deadlineMs = 60_000, attemptMs = 30_000, fetch = globalThis.fetch }) {
        const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
        if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
            throw new TypeError('baseUrl has to be the URL of an installation, such as http://127.0.0.1:8080');
        }
        if (typeof apiKey !== 'string' || !/^[!-~]+$/.test(apiKey))
            throw new TypeError('apiKey has to be an API key, without spaces or line breaks');
        if (![deadlineMs, attemptMs].every((limit) => limit > 0 && limit <= longestTimer)) {
            throw new TypeError('deadlineMs and attemptMs have to be positive numbers of milliseconds, of 24 days at most');
        }
        this.#base = url.href.replace(/\/+$/, '');
        this.#host = url.host;
        this.#headers = { Authorization: `Bearer ${apiKey}`, Accept: 'application/json' };
        this.#deadlineMs = deadlineMs;
        this.#attemptMs = attemptMs;
        this.#send = fetch;
    }
    /** Sends a request until there is an answer. Raises DeadlineError when there is none in time. */
    async exchange(request) {
        const end = performance.now() + this.#deadlineMs;
        for (let attempt = 0;; attempt++) {
            const taken = await this.#attempt(request, end, attempt > 0);
            if (!(taken instanceof Error))
                return taken;
            const pause = pauseAfter(attempt, taken instanceof ApiError ? retryAfter(taken.headers) : 0);
            if (performance.now() + pause >= end)
                throw new DeadlineError(`Time is up: ${taken.message}`, { cause: taken });
            await new Promise((wake) => setTimeout(wake, pause));
        }
    }
    /** Returns an error when the same request should be sent again. */
    async #attempt({ method, path, object, body, key }, end, uncertain) {
        const headers = { ...this.#headers, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...(key && { 'Idempotency-Key': key }) };
        const limit = AbortSignal.timeout(Math.ceil(Math.max(1, Math.min(this.#attemptMs, end - performance.now()))));
        const send = this.#send; // some need to be called without a `this`
        try {
            // A redirect would carry the request and its API key to another place.
            const answer = await send(this.#base + path, { method, headers, ...(body !== undefined && { body }), redirect: 'manual', signal: limit });
            return take({ status: answer.status, headers: answer.headers, text: await answer.text(), uncertain }, object);
        }
        catch (cause) {
            return new ApiConnectionError(`No answer from ${this.#host}: ${reason(cause)}`, { cause });
        }
    }
}
function take(answer, object) {
    const { status, headers, text } = answer;
    if (status >= 200 && status < 300) {
        const data = objectOf(text);
        // A proxy's page, say, or the beginning of an answer: what became of the request is not known.
        if (data?.object !== object)
            return new ApiConnectionError(`The answer with status ${status} is not from Paidonce: it is no ${object}.`);
        return { ...answer, data };
    }
    const error = errorOf(status, headers, text);
    if ((status >= 500 || retried.has(status)) && error.advice !== 'stop')
        return error;
    return { ...answer, error };
}
/** fetch says "fetch failed" and hides the reason one level down. */
function reason(error) {
    const inner = error.cause ?? error;
    return inner instanceof Error ? inner.message || inner.name : String(inner);
}
