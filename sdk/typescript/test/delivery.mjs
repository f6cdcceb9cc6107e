// A delivery that arrived at a receiver; e2e/sdk_webhook_test.go runs it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { SignatureError, verifyWebhook } from '../dist/webhooks.js';

const { secret, headers, body } = JSON.parse(await readFile(process.env.DELIVERY, 'utf8'));
const event = verifyWebhook(body, headers, secret);
assert.throws(() => verifyWebhook(`${body} `, headers, secret), SignatureError);
console.log(event.type, event.data.object.amount);
