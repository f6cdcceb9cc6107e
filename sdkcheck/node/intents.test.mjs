// stripe-node's payment intents as a client of Paidonce. docs/compatibility.md says in words what these tests say.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, provider, raised } from './setup.mjs';

const stripe = connect();
const key = (idempotencyKey) => ({ idempotencyKey });
const opened = { amount: 2000, currency: 'usd', payment_method_types: ['card'] };
const paying = { ...opened, payment_method: 'pm_card_visa', confirm: true };

test('create and confirm at once, replay, retrieve', async () => {
  const wanted = {
    amount: 2000, currency: 'usd', payment_method: 'pm_card_visa', confirm: true, description: 'Order 1', metadata: { order: 1 },
    automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
  };
  const intent = await stripe.paymentIntents.create(wanted, key('once'));
  assert.deepEqual([intent.object, intent.status, intent.amount_received, intent.metadata, intent.description], ['payment_intent', 'succeeded', 2000, { order: '1' }, 'Order 1']);
  assert.deepEqual(intent.automatic_payment_methods, { enabled: true, allow_redirects: 'never' });
  assert.equal(intent.lastResponse.statusCode, 201);
  const again = await stripe.paymentIntents.create(wanted, key('once'));
  assert.deepEqual([again.id, again.lastResponse.headers['idempotent-replayed']], [intent.id, 'true']);
  const read = await stripe.paymentIntents.retrieve(intent.id);
  assert.deepEqual([read.status, read.client_secret], ['succeeded', intent.client_secret]);
  assert.match(read.client_secret, new RegExp(`^${intent.id}_secret_`));
  const charge = await stripe.charges.retrieve(intent.latest_charge);
  assert.deepEqual([charge.status, charge.amount], ['succeeded', 2000]);
});

test('update, confirm later', async () => {
  const intent = await stripe.paymentIntents.create(opened, key('later'));
  assert.deepEqual([intent.status, intent.latest_charge, intent.payment_method_types], ['requires_payment_method', null, ['card']]);
  const updated = await stripe.paymentIntents.update(intent.id, { amount: 2500, description: 'Order 2', metadata: { order: '2' } });
  assert.deepEqual([updated.amount, updated.description, updated.metadata], [2500, 'Order 2', { order: '2' }]);
  assert.deepEqual((await stripe.paymentIntents.update(intent.id, { description: '', metadata: { order: '' } }, key('update'))).metadata, {});
  const confirmed = await stripe.paymentIntents.confirm(intent.id, { payment_method: 'pm_card_visa' }, key('confirm'));
  assert.deepEqual([confirmed.status, confirmed.amount_received, confirmed.description], ['succeeded', 2500, null]);
  const error = await raised(stripe.paymentIntents.confirm(intent.id, {}, key('confirm-again')));
  assert.deepEqual([error.type, error.code, error.payment_intent.id], ['StripeInvalidRequestError', 'payment_intent_unexpected_state', intent.id]);
  const described = await stripe.paymentIntents.update(intent.id, { description: 'Order 2, a gift', metadata: { gift: 'yes' } });
  assert.deepEqual([described.status, described.description, described.metadata], ['succeeded', 'Order 2, a gift', { gift: 'yes' }]);
  const late = await raised(stripe.paymentIntents.update(intent.id, { amount: 3000 }));
  assert.deepEqual([late.statusCode, late.code], [400, 'payment_intent_unexpected_state']);
});

test('capture and cancel, refund by the intent', async () => {
  const held = await stripe.paymentIntents.create({ ...paying, capture_method: 'manual' }, key('hold'));
  assert.deepEqual([held.status, held.amount_capturable], ['requires_capture', 2000]);
  const taken = await stripe.paymentIntents.capture(held.id, { amount_to_capture: 1500 }, key('capture'));
  assert.deepEqual([taken.status, taken.amount_received, taken.amount_capturable], ['succeeded', 1500, 0]);
  const refund = await stripe.refunds.create({ payment_intent: held.id, amount: 400 }, key('refund'));
  assert.deepEqual([refund.charge, refund.amount], [taken.latest_charge, 400]);
  const other = await stripe.paymentIntents.create({ ...paying, capture_method: 'manual' }, key('hold-2'));
  const released = await stripe.paymentIntents.cancel(other.id, { cancellation_reason: 'requested_by_customer' }, key('cancel'));
  assert.deepEqual([released.status, released.cancellation_reason, released.amount_capturable], ['canceled', 'requested_by_customer', 0]);
  const open = await stripe.paymentIntents.create({ amount: 300, currency: 'usd' }, key('open'));
  assert.equal((await stripe.paymentIntents.cancel(open.id)).status, 'canceled');
});

test('declines are card errors with the intent', async () => {
  const intent = await stripe.paymentIntents.create(opened, key('to-decline'));
  for (let i = 0; i < 2; i++) {
    const error = await raised(stripe.paymentIntents.confirm(intent.id, { payment_method: 'pm_card_chargeDeclinedInsufficientFunds' }, key('declined')));
    assert.deepEqual([error.type, error.statusCode, error.code, error.decline_code], ['StripeCardError', 402, 'card_declined', 'insufficient_funds']);
    assert.deepEqual([error.payment_intent.id, error.payment_intent.status], [intent.id, 'requires_payment_method']);
    assert.equal(error.payment_intent.last_payment_error.decline_code, 'insufficient_funds');
    assert.equal((await stripe.charges.retrieve(error.charge)).status, 'failed');
  }
  assert.equal((await stripe.paymentIntents.confirm(intent.id, { payment_method: 'pm_card_visa' }, key('another-card'))).status, 'succeeded');
});

test('a payer who has to act, and does', async () => {
  const back = { ...paying, payment_method: 'pm_card_threeDSecure2Required', return_url: 'https://shop.example/orders/7' };
  const intent = await stripe.paymentIntents.create(back, key('acts'));
  assert.deepEqual([intent.status, intent.next_action.type, intent.next_action.redirect_to_url.return_url], ['requires_action', 'redirect_to_url', 'https://shop.example/orders/7']);
  await provider('authenticate', { intent: intent.id, outcome: 'succeed' });
  let now = intent;
  while (now.status === 'requires_action') now = await stripe.paymentIntents.retrieve(intent.id);
  assert.deepEqual([now.status, now.next_action], ['succeeded', null]);
  const here = await stripe.paymentIntents.create({ ...paying, payment_method: 'pm_card_threeDSecure2Required' }, key('in-page'));
  assert.deepEqual([here.status, here.next_action], ['requires_action', { type: 'use_stripe_sdk', use_stripe_sdk: {} }]);
  const refused = await raised(stripe.paymentIntents.create({ ...paying, payment_method: 'pm_card_threeDSecure2Required', error_on_requires_action: true }, key('no-payer')));
  assert.equal(refused.type, 'StripeCardError');
});

test('lists page by themselves', async () => {
  const made = [];
  for (let n = 0; n < 5; n++) made.unshift((await stripe.paymentIntents.create({ amount: 100 + n, currency: 'usd', customer: 'cus_42' }, key(`page-${n}`))).id);
  const seen = [];
  for await (const intent of stripe.paymentIntents.list({ limit: 2, customer: 'cus_42', created: { gte: 1 } })) seen.push(intent.id);
  assert.deepEqual(seen, made);
  assert.deepEqual((await stripe.paymentIntents.list({ ending_before: made[2], limit: 1, customer: 'cus_42' })).data.map((i) => i.id), [made[1]]);
  assert.deepEqual((await stripe.paymentIntents.list({ created: 1 })).data, []);
});

test('events have no secrets', async () => {
  const intent = await stripe.paymentIntents.create(paying, key('told'));
  const events = [];
  for await (const event of stripe.events.list({ type: 'payment_intent.*' })) events.push(event);
  const mine = events.filter((event) => event.data.object.id === intent.id);
  assert.deepEqual(mine.map((event) => event.type), ['payment_intent.created', 'payment_intent.succeeded']);
  assert.equal(JSON.stringify(events).includes('_secret_'), false);
});

test('what we lack is refused by name', async () => {
  for (const [status, code, param, call] of [
    [400, 'parameter_unknown', 'confirmation_method', () => stripe.paymentIntents.create({ ...paying, confirmation_method: 'manual' })],
    [400, 'parameter_unknown', 'application_fee_amount', () => stripe.paymentIntents.create({ ...paying, application_fee_amount: 1 })],
    [400, 'parameter_unknown', 'payment_method_data[type]', () => stripe.paymentIntents.create({ ...paying, payment_method_data: { type: 'card' } })],
    [400, 'parameter_invalid', 'return_url', () => stripe.paymentIntents.create({ amount: 1, currency: 'usd', return_url: 'https://shop.example/' })],
    [400, 'parameter_invalid', 'expand[0]', () => stripe.paymentIntents.retrieve('pi_x', { expand: ['invoice'] })],
    [400, 'parameter_unknown', 'query', () => stripe.paymentIntents.search({ query: "metadata['order']:'1'" })],
    [404, 'route_unknown', undefined, () => stripe.paymentIntents.incrementAuthorization('pi_x', { amount: 1 })],
    [404, 'resource_missing', 'id', () => stripe.paymentIntents.retrieve('pi_x')],
    [404, 'resource_missing', 'id', () => stripe.paymentIntents.confirm('pi_x')],
  ]) {
    const error = await raised(call());
    assert.deepEqual([error.statusCode, error.code, error.param], [status, code, param]);
  }
});
