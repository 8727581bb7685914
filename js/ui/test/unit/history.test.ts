/** Events of alerts: what they say, and how pages of them are asked for. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { causeText, eventLevel, eventText } from '../../src/figures/history';
import { historyParams } from '../../src/pages/alerts/history/load';
import type { AlertHistory } from '../../src/source/answers';
import { answerOf } from '../../src/source/http';

// The compiled test stands in build/test/unit.
const text = readFileSync(fileURLToPath(new URL('../../../test/fixtures/history.json', import.meta.url)), 'utf8');
const { events } = answerOf('x', { ok: true, status: 200 }, text).data as AlertHistory;
const NOW = Date.parse('2026-11-30T06:00:03Z');

test('an event says after how long it ended, and why if that is not the usual', () => {
  assert.deepEqual(events.map(eventText), ['firing', 'resolved after 15 min', 'resolved after 2 h', 'resolved after 30 min']);
  assert.deepEqual(events.map(eventLevel), ['bad', 'good', 'good', 'good']);
  assert.deepEqual(events.map(causeText), ['', '', 'its rule was removed', 'when it ended was not seen: the time is that of the first evaluation without it']);
  const [event] = events;
  assert.equal(eventLevel({ ...event!, labels: { severity: 'info' } }), 'warn');
  assert.equal(eventText({ ...events[1]!, firedAt: '' }), 'resolved');
  // Those of newer nodes.
  assert.equal(causeText({ ...event!, cause: 'merged' }), 'merged');
  assert.equal(eventLevel({ ...event!, change: 'acknowledged' as 'firing' }), 'unknown');
});

test('older pages keep the beginning of the range that the first one had', () => {
  const range = { rangeMs: 3_600_000 };
  const first = historyParams({ match: '{severity="page"}', range, nowMs: NOW, place: undefined });
  assert.equal(decodeURIComponent(`${first}`), 'start=1796014803&limit=50&match[]={severity="page"}');
  const second = historyParams({ match: undefined, range: { ...range, endMs: NOW }, nowMs: NOW + 60_000, place: { token: 't1', start: '1796014803' } });
  assert.equal(`${second}`, 'start=1796014803&end=1796018403&limit=50&next_token=t1');
});
