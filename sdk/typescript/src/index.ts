export * from './client.js';
export * from './errors.js';
export * from './operations.js';
export { pauseAfter, retryAfter, type RetryOptions } from './retry.js';
export * from './store.js';
export type * from './generated/types.gen.js';
