// A shop that charges, refunds and lists, and goes on where it was when it is started again.
import { CardError, DeadlineError, Paidonce, PaidonceError } from '@paidonce/sdk';
import { FileStore } from '@paidonce/sdk/file-store';

const paidonce = new Paidonce({
  baseUrl: process.env.PAIDONCE_URL,
  apiKey: process.env.PAIDONCE_API_KEY,
  store: new FileStore(process.env.PAYMENTS ?? '.payments'),
});

// First of all, what an earlier run left without an answer.
for (const { name } of await paidonce.operations.unfinished()) {
  try {
    const { data } = await paidonce.operations.resume(name);
    console.log('resumed', name, data.id);
  } catch (error) {
    if (!(error instanceof PaidonceError)) throw error;
    console.log(name, error.message); // declined, say, or still unknown; the others are not to wait for it
  }
}

async function pay(order, source) {
  try {
    const { data, replayed } = await paidonce.charges.create(order, { amount: 2000, currency: 'usd', source, metadata: { order } });
    console.log(order, data.id, data.status, replayed ? '(known already)' : '');
    return data;
  } catch (error) {
    if (error instanceof CardError) console.log(order, 'declined:', error.declineCode);
    else if (error instanceof DeadlineError) console.log(order, 'no answer yet; it goes on at the next start');
    else throw error;
  }
}

const charge = await pay('order-1', 'tok_visa');
await pay('order-1', 'tok_visa');
await pay('order-2', 'tok_chargeDeclinedInsufficientFunds');

if (charge) {
  const refund = await paidonce.refunds.create('order-1/refund', { charge: charge.id, amount: 500 });
  console.log('refunded', refund.data.amount, 'request', refund.requestId);
}

for await (const { id, amount, status } of paidonce.charges.all({ limit: 10 })) console.log(id, amount, status);
