import type { Error as ErrorBody } from './generated/types.gen.js';
type Details = ErrorBody['error'];
/** Everything that this library raises, besides TypeError for what cannot be sent or checked at all. */
export declare class PaidonceError extends Error {
    name: string;
}
/** No answer came: the connection failed, took too long, or what came is not from Paidonce. The request may have been carried out. */
export declare class ApiConnectionError extends PaidonceError {
    name: string;
}
/** An answer that is an error. The subclasses tell the kinds apart. */
export declare class ApiError extends PaidonceError {
    readonly status: number;
    /** Of this exchange; `error.request_id` of a replayed answer is that of the first. */
    readonly requestId: string | undefined;
    /** Whether the answer was stored by an earlier request with the same key. */
    readonly replayed: boolean;
    readonly headers: Headers;
    name: string;
    /** Such as `card_error`; undefined when the answer is not from Paidonce itself but from a proxy, say. */
    readonly type: Details['type'] | undefined;
    readonly code: string | undefined;
    readonly param: string | undefined;
    readonly declineCode: string | undefined;
    /** The id of the charge that the request stands for. */
    readonly charge: string | undefined;
    /** What a program should do; `docs/errors.md` of Paidonce explains it. */
    readonly advice: Details['advice'] | undefined;
    constructor(status: number, details: Partial<Details>, 
    /** Of this exchange; `error.request_id` of a replayed answer is that of the first. */
    requestId: string | undefined, 
    /** Whether the answer was stored by an earlier request with the same key. */
    replayed: boolean, headers: Headers);
}
/** The payment was declined: an answer, and final. */
export declare class CardError extends ApiError {
    name: string;
}
/** The key is in use (409), or stands for another request (422). */
export declare class IdempotencyError extends ApiError {
    name: string;
}
/** The request is wrong, or what it asks for is not there or not possible. */
export declare class InvalidRequestError extends ApiError {
    name: string;
}
/** There is no such API key. */
export declare class AuthenticationError extends ApiError {
    name: string;
}
/** Too many requests. */
export declare class RateLimitError extends ApiError {
    name: string;
}
/**
 * Time is up and the outcome is not known. The operation is kept: call again, or `resume` it, under the same name. `cause` is the last
 * error.
 */
export declare class DeadlineError extends PaidonceError {
    name: string;
}
/** The operation was begun with another request. Nothing was sent. */
export declare class OperationMismatchError extends PaidonceError {
    name: string;
}
/**
 * The operation was begun so long ago that the server may have forgotten its key, and would take it for a new one. Nothing was sent: look
 * for the charge (by its metadata, say), then `forget` the operation or leave it.
 */
export declare class StaleOperationError extends PaidonceError {
    name: string;
}
/** Nothing was begun under the name, or it was forgotten. */
export declare class UnknownOperationError extends PaidonceError {
    name: string;
}
/** Makes an error of an answer; of one that is not ours (a proxy's page, say) as well, but without any details. */
export declare function errorOf(status: number, headers: Headers, text: string): ApiError;
/** The JSON object that a text is, or undefined. */
export declare function objectOf(text: string): Record<string, unknown> | undefined;
export {};
