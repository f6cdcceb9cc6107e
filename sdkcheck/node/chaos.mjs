// A hundred charges over a server that is killed and a provider that drops answers: the library's own retries, and a loop on its errors.
import { connect, order } from './setup.mjs';

const charges = Number(process.env.CHARGES);
const atOnce = 8;
const stripe = connect();
const deadline = Date.now() + 120_000;

async function pay(n) {
  for (;;) {
    try {
      // The key is the order's: made once, the same in every attempt.
      return await stripe.charges.create(order(n), { idempotencyKey: `order-${n}` });
    } catch (error) {
      // What Paidonce says in words for programs; a connection that broke says nothing, and is tried again.
      const again = error.type === 'StripeConnectionError' || error.raw?.advice === 'retry_same_key';
      if (!again || Date.now() > deadline) throw error;
      await new Promise((wake) => setTimeout(wake, 200 + Math.random() * 300));
    }
  }
}

let next = 0;
const ids = [];
await Promise.all(Array.from({ length: atOnce }, async () => {
  while (next < charges) {
    const n = next++;
    const charge = await pay(n);
    if (charge.status !== 'succeeded' || charge.metadata.order !== String(n)) throw new Error(`order ${n}: ${JSON.stringify(charge)}`);
    ids.push(charge.id);
    console.log('paid', ids.length);
  }
}));
console.log('charges', new Set(ids).size);
