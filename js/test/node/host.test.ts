/**
 * One data directory, two programs: what JavaScript writes opens in the `tidepool` program and in
 * promtool, and back. Needs `cargo build --release`, and promtool on the path.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { open, StorageError } from '../../src/index.js';
import { NodeFiles } from '../../src/node/index.js';
import { freshDir, lines, request, run, send, serve, skipWithout, stop, type Server } from '../shared/programs.js';
import { dump, START_MS, STEP_MS, write } from '../shared/series.js';
import { tidepool } from '../shared/tidepool.js';

const skip = skipWithout('promtool');

/** Starts the program on a directory. */
function start(dir: string): Promise<Server> {
  return serve(tidepool, (address) => [
    `--data-dir=${dir}`, `--listen=${address}`, '--max-future=1h', '--no-host-metrics', '--no-own-metrics',
  ]);
}

test('what JavaScript writes, the program and promtool read', { skip }, async () => {
  const dir = freshDir();
  const store = await open({ storage: new NodeFiles(dir) });
  write(store, 20, 0, 1500);
  const blocks = await store.compact();
  assert.ok(blocks.length > 1);
  write(store, 20, 1500, 1600);
  const expected = dump(store);
  const inBlocks = blocks.reduce((sum, { samples }) => sum + samples, 0);
  await store.close();

  assert.deepEqual(lines(run(tidepool, 'tsdb', 'dump', dir)), expected);
  assert.match(run(tidepool, 'tsdb', 'verify', dir), /\S/);
  for (const { id } of blocks) assert.match(run('promtool', 'tsdb', 'list', dir), new RegExp(id));
  assert.match(run('promtool', 'tsdb', 'analyze', dir, blocks.at(-1)!.id), /Series: 20\n/);
  // Only blocks and the log together are the whole, for upstream's reader too.
  const upstream = lines(run('promtool', 'tsdb', 'dump', dir));
  assert.ok(upstream.length > inBlocks, `${upstream.length} of ${inBlocks}`);
  assert.deepEqual(upstream.toSorted(), expected.toSorted());
});

test('what the program writes, JavaScript reads and goes on, and back', async () => {
  const dir = freshDir();
  const nowMs = Date.now();
  const at = (i: number) => nowMs - 600_000 + 1000 * i;
  let host = await start(dir);
  await send(host.url, request('a', Array.from({ length: 300 }, (_, i) => [at(i), i] as const)));
  // Out-of-order, so that there is a second log.
  await send(host.url, request('a', Array.from({ length: 50 }, (_, i) => [at(i) + 1, -i - 1] as const)));
  await assert.rejects(open({ storage: new NodeFiles(dir) }), (error) => {
    assert.ok(error instanceof StorageError);
    assert.match(error.message, /another process works in/);
    return true;
  });
  await stop(host, 'SIGKILL');
  const left = lines(run(tidepool, 'tsdb', 'dump', dir));
  assert.equal(left.length, 350);
  assert.ok(readdirSync(join(dir, 'wbl')).length > 0);

  const store = await open({ storage: new NodeFiles(dir) });
  assert.deepEqual(dump(store), left);
  const series = store.seriesRef({ __name__: 'host_samples', job: 'a' });
  store.append({ series, timestampsMs: [nowMs], values: [4711] }, nowMs);
  const refused = spawnSync(tidepool, [`--data-dir=${dir}`, '--listen=127.0.0.1:0'], {
    encoding: 'utf8',
  });
  assert.notEqual(refused.status, 0);
  assert.match(refused.stderr + refused.stdout, /lock/);
  await store.close();

  const more = [...left, `{__name__="host_samples", job="a"} 4711 ${nowMs}`];
  assert.deepEqual(lines(run(tidepool, 'tsdb', 'dump', dir)), more);
  host = await start(dir);
  await send(host.url, request('b', [[nowMs, 1]]));
  // A clean stop leaves a snapshot of the head, which must not outlive what is written next.
  await stop(host, 'SIGTERM');
  assert.ok(existsSync(join(dir, 'head_snapshot')));
  const again = await open({ storage: new NodeFiles(dir) });
  assert.equal(existsSync(join(dir, 'head_snapshot')), false);
  assert.equal(dump(again).length, 352);
  const outOfOrder = again.seriesRef({ __name__: 'host_samples', job: 'c' });
  again.append({ series: outOfOrder, timestampsMs: [nowMs], values: [2] }, nowMs);
  await again.close();
  host = await start(dir);
  await stop(host, 'SIGTERM');
  assert.equal(lines(run(tidepool, 'tsdb', 'dump', dir)).length, 353);
});

test('two stores, and two processes, never have one directory open', async () => {
  const dir = freshDir();
  const store = await open({ storage: new NodeFiles(dir) });
  await assert.rejects(open({ storage: new NodeFiles(dir) }), /another process works in/);
  const [start, step] = [START_MS, STEP_MS];
  const series = store.seriesRef({ __name__: 'up' });
  assert.equal(store.append({ series, timestampsMs: [start + step], values: [1] }).samplesWritten, 1);
  await store.close();
  await (await open({ storage: new NodeFiles(dir) })).close();
});
