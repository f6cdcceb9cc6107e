// A program that is killed while it charges; live.test.mjs runs it.
import { Paidonce } from '../dist/index.js';
import { FileStore } from '../dist/file-store.js';

const [, , folder, operation] = process.argv;
const paidonce = new Paidonce({ baseUrl: process.env.PAIDONCE_URL, apiKey: process.env.PAIDONCE_API_KEY, store: new FileStore(folder) });
await paidonce.charges.create(operation, { amount: 2000, currency: 'usd', source: 'tok_visa' });
await new Promise((wake) => setTimeout(wake, 60_000));
