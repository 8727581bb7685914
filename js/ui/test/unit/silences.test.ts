/** Silences: which alerts they keep quiet, and what the form makes of its texts. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silencerOf, silencesByState } from '../../src/figures/silences';
import { endOf, silenceOf } from '../../src/pages/alerts/silences/draft';
import { expiryError } from '../../src/pages/alerts/silences/load';
import type { Matcher, Silence } from '../../src/source/answers';
import { plainOf } from '../../src/source/http';
import { ApiError } from '../../src/source/source';

// The compiled test stands in build/test/unit.
const text = readFileSync(fileURLToPath(new URL('../../../test/fixtures/silences.json', import.meta.url)), 'utf8');
const silences = plainOf('x', { ok: true, status: 200 }, text) as Silence[];
const NOW = Date.parse('2026-11-30T06:00:03Z');

const matcher = (name: string, op: '=' | '!=' | '=~' | '!~', value: string): Matcher => ({ name, value, isRegex: op.endsWith('~'), isEqual: op.startsWith('=') });

test('silences stand by state, the next one first', () => {
  const at = (state: string, id: string, startsAt: string, endsAt: string) => ({ ...silences[0]!, id, status: { state }, startsAt, endsAt }) as Silence;
  const byState = silencesByState([
    at('active', 'a', '2026-11-30T00:00:00Z', '2026-11-30T09:00:00Z'),
    at('active', 'b', '2026-11-30T01:00:00Z', '2026-11-30T08:00:00Z'),
    at('pending', 'c', '2026-12-02T00:00:00Z', '2026-12-03T00:00:00Z'),
    at('pending', 'd', '2026-12-01T00:00:00Z', '2026-12-04T00:00:00Z'),
    at('expired', 'e', '2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z'),
    at('expired', 'f', '2026-11-01T00:00:00Z', '2026-11-03T00:00:00Z'),
    at('paused', 'g', '2026-11-01T00:00:00Z', '2026-11-03T00:00:00Z'),
  ]);
  const ids = Object.entries(byState).map(([state, all]) => [state, all.map(({ id }) => id).join('')]);
  assert.deepEqual(ids, [['active', 'ba'], ['pending', 'dc'], ['unknown', 'g'], ['expired', 'fe']]);
});

test('an alert is silenced by active silences alone, and by all matchers of one', () => {
  const of = (all: readonly Silence[], labels: Record<string, string>) => {
    const found = silencerOf(all)(labels);
    return typeof found === 'object' ? found.comment : found;
  };
  const labels = { alertname: 'HighLoad', instance: 'edge-7' };
  assert.equal(of(silences, labels), 'a new fan comes tomorrow');
  assert.equal(of(silences, { alertname: 'HighLoad', instance: 'far-edge-7' }), undefined);
  assert.equal(of(silences, { alertname: 'HighLoad' }), undefined);
  // The pending one matches it, and the expired one does.
  assert.equal(of(silences, { alertname: 'Gap', site: 'south' }), undefined);
  // Of two, the one that ends last.
  const longer = { ...silences[0]!, comment: 'longer', endsAt: '2026-12-24T00:00:00Z' };
  assert.equal(of([longer, ...silences], labels), 'longer');
});

test('an expression that browsers cannot read makes it unknown, where all else matches', () => {
  const strange = { ...silences[0]!, matchers: [matcher('alertname', '=', 'Gap'), matcher('instance', '=~', '[[:alpha:]]+')] };
  const none = { ...silences[0]!, matchers: [] };
  assert.equal(silencerOf([strange])({ alertname: 'Gap', instance: 'edge' }), 'unknown');
  assert.equal(silencerOf([strange])({ alertname: 'HighLoad' }), undefined);
  assert.equal(typeof silencerOf([strange, silences[0]!])({ alertname: 'HighLoad', instance: 'edge-7' }), 'object');
  assert.equal(silencerOf([none])({ alertname: 'Gap' }), 'unknown');
});

test('a silence ends after a duration or at a time', () => {
  assert.equal(endOf('2h', NOW, 'utc'), NOW + 7_200_000);
  assert.equal(endOf('2026-12-01 06:00', NOW, 'utc'), Date.parse('2026-12-01T06:00:00Z'));
  assert.equal(endOf('soon', NOW, 'utc'), undefined);
});

test('a form becomes a silence, or its mistakes', () => {
  const draft = { matchers: 'alertname="HighLoad"', ends: '30m', author: ' anna ', comment: 'a new fan' };
  assert.deepEqual(silenceOf(draft, NOW, 'utc').silence, {
    matchers: [matcher('alertname', '=', 'HighLoad')],
    startsAt: '0001-01-01T00:00:00Z',
    endsAt: '2026-11-30T06:30:03.000Z',
    createdBy: 'anna',
    comment: 'a new fan',
  });
  assert.deepEqual(silenceOf({ matchers: 'a', ends: '', author: '', comment: ' ' }, NOW, 'utc').mistakes, {
    matchers: '=, !=, =~ or !~ behind a is missing at the end.',
    ends: 'This is no duration such as 2h, and no time such as 2026-01-31 13:05.',
    author: 'A silence needs an author.',
    comment: 'A silence needs a comment.',
  });
  assert.deepEqual(silenceOf({ ...draft, matchers: '{}' }, NOW, 'utc').mistakes, { matchers: 'A silence needs a matcher.' });
  assert.deepEqual(silenceOf({ ...draft, ends: '2026-11-30 06:00' }, NOW, 'utc').mistakes, { ends: 'This time has passed.' });
});

test('an expiry that finds nothing says so', () => {
  assert.equal(expiryError(new ApiError('missing', 'x')).message, 'the node has no such silence any more');
  assert.equal(expiryError(new ApiError('internal', 'the disk is full')).message, 'the disk is full');
});
