import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chartGrid } from '../../src/charts/load';
import { columnsOf, greatest, keyOf, summaryOf, timesOf } from '../../src/plot/columns';
import { lonely, positive, stacked } from '../../src/plot/stack';

const grid = { start: 100, end: 160, step: 15 };

test('steps that have no sample are gaps', () => {
  const { times, lines } = columnsOf(
    [
      { metric: { a: '1' }, values: [[100, '1'], [130, '2.5'], [160, '3']] },
      { metric: { a: '2' }, values: [[115, 'NaN'], [130, '+Inf'], [145, '-4']] },
      { metric: { a: '3' }, histograms: [[115, { count: '7', sum: '1' }]] },
    ],
    grid,
  );
  assert.deepEqual(times, [100, 115, 130, 145, 160]);
  assert.deepEqual(lines.map((line) => line.values), [
    [1, null, 2.5, null, 3],
    [null, null, null, -4, null],
    [null, 7, null, null, null],
  ]);
  assert.notEqual(lines[0]!.key, lines[1]!.key);
});

test('steps of fractions of seconds do not drift', () => {
  const times = timesOf({ start: 1_700_000_000.1, end: 1_700_000_001.1, step: 0.1 });
  assert.equal(times.length, 11);
  assert.equal(times[10], 1_700_000_001.1);
  assert.equal(timesOf({ start: 5, end: 5, step: 1 }).length, 1);
});

test('keys are those of the labels, in any order of lines', () => {
  assert.equal(keyOf({ a: 'b' }), keyOf({ a: 'b' }));
  assert.notEqual(keyOf({ a: 'b' }), keyOf({ b: 'a' }));
  assert.match(keyOf({ a: '\u{1f600}' }), /^[0-9a-z]+$/);
});

test('of too many series those with the greatest values are drawn, in their order', () => {
  const series = [3, 9, 1, -20, 5].map((value, i) => ({ metric: { i: `${i}` }, values: [[0, `${value}`]] as [number, string][] }));
  assert.deepEqual(greatest(series, 3).map((entry) => entry.metric.i), ['1', '3', '4']);
  assert.equal(greatest(series, 5).length, 5);
});

test('a stack has gaps where its parts have them', () => {
  assert.deepEqual(stacked([[1, null, 3], [10, 20, null], [100, 200, 300]]), [
    [1, null, 3],
    [11, 20, null],
    [111, 220, 303],
  ]);
  assert.deepEqual(stacked([]), []);
});

test('a log axis has no place for what is not above zero', () => {
  assert.deepEqual(positive([[1, 0, -2, null]]), { columns: [[1, null, null, null]], dropped: 2 });
});

test('points without a neighbour', () => {
  assert.deepEqual(lonely([1, null, 2, 3, null, 4]), [0, 5]);
  assert.deepEqual(lonely([]), []);
});

test('summaries leave gaps out', () => {
  assert.deepEqual(summaryOf([null, 2, 4, null]), { last: 4, min: 2, max: 4, mean: 3 });
  assert.equal(summaryOf([null]).last, undefined);
});

test('an hour is drawn with 200 points at most, which do not wander', () => {
  const hour = chartGrid(3_600_000, 1_700_000_007_123);
  assert.equal(hour.step, 18);
  assert.ok(timesOf(hour).length <= 201);
  assert.equal(hour.end % 18, 0);
  assert.equal(chartGrid(3_600_000, 1_700_000_008_999).end, hour.end);
});
