/** Matchers, order, raw chunks, and cursors that are left early. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BusyError, decodeSeries, type Matcher, type Store } from '../../src/index.js';
import { NOW_MS, openMemory, plain, read } from './support.js';

async function someStore(): Promise<Store> {
  const store = await openMemory();
  for (const job of ['api', 'web', 'worker']) {
    for (const code of ['200', '404', '500']) {
      const series = store.seriesRef({ code, job, __name__: 'requests_total' });
      store.append({ series, timestampsMs: [NOW_MS], values: [Number(code)] }, NOW_MS);
    }
  }
  return store;
}

function names(store: Store, ...matchers: Matcher[]): string[] {
  return [...store.select({ matchers })].map(({ labels }) => `${labels['job']}/${labels['code']}`);
}

test('all matchers must hold, and series come in label order', async () => {
  const store = await someStore();
  const job = (op: Matcher['op'], value: string): Matcher => ({ name: 'job', op, value });
  const code = (op: Matcher['op'], value: string): Matcher => ({ name: 'code', op, value });
  assert.deepEqual(names(store, job('=', 'web'), code('!=', '404')), ['web/200', 'web/500']);
  assert.deepEqual(names(store, job('=~', 'w.*'), code('=~', '[45]..')), [
    'web/404',
    'worker/404',
    'web/500',
    'worker/500',
  ]);
  assert.deepEqual(names(store, job('!~', 'w.*'), code('=', '200')), ['api/200']);
  assert.deepEqual(names(store, { name: 'absent', op: '=', value: 'x' }), []);
  assert.equal(names(store, { name: 'absent', op: '=', value: '' }).length, 9);
  assert.equal(names(store).length, 9);
  await store.close();
});

test('raw chunks hold what select decodes', async () => {
  const store = await openMemory();
  const series = store.seriesRef({ __name__: 'm' });
  const timestampsMs = Array.from({ length: 500 }, (_, i) => NOW_MS + 15_000 * i);
  store.append({ series, timestampsMs, values: timestampsMs.map(Math.sqrt) }, timestampsMs.at(-1));

  const [raw] = [...store.selectChunks()];
  assert.ok(raw !== undefined);
  assert.ok(raw.chunks.length >= 5 && raw.chunks.every(({ encoding }) => encoding === 'xor'));
  assert.equal(raw.chunks[0]?.minTimeMs, BigInt(NOW_MS));
  assert.equal(raw.chunks.at(-1)?.maxTimeMs, BigInt(timestampsMs.at(-1)!));
  assert.deepEqual([plain(decodeSeries(raw))], read(store));
  await store.close();
});

test('a loop that is left early frees its cursor', async () => {
  const store = await someStore();
  for (const _ of store.select()) break;
  for (const _ of store.selectChunks()) break;
  store.select().return?.();
  [...store.select()];
  assert.equal(store.stats().openCursors, 0);
  await store.close();
});

test('an answer that is being read keeps compaction waiting, and is not harmed by it', async () => {
  const store = await openMemory({ blockDurationMs: 60_000 });
  const series = store.seriesRef({ __name__: 'm' });
  const timestampsMs = Array.from({ length: 20 }, (_, i) => NOW_MS + 10_000 * i);
  store.append({ series, timestampsMs, values: timestampsMs }, timestampsMs.at(-1));
  const before = read(store);

  const answer = store.select();
  await assert.rejects(store.compact(), BusyError);
  assert.deepEqual([...answer].map(plain), before);
  await store.compact();
  assert.ok(store.stats().blocks > 0);
  assert.deepEqual(read(store), before);
  await store.close();
});
