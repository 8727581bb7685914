import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clockText, findings, verdict, type Known } from '../../src/figures/checks';
import { diskFigures, parseShare } from '../../src/figures/disk';
import { durability, unsyncedSeconds } from '../../src/figures/durability';
import { destinations, shipping, stateOf } from '../../src/figures/leaving';
import { targetsVerdict } from '../../src/figures/targets';
import { shippingText } from '../../src/pages/home/cards';
import { instanceOf, machineCharts, machineInstance } from '../../src/pages/home/machine';
import type { RuntimeInfo, Target } from '../../src/source/answers';
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
tidepool_wal_fsyncs_failed_total 0
tidepool_wal_written_bytes_total 1000
tidepool_wal_replay_skipped 0
tidepool_blocks_damaged_total 0
tidepool_clock_doubted 0
prometheus_tsdb_wal_writes_failed_total 0
prometheus_tsdb_head_series 500
tidepool_memory_limit_bytes{part="all"} 1000
tidepool_memory_limit_bytes{part="head"} 500
process_resident_memory_bytes 100
`;

function at(seconds: number, text: string): Snapshot {
  return { atMs: seconds * 1000, metrics: new Metrics(text) };
}

function knownOf(snapshots: Snapshot[], given: Record<string, string> = {}): Known {
  const flags = { 'wal-sync': 'interval', ...given };
  const { metrics } = snapshots.at(-1)!;
  return {
    metrics,
    flags,
    disk: diskFigures(metrics, flags),
    durability: durability(snapshots),
    destinations: destinations(snapshots),
    shipping: shipping(snapshots),
    limits: limits(metrics, flags),
    clockAheadSeconds: 0.2,
    unsyncedSeconds: unsyncedSeconds(snapshots),
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
  const found = findings(knownOf([at(0, `${TEXT.replace('replay_skipped 0', 'replay_skipped 1')}tidepool_memory_limit_needed_bytes ${192 * 2 ** 20}\n`)]));
  const named = found.filter((it) => it.level === 'bad' && it.text.includes('replay the log'));
  assert.equal(named.length, 1);
  assert.match(named[0]!.text, /--memory-limit=192MiB/);
  const unknown = findings(knownOf([at(0, `${TEXT.replace('replay_skipped 0', 'replay_skipped 1')}tidepool_memory_limit_needed_bytes 0\n`)]));
  assert.match(unknown[0]!.text, /Give the machine more memory/);
  const fine = findings(knownOf([at(0, TEXT)]));
  assert.ok(!fine.some((it) => it.text.includes('replay the log')));
});

test('troubles are named, the worst first', () => {
  const text = `${TEXT.replace('tidepool_writes_paused 0', 'tidepool_writes_paused 1').replace('doubted 0', 'doubted 1').replace('fsyncs_failed_total 0', 'fsyncs_failed_total 2')}prometheus_config_last_reload_successful 0
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

/** A receiver with these counts; samples wait if it lags. */
const counts = (sent: number, retried: number, lagged = 3, failingSince = 0): string => `${lag(lagged)}tidepool_remote_storage_failing_since_timestamp_seconds{remote_name="centre",url="http://c/"} ${failingSince}
prometheus_remote_storage_samples_total{remote_name="centre",url="http://c/"} ${sent}
prometheus_remote_storage_samples_retried_total{remote_name="centre",url="http://c/"} ${retried}
prometheus_remote_storage_samples_pending{remote_name="centre",url="http://c/"} ${lagged > 0 ? 100 : 0}
`;

/** Level and headline. */
function said(snapshots: Snapshot[], flags: Record<string, string> = {}): string {
  const known = knownOf(snapshots, { 'retention-time': '2d', ...flags });
  const { level, text } = verdict(known, findings(known));
  return `${level}: ${text}`;
}

test('a receiver that answers nothing has not got all', () => {
  assert.match(said([at(0, counts(0, 500))]), /^warn: .*; centre has taken nothing since the start\.$/);
  assert.match(said([at(0, counts(10, 500, 0))]), /^good: .*; all of it has left the node\.$/);
  // Nothing was there to be sent.
  assert.match(said([at(0, counts(0, 0, 0))]), /^good: .*; all of it has left the node\.$/);
  // The first samples wait for their first answer.
  assert.match(said([at(0, counts(0, 0))]), /^unknown: .*; whether centre takes it is not known yet\.$/);
});

test('a receiver that died a moment ago takes nothing now', () => {
  assert.match(said([at(0, counts(1000, 40, 3))]), /^good: .*; all but the newest 3 s has left\.$/);
  // The page was opened after it died, too.
  assert.match(said([at(37, counts(1000, 40, 37, 1_790_000_000.5))]), /^warn: .*; centre takes nothing now\.$/);
  assert.match(said([at(37, counts(1000, 40, 0, 1_790_000_000.5))]), /^warn: .*; centre takes nothing now\.$/);
  // A node that does not tell.
  assert.match(said([at(0, counts(1000, 40, 3).replace(/^tidepool_remote_storage_failing.*$/m, ''))]), /^unknown/);
});

test('samples that wait for a receiver are not green, whether or not it catches up', () => {
  assert.match(said([at(0, lag(1000)), at(60, lag(400))]), /^warn: .*6 min 40 s of it wait/);
  assert.match(said([at(0, lag(1000))]), /^warn/);
  assert.equal(stateOf(destinations([at(0, lag(NaN))])[0]!), 'unknown');
});

test('what is not known is not green', () => {
  assert.match(said([at(0, TEXT)]), /^good: Data is safe on this node; it stays here/);
  for (const name of ['tidepool_wal_fsyncs_failed_total', 'prometheus_tsdb_wal_writes_failed_total', 'tidepool_writes_paused', 'tidepool_disk_free_bytes']) {
    const without = said([at(0, TEXT.replace(new RegExp(`^${name} .*$`, 'm'), ''))]);
    assert.match(without, /^unknown: Whether data is safe is unknown/, name);
    const broken = said([at(0, TEXT.replace(new RegExp(`^${name} .*$`, 'm'), `${name} NaN`))]);
    assert.match(broken, /^unknown: Whether data is safe is unknown/, name);
  }
  assert.match(said([at(0, TEXT.replace('tidepool_clock_doubted 0', ''))]), /^unknown: Data is safe/);
  assert.match(said([at(0, '<html>')]), /^unknown: Whether data is safe is unknown/);
  const known = knownOf([at(0, TEXT)], { 'retention-time': '2d' });
  const clockless = { ...known, clockAheadSeconds: undefined };
  assert.equal(findings(clockless)[0]?.level, 'unknown');
  assert.equal(clockText(clockless), 'unknown');
  assert.match(findings({ ...known, flags: undefined })[0]!.text, /does not say whether it syncs/);
  for (const flag of ['remote-write-url', 'ship']) {
    assert.match(said([at(0, TEXT)], { [flag]: 'http://c/' }), /^unknown: .*; whether it leaves the node is unknown\.$/, flag);
  }
});

test('a node that is gone is not green', () => {
  const known = knownOf([at(0, TEXT)], { 'retention-time': '2d' });
  const old = verdict(known, findings(known), 180);
  assert.equal(old.level, 'unknown');
  assert.match(old.text, /^There are no figures of the last 3 min\. Before that: Data is safe on this node;/);
});

test('a log that is not synced is not safe', () => {
  assert.match(said([at(0, TEXT)], { 'wal-sync': 'off' }), /^warn: A power cut may lose data; /);
  const written = (bytes: number): string => TEXT.replace('written_bytes_total 1000', `written_bytes_total ${bytes}`);
  const [first, second] = [at(0, TEXT), at(15, written(2000))];
  assert.match(said([first, second, at(120, written(2000))]), /^bad: Data may be at risk/);
  assert.match(said([first, second, at(120, written(2000).replace('fsyncs_total 10', 'fsyncs_total 11'))]), /^good/);
  assert.match(said([first, second, at(120, written(2000))], { 'wal-sync': 'batch' }), /^good/);
  // Nothing is written.
  assert.match(said([first, at(120, TEXT)]), /^good/);
});

test('a disk that is nearly full is not green, whatever a day takes', () => {
  const full = TEXT.replace(`free_bytes ${4.5 * GIB}`, `free_bytes ${0.8 * GIB}`);
  assert.match(said([at(0, full)]), /^warn: The disk is nearly full; /);
  assert.match(said([at(0, full.replace(/prometheus_tsdb_storage_blocks_bytes \d+/, 'prometheus_tsdb_storage_blocks_bytes 0'))]), /^warn: The disk/);
});

test('each finding names a page that tells more', () => {
  const text = TEXT.replace('tidepool_writes_paused 0', 'tidepool_writes_paused 1').replace('clock_doubted 0', 'clock_doubted 1');
  const found = findings(knownOf([at(0, `${text}tidepool_plugin_disabled{plugin="a"} 1\n`), at(15, `${text}tidepool_plugin_disabled{plugin="a"} 1\n`)], { 'wal-sync': 'off' }));
  assert.deepEqual(found.map(({ page }) => page), ['storage', 'flags', 'configuration', 'plugins']);
});

test('targets have a verdict of their own', () => {
  const none = { count: 0, longestSeconds: undefined };
  assert.deepEqual(targetsVerdict([600, 300], { targets: none, unknown: 0, probes: none }), { level: 'good', text: '900 of 900 targets are up.' });
  const down = targetsVerdict([600, 300], { targets: { count: 1, longestSeconds: 1200 }, unknown: 0, probes: { count: 2, longestSeconds: Infinity } });
  assert.deepEqual(down, { level: 'warn', text: '1 of 900 targets is down, for 20 min; 2 probes fail, the longest for more than an hour or since the start.' });
  assert.equal(targetsVerdict([2], { targets: none, unknown: 1, probes: none }).level, 'unknown');
  assert.deepEqual(targetsVerdict([2, 0], { targets: none, unknown: 0, probes: none }), { level: 'unknown', text: '1 of 2 jobs has no targets.' });
  assert.equal(targetsVerdict([2], undefined).level, 'unknown');
});

test('this machine is the node’s own', () => {
  const runtime = { hostname: 'edge-7' } as RuntimeInfo;
  assert.equal(instanceOf({ 'host-metrics-instance': '' }, runtime), 'edge-7');
  assert.equal(instanceOf({ 'host-metrics-instance': 'seven' }, runtime), 'seven');
  assert.equal(instanceOf(undefined, undefined), undefined);
  const target = (scrapeUrl: string, instance: string): Target => ({ scrapeUrl, labels: { job: 'node', instance } }) as unknown as Target;
  const others = [target('http://edge-1:9100/metrics', 'edge-1:9100')];
  assert.equal(machineInstance(others, 'edge-7'), 'edge-7');
  assert.equal(machineInstance([...others, target('builtin://node/', 'seven')], 'edge-7'), 'seven');
  assert.equal(machineInstance([...others, target('http://127.0.0.1:9100/metrics', '127.0.0.1:9100')], 'edge-7'), '127.0.0.1:9100');
  for (const { queries } of machineCharts('a"b')) for (const { expr } of queries) assert.equal(expr.split('{').length, expr.split('{job="node",instance="a\\"b"').length);
});

test('shipping that waits', () => {
  assert.equal(shipping([at(0, TEXT)]), undefined);
  const text = `${TEXT}tidepool_ship_blocks_waiting 3\ntidepool_ship_last_upload_timestamp_seconds 0\n`;
  const known = knownOf([at(0, text)], { 'retention-time': '2d' });
  // A block that was cut a moment ago waits, too.
  assert.match(said([at(0, text)]), /^unknown/);
  // There is no object storage where there should be, from the start or since a while.
  for (const uploads of [0, 1000]) assert.match(said([at(0, `${text}tidepool_ship_upload_failures_total 2\ntidepool_ship_uploads_total ${uploads}\n`)]), /^warn: .*3 blocks wait to be shipped/);
  assert.match(said([at(0, text.replace('waiting 3', 'waiting 0'))]), /^good: .*; all blocks of it are shipped\.$/);
  assert.match(said([at(0, text.replace('waiting 3', 'waiting NaN'))], { ship: 's3://b/' }), /^unknown/);
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

test('files that cannot be used, flags that wait and certificates that expire are findings', () => {
  const now = Date.now() / 1000;
  const of = (more: string): string[] => findings(knownOf([at(0, TEXT + more)], { 'retention-time': '2d' })).map(({ text }) => text);
  assert.deepEqual(of(`tidepool_config_flags_need_restart 0
tidepool_access_file_last_reload_successful{flag="tls-cert-file"} 1
tidepool_tls_certificate_expiry_timestamp_seconds{flag="tls-cert-file"} ${now + 40 * 86_400}
`), []);
  const found = of(`tidepool_config_flags_need_restart 2
tidepool_access_file_last_reload_successful{flag="read-credentials-file"} 0
tidepool_tls_certificate_expiry_timestamp_seconds{flag="tls-cert-file"} ${now + 3 * 86_400 + 600}
tidepool_tls_certificate_expiry_timestamp_seconds{flag="web-config-file"} ${now - 5}
`);
  assert.equal(found.length, 4);
  assert.match(found[0]!, /^2 changed flags take effect only after a restart/);
  assert.match(found[1]!, /--read-credentials-file has changed and cannot be used/);
  assert.match(found[2]!, /--tls-cert-file expires in 3 d/);
  assert.match(found[3]!, /--web-config-file has expired/);
});
