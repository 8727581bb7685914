import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCount, formatDuration, formatNumber, unitOf } from '../../src/format/number';
import { formatAgo, formatTime, parseTime } from '../../src/format/time';
import { timeTexts, valueTexts } from '../../src/plot/axis';
import { parseDuration, printDuration } from '../../src/promql/duration';

test('numbers have prefixes', () => {
  const texts: [number, string][] = [
    [0, '0'],
    [1, '1'],
    [-1234, '-1.23k'],
    [999.9, '1k'],
    [1e6, '1M'],
    [0.00123, '0.00123'],
    [1e-9, '1e-9'],
    [NaN, 'NaN'],
    [-Infinity, '-Inf'],
    [123456789, '123M'],
  ];
  for (const [value, text] of texts) assert.equal(formatNumber(value), text);
  assert.equal(formatNumber(undefined), '–');
});

test('units', () => {
  assert.equal(formatNumber(1536, 'bytes'), '1.5 KiB');
  assert.equal(formatNumber(0, 'bytes'), '0 B');
  assert.equal(formatNumber(2 ** 30, 'bytes_per_second'), '1 GiB/s');
  assert.equal(formatNumber(0.25, 'ratio'), '25 %');
  assert.equal(formatNumber(0.0015, 'seconds'), '1.5 ms');
  assert.equal(formatNumber(0, 'seconds'), '0 s');
  assert.equal(formatNumber(90, 'seconds'), '1 min 30 s');
  assert.equal(formatNumber(41.26, 'celsius'), '41.3 °C');
  assert.equal(unitOf('node_memory_MemTotal_bytes'), 'bytes');
  assert.equal(unitOf('x_seconds_total'), 'seconds');
  assert.equal(unitOf('process_start_time_seconds'), 'none');
  assert.equal(unitOf('last_timestamp_seconds'), 'none');
  assert.equal(unitOf('x', 'bytes'), 'bytes');
});

test('counts and spans', () => {
  assert.equal(formatCount(1234567), '1\u202f234\u202f567');
  assert.equal(formatDuration(3 * 86_400 + 4 * 3600 + 50), '3 d 4 h');
  assert.equal(formatDuration(59.6), '1 min');
  assert.equal(formatDuration(0.25), '250 ms');
  assert.equal(formatDuration(Infinity), 'for ever');
});

test('times go there and back in both zones', () => {
  const ms = Date.UTC(2026, 1, 3, 4, 5, 6);
  assert.equal(formatTime(ms, 'utc'), '2026-02-03 04:05:06');
  for (const zone of ['utc', 'local'] as const) assert.equal(parseTime(formatTime(ms, zone), zone), ms);
  assert.equal(parseTime('2026-02-03', 'utc'), Date.UTC(2026, 1, 3));
  assert.equal(parseTime('2026-02-03T04:05Z', 'local'), Date.UTC(2026, 1, 3, 4, 5));
  for (const wrong of ['', 'now', '2026-02-30', '2026-13-01', '2026-01-01 24:00', '2026-01-01 1:60']) {
    assert.equal(parseTime(wrong, 'utc'), undefined, wrong);
  }
  assert.equal(formatTime(NaN, 'utc'), '–');
  assert.equal(formatAgo(0, 65_000), '1 min 5 s ago');
  assert.equal(formatAgo(65_000, 0), 'in 1 min 5 s');
});

test('durations as Prometheus reads and prints them', () => {
  assert.equal(parseDuration('1h30m'), 5_400_000);
  assert.equal(parseDuration('2w'), 1_209_600_000);
  assert.equal(parseDuration('90'), 90_000);
  assert.equal(parseDuration('1y2d3ms'), 365 * 86_400_000 + 2 * 86_400_000 + 3);
  for (const wrong of ['', '0s', 'm', '1m1h', '1.5h', '-5m']) assert.equal(parseDuration(wrong), undefined, wrong);
  assert.equal(printDuration(5_400_000), '1h30m');
  assert.equal(printDuration(1_209_600_000), '14d');
  assert.equal(printDuration(1500), '1s500ms');
});

test('texts of an axis have as few digits as tell them apart', () => {
  assert.deepEqual(valueTexts([0, 500, 1000], 'none'), ['0', '500', '1k']);
  assert.deepEqual(valueTexts([100_001, 100_002], 'none'), ['100.001k', '100.002k']);
  assert.deepEqual(valueTexts([5, null, 5], 'none'), ['5', '', '5']);
  assert.deepEqual(valueTexts([1048576, 1572864], 'bytes'), ['1 MiB', '1.5 MiB']);
});

test('the date stands where it changes', () => {
  const at = Date.UTC(2026, 0, 31, 23, 30) / 1000;
  assert.deepEqual(timeTexts([at, at + 1800, at + 3600], 1800, 'utc'), ['23:30', '00:00\n02-01', '00:30']);
  assert.deepEqual(timeTexts([at, at + 5], 5, 'utc'), ['23:30:00', '23:30:05']);
  assert.deepEqual(timeTexts([at, at + 86_400], 86_400, 'utc'), ['01-31', '02-01']);
});
