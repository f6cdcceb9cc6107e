// The layer by itself: what is sent, kept and raised, with a server that does as it is told.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import * as sdk from '../dist/index.js';
import { FileStore } from '../dist/file-store.js';

const charge = '{"id":"ch_1","object":"charge"}';
const params = { amount: 2000, currency: 'usd', source: 'tok_visa' };

/** Answers in turn: a number is a status, an Error a lost connection. Keeps what was sent. */
function server(...answers) {
  const sent = [];
  const fetch = async (url, init) => {
    const headers = new Headers(init.headers);
    sent.push({ url, key: headers.get('Idempotency-Key'), body: init.body, type: headers.get('Content-Type') });
    const next = answers.length > 1 ? answers.shift() : answers[0];
    if (next instanceof Error) throw next;
    const [status, more = {}, body = status < 300 ? charge : '{"error":{"type":"api_error","message":"m","advice":"retry_same_key"}}'] = [].concat(next);
    return new Response(body, { status, headers: more });
  };
  return { sent, fetch };
}

const client = (fetch, more = {}) =>
  new sdk.Paidonce({ apiKey: 'sk_x', baseUrl: 'http://paidonce.test', store: new sdk.MemoryStore(), fetch, deadlineMs: 5_000, ...more });

const raised = (promise) => promise.then(() => assert.fail('no error'), (error) => error);

test('each attempt sends the same key and the same bytes', async () => {
  for (const status of [408, 409, 425, 429, 500, 502, 503, 504, new TypeError('fetch failed')]) {
    const { sent, fetch } = server(status, status, 201);
    const { data } = await client(fetch).charges.create('op', params);
    assert.equal(data.id, 'ch_1');
    assert.equal(sent.length, 3);
    assert.deepEqual(sent[1], sent[0]);
    assert.deepEqual(sent[2], sent[0]);
  }
});

test('what does the same when it is repeated needs no key, and is the same each time', async () => {
  for (const [call, path, body] of [
    [(c) => c.webhookEndpoints.put('a b', { url: 'https://x/' }), 'webhook_endpoints/a%20b', '{"url":"https://x/"}'],
    [(c) => c.events.resend('evt_1', { webhook_endpoint: 'hook' }), 'events/evt_1/resend', '{"webhook_endpoint":"hook"}'],
    [(c) => c.webhookEndpoints.rotateSecret('hook'), 'webhook_endpoints/hook/rotate_secret', undefined],
  ]) {
    const { sent, fetch } = server(new TypeError('fetch failed'), 503, [200, { 'Content-Type': 'application/json' }]);
    await call(client(fetch));
    const once = { url: `http://paidonce.test/v1/${path}`, key: null, body, type: body ? 'application/json' : null };
    assert.deepEqual(sent, [once, once, once]);
  }
});

test('nothing else is retried', async () => {
  for (const status of [400, 401, 402, 403, 404, 405, 410, 413, 415, 422, 451]) {
    const { sent, fetch } = server(status);
    const error = await raised(client(fetch).charges.create('op', params));
    assert.ok(error instanceof sdk.ApiError);
    assert.equal(error.status, status);
    assert.equal(sent.length, 1);
  }
});

test('a 5xx that says stop is final', async () => {
  const { sent, fetch } = server([500, {}, '{"error":{"type":"api_error","code":"operation_parked","message":"m","advice":"stop"}}']);
  const error = await raised(client(fetch).charges.create('op', params));
  assert.equal(error.code, 'operation_parked');
  assert.equal(sent.length, 1);
});

test('Retry-After is the least that is waited', async () => {
  const { fetch } = server([503, { 'Retry-After': '1' }], 201);
  const begun = Date.now();
  await client(fetch).charges.create('op', params);
  assert.ok(Date.now() - begun >= 1000);
  assert.equal(sdk.retryAfter(new Headers({ 'Retry-After': 'Thu, 01 Jan 1970 00:00:10 GMT' }), 4_000), 6_000);
  assert.equal(sdk.retryAfter(new Headers({ 'Retry-After': 'soon' })), 0);
  assert.notEqual(sdk.pauseAfter(3, 0, 0), sdk.pauseAfter(3, 0, 0.5));
});

test('the deadline ends it, and the operation is kept under its key', async () => {
  const { sent, fetch } = server(503);
  const c = client(fetch, { deadlineMs: 500 });
  const error = await raised(c.charges.create('op', params));
  assert.ok(error instanceof sdk.DeadlineError);
  assert.equal(error.cause.status, 503);
  const [kept] = await c.operations.unfinished();
  assert.equal(kept.key, sent[0].key);
});

test('another request under the name is not sent', async () => {
  const { sent, fetch } = server(201);
  const c = client(fetch);
  await c.charges.create('op', params);
  const error = await raised(c.charges.create('op', { ...params, amount: 1 }));
  assert.ok(error instanceof sdk.OperationMismatchError);
  const again = await c.charges.create('op', { source: 'tok_visa', currency: 'usd', amount: 2000 });
  assert.equal(again.replayed, true);
  assert.equal(sent.length, 1, 'an answer that is known is not asked for again');
});

test('the same parameters for another charge are another request', async () => {
  const c = client(server(200).fetch);
  await c.charges.capture('op', 'ch_1');
  assert.ok((await raised(c.charges.capture('op', 'ch_2'))) instanceof sdk.OperationMismatchError);
});

test('a decline is kept like a success', async () => {
  const { sent, fetch } = server([402, {}, '{"error":{"type":"card_error","code":"card_declined","message":"m","advice":"fix_and_use_new_key"}}'], 201);
  const c = client(fetch);
  for (let i = 0; i < 2; i++) assert.ok((await raised(c.charges.create('op', params))) instanceof sdk.CardError);
  assert.equal(sent.length, 1);
});

test('a refusal frees the name only when nothing can have moved', async () => {
  const refused = [400, {}, '{"error":{"type":"invalid_request_error","message":"m","advice":"fix_and_use_new_key"}}'];
  const first = server(refused, 201);
  const c = client(first.fetch);
  assert.ok((await raised(c.charges.create('op', params))) instanceof sdk.InvalidRequestError);
  await c.charges.create('op', { ...params, amount: 1 });
  assert.notEqual(first.sent[0].key, first.sent[1].key);
  const later = server(503, refused);
  const d = client(later.fetch);
  await raised(d.charges.create('op', params));
  assert.equal((await d.operations.unfinished()).length, 1);
});

test('a refusal of a resumed operation keeps the key', async () => {
  const { sent, fetch } = server([400, {}, '{"error":{"type":"invalid_request_error","message":"m","advice":"fix_and_use_new_key"}}']);
  const store = new sdk.MemoryStore();
  await store.begin(sdk.newOperation('op', '/v1/charges', params));
  const c = client(fetch, { store });
  await raised(c.charges.create('op', params));
  await raised(c.operations.resume('op'));
  assert.equal((await store.unfinished())[0].key, sent[1].key);
  assert.deepEqual(sent[0], sent[1]);
});

test('an operation that is too old is not sent', async () => {
  const { sent, fetch } = server(503);
  const c = client(fetch, { deadlineMs: 1, maxAgeMs: 20 });
  await raised(c.charges.create('op', params));
  await new Promise((wake) => setTimeout(wake, 30));
  const error = await raised(c.operations.resume('op'));
  assert.ok(error instanceof sdk.StaleOperationError);
  assert.equal(sent.length, 1);
});

test('a redirect is not followed', async () => {
  let asked;
  const fetch = async (_, init) => {
    asked = init.redirect;
    throw new TypeError('unexpected redirect');
  };
  const error = await raised(client(fetch, { deadlineMs: 1 }).charges.create('op', params));
  assert.ok(error.cause instanceof sdk.ConnectionError);
  assert.equal(asked, 'error');
});

test('a page of a proxy is an error, too', async () => {
  const error = await raised(client(server([404, {}, '<html>']).fetch).charges.create('op', params));
  assert.deepEqual([error.status, error.message], [404, 'The server answered 404.']);
});

test('the file is there before the first attempt, and the first of many wins', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'paidonce-'));
  const store = new FileStore(folder);
  const keys = new Set();
  const fetch = async (_, init) => {
    const [name] = await readdir(folder);
    assert.equal(JSON.parse(await readFile(join(folder, name), 'utf8')).key, init.headers['Idempotency-Key']);
    keys.add(init.headers['Idempotency-Key']);
    return new Response(charge, { status: 201 });
  };
  await Promise.all(Array.from({ length: 20 }, () => client(fetch, { store: new FileStore(folder) }).charges.create('a/b "c"', params)));
  assert.equal(keys.size, 1);
  assert.deepEqual(await store.unfinished(), []);
  assert.equal((await store.find('a/b "c"')).answer.status, 201);
  await store.forget('a/b "c"');
  assert.deepEqual(await readdir(folder), []);
});
