/** The assertions of the testing helper: what holds, what does not, and what is said then. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  expectMetric,
  MetricAssertionError,
  recordMetrics,
  type PageLike,
} from '../../src/testing/index.js';

const once = { timeoutMs: 0 };

async function failure(assertion: Promise<void>): Promise<MetricAssertionError> {
  try {
    await assertion;
  } catch (error) {
    assert.ok(error instanceof MetricAssertionError, String(error));
    return error;
  }
  throw new Error('the assertion held');
}

async function recorded() {
  const metrics = await recordMetrics();
  for (const value of [0, 1, 1, 2]) metrics.set('cart_items', { user: 'a' }, value);
  metrics.set('cart_items', { user: 'b' }, -0);
  for (let i = 0; i < 3; i += 1) metrics.add('clicks_total', { button: 'buy' });
  metrics.add('clicks_total', { button: 'buy' }, 0.5);
  return metrics;
}

test('what holds passes, and its opposite does not', async () => {
  const metrics = await recorded();
  const cart = expectMetric(metrics, 'cart_items', { user: 'a' }, once);
  const clicks = expectMetric(metrics, 'clicks_total', {}, once);
  const other = expectMetric(metrics, 'cart_items', { user: /^b$/ }, once);
  const pairs: [() => Promise<void>, () => Promise<void>][] = [
    [() => cart.toExist(), () => cart.not.toExist()],
    [() => cart.toHaveLast(2), () => cart.not.toHaveLast(2)],
    [() => cart.not.toHaveLast(3), () => cart.toHaveLast(3)],
    [() => cart.toHaveValues([0, 1, 1, 2]), () => cart.toHaveValues([0, 1, 2])],
    [() => cart.toHaveSamples(4), () => cart.toHaveSamples(3)],
    [() => cart.toStayWithin({ max: 2 }), () => cart.toStayWithin({ min: 1 })],
    [() => cart.toHaveSeries(1), () => cart.toHaveSeries(2)],
    [() => other.toHaveLast(-0), () => other.toHaveLast(0)],
    [() => clicks.toHaveLastCloseTo(3.501), () => clicks.toHaveLastCloseTo(3.6)],
    [() => clicks.toHaveIncreasedBy(2.5), () => clicks.toHaveIncreasedBy(3.5)],
  ];
  for (const [holds, fails] of pairs) {
    await holds();
    await failure(fails());
  }
  metrics.set('clicks_total', { button: 'buy' }, 1);
  await clicks.toHaveIncreasedBy(3.5);
  await metrics.store.close();
});

test('a failure shows what was there', async () => {
  const metrics = await recorded();
  const wrong = await failure(expectMetric(metrics, 'cart_items', { user: 'a' }, once).toHaveLast(3));
  const text = wrong.message.replaceAll(/\d\d:\d\d:\d\d\.\d\d\d/g, 'TIME');
  assert.equal(
    text,
    `expected cart_items{user="a"} to have the last value 3, but it is 2

Series of cart_items:
  {user="a"}  4 samples, the last at TIME: 0 1 1 2
  {user="b"}  1 samples, the last at TIME: -0`,
  );
  assert.deepEqual([wrong.name, wrong.actual, wrong.expected], ['AssertionError', 2, 3]);

  const many = await failure(expectMetric(metrics, 'cart_items', {}, once).toHaveLast(3));
  assert.match(many.message, /^expected cart_items to have the last value 3, but 2 series match/);
  const none = await failure(expectMetric(metrics, 'cart_itms', { a: /x/ }, once).toExist());
  assert.match(none.message, /^expected cart_itms\{a=~\/x\/\} to exist, but it has 0 samples/);
  assert.match(none.message, /No series is called cart_itms. Recorded was:\n  cart_items\n  clicks/);
  // Nothing can be said of a series that is not there, not even what it is not.
  await failure(expectMetric(metrics, 'missing', {}, once).not.toHaveLast(1));
  await metrics.store.close();
});

test('an assertion waits for what is to come', async () => {
  const metrics = await recorded();
  setTimeout(() => metrics.set('cart_items', { user: 'a' }, 3), 60);
  await expectMetric(metrics, 'cart_items', { user: 'a' }).toHaveLast(3);
  setTimeout(() => metrics.clear(), 60);
  await expectMetric(metrics, 'cart_items').not.toExist();
  metrics.add('clicks_total', { button: 'buy' });
  await expectMetric(metrics, 'clicks_total').toHaveValues([1]);
  await metrics.store.close();
});

test('a page that a runner drives is a source, and so is a store', async () => {
  const metrics = await recorded();
  const page: PageLike = {
    async evaluate(run, argument) {
      // As in a page, the function comes without what is around it.
      const alone = new Function(`return (${run.toString()})`)() as typeof run;
      return structuredClone(await alone(structuredClone(argument)));
    },
  };
  await expectMetric(page, 'cart_items', { user: 'a' }, once).toHaveLast(2);
  await expectMetric(metrics.store, 'cart_items', { user: 'a' }, once).toHaveLast(2);
  await failure(expectMetric(page, 'cart_items', { user: 'a' }, once).toHaveLast(1));
  await metrics.store.close();
});
