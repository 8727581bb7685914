import assert from 'node:assert/strict';
import { test } from 'node:test';
import { thresholdOf } from '../../src/promql/threshold';

test('a comparison with a number has a threshold', () => {
  for (const [expr, left, op, limit] of [
    ['up == 0', 'up', '==', 0],
    ['node_load15 > 0.7', 'node_load15', '>', 0.7],
    ['a{b="> 5"} / on (job) c >= -1.5e3', 'a{b="> 5"} / on (job) c', '>=', -1500],
    ['rate(x[5m]) > 10 * 1024 * 1024', 'rate(x[5m])', '>', 10 * 1024 * 1024],
    ['1 / 4 < x', 'x', '>', 0.25],
    ['(avg by (le) (x) <= 5)', 'avg by (le) (x)', '<=', 5],
    ['time() - x > 1h30m', 'time() - x', '>', 5400],
    ['x != 0x10', 'x', '!=', 16],
    ['x > (5)', 'x', '>', 5],
    ['-x < -5', '-x', '<', -5],
    ['x < Inf', 'x', '<', Infinity],
    ['sum(a > 3) > 1', 'sum(a > 3)', '>', 1],
  ] as const) {
    const found = thresholdOf(expr);
    assert.deepEqual([found?.left, found?.op, found?.limit], [left, op, limit], expr);
  }
  assert.equal(thresholdOf('rate(x[5m]) > 10 * 1024')?.text, '10 * 1024');
});

test('what no one line says has none', () => {
  for (const expr of ['x', '', '1 > 2', 'x > y', 'x > 1 and y < 2', 'x > 1 or vector(1)', 'x unless y > 1', 'x > 3 < 5', 'x > bool 1', 'absent(x)', 'x > NaN', 'x > 2 +', 'x > on () 5', 'sum(x > 5)', '(a > 1) * (b > 2)']) {
    assert.equal(thresholdOf(expr), undefined, expr);
  }
});
