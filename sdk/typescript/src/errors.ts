import type { Error as ErrorBody } from './generated/types.gen.js';

type Details = ErrorBody['error'];

/** Everything that this library raises. */
export class PaidonceError extends Error {
  override name = 'PaidonceError';
}

/** No answer came: the connection failed, or took too long. The request may have been carried out. */
export class ConnectionError extends PaidonceError {
  override name = 'ConnectionError';
}

/** An answer that is an error. The subclasses tell the kinds apart. */
export class ApiError extends PaidonceError {
  override name = 'ApiError';
  readonly type: Details['type'] | undefined;
  readonly code: string | undefined;
  readonly param: string | undefined;
  readonly declineCode: string | undefined;
  readonly charge: string | undefined;
  /** What a program should do; `docs/errors.md` of Paidonce explains it. */
  readonly advice: Details['advice'] | undefined;

  constructor(
    readonly status: number,
    details: Partial<Details>,
    /** Of this exchange; `error.request_id` of a replayed answer is that of the first. */
    readonly requestId: string | undefined,
    /** Whether the answer was stored by an earlier request with the same key. */
    readonly replayed: boolean,
    readonly headers: Headers,
  ) {
    super(details.message ?? `The server answered ${status}.`);
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
  override name = 'CardError';
}

/** The key is in use (409), or stands for another request (422). */
export class IdempotencyError extends ApiError {
  override name = 'IdempotencyError';
}

/** The request is wrong, or what it asks for is not there or not possible. */
export class InvalidRequestError extends ApiError {
  override name = 'InvalidRequestError';
}

export class AuthenticationError extends ApiError {
  override name = 'AuthenticationError';
}

export class RateLimitError extends ApiError {
  override name = 'RateLimitError';
}

/**
 * Time is up and the outcome is not known. The operation is kept: call again, or `resume` it, under the same name. `cause` is the last
 * error.
 */
export class DeadlineError extends PaidonceError {
  override name = 'DeadlineError';
}

/** The operation was begun with another request. Nothing was sent. */
export class OperationMismatchError extends PaidonceError {
  override name = 'OperationMismatchError';
}

/**
 * The operation was begun so long ago that the server may have forgotten its key, and would take it for a new one. Nothing was sent: look
 * for the charge (by its metadata, say), then `forget` the operation or leave it.
 */
export class StaleOperationError extends PaidonceError {
  override name = 'StaleOperationError';
}

const classes: Record<Details['type'], typeof ApiError> = {
  api_error: ApiError,
  authentication_error: AuthenticationError,
  card_error: CardError,
  idempotency_error: IdempotencyError,
  invalid_request_error: InvalidRequestError,
  rate_limit_error: RateLimitError,
};

/** Makes an error of an answer; of one that is not ours (a proxy's page, say) as well. */
export function errorOf(status: number, headers: Headers, text: string): ApiError {
  let details: Partial<Details> = {};
  try {
    details = (JSON.parse(text) as ErrorBody).error ?? {};
  } catch {
    // Not JSON, so not from Paidonce itself: the status says enough.
  }
  const kind = (details.type && classes[details.type]) || ApiError;
  return new kind(status, details, headers.get('Request-Id') ?? undefined, headers.get('Idempotent-Replayed') === 'true', headers);
}
