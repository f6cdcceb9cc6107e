import { createHmac, timingSafeEqual } from 'node:crypto';
import { PaidonceError } from './errors.js';
/** The delivery is not from Paidonce, was changed, or is too old. Answer 400 and believe nothing of it. */
export class SignatureError extends PaidonceError {
    name = 'SignatureError';
}
/**
 * Checks a delivery and returns its event. The body has to be the bytes as they came, before any parser; header names may be in any letter
 * case. The secrets are the endpoint's (`whsec_…`), several while one is replaced.
 *
 * `toleranceSeconds` is how old the delivery may be, or of the future; `now` is for tests. Raises SignatureError when the delivery is not to be
 * believed, and TypeError, whatever the delivery is, when a secret is none or there is none: an empty one would let everybody sign.
 */
export function verifyWebhook(body, headers, secrets, options = {}) {
    const keys = [secrets].flat().map(keyOf);
    if (keys.length === 0)
        throw new TypeError('a delivery cannot be checked without a secret');
    const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => header(headers, name));
    if (!id || !timestamp || !signatures)
        throw new SignatureError('A header of the delivery is missing.');
    const age = Math.abs((options.now ?? Date.now() / 1000) - Number(timestamp));
    if (!(age <= (options.toleranceSeconds ?? 300)))
        throw new SignatureError('The delivery is too old, or of the future.');
    const bytes = Buffer.from(body);
    const expected = keys.map((key) => createHmac('sha256', key).update(`${id}.${timestamp}.`).update(bytes).digest());
    // The header has one signature of each secret that is in use.
    const given = signatures.split(' ').filter((s) => s.startsWith('v1,')).map((s) => Buffer.from(s.slice('v1,'.length), 'base64'));
    if (!expected.some((e) => given.some((g) => g.length === e.length && timingSafeEqual(g, e)))) {
        throw new SignatureError('No signature of the delivery matches.');
    }
    return JSON.parse(bytes.toString('utf8'));
}
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Buffer makes some bytes of any text, so it is not asked whether a text is base64. */
function keyOf(secret) {
    const text = typeof secret === 'string' ? secret.replace(/^whsec_/, '') : '';
    if (!text || !base64.test(text))
        throw new TypeError('a webhook secret is whsec_ and base64');
    return Buffer.from(text, 'base64');
}
function header(headers, name) {
    if (headers instanceof Headers)
        return headers.get(name) ?? undefined;
    const value = Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
    return Array.isArray(value) ? value[0] : value;
}
