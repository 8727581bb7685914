/**
 * Picked files: directories that Prometheus' tools, our program and this package wrote, and what
 * damage leaves of them. The expectations are those programs' own answers.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { NodeFiles } from '../../src/node/index.js';
import { open, type Store } from '../../src/promql/index.js';
import { build } from '../../src/promql/build.js';
import { answer, failureOf } from '../../src/viewer/api.js';
import type { Picked } from '../../src/viewer/find.js';
import { Viewer } from '../../src/viewer/viewer.js';
import { SyncReader, pick } from '../shared/picked.js';
import { freshDir, request, send, serve, skipWithout, stop } from '../shared/programs.js';
import { START_MS, STEP_MS, write } from '../shared/series.js';
import { tidepool } from '../shared/tidepool.js';


const reader = new SyncReader();
const END_MS = START_MS + STEP_MS * 1600;
const never = new AbortController().signal;

const openViewer = (picked: readonly Picked[]) => Viewer.open(picked, { build, read: reader.read });

/** The field `data` of an answer. */
async function ask(viewer: Viewer, path: string, params: Record<string, string> = {}): Promise<any> {
  const { data } = await answer(viewer, `api/v1/${path}`, new URLSearchParams(params), END_MS, never);
  return JSON.parse(data);
}

/** A directory of several blocks and a log, written by this package. */
async function written(): Promise<{ dir: string; blocks: string[] }> {
  const dir = freshDir();
  const store: Store = await open({ storage: new NodeFiles(dir) });
  write(store, 20, 0, 1500);
  const blocks = (await store.compact()).map(({ id }) => id);
  write(store, 20, 1500, 1600);
  await store.close();
  return { dir, blocks };
}

/** Samples by the job. */
const COUNT = { query: `sum(count_over_time(js_samples[8h]))`, time: `${END_MS / 1000}` };
const countOf = async (viewer: Viewer) => Number((await ask(viewer, 'query', COUNT)).result[0]?.value[1] ?? 0);

function tar(files: readonly [string, Uint8Array][]): Buffer {
  const dir = freshDir();
  for (const [path, bytes] of files) {
    mkdirSync(join(dir, path, '..'), { recursive: true });
    writeFileSync(join(dir, path), bytes);
  }
  const { stdout, status } = spawnSync('tar', ['-C', dir, '-c', '.'], { maxBuffer: 1 << 28 });
  assert.equal(status, 0);
  return stdout;
}

const filesOf = (dir: string) =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry): [string, Uint8Array] => {
      const path = join(entry.parentPath, entry.name);
      return [`data${path.slice(dir.length)}`, readFileSync(path)];
    });

test('the package entry opens files, answers, and searches lists by parts', async () => {
  const { dir } = await written();
  const entry = '@tidepool/engine/viewer';
  const { failureOf, openFiles } = (await import(entry)) as typeof import('../../src/viewer/index.js');
  const open = await openFiles(pick(dir), { read: reader.read });
  assert.equal(open.summary.endMs, END_MS - STEP_MS);
  const { data } = await open.request('api/v1/query', new URLSearchParams(COUNT));
  assert.equal((data as { result: { value: [number, string] }[] }).result[0]!.value[1], `${20 * 1600}`);
  // Of __name__, instance and job.
  const names = (params: Record<string, string>) => open.request('api/v1/labels', new URLSearchParams(params));
  const all = (await names({})).data as string[];
  assert.deepEqual(await names({ search: 'NAM', offset: '0' }), { data: ['__name__'], warnings: [], infos: [], total: 1 });
  const { data: part, total, warnings } = await names({ offset: '1', limit: '1' });
  assert.deepEqual([part, total, warnings.length], [all.slice(1, 2), all.length, all.length > 2 ? 1 : 0]);
  const failure = await open.request('api/v1/targets', new URLSearchParams()).catch(failureOf);
  assert.equal((failure as { errorType: string }).errorType, 'missing');
  assert.deepEqual(open.damage, []);
  await open.close();
});

test('a data directory, its blocks and an archive of it give all samples, and do not change', async () => {
  const { dir, blocks } = await written();
  assert.ok(blocks.length > 1);
  const before = filesOf(dir);
  const viewer = await openViewer(pick(dir));
  assert.equal(await countOf(viewer), 20 * 1600);
  const { endMs, damage, name, others } = await viewer.summary();
  assert.deepEqual([endMs, damage, name, others], [END_MS - STEP_MS, [], 'data', []]);
  assert.deepEqual((await ask(viewer, 'status/tsdb/blocks')).blocks.map(({ ulid }: { ulid: string }) => ulid).sort(), blocks.toSorted());
  await viewer.close();
  assert.deepEqual(filesOf(dir), before);
  assert.ok(reader.bytesMax <= 256 * 1024);

  const archive = tar(before);
  for (const [file, bytes] of [['data.tar', archive], ['data.tar.gz', gzipSync(archive)]] as const) {
    const unpacked = await openViewer([{ path: file, file: new Blob([Uint8Array.from(bytes)]) }]);
    assert.deepEqual([file, await countOf(unpacked), unpacked.damage], [file, 20 * 1600, []]);
    await unpacked.close();
  }

  // One block, by its own name and by another one.
  const [block] = blocks;
  const samples = JSON.parse(readFileSync(join(dir, block!, 'meta.json'), 'utf8')).stats.numSamples;
  for (const name of [block!, 'renamed']) {
    const one = await openViewer(pick(join(dir, block!), name));
    assert.deepEqual([name, await countOf(one)], [name, samples]);
    await one.close();
  }
});

test('damage is named, and the rest is shown', async () => {
  const { dir, blocks } = await written();
  // The oldest: without the newest, the log would give some of its samples again.
  const [first, second] = blocks as [string, string];
  const all = pick(dir);
  const samples = (block: string): number => JSON.parse(readFileSync(join(dir, block, 'meta.json'), 'utf8')).stats.numSamples;
  const changed = (path: string, change: (bytes: Buffer) => Buffer) =>
    all.map((picked) => {
      if (picked.path !== `data/${path}`) return picked;
      return { ...picked, file: new Blob([Uint8Array.from(change(readFileSync(join(dir, path))))]) };
    });
  const missing = (path: string) => all.filter((picked) => picked.path !== `data/${path}`);
  const flipped = (at: number) => (bytes: Buffer) => {
    bytes[at < 0 ? bytes.length + at : at]! ^= 0xff;
    return bytes;
  };
  const cases: [string, readonly Picked[], RegExp][] = [
    ['meta.json', missing(`${first}/meta.json`), /meta\.json is missing/],
    ['no JSON', changed(`${first}/meta.json`, () => Buffer.from('{"version": 1,')), /meta\.json is damaged/],
    ['index', missing(`${first}/index`), /index is missing/],
    ['chunks', missing(`${first}/chunks/000001`), /chunks\/000001 is missing/],
    ['first byte', changed(`${first}/index`, flipped(0)), /index is damaged/],
    ['last byte', changed(`${first}/index`, flipped(-1)), /index/],
    ['version', changed(`${first}/index`, flipped(4)), /index has the version/],
    ['symbols', changed(`${first}/index`, flipped(20)), /checksum of the symbols/],
    ['postings', changed(`${first}/index`, flipped(-60)), /checksum of the postings offset table/],
    ['tombstones', changed(`${first}/tombstones`, flipped(-1)), /tombstones/],
    ['cut', changed(`${first}/index`, (bytes) => bytes.subarray(0, bytes.length >> 1)), /index/],
    ['chunk', changed(`${first}/chunks/000001`, flipped(100)), /chunks|000001/],
  ];
  for (const [name, picked, reason] of cases) {
    const viewer = await openViewer(picked);
    assert.equal(await countOf(viewer), 20 * 1600 - samples(first), name);
    assert.equal(viewer.damage.length, 1, name);
    assert.match(viewer.damage[0]!, new RegExp(`Block ${first} is left out: .*${reason.source}`), name);
    await viewer.close();
  }
  assert.notEqual(samples(second), 0);

  // A segment in the middle of which something is wrong.
  const segment = readdirSync(join(dir, 'wal')).filter((name) => /^\d+$/.test(name)).sort().at(-1)!;
  const viewer = await openViewer(changed(`wal/${segment}`, flipped(40)));
  assert.match(viewer.damage[0]!, new RegExp(`wal/${segment} is damaged at byte`));
  assert.ok((await countOf(viewer)) >= samples(first) + samples(second));
  await viewer.close();

  await assert.rejects(openViewer([{ path: 'photo.jpg', file: new Blob(['x']) }]), /There is no block and no log.*photo\.jpg/);
  await assert.rejects(openViewer([]), /no files/);
});

test('a broken archive is named, and what stands before the damage is shown', async () => {
  const { dir, blocks } = await written();
  // The first block alone is whole in the first part of the archive.
  const order = [...blocks.toSorted(), 'wal'].map((name) => `data/${name}/`);
  const files = filesOf(dir).sort(([a], [b]) => order.findIndex((start) => a.startsWith(start)) - order.findIndex((start) => b.startsWith(start)));
  const archive = Buffer.concat(files.map(([path, bytes]) => {
    const one = tar([[path, bytes]]);
    // GNU tar writes directories, too, and ends with zeros: only the file's part is wanted.
    const at = one.indexOf(`./${path}`);
    return one.subarray(at - (at % 512), at - (at % 512) + 512 + Math.ceil(bytes.length / 512) * 512);
  }));
  const viewer = await openViewer([{ path: 'data.tar.gz', file: new Blob([gzipSync(archive).subarray(0, -5000)]) }]);
  assert.match(viewer.damage[0]!, /data\.tar\.gz/);
  assert.ok((await countOf(viewer)) > 0);
  await viewer.close();
});

test('writes are refused', async () => {
  const { dir } = await written();
  const viewer = await openViewer(pick(dir));
  await assert.rejects(
    viewer.reading(async (engine) => engine.call((store) => store.seriesRef([{ name: '__name__', value: 'x' }]))).then(() =>
      viewer.reading(async (engine) =>
        engine.call((store) => store.appendRemoteWrite('v1', request('x', [[END_MS, 1]]), BigInt(END_MS))),
      ),
    ),
    /picked files are only read/,
  );
  await viewer.close();
});

test('answers are those of the program for the same files, also while it runs', async () => {
  const dir = freshDir();
  const nowMs = Date.now();
  const at = (i: number) => nowMs - 600_000 + 1000 * i;
  const host = await serve(tidepool, (address) => [
    `--data-dir=${dir}`, `--listen=${address}`, '--max-future=1h', '--no-host-metrics', '--no-own-metrics',
  ]);
  await send(host.url, request('a', Array.from({ length: 300 }, (_, i) => [at(i), i] as const)));
  await send(host.url, request('b \u00fc', Array.from({ length: 300 }, (_, i) => [at(i), 1 / (i + 1)] as const)));
  // The program has the directory open and locked.
  const viewer = await openViewer(pick(dir));
  assert.deepEqual(viewer.damage, []);
  const times = { start: `${at(0) / 1000}`, end: `${at(299) / 1000}`, step: '7' };
  const requests: [string, Record<string, string>][] = [
    ['query', { query: 'sum(count_over_time(host_samples[1h]))', time: `${nowMs / 1000}` }],
    ['query', { query: '{__name__=~".+"}[1m]', time: `${at(200) / 1000}` }],
    ['query', { query: '-0 * scalar(host_samples{job="a"}) / 0', time: `${at(200) / 1000}` }],
    ['query', { query: '"text"', time: '1' }],
    ['query_range', { query: 'rate(host_samples[30s]) or vector(0)', ...times }],
    ['labels', {}],
    ['label/job/values', {}],
    ['label/job/values', { 'match[]': '{job=~"b.*"}' }],
    ['series', { 'match[]': 'host_samples', start: times.start, end: times.end }],
    ['metadata', {}],
    ['parse_query', { query: 'sum by (job) (rate(x[5m]))' }],
    ['format_query', { query: 'sum(rate(x[5m]))by(job)' }],
    ['status/tsdb', { limit: '5' }],
  ];
  for (const [path, params] of requests) {
    const response = await fetch(`${host.url}/api/v1/${path}?${new URLSearchParams(params)}`);
    const { data } = (await response.json()) as { data: unknown };
    assert.deepEqual(await ask(viewer, path, params), data, `${path} ${JSON.stringify(params)}`);
  }
  for (const params of [{ query: 'sum by (' }, { query: 'x', time: 'never' }] as Record<string, string>[]) {
    const response = await fetch(`${host.url}/api/v1/query?${new URLSearchParams(params)}`);
    const { errorType, error } = (await response.json()) as { errorType: string; error: string };
    const failure = await ask(viewer, 'query', params).then(assert.fail, failureOf);
    assert.deepEqual(failure, { errorType, error });
  }
  assert.equal((await ask(viewer, 'targets').then(assert.fail, failureOf)).errorType, 'missing');
  await viewer.close();
  await stop(host, 'SIGTERM');
});

test('blocks that promtool wrote give its samples', { skip: skipWithout('promtool') }, async () => {
  const [text, dir] = [join(freshDir(), 'text'), freshDir()];
  const lines = Array.from({ length: 500 }, (_, i) => `js_samples{n="${i % 5}"} ${i} ${START_MS / 1000 + 60 * i}`);
  writeFileSync(text, `# TYPE js_samples gauge\n${lines.join('\n')}\n# EOF\n`);
  assert.equal(spawnSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', text, dir]).status, 0);
  const viewer = await openViewer(pick(dir, 'snapshot'));
  const count = { query: 'sum(count_over_time(js_samples[1d]))', time: `${START_MS / 1000 + 86_000}` };
  assert.equal((await ask(viewer, 'query', count)).result[0].value[1], '500');
  assert.deepEqual(viewer.damage, []);
  await viewer.close();
});

test('a directory that Prometheus works in', { skip: skipWithout('prometheus') }, async () => {
  const [config, dir] = [join(freshDir(), 'prometheus.yml'), join(freshDir(), 'data')];
  writeFileSync(config, 'storage: {tsdb: {out_of_order_time_window: 1h}}\n');
  const nowMs = Date.now();
  const server = await serve('prometheus', (address) => [
    `--config.file=${config}`, `--storage.tsdb.path=${dir}`, '--web.enable-remote-write-receiver', `--web.listen-address=${address}`,
  ]);
  const samples = (count: number, offsetMs: number) =>
    Array.from({ length: count }, (_, i) => [nowMs - 1_200_000 + 1000 * i + offsetMs, i] as const);
  await send(server.url, request('a', samples(1000, 0)));
  await send(server.url, request('a', samples(300, 500)));
  const viewer = await openViewer(pick(dir));
  assert.deepEqual(viewer.damage, []);
  const params = { query: 'sum_over_time(host_samples[1h])', time: `${nowMs / 1000}` };
  const response = await fetch(`${server.url}/api/v1/query?${new URLSearchParams(params)}`);
  assert.deepEqual(await ask(viewer, 'query', params), ((await response.json()) as { data: unknown }).data);
  await viewer.close();
  await stop(server, 'SIGTERM');
});
