/** Receivers of alerts: what waits, and what is not known. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { deliveryOf, receiverState, receiversVerdict, withDelivery } from '../../src/figures/receivers';
import type { Receiver, Receivers } from '../../src/source/answers';
import { answerOf } from '../../src/source/http';

// The compiled test stands in build/test/unit.
const text = readFileSync(fileURLToPath(new URL('../../../test/fixtures/receivers.json', import.meta.url)), 'utf8');
const { receivers } = answerOf('x', { ok: true, status: 200 }, text).data as Receivers;
const [phone, siren, watchdog, centre] = receivers as [Receiver, Receiver, Receiver, Receiver];
const NOW = Date.parse('2026-11-30T06:00:03Z');

test('what waits is said with its receiver, since when, and why', () => {
  assert.deepEqual(deliveryOf([phone, watchdog], NOW), { level: 'bad', text: '3 notifications to phone wait since 12 min: connection refused' });
  assert.deepEqual(deliveryOf([watchdog, siren, phone], NOW), {
    level: 'bad',
    text: '3 notifications to phone wait since 12 min: connection refused; 2 notifications to siren were dropped',
  });
  assert.equal(deliveryOf([watchdog, centre], NOW), undefined);
  assert.equal(deliveryOf([], NOW), undefined);
  assert.deepEqual(deliveryOf(undefined, NOW), { level: 'unknown', text: 'whether notifications are delivered is unknown' });
});

test('what waits for less than a minute and did not fail is on its way', () => {
  const { failingSince: _, ...waiting } = { ...phone, undelivered: 1, undeliveredSince: '2026-11-30T05:59:43Z' };
  assert.deepEqual(deliveryOf([waiting], NOW), { level: 'warn', text: '1 notification to phone waits since 20 s' });
  assert.equal(deliveryOf([{ ...waiting, failingSince: '2026-11-30T05:59:43Z' }], NOW)!.level, 'bad');
  assert.equal(deliveryOf([{ ...waiting, undeliveredSince: '2026-11-30T05:59:03Z' }], NOW)!.level, 'bad');
  // Since when is not known.
  const { undeliveredSince: __, ...timeless } = waiting;
  assert.deepEqual(deliveryOf([timeless], NOW), { level: 'bad', text: '1 notification to phone waits' });
});

test('a receiver that fails and one that does not say what waits are told', () => {
  const failing = { ...watchdog, failingSince: '2026-11-30T05:57:03Z', lastError: ` ${'x'.repeat(300)}. ` };
  assert.deepEqual(deliveryOf([failing], NOW), { level: 'warn', text: `notifications to watchdog fail since 3 min: ${'x'.repeat(200)}…` });
  const { undelivered: _, ...silent } = watchdog;
  assert.deepEqual(deliveryOf([silent as Receiver], NOW), { level: 'unknown', text: 'how many notifications wait for watchdog is unknown' });
  // A headline stays short.
  const many = Array.from({ length: 5 }, (_, i) => ({ ...siren, name: `siren${i}` }));
  assert.match(deliveryOf(many, NOW)!.text, /siren2 were dropped; 2 more faults of receivers$/);
});

test('the headline of alerts takes the worse of both', () => {
  const good = { level: 'good', text: 'No alert is firing; 1 alerting rule is evaluated.' } as const;
  assert.equal(withDelivery(good, undefined), good);
  assert.deepEqual(withDelivery(good, deliveryOf(undefined, NOW)), {
    level: 'unknown',
    text: 'No alert is firing; 1 alerting rule is evaluated; whether notifications are delivered is unknown.',
  });
  assert.deepEqual(withDelivery({ level: 'warn', text: '1 alert is pending.' }, deliveryOf([phone], NOW)), {
    level: 'bad',
    text: '1 alert is pending; 3 notifications to phone wait since 12 min: connection refused.',
  });
  assert.equal(withDelivery({ level: 'bad', text: '1 alert is firing: A.' }, deliveryOf(undefined, NOW)).level, 'bad');
});

test('receivers are good only if each of them has taken something', () => {
  const verdict = (all: Receiver[] | undefined) => Object.values(receiversVerdict(all, NOW));
  assert.deepEqual(verdict([watchdog]), ['good', 'No notification waits; 1 receiver takes them.']);
  assert.deepEqual(verdict([watchdog, centre]), ['unknown', 'Nothing waits; whether 1 receiver takes notifications is not known yet.']);
  assert.deepEqual(verdict([phone]), ['bad', '3 notifications to phone wait since 12 min: connection refused.']);
  assert.deepEqual(verdict([]), ['unknown', 'This node has no receivers: alerts are told to no one.']);
  assert.deepEqual(verdict(undefined), ['unknown', 'Whether notifications are delivered is unknown.']);
  const states = receivers.map((receiver) => Object.values(receiverState(receiver, NOW)).join(' '));
  assert.deepEqual(states, ['bad fails', 'warn dropped', 'good delivers', 'unknown untried']);
});
