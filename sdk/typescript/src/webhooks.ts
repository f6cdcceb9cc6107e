import { createHmac, timingSafeEqual } from 'node:crypto';
import { PaidonceError } from './errors.js';
import type { Charge, Refund } from './generated/types.gen.js';

/** What Paidonce delivers. */
export interface WebhookEvent {
  /** Deliveries may be repeated: who has stored the id has seen the event. */
  id: string;
  object: 'event';
  type: string;
  created: number;
  livemode: boolean;
  /** Of the events of one object, from 1 without gaps: what came first, whatever arrived first. */
  sequence: number;
  data: { object: Charge | Refund };
}

/** The delivery is not from Paidonce, was changed, or is too old. Answer 400 and believe nothing of it. */
export class SignatureError extends PaidonceError {
  override name = 'SignatureError';
}

type HeaderSource = Headers | Record<string, string | string[] | undefined>;

/**
 * Checks a delivery and returns its event. The body has to be the bytes as they came, before any parser; the secrets are the endpoint's
 * (`whsec_…`), several while one is replaced.
 */
export function verifyWebhook(body: string | Uint8Array, headers: HeaderSource, secrets: string | string[], options: { toleranceSeconds?: number; now?: number } = {}): WebhookEvent {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => header(headers, name));
  if (!id || !timestamp || !signatures) throw new SignatureError('A header of the delivery is missing.');
  const age = Math.abs((options.now ?? Date.now() / 1000) - Number(timestamp));
  if (!(age <= (options.toleranceSeconds ?? 300))) throw new SignatureError('The delivery is too old, or of the future.');
  const bytes = Buffer.from(body as Uint8Array);
  const expected = [secrets].flat().map((secret) => sign(secret, `${id}.${timestamp}.`, bytes));
  // The header has one signature of each secret that is in use.
  const given = signatures.split(' ').filter((s) => s.startsWith('v1,')).map((s) => Buffer.from(s.slice('v1,'.length), 'base64'));
  if (!expected.some((e) => given.some((g) => g.length === e.length && timingSafeEqual(g, e)))) {
    throw new SignatureError('No signature of the delivery matches.');
  }
  return JSON.parse(bytes.toString('utf8')) as WebhookEvent;
}

function sign(secret: string, before: string, body: Buffer): Buffer {
  return createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64')).update(before).update(body).digest();
}

function header(headers: HeaderSource, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
