// The layer by itself: what is sent, kept and raised, with a server that does as it is told.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, open, readFile, readdir, readlink, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import * as sdk from '../dist/index.js';
import { FileStore } from '../dist/file-store.js';

const charge = '{"id":"ch_1","object":"charge"}';
const params = { amount: 2000, currency: 'usd', source: 'tok_visa' };
/** An answer of Paidonce's that is an error. */
const refusal = (status, type, advice, more = {}, headers = {}) => [status, headers, JSON.stringify({ error: { type, code: 'c', message: 'm', advice, ...more } })];
const refused = refusal(400, 'invalid_request_error', 'fix_and_use_new_key');
const lost = new TypeError('fetch failed');

/** Answers in turn: a number is a status, an Error a lost connection. Keeps what was sent. */
function server(...answers) {
  const sent = [];
  const fetch = async (url, init) => {
    const headers = new Headers(init.headers);
    sent.push({ method: init.method, url, key: headers.get('Idempotency-Key'), body: init.body, type: headers.get('Content-Type') });
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
  for (const answer of [408, 409, 425, 429, 500, 502, 503, 504, lost]) {
    const { sent, fetch } = server(answer, answer, 201);
    const { data } = await client(fetch).charges.create('op', params);
    assert.equal(data.id, 'ch_1');
    assert.equal(sent.length, 3);
    assert.deepEqual(sent[1], sent[0]);
    assert.deepEqual(sent[2], sent[0]);
  }
});

/** Successes that no Paidonce gives to who makes a charge. */
const pages = ['', '<html>Sign in</html>', '{"id":"ch_', 'null', '[]', '"charge"', '{}', '{"status":"ok"}', '{"id":"re_1","object":"refund"}', '[{"object":"charge"}]'];

test('a success that is not what was asked for is no answer', async () => {
  await Promise.all(pages.map(async (page) => {
    const { sent, fetch } = server([200, { 'Content-Type': 'text/html' }, page], 201);
    const made = await client(fetch).charges.create('op', params);
    assert.deepEqual([made.data.id, made.status, sent.length], ['ch_1', 201, 2], page);
    assert.deepEqual(sent[1], sent[0]);
    const reading = server([200, {}, page], 200);
    assert.equal((await client(reading.fetch).charges.retrieve('ch_1')).data.id, 'ch_1', page);
  }));
});

test('an operation that got but pages goes on under its key', async () => {
  const { sent, fetch } = server([200, {}, '<html>'], [200, {}, '<html>'], 201);
  const store = new sdk.MemoryStore();
  const error = await raised(client(fetch, { store, deadlineMs: 1 }).charges.create('op', params));
  assert.ok(error instanceof sdk.DeadlineError && error.cause instanceof sdk.ApiConnectionError, error);
  assert.match(error.message, /not from Paidonce/);
  assert.equal((await store.unfinished()).length, 1);
  assert.equal((await client(fetch, { store }).operations.resume('op')).data.id, 'ch_1');
  assert.equal(new Set(sent.map(({ key }) => key)).size, 1);
});

test('a call that moves no money has a key for its own attempts, and is the same each time', async () => {
  for (const [call, method, path, body, object] of [
    [(c) => c.webhookEndpoints.put('a b', { url: 'https://x/' }), 'PUT', 'webhook_endpoints/a%20b', '{"url":"https://x/"}', 'webhook_endpoint'],
    [(c) => c.events.resend('evt_1', { webhook_endpoint: 'hook' }), 'POST', 'events/evt_1/resend', '{"webhook_endpoint":"hook"}', 'event_resend'],
    [(c) => c.webhookEndpoints.rotateSecret('hook'), 'POST', 'webhook_endpoints/hook/rotate_secret', undefined, 'webhook_endpoint'],
    [(c) => c.webhookEndpoints.delete('hook'), 'DELETE', 'webhook_endpoints/hook', undefined, 'webhook_endpoint'],
  ]) {
    const { sent, fetch } = server(lost, 503, [200, {}, `{"object":"${object}"}`]);
    await call(client(fetch));
    const { key } = sent[0];
    const each = { method, url: `http://paidonce.test/v1/${path}`, key, body, type: body ? 'application/json' : null };
    assert.deepEqual(sent, [each, each, each]);
    assert.equal(key !== null, method === 'POST');
    await call(client(fetch));
    assert.ok(!key || sent[3].key !== key, 'another call is another resend, and another secret');
  }
});

test('nothing else is retried', async () => {
  for (const status of [301, 307, 400, 401, 402, 403, 404, 405, 410, 413, 415, 422, 451]) {
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
  const { sent, fetch } = server(refusal(402, 'card_error', 'fix_and_use_new_key'), 201);
  const c = client(fetch);
  for (let i = 0; i < 2; i++) assert.ok((await raised(c.charges.create('op', params))) instanceof sdk.CardError);
  assert.equal(sent.length, 1);
});

/** What a call came to whose first answer was this one: whether a later call goes on under the same key. */
async function keyAfter(...answers) {
  const { sent, fetch } = server(...answers, 201);
  const c = client(fetch);
  const error = await raised(c.charges.create('op', params));
  const kept = (await c.operations.unfinished()).length === 1;
  await c.charges.create('op', kept ? params : { ...params, amount: 1 });
  assert.equal(sent.at(-1).key === sent[0].key, kept);
  return { error, kept };
}

test('an answer that is not from Paidonce is neither a decline nor a refusal', async () => {
  for (const status of [307, 400, 401, 402, 403, 404, 405, 413, 415, 422]) {
    for (const page of ['', '<html>', 'null', '[]', '{"error":"x"}', '{"error":null}', '{"error":{"code":400,"message":"x"}}', '{"message":"Forbidden"}', '{"error":{"type":"constructor"}}']) {
      const { error, kept } = await keyAfter([status, {}, page]);
      assert.ok(error.constructor === sdk.ApiError && error.status === status, `${status} ${page}`);
      assert.ok(kept, `${status} ${page}`);
    }
  }
  assert.ok((await keyAfter(refusal(402, 'api_error', 'stop'))).kept);
});

test('a refusal of the only attempt frees the name when the request is at fault', async () => {
  const missing = refusal(404, 'invalid_request_error', 'stop', { code: 'resource_missing' });
  for (const answer of [refused, refusal(413, 'invalid_request_error', 'fix_and_use_new_key'), refusal(415, 'invalid_request_error', 'fix_and_use_new_key'), missing]) {
    assert.ok(!(await keyAfter(answer)).kept, answer);
  }
  for (const answer of [
    refusal(401, 'authentication_error', 'stop'), refusal(403, 'authentication_error', 'stop'), refusal(404, 'invalid_request_error', 'stop', { code: 'route_unknown' }),
    refusal(405, 'invalid_request_error', 'stop'), refusal(422, 'idempotency_error', 'fix_and_use_new_key'), refusal(500, 'api_error', 'stop'),
  ]) {
    assert.ok((await keyAfter(answer)).kept, answer);
  }
  for (const call of [(c, id) => c.charges.capture('op', id), (c, id) => c.refunds.create('op', { charge: id })]) {
    const { sent, fetch } = server(missing, [200, {}, '{"object":"charge"}'], [200, {}, '{"object":"refund"}']);
    const c = client(fetch);
    await raised(call(c, 'ch_wrong'));
    await call(c, 'ch_right');
    assert.notEqual(sent[0].key, sent[1].key);
  }
});

test('a refusal after an attempt without an answer keeps the key, unless it is stored', async () => {
  const missing = refusal(404, 'invalid_request_error', 'stop', { code: 'resource_missing' });
  for (const before of [lost, 503, 409, [200, {}, '<html>']]) {
    for (const answer of [refused, missing]) assert.ok((await keyAfter(before, answer)).kept);
    assert.ok(!(await keyAfter(before, refusal(400, 'invalid_request_error', 'fix_and_use_new_key', {}, { 'Idempotent-Replayed': 'true' }))).kept);
  }
});

test('a refusal of a resumed operation keeps the key, unless it is stored', async () => {
  const { sent, fetch } = server(refused, refused, refusal(400, 'invalid_request_error', 'fix_and_use_new_key', {}, { 'Idempotent-Replayed': 'true' }));
  const store = new sdk.MemoryStore();
  await sdk.beginCharge(store, 'op', params);
  const c = client(fetch, { store });
  await raised(c.charges.create('op', params));
  await raised(c.operations.resume('op'));
  assert.equal((await store.unfinished())[0].key, sent[1].key);
  assert.deepEqual(sent[0], sent[1]);
  assert.equal((await raised(c.operations.resume('op'))).replayed, true);
  assert.deepEqual(await store.unfinished(), []);
  assert.ok((await raised(c.operations.resume('op'))) instanceof sdk.UnknownOperationError);
  await sdk.beginCharge(store, 'op', params);
  assert.ok((await raised(sdk.beginCharge(store, 'op', { ...params, amount: 1 }))) instanceof sdk.OperationMismatchError);
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
  const asked = [];
  const elsewhere = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(307, { Location: '/elsewhere' }).end();
  }).listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
  const error = await raised(client(undefined, { baseUrl: `http://127.0.0.1:${elsewhere.address().port}` }).charges.create('op', params));
  elsewhere.close();
  assert.deepEqual([error.status, asked], [307, ['/v1/charges']]);
});

test('an installation below a path', async () => {
  for (const baseUrl of ['http://paidonce.test/pay', 'http://paidonce.test/pay/']) {
    const { sent, fetch } = server(200, 200, [200, {}, '{"object":"list","data":[]}']);
    const c = client(fetch, { baseUrl });
    await c.charges.create('op', params);
    await c.charges.retrieve('ch_1');
    await c.charges.list({ limit: 3, created: { gte: 1, lt: 2 }, customer: 'cus_ü&', status: undefined });
    const query = '?limit=3&created%5Bgte%5D=1&created%5Blt%5D=2&customer=cus_%C3%BC%26';
    assert.deepEqual(sent.map(({ url }) => url), ['', '/ch_1', query].map((rest) => `http://paidonce.test/pay/v1/charges${rest}`));
  }
});

test('what would ask for something else is not sent', async () => {
  const { sent, fetch } = server(200);
  const c = client(fetch);
  for (const id of ['', '.', '..', undefined, null, 7]) {
    for (const call of [
      () => c.charges.retrieve(id), () => c.charges.capture('op', id), () => c.charges.cancel('op', id), () => c.refunds.retrieve(id), () => c.idempotencyKeys.retrieve(id),
      () => c.events.retrieve(id), () => c.events.resend(id), () => c.webhookEndpoints.put(id, { url: 'https://x/' }), () => c.webhookEndpoints.retrieve(id),
      () => c.webhookEndpoints.delete(id), () => c.webhookEndpoints.rotateSecret(id),
    ]) {
      assert.ok((await raised(call())) instanceof TypeError, `${id} ${call}`);
    }
  }
  for (const name of ['', undefined]) assert.ok((await raised(c.charges.create(name, params))) instanceof TypeError);
  assert.ok((await raised(c.charges.list({ customer: null }))) instanceof TypeError);
  assert.deepEqual([sent, await c.operations.unfinished()], [[], []]);
  for (const wrong of [
    { baseUrl: undefined }, { baseUrl: '127.0.0.1:8080' }, { baseUrl: 'ftp://h' }, { baseUrl: 'http://u:p@h' }, { baseUrl: 'http://h?x' }, { baseUrl: 'http://h#x' },
    { apiKey: undefined }, { apiKey: '' }, { apiKey: 'k\n' }, { apiKey: 'ключ' }, { deadlineMs: 0 }, { attemptMs: -1 }, { deadlineMs: NaN }, { maxAgeMs: NaN },
  ]) {
    assert.throws(() => client(fetch, wrong), TypeError, JSON.stringify(wrong));
  }
});

test('pages of a list', async () => {
  const page = (more, ...ids) => [200, {}, JSON.stringify({ object: 'list', has_more: more, data: ids.map((id) => ({ id })) })];
  const { sent, fetch } = server(page(true, 'a', 'b'), page(true, 'c'), page(false));
  const ids = [];
  for await (const { id } of client(fetch).charges.all({ limit: 2 })) ids.push(id);
  assert.deepEqual(ids, ['a', 'b', 'c']);
  assert.deepEqual(sent.map(({ url }) => url.split('limit=2')[1]), ['', '&starting_after=b', '&starting_after=c']);
});

test('the folders are on the disk, too, before anything is sent', async () => {
  if (process.platform !== 'linux') return; // needs /proc
  const above = await mkdtemp(join(tmpdir(), 'paidonce-'));
  const handle = await open(above);
  const files = Object.getPrototypeOf(handle);
  await handle.close();
  const { sync } = files;
  const synced = [];
  files.sync = async function () {
    synced.push((await readlink(`/proc/self/fd/${this.fd}`)).replace(/[^/]*\.new$/, 'file').slice(above.length));
    return sync.call(this);
  };
  try {
    const store = new FileStore(join(above, 'a', 'b'));
    const operation = sdk.newOperation('op', '/v1/charges', params);
    await store.begin(operation);
    assert.deepEqual(synced.splice(0), ['', '/a', '/a/b/file', '/a/b']);
    assert.deepEqual(await store.begin(sdk.newOperation('op', '/v1/charges', params)), operation);
    assert.deepEqual(synced.splice(0), ['/a/b/file', '/a/b'], 'whoever else has begun it');
    await store.finish(operation);
    assert.deepEqual(synced, ['/a/b/file', '/a/b']);
  } finally {
    files.sync = sync;
  }
  const [name] = await readdir(join(above, 'a', 'b'));
  for (const [path, mode] of [['', 0o700], [name, 0o600]]) assert.equal((await stat(join(above, 'a', 'b', path))).mode & 0o777, mode);
});

test('a folder that cannot be read is not an empty one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'paidonce-'));
  assert.deepEqual(await new FileStore(join(folder, 'none')).unfinished(), []);
  await writeFile(join(folder, 'file'), '');
  await assert.rejects(new FileStore(join(folder, 'file')).unfinished(), { code: 'ENOTDIR' });
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
