export * from './client.js';
export { ApiConnectionError, ApiError, AuthenticationError, CardError, DeadlineError, IdempotencyError, InvalidRequestError, OperationMismatchError, PaidonceError, RateLimitError, StaleOperationError, UnknownOperationError, } from './errors.js';
export { beginCharge, newOperation, type Operations, type Result } from './operations.js';
export { pauseAfter, retryAfter, type RetryOptions } from './retry.js';
export * from './store.js';
export type * from './generated/types.gen.js';
