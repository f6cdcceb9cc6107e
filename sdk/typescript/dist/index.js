export * from './client.js';
export { ApiConnectionError, ApiError, AuthenticationError, CardError, DeadlineError, IdempotencyError, InvalidRequestError, OperationMismatchError, PaidonceError, RateLimitError, StaleOperationError, UnknownOperationError, } from './errors.js';
export { beginCharge, newOperation } from './operations.js';
export { pauseAfter, retryAfter } from './retry.js';
export * from './store.js';
