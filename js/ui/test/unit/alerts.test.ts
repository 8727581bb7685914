/** What is said of rules and alerts, of answers in the shape of Prometheus 3.16. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { alertsOf, alertsState, alertsVerdict, lateSeconds, ruleState, timeOf } from '../../src/figures/alerts';
import { alertsQuery, spansOf } from '../../src/pages/alerts/load';
import { rangeFor } from '../../src/pages/alerts/graph';
import { chosenRules, placedRules } from '../../src/pages/alerts/select';
import type { Alerts, AlertingRule, RuleGroup, Rules } from '../../src/source/answers';
import { answerOf } from '../../src/source/http';

// The compiled test stands in build/test/unit.
const text = (name: string): string => readFileSync(fileURLToPath(new URL(`../../../test/fixtures/${name}.json`, import.meta.url)), 'utf8');
const answer = (body: string) => answerOf('api/v1/rules', { ok: true, status: 200 }, body);
const { groups } = answer(text('rules')).data as Rules;
const { alerts } = answer(text('alerts')).data as Alerts;
const NOW = Date.parse('2026-11-30T06:00:10Z');

const rule = (changes: Partial<AlertingRule>): AlertingRule => ({ ...(groups[0]!.rules[3] as AlertingRule), ...changes });
const group = (rules: AlertingRule[]): RuleGroup => ({ ...groups[0]!, rules });

test('the list of alerts is that of the rules', () => {
  assert.deepEqual(alertsOf(groups), alerts);
});

test('the worst is said first, and everything that is not as it should be', () => {
  const state = alertsState(groups, alerts, NOW, false);
  assert.deepEqual([state.alerting, state.recording, state.pending, state.failing, state.unknown, state.late], [7, 2, 1, 2, 1, 0]);
  assert.deepEqual(alertsVerdict(state), {
    level: 'bad',
    text: '2 alerts are firing: Gap, HighLoad; 1 alert is pending; 2 rules fail; 1 rule was not evaluated yet.',
  });
  // One that is meant to fire does not make the node red.
  const info = alerts.filter(({ labels }) => labels['severity'] === 'info');
  assert.equal(alertsVerdict(alertsState(groups.slice(0, 1), info, NOW, false)).level, 'warn');
});

test('only rules that were evaluated, in time, and without an error are fine', () => {
  const verdictOf = (rules: AlertingRule[], { nowMs = NOW, isDoubted = false } = {}) => {
    const { level, text } = alertsVerdict(alertsState([group(rules)], [], nowMs, isDoubted));
    return [level, text];
  };
  assert.deepEqual(verdictOf([rule({})]), ['good', 'No alert is firing; 1 alerting rule is evaluated.']);
  assert.deepEqual(verdictOf([rule({ health: 'err' })]), ['warn', '1 rule fails.']);
  assert.deepEqual(verdictOf([rule({ health: 'unknown' })]), ['unknown', '1 rule was not evaluated yet.']);
  assert.deepEqual(verdictOf([rule({ state: 'unknown' })]), ['unknown', '1 rule was not evaluated yet.']);
  assert.deepEqual(verdictOf([rule({})], { nowMs: NOW + 600_000 }), ['unknown', '1 group was not evaluated for 10 min 8 s.']);
  assert.deepEqual(verdictOf([rule({})], { isDoubted: true }), ['warn', 'The node’s clock is doubted.']);
  assert.deepEqual(verdictOf([]), ['unknown', 'This node has no rules.']);
  assert.equal(alertsVerdict(undefined).level, 'unknown');
});

test('a rule whose health is not ok is not inactive', () => {
  assert.equal(ruleState(rule({})), 'inactive');
  assert.equal(ruleState(rule({ health: 'err' })), 'failing');
  assert.equal(ruleState(rule({ health: 'unknown' })), 'unknown');
  assert.equal(ruleState(rule({ health: 'err', state: 'firing' })), 'firing');
  assert.equal(ruleState({ ...groups[0]!.rules[0]!, health: 'err' }), 'failing');
});

test('a group is late after two intervals and some', () => {
  const last = Date.parse(groups[0]!.lastEvaluation);
  assert.equal(lateSeconds(groups[0]!, last + 89_000), undefined);
  assert.equal(lateSeconds(groups[0]!, last + 91_000), 91);
  assert.equal(lateSeconds(groups[2]!, last), undefined);
  assert.equal(timeOf('0001-01-01T00:00:00Z'), undefined);
});

test('rules are chosen by text and by state', () => {
  const all = placedRules(groups);
  const names = (search: string, choice: Parameters<typeof chosenRules>[2] = '') => chosenRules(all, search, choice).map(({ rule }) => rule.name);
  assert.deepEqual(names(''), ['HighLoad', 'Gap', 'Matching', 'job:wrong:sum', 'DiskSpaceLow', 'Hostile', 'TooHot', 'MemoryFull']);
  assert.deepEqual(names('', 'failing'), ['Matching', 'job:wrong:sum']);
  assert.deepEqual(names('', 'inactive'), ['TooHot', 'MemoryFull']);
  assert.deepEqual(names('', 'recording'), ['job:wrong:sum', 'instance:load:ratio']);
  assert.deepEqual(names('mmcblk0'), ['DiskSpaceLow']);
  assert.deepEqual(names('slow.yml', 'firing'), ['Gap']);
  // An expression as a person writes it.
  assert.deepEqual(names('max by(instance)(node_thermal_zone_temp)'), ['TooHot']);
  assert.deepEqual(names('nothing'), []);
});

test('times of firing are spans, and a gap ends one', () => {
  const grid = { start: 0, end: 100, step: 10 };
  const spans = spansOf([{ metric: { alertstate: 'firing' }, values: [[10, '1'], [20, '1'], [50, '1']] }, { metric: { alertstate: 'pending' }, values: [[0, '1'], [10, '1']] }], grid);
  assert.deepEqual(spans, [
    { start: 0, end: 10, level: 'warn' },
    { start: 10, end: 30, level: 'bad' },
    { start: 50, end: 60, level: 'bad' },
  ]);
});

test('the alerts of a rule are selected by the labels that all of them have', () => {
  const labels = { severity: 'page', where: '{{ $labels.instance }}' };
  assert.equal(alertsQuery(rule({ name: 'A"b', labels })), 'max by (alertstate) (ALERTS{alertname="A\\"b", severity="page"})');
});

test('a graph reaches back to the beginning of the alerts', () => {
  const begun = (ms: number) => rule({ alerts: [{ ...alerts[0]!, activeAt: new Date(NOW - ms).toISOString() }] });
  assert.equal(rangeFor(rule({}), NOW), 3_600_000);
  assert.equal(rangeFor(begun(1_800_000), NOW), 3_600_000);
  assert.equal(rangeFor(begun(3_600_000), NOW), 6 * 3_600_000);
  assert.equal(rangeFor(begun(90 * 86_400_000), NOW), 7 * 86_400_000);
});

test('a doubted clock is read beside the data and in it', () => {
  assert.equal(answer(text('rules')).isClockDoubted, undefined);
  assert.equal(answer('{"status":"success","data":{"groups":[],"tidepool_clock_doubted":true}}').isClockDoubted, true);
  assert.equal(answer('{"status":"success","data":{"groups":[]},"tidepool_clock_doubted":true}').isClockDoubted, true);
  assert.equal(answer('{"status":"success","data":{"groups":[],"tidepool_clock_doubted":false}}').isClockDoubted, undefined);
});
