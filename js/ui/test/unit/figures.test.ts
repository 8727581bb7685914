import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findings, verdict, type Known } from '../../src/figures/checks';
import { diskFigures, parseShare } from '../../src/figures/disk';
import { durability } from '../../src/figures/durability';
import { destinations, shipping } from '../../src/figures/leaving';
import { shippingText } from '../../src/pages/home/cards';
import { limits } from '../../src/figures/limits';
import { changeOf, withSnapshot, type Snapshot } from '../../src/figures/snapshots';
import { Metrics } from '../../src/source/exposition';

const GIB = 2 ** 30;
const DAY_S = 86_400;

/** A node with a day of blocks, 2 GiB of them, on a disk with 6 GiB that may be used. */
const TEXT = `# HELP tidepool_ready x
process_start_time_seconds 1000
tidepool_ready 1
tidepool_data_directory_bytes ${2 * GIB}
tidepool_disk_size_bytes ${10 * GIB}
tidepool_disk_free_bytes ${4.5 * GIB}
tidepool_disk_reserve_bytes ${0.5 * GIB}
tidepool_writes_paused 0
prometheus_tsdb_storage_blocks_bytes ${2 * GIB}
prometheus_tsdb_lowest_timestamp_seconds 1000000
prometheus_tsdb_head_min_time_seconds ${1_000_000 + DAY_S}
tidepool_wal_fsyncs_total 10
prometheus_tsdb_head_series 500
tidepool_memory_limit_bytes{part="all"} 1000
tidepool_memory_limit_bytes{part="head"} 500
process_resident_memory_bytes 100
`;

function at(seconds: number, text: string): Snapshot {
  return { atMs: seconds * 1000, metrics: new Metrics(text) };
}

function knownOf(snapshots: Snapshot[], flags: Record<string, string> = {}): Known {
  const { metrics } = snapshots.at(-1)!;
  return {
    metrics,
    disk: diskFigures(metrics, flags),
    durability: durability(snapshots),
    destinations: destinations(snapshots),
    shipping: shipping(snapshots),
    limits: limits(metrics, flags),
    clockAheadSeconds: 0.2,
  };
}

test('lines of the text format', () => {
  const metrics = new Metrics('# TYPE a counter\na{x="1\\"\\\\\\n",y="}"} 5 1700000000\na 2\n\nb +Inf\nc{} NaN\nbroken\nd{x="1" 3\n');
  assert.equal(metrics.value('a', { x: '1"\\\n', y: '}' }), 5);
  assert.equal(metrics.sum('a'), 7);
  assert.equal(metrics.value('b'), Infinity);
  assert.ok(Number.isNaN(metrics.value('c')));
  assert.equal(metrics.value('d'), undefined);
  assert.equal(metrics.sum('nothing'), undefined);
});

test('the disk is full when what a day takes has used up the room', () => {
  const disk = diskFigures(new Metrics(TEXT), { 'retention-time': '15d', 'retention-size': '0' });
  assert.equal(disk.allowedBytes, 6 * GIB);
  assert.equal(disk.boundBy, 'disk');
  assert.equal(disk.keptBytesPerDay, 2 * GIB);
  assert.equal(disk.daysUntilFull, 2);
});

test('retention keeps a disk from filling up', () => {
  assert.equal(diskFigures(new Metrics(TEXT), { 'retention-time': '2d' }).daysUntilFull, Infinity);
  const bySize = diskFigures(new Metrics(TEXT), { 'retention-size': '30%' });
  assert.equal(bySize.allowedBytes, 3 * GIB);
  assert.equal(bySize.boundBy, 'size');
  assert.equal(parseShare('512MiB', undefined), 512 * 2 ** 20);
  assert.equal(parseShare('0', 5), undefined);
  assert.equal(parseShare('80%', undefined), undefined);
  assert.equal(parseShare('much', 5), undefined);
});

test('without blocks nothing is said of days', () => {
  const text = TEXT.replace(/prometheus_tsdb_storage_blocks_bytes \d+/, 'prometheus_tsdb_storage_blocks_bytes 0');
  assert.equal(diskFigures(new Metrics(text), {}).daysUntilFull, undefined);
});

test('a node without any trouble says so', () => {
  const known = knownOf([at(0, TEXT)], { 'retention-time': '2d' });
  assert.deepEqual(findings(known), []);
  assert.deepEqual(verdict(known, []), { level: 'good', text: 'Data is safe on this node; it stays here: nothing is forwarded or shipped.' });
});

test('a log that was not replayed is named with the limit that is needed', () => {
  const found = findings(knownOf([at(0, `${TEXT}tidepool_wal_replay_skipped 1\ntidepool_memory_limit_needed_bytes ${192 * 2 ** 20}\n`)]));
  const named = found.filter((it) => it.level === 'bad' && it.text.includes('replay the log'));
  assert.equal(named.length, 1);
  assert.match(named[0]!.text, /--memory-limit=192MiB/);
  const unknown = findings(knownOf([at(0, `${TEXT}tidepool_wal_replay_skipped 1\ntidepool_memory_limit_needed_bytes 0\n`)]));
  assert.match(unknown[0]!.text, /Give the machine more memory/);
  const fine = findings(knownOf([at(0, `${TEXT}tidepool_wal_replay_skipped 0\n`)]));
  assert.ok(!fine.some((it) => it.text.includes('replay the log')));
});

test('troubles are named, the worst first', () => {
  const text = `${TEXT.replace('tidepool_writes_paused 0', 'tidepool_writes_paused 1')}tidepool_clock_doubted 1
tidepool_wal_fsyncs_failed_total 2
prometheus_config_last_reload_successful 0
`;
  const known = knownOf([at(0, text)]);
  const found = findings(known);
  assert.deepEqual(found.map((it) => it.level), ['bad', 'bad', 'warn', 'warn']);
  assert.match(found[0]!.text, /nearly full/);
  assert.match(found[1]!.text, /2 syncs/);
  assert.equal(verdict(known, found).level, 'bad');
});

const lag = (seconds: number, dropped = 0): string => `${TEXT}tidepool_remote_storage_lag_seconds{remote_name="centre",url="http://c/"} ${seconds}
tidepool_remote_storage_bytes_left{remote_name="centre",url="http://c/"} 4096
prometheus_remote_storage_samples_dropped_total{remote_name="centre",url="http://c/",reason="dropped_series"} 9
prometheus_remote_storage_samples_dropped_total{remote_name="centre",url="http://c/",reason="too_old"} ${dropped}
`;

test('a lag that shrinks has an end', () => {
  const [centre] = destinations([at(0, lag(1000)), at(60, lag(400))]);
  assert.equal(centre?.lagSeconds, 400);
  assert.equal(centre?.bytesLeft, 4096);
  assert.equal(centre?.catchesUpSeconds, 40);
  assert.deepEqual(centre?.dropped, []);
  assert.equal(destinations([at(0, lag(1000))])[0]?.catchesUpSeconds, undefined);
  assert.equal(destinations([at(0, lag(2))])[0]?.catchesUpSeconds, 0);
});

test('a lag that grows is a finding, and so are dropped samples', () => {
  const known = knownOf([at(0, lag(400)), at(60, lag(500, 7))], { 'retention-time': '2d' });
  const found = findings(known);
  assert.equal(found.length, 2);
  assert.match(found[0]!.text, /centre is 8 min 20 s behind, and does not catch up/);
  assert.match(found[1]!.text, /7 samples did not reach centre: 7 too_old/);
  assert.match(verdict(known, found).text, /^Data is safe on this node; 8 min 20 s of it wait to be forwarded\.$/);
});

test('a receiver that answers nothing has not got all', () => {
  const counts = (sent: number, retried: number): string => `${lag(3)}prometheus_remote_storage_samples_total{remote_name="centre",url="http://c/"} ${sent}
prometheus_remote_storage_samples_retried_total{remote_name="centre",url="http://c/"} ${retried}
`;
  const said = (text: string): string => verdict(knownOf([at(0, text)]), []).text;
  assert.match(said(counts(0, 500)), /; centre has taken nothing since the start\.$/);
  assert.match(said(counts(10, 500)), /; all of it has left the node\.$/);
  // Nothing was there to be sent.
  assert.match(said(counts(0, 0)), /; all of it has left the node\.$/);
});

test('shipping that waits', () => {
  assert.equal(shipping([at(0, TEXT)]), undefined);
  const text = `${TEXT}tidepool_ship_blocks_waiting 3\ntidepool_ship_last_upload_timestamp_seconds 0\n`;
  const known = knownOf([at(0, text)], { 'retention-time': '2d' });
  assert.equal(known.shipping?.lastUploadMs, undefined);
  assert.match(verdict(known, findings(known)).text, /3 blocks wait to be shipped/);
  assert.equal(known.shipping!.catchesUpSeconds, undefined);
  const then = (waiting: number, uploads: number): string => `${TEXT}tidepool_ship_blocks_waiting ${waiting}\ntidepool_ship_lag_seconds ${waiting * 7200}\ntidepool_ship_uploads_total ${uploads}\n`;
  // Two in a minute: three more take a minute and a half.
  const later = shipping([at(0, then(5, 10)), at(60, then(3, 12))]);
  assert.equal(later?.catchesUpSeconds, 90);
  assert.match(shippingText(later!), /^waits for 3 blocks of 6 h, has caught up in 1 min 30 s$/);
  assert.match(shippingText(shipping([at(0, then(5, 10)), at(60, then(5, 10))])!), /^waits for 5 blocks of 10 h$/);
});

test('snapshots end with the process', () => {
  const before = [at(0, TEXT), at(15, TEXT)];
  assert.equal(withSnapshot(before, at(30, TEXT)).length, 3);
  assert.equal(withSnapshot(before, at(30, TEXT.replace('seconds 1000', 'seconds 2000'))).length, 1);
  let many: Snapshot[] = [];
  for (let i = 0; i < 100; i += 1) many = withSnapshot(many, at(i, TEXT));
  assert.equal(many.length, 40);
});

test('a change needs some time', () => {
  const syncs = (metrics: Metrics) => metrics.value('tidepool_wal_fsyncs_total');
  const later = TEXT.replace('fsyncs_total 10', 'fsyncs_total 25');
  assert.equal(changeOf([at(0, TEXT), at(15, later)], syncs), 1);
  assert.equal(changeOf([at(0, TEXT), at(2, later)], syncs), undefined);
  assert.equal(changeOf([], syncs), undefined);
});

test('limits come from metrics and flags', () => {
  const found = limits(new Metrics(TEXT), { 'max-series': '1000' });
  assert.deepEqual(found.series, { used: 500, limit: 1000 });
  assert.deepEqual(found.memory, { used: 100, limit: 1000 });
  assert.equal(limits(new Metrics(TEXT), { 'max-series': '0' }).series.limit, undefined);
});
