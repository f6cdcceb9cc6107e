// What the checks share: a client of the library under test, with nothing changed but host and key, and the provider's switches.
const { default: Stripe } = await import(process.env.STRIPE_MODULE);
const address = new URL(process.env.PAIDONCE_URL);

export const newest = process.env.STRIPE_MODULE === 'stripe-newest';

export const connect = (options = {}, key = process.env.PAIDONCE_API_KEY) =>
  new Stripe(key, { host: address.hostname, port: address.port, protocol: 'http', ...options });

export const order = (n, more = {}) => ({ amount: 2000 + n, currency: 'usd', source: 'tok_visa', metadata: { order: String(n) }, ...more });

export async function provider(path, body) {
  const answer = await fetch(`${process.env.SIM_URL}/_sim/${path}`, body && { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/** Lets the next charges that the provider is asked for meet a fault. */
export const strike = (fault, count = 1) =>
  provider('faults', { match: { method: 'POST', path: '/v1/charges' }, count, fault });

/** The error that a call raises; it is a mistake when it does not. */
export async function raised(call) {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error('no error was raised');
}
