import { ConnectionError, DeadlineError, errorOf, type ApiError } from './errors.js';

export interface RetryOptions {
  /** How long a call may take with all its attempts, in milliseconds. Default: 60,000. */
  deadlineMs?: number;
  /** How long one attempt may take. Default: 30,000. */
  attemptMs?: number;
  fetch?: typeof globalThis.fetch;
}

export interface Exchange {
  status: number;
  headers: Headers;
  text: string;
  /** Whether an earlier attempt of this call may have been carried out. */
  uncertain: boolean;
}

const shortestPause = 200;
const longestPause = 10_000;
const retried = new Set([408, 409, 425, 429]);

/** Tells whether the same request should be sent again. Of the answers that say so in `advice`, none may overrule the statuses. */
function again(error: ApiError): boolean {
  return (error.status >= 500 || retried.has(error.status)) && error.advice !== 'stop';
}

/** Milliseconds of a `Retry-After`, which is a number of seconds or a date. */
export function retryAfter(headers: Headers, now = Date.now()): number {
  const value = headers.get('Retry-After');
  if (!value) return 0;
  const seconds = Number(value);
  const pause = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - now;
  return pause > 0 ? pause : 0;
}

/** How long to wait before the next attempt: never less than the server asks for, and never in step with other clients. */
export function pauseAfter(attempt: number, asked: number, random = Math.random()): number {
  const most = Math.min(longestPause, shortestPause * 2 ** attempt);
  return asked + (most / 2) * (1 + random);
}

/** Sends a request until there is an answer. The request is the same each time, byte for byte. */
export async function exchange(url: string, init: RequestInit, options: RetryOptions): Promise<Exchange> {
  const deadline = Date.now() + (options.deadlineMs ?? 60_000);
  const send = options.fetch ?? globalThis.fetch;
  let uncertain = false;
  for (let attempt = 0; ; attempt++) {
    let failure: Error;
    let asked = 0;
    try {
      const left = deadline - Date.now();
      const limit = AbortSignal.timeout(Math.max(1, Math.min(left, options.attemptMs ?? 30_000)));
      // A redirect would carry the request and its API key to another place.
      const answer = await send(url, { ...init, redirect: 'error', signal: limit });
      const text = await answer.text();
      if (answer.ok) return { status: answer.status, headers: answer.headers, text, uncertain };
      const error = errorOf(answer.status, answer.headers, text);
      if (!again(error)) return { status: answer.status, headers: answer.headers, text, uncertain };
      asked = retryAfter(answer.headers);
      failure = error;
    } catch (cause) {
      failure = new ConnectionError(`No answer from ${new URL(url).host}: ${reason(cause)}`, { cause });
    }
    uncertain = true;
    const pause = pauseAfter(attempt, asked);
    if (Date.now() + pause >= deadline) throw new DeadlineError(`Time is up: ${failure.message}`, { cause: failure });
    await new Promise((wake) => setTimeout(wake, pause));
  }
}

/** fetch says "fetch failed" and hides the reason one level down. */
function reason(error: unknown): string {
  const inner = (error as Error).cause ?? error;
  return inner instanceof Error ? inner.message || inner.name : String(inner);
}
