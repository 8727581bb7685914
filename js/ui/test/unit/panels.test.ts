import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashOf, routeOf } from '../../src/app/route';
import { withEntry } from '../../src/pages/query/history';
import { newPanel, panelsOf, searchOf, stepMsOf, type Panel } from '../../src/pages/query/panels';
import { nextRange } from '../../src/widgets/range';

const HOUR_MS = 3_600_000;

test('links of Prometheus 3 have their panels', () => {
  const search =
    '?g0.expr=up&g0.show_tree=0&g0.tab=graph&g0.end_input=2026-01-02+03%3A04%3A05&g0.moment_input=2026-01-02+03%3A04%3A05&g0.range_input=2h' +
    '&g0.res_type=auto&g0.res_density=high&g0.display_mode=stacked&g0.y_axis_min=0&g0.show_exemplars=0&g1.expr=sum(rate(x%5B5m%5D))&g1.tab=explain';
  const panels = panelsOf(search);
  assert.deepEqual(panels, [
    {
      expr: 'up',
      tab: 'graph',
      rangeMs: 2 * HOUR_MS,
      endMs: Date.UTC(2026, 0, 2, 3, 4, 5),
      resolution: { type: 'auto', density: 'high' },
      isStacked: true,
      isLog: false,
      yMin: 0,
      hidden: [],
    },
    { ...newPanel(), expr: 'sum(rate(x[5m]))', tab: 'explain' },
  ]);
});

test('links of Prometheus 2, and those of alerts', () => {
  const [panel] = panelsOf('?g0.expr=up%20%3D%3D%200&g0.tab=0&g0.stacked=1&g0.range_input=1d&g0.step_input=30');
  assert.deepEqual(panel, { ...newPanel(), expr: 'up == 0', tab: 'graph', isStacked: true, rangeMs: 24 * HOUR_MS, resolution: { type: 'fixed', stepMs: 30_000 } });
  assert.equal(panelsOf('?g0.expr=a&g0.tab=1')[0]?.tab, 'table');
  assert.deepEqual(panelsOf('?g1.expr=a'), []);
});

test('what is written is read again', () => {
  const panels: Panel[] = [
    { ...newPanel(), expr: '{a="&=#+%"} # \u{1f600}\n + 1', tab: 'graph', endMs: Date.UTC(2026, 5, 1), isLog: true, hidden: ['1ab', '2cd'], yMin: -1.5 },
    { ...newPanel(), resolution: { type: 'fixed', stepMs: 500 }, rangeMs: 90_000 },
  ];
  assert.deepEqual(panelsOf(`?${searchOf(panels)}`), panels);
});

test('nonsense in an address is no panel of nonsense', () => {
  const [panel] = panelsOf('?g0.expr=a&g0.tab=x&g0.range_input=long&g0.end_input=never&g0.res_type=fixed&g0.res_step=-1&g0.y_axis_min=x');
  assert.deepEqual(panel, { ...newPanel(), expr: 'a' });
  const many = Array.from({ length: 1000 }, (_, i) => `g${i}.expr=a`).join('&');
  assert.equal(panelsOf(`?${many}`).length, 20);
});

test('steps give the points of the density, at least a second apart, and never too many', () => {
  const auto = (rangeMs: number, density: 'low' | 'medium' | 'high') => stepMsOf({ rangeMs, resolution: { type: 'auto', density } });
  assert.equal(auto(HOUR_MS, 'medium'), 15_000);
  assert.equal(auto(HOUR_MS, 'low'), 36_000);
  assert.equal(auto(10_000, 'high'), 1000);
  const tooFine = stepMsOf({ rangeMs: 365 * 24 * HOUR_MS, resolution: { type: 'fixed', stepMs: 1000 } });
  assert.ok((365 * 24 * HOUR_MS) / tooFine <= 11_000);
});

test('ranges go up and down by usual ones', () => {
  assert.equal(nextRange(HOUR_MS, 1), 2 * HOUR_MS);
  assert.equal(nextRange(HOUR_MS, -1), HOUR_MS / 2);
  assert.equal(nextRange(1000, -1), 1000);
  assert.equal(nextRange(70 * 60_000, -1), HOUR_MS);
});

test('the page stands in the hash; a panel alone leads to the queries', () => {
  const shown = (search: string, hash: string) => routeOf(search, hash).path;
  assert.deepEqual(shown('', ''), []);
  assert.deepEqual(shown('?g0.expr=up', ''), ['query']);
  assert.deepEqual(shown('?g0.expr=up', '#/'), []);
  assert.deepEqual(shown('', '#/explore/metrics?search=a%20b'), ['explore', 'metrics']);
  assert.equal(routeOf('', '#/explore/metrics?search=a%20b').params.get('search'), 'a b');
  assert.deepEqual(shown('', '#/a%2Fb/%zz'), ['a/b', '%zz']);
  assert.equal(hashOf(['explore', 'a/b'], { metric: 'x&y' }), '#/explore/a%2Fb?metric=x%26y');
});

test('the history has each expression once, the newest first', () => {
  assert.deepEqual(withEntry(['a', 'b'], ' b '), ['b', 'a']);
  assert.deepEqual(withEntry(['a'], '  '), ['a']);
  assert.deepEqual(withEntry(['a'], 'x'.repeat(5000)), ['a']);
  const many = Array.from({ length: 100 }, (_, i) => `${i}`);
  assert.equal(withEntry(many, 'new').length, 100);
});
