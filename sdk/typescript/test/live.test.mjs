// Against a real server with the simulated provider; e2e/sdk_typescript_test.go starts them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import * as sdk from '../dist/index.js';
import { FileStore } from '../dist/file-store.js';

const { PAIDONCE_URL: baseUrl, PAIDONCE_API_KEY: apiKey, SIM_URL: sim } = process.env;
const skip = !baseUrl && 'PAIDONCE_URL is not set';
const folder = await mkdtemp(join(tmpdir(), 'paidonce-'));
const store = new FileStore(folder);
const client = (more = {}) => new sdk.Paidonce({ baseUrl, apiKey, store, ...more });
const params = (more = {}) => ({ amount: 2000, currency: 'usd', source: 'tok_visa', metadata: { order: '6735' }, ...more });
const raised = (promise) => promise.then(() => assert.fail('no error'), (error) => error);
const switchSim = async (path, body) => {
  const answer = await fetch(`${sim}/_sim/${path}`, body && { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(answer.ok, path);
  return answer.json();
};
const strike = (fault) => switchSim('faults', { match: { method: 'POST', path: '/v1/charges' }, count: 1, fault });

test('create, and create again', { skip }, async () => {
  const made = await client().charges.create('order-1', params());
  assert.equal(made.status, 201);
  assert.equal(made.data.status, 'succeeded');
  assert.match(made.requestId, /^req_/);
  assert.equal(made.replayed, false);
  assert.equal((await client().charges.create('order-1', params())).data.id, made.data.id);
  // Another program that knows only the key gets the server's replay.
  const { key } = await store.find('order-1');
  const elsewhere = new sdk.MemoryStore();
  await elsewhere.begin({ ...(await store.find('order-1')), answer: undefined });
  const replay = await client({ store: elsewhere }).charges.create('order-1', params());
  assert.equal(replay.data.id, made.data.id);
  assert.equal(replay.replayed, true);
  assert.equal(replay.headers.get('Original-Request'), made.requestId);
  assert.equal((await client().idempotencyKeys.retrieve(key)).data.resource, made.data.id);
});

test('a key that stands for another request', { skip }, async () => {
  await client().charges.create('order-2', params());
  const stolen = new sdk.MemoryStore();
  await stolen.begin({ ...(await store.find('order-2')), body: JSON.stringify(params({ amount: 1 })), answer: undefined });
  const error = await raised(client({ store: stolen }).operations.resume('order-2'));
  assert.ok(error instanceof sdk.IdempotencyError);
  assert.deepEqual([error.status, error.code], [422, 'idempotency_key_reused']);
});

test('a decline is final', { skip }, async () => {
  for (let i = 0; i < 2; i++) {
    const error = await raised(client().charges.create('order-3', params({ source: 'tok_chargeDeclinedInsufficientFunds' })));
    assert.ok(error instanceof sdk.CardError);
    assert.deepEqual([error.status, error.declineCode, error.advice, error.replayed], [402, 'insufficient_funds', 'fix_and_use_new_key', i > 0]);
  }
});

test('in use, then its answer', { skip }, async () => {
  await strike({ type: 'delay', delay_ms: 800 });
  const both = await Promise.all([client().charges.create('order-4', params()), client().charges.create('order-4', params())]);
  assert.equal(both[0].data.id, both[1].data.id);
});

test('lost answers', { skip }, async () => {
  for (const type of ['drop_after', 'drop_before', 'garbage']) {
    const before = (await switchSim('stats')).charges;
    await strike({ type });
    const { data } = await client().charges.create(`order-5-${type}`, params());
    assert.equal(data.status, 'succeeded');
    assert.equal((await switchSim('stats')).charges, before + 1);
  }
});

test('capture, refund, lists', { skip }, async () => {
  const { data: held } = await client().charges.create('order-6', params({ capture: false, amount: 900 }));
  assert.equal((await client().charges.capture('order-6/capture', held.id, { amount: 800 })).data.amount_captured, 800);
  const { data: refund } = await client().refunds.create('order-6/refund', { charge: held.id, amount: 300 });
  assert.equal(refund.status, 'succeeded');
  assert.equal((await client().refunds.retrieve(refund.id)).data.id, refund.id);
  assert.equal((await client().charges.retrieve(held.id)).data.amount_refunded, 300);
  const { data: hold } = await client().charges.create('order-6b', params({ capture: false, amount: 900 }));
  const { data: gone } = await client().charges.cancel('order-6b/cancel', hold.id);
  assert.deepEqual([gone.captured, gone.refunded, gone.amount_refunded], [false, true, 900]);
  for (let i = 0; i < 3; i++) await client().charges.create(`order-7-${i}`, params({ amount: 100 + i }));
  const amounts = [];
  for await (const charge of client().charges.all({ limit: 2, created: { gte: 1 } })) amounts.push(charge.amount);
  assert.deepEqual(amounts.slice(0, 3), [102, 101, 100]);
  assert.ok(amounts.length >= 8);
  assert.equal((await client().refunds.list({ charge: held.id })).data.data.length, 1);
  const missing = await raised(client().charges.retrieve('ch_nothing'));
  assert.ok(missing instanceof sdk.InvalidRequestError);
  assert.equal(missing.status, 404);
  const wrong = await raised(client({ apiKey: 'sk_wrong' }).charges.list());
  assert.ok(wrong instanceof sdk.AuthenticationError);
});

test('a refusal frees the name for the corrected request', { skip }, async () => {
  const refusals = [];
  const note = (error) => refusals.push([error.status, error.code, error.param]);
  await client().charges.create('order-8', params({ amount: 0 })).catch(note);
  const { data: held } = await client().charges.create('order-8', params({ capture: false }));
  await client().charges.capture('order-8/capture', 'ch_nothing').catch(note);
  await client().refunds.create('order-8/refund', { charge: 'ch_nothing' }).catch(note);
  await client().refunds.create('order-8/refund', { charge: held.id, amount: 1 }).catch(note);
  assert.equal((await client().charges.capture('order-8/capture', held.id)).data.captured, true);
  await client().refunds.create('order-8/refund', { charge: held.id, amount: 2001 }).catch(note);
  assert.equal((await client().refunds.create('order-8/refund', { charge: held.id })).data.amount, 2000);
  assert.deepEqual(refusals, [
    [400, 'parameter_invalid_integer', 'amount'], [404, 'resource_missing', 'id'], [404, 'resource_missing', 'charge'], [400, 'charge_not_captured', 'amount'],
    [400, 'amount_too_large', 'amount'],
  ]);
  // Who asks is at fault, so the same request goes on under its key.
  const key = 'sk_wrong';
  assert.ok((await raised(client({ apiKey: key }).charges.create('order-9', params()))) instanceof sdk.AuthenticationError);
  const open = await store.find('order-9');
  await client().charges.create('order-9', params());
  assert.equal((await store.find('order-9')).key, open.key);
});

test('what moves no money is done once for each call as well', { skip }, async () => {
  await client().webhookEndpoints.put('once', { url: 'https://203.0.114.7/in' });
  const secrets = [];
  const losing = async (...request) => {
    const answer = await fetch(...request);
    secrets.push((await answer.clone().json()).secret);
    if (secrets.length === 1) throw new TypeError('the answer is lost');
    return answer;
  };
  const rotated = await client({ fetch: losing }).webhookEndpoints.rotateSecret('once');
  assert.deepEqual([rotated.replayed, secrets], [true, [rotated.data.secret, rotated.data.secret]]);
  assert.equal((await client().webhookEndpoints.retrieve('once')).data.secret, rotated.data.secret);
  assert.notEqual((await client().webhookEndpoints.rotateSecret('once')).data.secret, rotated.data.secret);
  await client().webhookEndpoints.delete('once');
});

test('events, oldest first, from the last one seen on', { skip }, async () => {
  await client().events.list({ limit: 1 }); // events of refunds before have their places from here on
  const { data: first } = await client().charges.create('event-1', params());
  const { data: newest } = await client().events.list({ order: 'desc', limit: 1 });
  assert.deepEqual([newest.data.length, newest.data[0].data.object.id], [1, first.id]);
  const made = [];
  for (const name of ['event-2', 'event-3', 'event-4']) made.push((await client().charges.create(name, params())).data.id);
  const told = [];
  for await (const event of client().events.all({ starting_after: newest.data[0].id, limit: 2, type: 'charge.succeeded' })) told.push(event);
  assert.deepEqual(told.map((event) => event.data.object.id), made);
  assert.deepEqual((await client().events.retrieve(told[0].id)).data, told[0]);
  const gone = await raised(client().events.all({ starting_after: 'evt_nothing' }).next());
  assert.deepEqual([gone.status, gone.code, gone.param], [400, 'resource_missing', 'starting_after']);
});

test('the life of a webhook endpoint', { skip }, async () => {
  const { webhookEndpoints, events } = client();
  const wanted = { url: 'https://203.0.114.7/in', enabled_events: ['charge.refunded'], description: 'TypeScript' };
  const made = await webhookEndpoints.put('typescript', wanted);
  assert.equal(made.status, 201);
  const again = await webhookEndpoints.put('typescript', wanted);
  assert.deepEqual([again.status, again.data.secret, again.data.url], [200, made.data.secret, wanted.url]);
  const rotated = await webhookEndpoints.rotateSecret('typescript');
  assert.notEqual(rotated.data.secret, made.data.secret);
  assert.equal((await webhookEndpoints.retrieve('typescript')).data.secret, rotated.data.secret);
  assert.deepEqual((await webhookEndpoints.list()).data.data.map(({ id }) => id), ['typescript']);
  await client().charges.create('endpoint-1', params());
  const [event] = (await events.list({ order: 'desc', limit: 1 })).data.data;
  assert.equal((await events.resend(event.id)).data.deliveries, 0); // nobody wants it
  assert.equal((await events.resend(event.id, { webhook_endpoint: 'typescript' })).data.deliveries, 1);
  const nowhere = await raised(events.resend(event.id, { webhook_endpoint: 'nowhere' }));
  assert.deepEqual([nowhere.status, nowhere.param], [404, 'webhook_endpoint']);
  const none = await raised(webhookEndpoints.put('no id/1', wanted));
  assert.deepEqual([none.status, none.param], [400, 'id']); // in the path it is one segment, so it is this that is refused
  assert.equal((await webhookEndpoints.delete('typescript')).data.deleted, true);
  assert.equal((await raised(webhookEndpoints.delete('typescript'))).status, 404);
});

/** Runs a program that charges, and kills it at once when the provider has been asked. */
async function killed(operation, fault) {
  const before = await switchSim('stats');
  await strike(fault);
  const child = spawn(process.execPath, [new URL('./crash.mjs', import.meta.url).pathname, folder, operation], { stdio: 'inherit' });
  while ((await switchSim('stats')).charge_requests === before.charge_requests) await new Promise((wake) => setTimeout(wake, 10));
  child.kill('SIGKILL');
  await new Promise((ended) => child.once('exit', ended));
  return before.charges;
}

test('kill -9 between and within attempts, then resume', { skip }, async () => {
  for (const fault of [{ type: 'drop_after' }, { type: 'drop_before' }, { type: 'delay', delay_ms: 300 }]) {
    const operation = `crash-${fault.type}`;
    const before = await killed(operation, fault);
    const open = (await client().operations.unfinished()).find((o) => o.name === operation);
    assert.ok(open, 'the key was kept before the first attempt');
    const { data } = await client().operations.resume(operation);
    assert.equal(data.status, 'succeeded');
    assert.equal((await switchSim('stats')).charges, before + 1);
    assert.equal((await store.find(operation)).key, open.key);
  }
});
