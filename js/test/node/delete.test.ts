/** Deleting samples, and looking up what labels there are. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidError, MemoryStorage, open } from '../../src/index.js';
import { START_MS, STEP_MS, write } from '../shared/series.js';
import { read } from './support.js';

test('deleted samples are gone from head and blocks, also in the next life', async () => {
  const storage = new MemoryStorage();
  const store = await open({ storage });
  write(store, 10, 0, 1500);
  const blocks = await store.compact();
  assert.ok(blocks.length > 1);
  const matchers = [{ name: 'instance', op: '=', value: 'node-3' }] as const;
  const [from, to] = [START_MS + 10 * STEP_MS, START_MS + 1400 * STEP_MS];
  const deletion = store.delete({ matchers, startMs: from, endMs: to });
  assert.equal(deletion.headSeries, 1);
  assert.deepEqual(deletion.damaged, []);
  assert.ok(deletion.blocks.length > 1);

  const left = read(store, { matchers })[0]!.timestampsMs;
  assert.deepEqual([left.length, left[9], left[10]], [109, from - STEP_MS, to + STEP_MS]);
  assert.equal(read(store)[0]!.timestampsMs.length, 1500);
  const before = read(store);
  await store.close();
  const again = await open({ storage });
  assert.deepEqual(read(again), before);
  const all = { matchers: [{ name: 'instance', op: '=~', value: '.+' }] } as const;
  again.delete(all);
  assert.deepEqual(read(again), []);
  assert.throws(() => again.delete({ matchers: [] }), InvalidError);
  await again.close();
});

test('names and values of labels are looked up', async () => {
  const store = await open({ storage: new MemoryStorage() });
  write(store, 4, 0, 3);
  store.seriesRef({ __name__: 'empty', other: 'x' });
  assert.deepEqual(store.labelNames(), ['__name__', 'instance', 'job', 'other']);
  const matchers = [{ name: '__name__', op: '=', value: 'js_samples' }] as const;
  assert.deepEqual(store.labelNames({ matchers }), ['__name__', 'instance', 'job']);
  assert.deepEqual(store.labelValues('instance', { limit: 2 }), ['node-0', 'node-1']);
  assert.deepEqual(store.labelValues('missing'), []);
  await store.close();
});
