import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { SignatureError, verifyWebhook } from '../dist/webhooks.js';

// The example of the Standard Webhooks specification, so that the signature is not only what we think it is.
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const body = '{"test": 2432232314}';
const headers = { 'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek', 'webhook-timestamp': '1614265330', 'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=' };
const now = 1614265330;

test('a delivery that is signed', () => {
  assert.equal(verifyWebhook(body, headers, secret, { now }).test, 2432232314);
  assert.equal(verifyWebhook(Buffer.from(body), new Headers(headers), ['whsec_b3RoZXI=', secret], { now: now + 300 }).test, 2432232314);
  const two = { ...headers, 'webhook-signature': `v1,AAAA v1a,x ${headers['webhook-signature']}` };
  assert.equal(verifyWebhook(body, two, secret, { now }).test, 2432232314);
  const other = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
  assert.equal(verifyWebhook(body, other, secret.slice('whsec_'.length), { now }).test, 2432232314);
});

test('one that is not', () => {
  for (const [what, change] of Object.entries({
    body: [body.replace('2', '3'), headers, secret, { now }],
    id: [body, { ...headers, 'webhook-id': 'msg_2' }, secret, { now }],
    time: [body, { ...headers, 'webhook-timestamp': '1614265331' }, secret, { now }],
    'no time': [body, { ...headers, 'webhook-timestamp': 'soon' }, secret, { now }],
    secret: [body, headers, 'whsec_b3RoZXI=', { now }],
    none: [body, {}, secret, { now }],
    old: [body, headers, secret, { now: now + 301 }],
    future: [body, headers, secret, { now: now - 301 }],
    'another version': [body, { ...headers, 'webhook-signature': headers['webhook-signature'].replace('v1', 'v2') }, secret, { now }],
  })) {
    assert.throws(() => verifyWebhook(...change), SignatureError, what);
  }
});

test('a secret that is none', () => {
  // With an empty key anybody can sign.
  const forged = { ...headers, 'webhook-signature': `v1,${createHmac('sha256', '').update(`${headers['webhook-id']}.${now}.${body}`).digest('base64')}` };
  for (const none of ['', ' ', '\n', 'whsec_', 'whsec_ ', 'whsec_*', 'whsec_ü', 'whsec_b3RoZXI', `${secret}*`, `${secret} ${secret}`, undefined, null, 7]) {
    // At once, so that it is found with the first delivery: whatever that is, and whatever other secrets there are.
    for (const secrets of [none, [none], [secret, none], [none, secret]]) {
      for (const given of [forged, headers, {}]) assert.throws(() => verifyWebhook(body, given, secrets, { now }), TypeError, JSON.stringify(secrets));
    }
  }
  assert.throws(() => verifyWebhook(body, headers, [], { now }), TypeError);
});
