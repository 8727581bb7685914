import { metrics } from './metrics.js';
import { openOrders } from './orders.js';

const element = (id) => document.getElementById(id);
const user = new URLSearchParams(location.search).get('user') ?? 'guest';
let cart = 0;

function show() {
  element('cart').value = cart;
  metrics.set('cart_items', { user }, cart);
}

const orders = await openOrders().catch((error) => {
  element('notice').textContent = `Orders cannot be placed here: ${error.message}`;
  metrics.add('order_errors_total', { code: error.code ?? 'unknown' });
  return undefined;
});
if (orders !== undefined) element('bought').value = await orders.total();

element('add').addEventListener('click', () => {
  cart += 1;
  metrics.add('clicks_total', { button: 'add' });
  show();
});

element('buy').addEventListener('click', async () => {
  metrics.add('clicks_total', { button: 'buy' });
  if (orders === undefined) return;
  const begun = performance.now();
  await orders.add(cart);
  metrics.set('order_seconds', {}, (performance.now() - begun) / 1000);
  cart = 0;
  element('bought').value = await orders.total();
  show();
});

show();
