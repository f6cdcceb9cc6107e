/** Everything that this library raises, besides TypeError for what cannot be sent or checked at all. */
export class PaidonceError extends Error {
    name = 'PaidonceError';
}
/** No answer came: the connection failed, took too long, or what came is not from Paidonce. The request may have been carried out. */
export class ApiConnectionError extends PaidonceError {
    name = 'ApiConnectionError';
}
/** An answer that is an error. The subclasses tell the kinds apart. */
export class ApiError extends PaidonceError {
    status;
    requestId;
    replayed;
    headers;
    name = 'ApiError';
    /** Such as `card_error`; undefined when the answer is not from Paidonce itself but from a proxy, say. */
    type;
    code;
    param;
    declineCode;
    /** The id of the charge that the request stands for. */
    charge;
    /** What a program should do; `docs/errors.md` of Paidonce explains it. */
    advice;
    constructor(status, details, 
    /** Of this exchange; `error.request_id` of a replayed answer is that of the first. */
    requestId, 
    /** Whether the answer was stored by an earlier request with the same key. */
    replayed, headers) {
        super(details.message ?? `The server answered ${status}.`);
        this.status = status;
        this.requestId = requestId;
        this.replayed = replayed;
        this.headers = headers;
        this.type = details.type;
        this.code = details.code;
        this.param = details.param;
        this.declineCode = details.decline_code;
        this.charge = details.charge;
        this.advice = details.advice;
    }
}
/** The payment was declined: an answer, and final. */
export class CardError extends ApiError {
    name = 'CardError';
}
/** The key is in use (409), or stands for another request (422). */
export class IdempotencyError extends ApiError {
    name = 'IdempotencyError';
}
/** The request is wrong, or what it asks for is not there or not possible. */
export class InvalidRequestError extends ApiError {
    name = 'InvalidRequestError';
}
/** There is no such API key. */
export class AuthenticationError extends ApiError {
    name = 'AuthenticationError';
}
/** Too many requests. */
export class RateLimitError extends ApiError {
    name = 'RateLimitError';
}
/**
 * Time is up and the outcome is not known. The operation is kept: call again, or `resume` it, under the same name. `cause` is the last
 * error.
 */
export class DeadlineError extends PaidonceError {
    name = 'DeadlineError';
}
/** The operation was begun with another request. Nothing was sent. */
export class OperationMismatchError extends PaidonceError {
    name = 'OperationMismatchError';
}
/**
 * The operation was begun so long ago that the server may have forgotten its key, and would take it for a new one. Nothing was sent: look
 * for the charge (by its metadata, say), then `forget` the operation or leave it.
 */
export class StaleOperationError extends PaidonceError {
    name = 'StaleOperationError';
}
/** Nothing was begun under the name, or it was forgotten. */
export class UnknownOperationError extends PaidonceError {
    name = 'UnknownOperationError';
}
const classes = new Map([
    ['card_error', CardError],
    ['idempotency_error', IdempotencyError],
    ['invalid_request_error', InvalidRequestError],
    ['authentication_error', AuthenticationError],
    ['rate_limit_error', RateLimitError],
]);
/** Makes an error of an answer; of one that is not ours (a proxy's page, say) as well, but without any details. */
export function errorOf(status, headers, text) {
    const details = (objectOf(text)?.error ?? {});
    const ours = typeof details.type === 'string';
    const kind = (ours && classes.get(details.type)) || ApiError;
    return new kind(status, ours ? details : {}, headers.get('Request-Id') ?? undefined, headers.get('Idempotent-Replayed') === 'true', headers);
}
/** The JSON object that a text is, or undefined. */
export function objectOf(text) {
    try {
        const value = JSON.parse(text);
        return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : undefined;
    }
    catch {
        return undefined;
    }
}
