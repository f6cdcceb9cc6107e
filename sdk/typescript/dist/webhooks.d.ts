import { PaidonceError } from './errors.js';
import type { Event } from './generated/types.gen.js';
/** The delivery is not from Paidonce, was changed, or is too old. Answer 400 and believe nothing of it. */
export declare class SignatureError extends PaidonceError {
    name: string;
}
type HeaderSource = Headers | Record<string, string | string[] | undefined>;
/**
 * Checks a delivery and returns its event. The body has to be the bytes as they came, before any parser; header names may be in any letter
 * case. The secrets are the endpoint's (`whsec_…`), several while one is replaced.
 *
 * `toleranceSeconds` is how old the delivery may be, or of the future; `now` is for tests. Raises SignatureError when the delivery is not to be
 * believed, and TypeError, whatever the delivery is, when a secret is none or there is none: an empty one would let everybody sign.
 */
export declare function verifyWebhook(body: string | Uint8Array, headers: HeaderSource, secrets: string | string[], options?: {
    toleranceSeconds?: number;
    now?: number;
}): Event;
export {};
