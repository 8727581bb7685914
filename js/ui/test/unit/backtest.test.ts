/** The view Backtest: rule files made of rules, mistakes, timelines, and texts of answers. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { viewsOf, type View } from '../../src/app/views';
import { backtestLevel, backtestText, backtestVerdict, circularText, seriesText } from '../../src/figures/backtest';
import { timelineOf } from '../../src/pages/alerts/backtest/layout';
import { indexOf, mistakesOf } from '../../src/pages/alerts/backtest/mistakes';
import { panelAround } from '../../src/pages/alerts/backtest/range';
import { ruleFileOf, scalar, value } from '../../src/pages/alerts/backtest/rule-file';
import { isSameRange, paramsOf, rangeOf } from '../../src/pages/alerts/range';
import type { BacktestAlert, BacktestAlertingRule, BacktestData, Rules } from '../../src/source/answers';
import { answerOf } from '../../src/source/http';

// The compiled test stands in build/test/unit.
const dataOf = (name: string): unknown => {
  const text = readFileSync(fileURLToPath(new URL(`../../../test/fixtures/${name}.json`, import.meta.url)), 'utf8');
  return answerOf('x', { ok: true, status: 200 }, text).data;
};
const { groups } = dataOf('rules') as Rules;
const data = dataOf('backtest') as BacktestData;
const [, highLoad, diskSpace, matching] = data.groups[0]!.rules as [unknown, BacktestAlertingRule, BacktestAlertingRule, BacktestAlertingRule];
const HOUR_MS = 3_600_000;

test('rules of a node become the rule file that they came from', () => {
  const [machine, slow] = groups as [(typeof groups)[0], (typeof groups)[0]];
  assert.equal(
    ruleFileOf(machine, machine.rules.slice(0, 3)),
    `groups:
  - name: machine
    interval: 30s
    rules:
      - record: instance:load:ratio
        expr: node_load1 / on (instance, job) count by (instance, job) (node_cpu_seconds_total{mode="idle"})
      - alert: HighLoad
        expr: node_load15 > 0.7
        for: 5m
        labels:
          severity: page
        annotations:
          description: The load of {{ $labels.instance }} is {{ $value | humanize }} over 15 minutes.
          summary: High load
      - alert: DiskSpaceLow
        expr: node_filesystem_avail_bytes{job="node"} / node_filesystem_size_bytes{job="node"} < 0.5
        for: 10m
        labels:
          severity: warning
        annotations:
          summary: '{{ $value | humanizePercentage }} left on {{ $labels.mountpoint }}'
`,
  );
  assert.equal(
    ruleFileOf(slow, slow.rules.slice(2)),
    `groups:
  - name: slow
    interval: 15s
    limit: 20
    rules:
      - alert: Gap
        expr: absent_over_time(gappy[5m]) or gappy > 0.99
        keep_firing_for: 30m
        labels:
          severity: info
`,
  );
});

test('what YAML would take for something else is quoted', () => {
  const plain = ['up', 'up == 0', '(a + b) > 1', 'up{job="x"}', 'job:up:sum', 'a, [b] {c}', 'yes please'];
  for (const text of plain) assert.equal(scalar(text), text);
  const quoted = ['{a="b"}', 'a: b', 'a #b', 'a:', 'x ', ' x', '', '1', '1e3', '-x', '~', 'yes', 'No', 'NULL', '>=', '%x', '@x', '#a', '? x', 'é'];
  for (const text of quoted) assert.equal(scalar(text), `'${text}'`);
  assert.equal(scalar("-it's"), `"-it's"`);
  assert.equal(scalar(`-it's "x"`), `'-it''s "x"'`);
  assert.equal(scalar('a\tb\u0000\u2028\u202e"\\'), '"a\\tb\\u0000\\u2028\\u202e\\"\\\\"');
});

test('lines stand below their key, where that keeps them as they are', () => {
  assert.equal(value('a > 1\n  and\n\nb', 2), '|-\n    a > 1\n      and\n\n    b');
  assert.equal(value('a\nb\n', 2), '|\n    a\n    b');
  for (const text of [' a\nb', '\na', 'a\n\n', 'a\r\nb', 'a\n\tb']) assert.equal(value(text, 2), JSON.stringify(text));
  // A key has one line.
  assert.equal(scalar('a\nb'), '"a\\nb"');
});

test('each mistake has its place, and nothing of the text is lost', () => {
  const message = 'rules:3:5: groups[0].rules[0].fro: there is no such key\nrules:12:7: 1:4: parse error\nrules: and 3 more mistakes\n  more';
  const mistakes = mistakesOf(message);
  assert.deepEqual(mistakes.map(({ place, at }) => [place, at]), [
    ['rules:3:5', { line: 3, column: 5 }],
    ['rules:12:7', { line: 12, column: 7 }],
    ['', undefined],
    ['', undefined],
  ]);
  assert.equal(mistakes.map(({ place, text }) => place + text).join('\n'), message);
});

test('places count lines and characters', () => {
  const text = 'ab\n\u{1f600}cd\n\nx';
  const at = (line: number, column: number): string => text.slice(indexOf(text, { line, column }));
  assert.equal(at(1, 1), text);
  assert.equal(at(2, 2), 'cd\n\nx');
  assert.equal(at(4, 1), 'x');
  // Beyond the end of a line, and of the text.
  assert.equal(at(1, 99), '\n\u{1f600}cd\n\nx');
  assert.equal(at(9, 1), '');
});

test('a timeline has a row for each set of labels, and bars for its states', () => {
  const [startMs, endMs] = [data.start * 1000, data.end * 1000];
  const { rows, more } = timelineOf(highLoad.alerts, startMs, endMs, 50);
  assert.deepEqual(rows.map(({ labels }) => labels['instance']), ['edge-7', 'edge-8']);
  assert.deepEqual(
    rows[0]!.bars.map(({ state, isOpen, left, width }) => [state, isOpen, left, width]),
    [
      ['pending', false, 0, 0.347],
      ['firing', false, 0.347, 12.153],
      ['pending', false, 58.333, 0.347],
      ['firing', true, 58.681, 41.319],
    ],
  );
  assert.deepEqual(rows[1]!.bars.map(({ state, width }) => [state, width]), [['pending', 8.333], ['firing', 0.069]]);
  assert.equal(more, 0);
  const cut = timelineOf(highLoad.alerts, startMs, endMs, 1);
  assert.deepEqual([cut.rows.map(({ labels }) => labels['instance']), cut.more], [['edge-7'], 1]);
});

test('bars stay within the range, and an alert that fires at once was not pending', () => {
  const alert = (activeAt: string, firedAt: string, resolvedAt: string): BacktestAlert => ({ labels: {}, annotations: {}, activeAt, firedAt, resolvedAt, value: '1' });
  const [startMs, endMs] = [Date.parse('2026-01-01T00:00:00Z'), Date.parse('2026-01-01T10:00:00Z')];
  const barsOf = (one: BacktestAlert) => timelineOf([one], startMs, endMs, 50).rows[0]!.bars.map(({ state, left, width }) => [state, left, width]);
  assert.deepEqual(barsOf(alert('2026-01-01T01:00:00Z', '2026-01-01T01:00:00Z', '2026-01-01T02:00:00Z')), [['firing', 10, 10]]);
  assert.deepEqual(barsOf(alert('2025-12-31T23:00:00Z', '2025-12-31T23:30:00Z', '2026-01-01T11:00:00Z')), [['pending', 0, 0], ['firing', 0, 100]]);
  assert.deepEqual(timelineOf([], startMs, endMs, 50), { rows: [], more: 0 });
});

test('the worst is said first', () => {
  assert.deepEqual(backtestVerdict(data), {
    level: 'bad',
    text: '5 alerts would have fired: HighLoad, Hostile; 13 alerts would only have been pending; 1 rule has failed evaluations.',
  });
  const verdictOf = (...rules: BacktestData['groups'][0]['rules']) => {
    const { level, text } = backtestVerdict({ ...data, groups: [{ name: 'a', interval: 60, rules }] });
    return [level, text];
  };
  const quiet = { ...diskSpace, pending: 0 };
  const recording = data.groups[0]!.rules[0]!;
  assert.deepEqual(verdictOf(quiet), ['good', 'No alert would have fired.']);
  assert.deepEqual(verdictOf(diskSpace), ['warn', '1 alert would only have been pending.']);
  assert.deepEqual(verdictOf(matching), ['warn', '1 rule has failed evaluations.']);
  assert.deepEqual(verdictOf({ ...quiet, evaluations: 0 }), ['unknown', 'The range is too short for an evaluation.']);
  assert.deepEqual(verdictOf(recording), ['unknown', 'The file has no alerting rules; 1 recording rule was evaluated.']);
  assert.deepEqual(verdictOf(), ['unknown', 'The file has no rules.']);
  // One that is meant to fire is not red.
  const alerts = highLoad.alerts.map((alert) => ({ ...alert, labels: { ...alert.labels, severity: 'info' } }));
  assert.equal(verdictOf({ ...highLoad, alerts, omitted: 0 })[0], 'warn');
  assert.equal(verdictOf({ ...highLoad, alerts })[0], 'bad');
});

test('each rule has a level and a text', () => {
  const rules = data.groups.flatMap((group) => group.rules);
  assert.deepEqual(rules.map((rule) => [rule.name, backtestLevel(rule), backtestText(rule)]), [
    ['instance:load:ratio', 'good', '2\u202f880 samples of 2 series'],
    ['HighLoad', 'bad', 'fired 4 times; 12 alerts were only pending'],
    ['DiskSpaceLow', 'warn', 'never fired; 1 alert was only pending'],
    ['Matching', 'warn', 'never fired'],
    ['Hostile', 'bad', 'fired once'],
    ['Quiet', 'good', 'never fired'],
  ]);
});

test('the series that were read are named, within a bound', () => {
  const of = (stored: string[], computed: string[], any: boolean) => seriesText({ ...data, series: { stored, computed, any } });
  assert.equal(of(['up', 'x'], ['a:b'], false), 'Stored series read: up, x; computed series: a:b.');
  assert.equal(of(['up'], [], true), 'Stored series read: up and others that no name selects; computed series: none.');
  assert.equal(of([], [], true), 'Stored series read: series that no name selects; computed series: none.');
  const many = Array.from({ length: 60 }, (_, i) => `m${i}`);
  assert.match(of(many, [], true), /, m49 and 10 more and others that no name selects;/);
  assert.equal(circularText(data), undefined);
  assert.match(circularText({ ...data, series: { ...data.series, circular: ['a:b', 'c:d'] } })!, /: a:b, c:d\.$/);
});

test('the address has the range, but for the last day', () => {
  assert.deepEqual(rangeOf(new URLSearchParams()), { rangeMs: 24 * HOUR_MS });
  assert.deepEqual(rangeOf(new URLSearchParams('range=x&end=never')), { rangeMs: 24 * HOUR_MS });
  for (const range of [{ rangeMs: 24 * HOUR_MS }, { rangeMs: 90_000, endMs: Date.UTC(2026, 0, 2, 3, 4, 5) }]) {
    const read = rangeOf(new URLSearchParams(paramsOf(range)));
    assert.deepEqual(read, range);
    assert.ok(isSameRange(read, range));
  }
  assert.ok(!isSameRange({ rangeMs: 1000 }, { rangeMs: 1000, endMs: 1000 }));
});

test('an alert leads to a graph that has all of it, and some of what is around', () => {
  const [open, resolved] = highLoad.alerts as [BacktestAlert, BacktestAlert];
  const endMs = data.end * 1000;
  const panel = panelAround('up > 1', resolved, endMs);
  assert.deepEqual([panel.expr, panel.tab, panel.rangeMs], ['up > 1', 'graph', 6 * HOUR_MS]);
  assert.equal(new Date(panel.endMs!).toISOString(), '2026-11-30T10:30:01.000Z');
  // It fires to the end.
  assert.equal(panelAround('up', open, endMs).rangeMs, 24 * HOUR_MS);
  const short = { ...resolved, resolvedAt: resolved.activeAt };
  assert.equal(panelAround('up', short, endMs).rangeMs, HOUR_MS);
});

test('a view below another one has its address', () => {
  const below: View = { name: 'backtest', title: 'Backtest' };
  const views: View[] = [{ name: '', title: 'Home' }, { name: 'alerts', title: 'Alerts', below: [below] }, { name: 'query', title: 'Query' }];
  const of = (...path: string[]) => {
    const { top, asked } = viewsOf(views, path);
    return [top.name, asked.name];
  };
  assert.deepEqual(of('alerts'), ['alerts', 'alerts']);
  assert.deepEqual(of('alerts', 'backtest'), ['alerts', 'backtest']);
  assert.deepEqual(of('alerts', 'other'), ['alerts', 'alerts']);
  assert.deepEqual(of('query', 'backtest'), ['query', 'query']);
  assert.deepEqual(of('none'), ['', '']);
  assert.equal(viewsOf([below], ['backtest']).asked, below);
});
