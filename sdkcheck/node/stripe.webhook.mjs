// A delivery of ours, taken by stripe-node as if it were Stripe's.
import { readFile } from 'node:fs/promises';
import { connect, raised } from './setup.mjs';

const { secret, headers, body } = JSON.parse(await readFile(process.env.DELIVERY, 'utf8'));
const stripe = connect();
const event = stripe.webhooks.constructEvent(body, headers['stripe-signature'], secret);
const error = await raised((async () => stripe.webhooks.constructEvent(`${body} `, headers['stripe-signature'], secret))());
if (error.type !== 'StripeSignatureVerificationError') throw error;
console.log(event.type, event.data.object.amount);
