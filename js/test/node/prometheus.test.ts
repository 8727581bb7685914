/** One data directory, Prometheus and JavaScript in turn. Needs Prometheus on the path. */

import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { open } from '../../src/index.js';
import { NodeFiles } from '../../src/node/index.js';
import { freshDir, request, send, serve, skipWithout, stop, type Server } from '../shared/programs.js';

const skip = skipWithout('prometheus');

function start(dir: string): Promise<Server> {
  const config = join(dir, '..', 'prometheus.yml');
  writeFileSync(config, 'storage: {tsdb: {out_of_order_time_window: 1h}}\n');
  return serve('prometheus', (address) => [
    `--config.file=${config}`,
    `--storage.tsdb.path=${dir}`,
    '--web.enable-remote-write-receiver',
    `--web.listen-address=${address}`,
  ]);
}

async function count({ url }: Server): Promise<number> {
  const query = 'query=sum(count_over_time(host_samples[2h]))';
  const answer = await fetch(`${url}/api/v1/query?${query}`);
  const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } };
  return Number(data.result[0]?.value[1] ?? 0);
}

test('Prometheus and JavaScript take turns, and neither loses a sample', { skip }, async () => {
  const dir = join(freshDir(), 'data');
  const nowMs = Date.now();
  const samples = (from: number, to: number, offsetMs: number) =>
    Array.from({ length: to - from }, (_, i) => {
      return [nowMs - 1_200_000 + 1000 * (from + i) + offsetMs, from + i] as const;
    });
  let prometheus = await start(dir);
  await send(prometheus.url, request('a', samples(0, 1000, 0)));
  // So many out-of-order ones that Prometheus maps chunks of them to a file, and marks that in
  // their log.
  await send(prometheus.url, request('a', samples(0, 300, 500)));
  assert.equal(await count(prometheus), 1300);
  await stop(prometheus, 'SIGTERM');
  assert.ok(existsSync(join(dir, 'chunks_head')) && readdirSync(join(dir, 'wbl')).length > 0);

  const store = await open({ storage: new NodeFiles(dir) });
  const [series] = [...store.select()];
  assert.equal(series?.values.length, 1300);
  const ref = store.seriesRef({ __name__: 'host_samples', job: 'a' });
  const rows = { series: ref, timestampsMs: [nowMs, nowMs - 600_001], values: [1, 2] };
  assert.equal(store.append(rows, nowMs).samplesWritten, 2);
  assert.equal(existsSync(join(dir, 'chunks_head')), false);
  await store.close();

  prometheus = await start(dir);
  assert.equal(await count(prometheus), 1302);
  await stop(prometheus, 'SIGTERM');
  const again = await open({ storage: new NodeFiles(dir) });
  assert.equal([...again.select()][0]?.values.length, 1302);
  await again.close();
});
