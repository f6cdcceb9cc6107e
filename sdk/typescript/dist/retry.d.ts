import { ApiError } from './errors.js';
export interface RetryOptions {
    /** How long a call may take with all its attempts, in milliseconds. Default: 60,000. */
    deadlineMs?: number;
    /** How long one attempt may take, in milliseconds. Default: 30,000. */
    attemptMs?: number;
    fetch?: typeof globalThis.fetch;
}
export interface ExchangerOptions extends RetryOptions {
    apiKey: string;
    /** Such as `http://127.0.0.1:8080`. */
    baseUrl: string;
}
/** A request: the same at each attempt, byte for byte. */
export interface Outgoing {
    method: 'GET' | 'POST' | 'PUT' | 'DELETE';
    path: string;
    /** What is asked for, as `object` of a success names it. */
    object: string;
    body?: string;
    /** The idempotency key. */
    key?: string;
}
/** An answer that is not to be asked for again. */
export interface Exchange {
    status: number;
    headers: Headers;
    text: string;
    /** What was asked for, when the answer is a success. */
    data?: unknown;
    error?: ApiError;
    /** Whether an earlier attempt of this call may have been carried out. */
    uncertain: boolean;
}
/** Milliseconds of a `Retry-After`, which is a number of seconds or a date. */
export declare function retryAfter(headers: Headers, now?: number): number;
/** How long to wait before the next attempt: never less than the server asks for, and never in step with other clients. */
export declare function pauseAfter(attempt: number, asked: number, random?: number): number;
/** Knows the installation, the API key and how patient to be. */
export declare class Exchanger {
    #private;
    constructor({ baseUrl, apiKey, deadlineMs, attemptMs, fetch }: ExchangerOptions);
    /** Sends a request until there is an answer. Raises DeadlineError when there is none in time. */
    exchange(request: Outgoing): Promise<Exchange>;
}
