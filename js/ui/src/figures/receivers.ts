/** What receivers of alerts say: what waits for them, since when, and why. */

import { formatDuration } from '../format/number';
import type { Receiver } from '../source/answers';
import { counted, timeOf } from './alerts';
import type { Level } from './checks';

/** A sentence, or a part of one, and how good that is. */
export interface Said {
  level: Level;
  text: string;
}

/** The worst first. */
const LEVELS: readonly Level[] = ['bad', 'warn', 'unknown', 'good'];
/** What should be out may be on its way for so long, in seconds. */
const WAIT_SECONDS_OK = 60;
/** Parts of a headline. */
const PARTS_MAX = 3;
/** Characters of an error in a headline. */
const ERROR_MAX = 200;

/** All that is not as it should be of a receiver, the worst first. */
export function receiverFaults({ name, undelivered, undeliveredSince, failingSince, lastError, dropped }: Receiver, nowMs: number): Said[] {
  const faults: Said[] = [];
  const why = errorText(lastError);
  if (!(undelivered >= 0)) faults.push({ level: 'unknown', text: `how many notifications wait for ${name} is unknown` });
  if (undelivered > 0) {
    const seconds = secondsSince(undeliveredSince, nowMs);
    const isNew = failingSince === undefined && seconds !== undefined && seconds < WAIT_SECONDS_OK;
    const text = `${counted(undelivered, 'notification', 'notifications')} to ${name} ${undelivered === 1 ? 'waits' : 'wait'}${sinceText(seconds)}`;
    faults.push({ level: isNew ? 'warn' : 'bad', text: failingSince === undefined ? text : text + why });
  } else if (failingSince !== undefined) {
    faults.push({ level: 'warn', text: `notifications to ${name} fail${sinceText(secondsSince(failingSince, nowMs))}${why}` });
  }
  if (dropped > 0) faults.push({ level: 'warn', text: `${counted(dropped, 'notification', 'notifications')} to ${name} ${dropped === 1 ? 'was' : 'were'} dropped` });
  return faults;
}

/** One word over a receiver. What nothing was delivered to may not work. */
export function receiverState(receiver: Receiver, nowMs: number): Said {
  const level = worst(receiverFaults(receiver, nowMs).map((fault) => fault.level));
  if (level === 'good') return timeOf(receiver.lastSuccess) === undefined ? { level: 'unknown', text: 'untried' } : { level, text: 'delivers' };
  if (level === 'unknown') return { level, text: 'unknown' };
  return { level, text: receiver.failingSince !== undefined ? 'fails' : receiver.undelivered > 0 ? 'waits' : 'dropped' };
}

/**
 * What is added to a headline about alerts; nothing if all was delivered, or if there are no
 * receivers.
 *
 * @param receivers nothing if they are not known
 */
export function deliveryOf(receivers: readonly Receiver[] | undefined, nowMs: number): Said | undefined {
  if (receivers === undefined) return { level: 'unknown', text: 'whether notifications are delivered is unknown' };
  const faults = receivers.flatMap((receiver) => receiverFaults(receiver, nowMs));
  if (faults.length === 0) return undefined;
  const sorted = LEVELS.flatMap((level) => faults.filter((fault) => fault.level === level));
  const more = sorted.length - PARTS_MAX;
  const parts = sorted.slice(0, PARTS_MAX).map(({ text }) => text);
  if (more > 0) parts.push(`${counted(more, 'more fault', 'more faults')} of receivers`);
  return { level: sorted[0]!.level, text: parts.join('; ') };
}

/** A headline with what is to be added to it. */
export function withDelivery(said: Said, delivery: Said | undefined): Said {
  if (delivery === undefined) return said;
  return { level: worst([said.level, delivery.level]), text: `${said.text.replace(/\.$/, '')}; ${delivery.text}.` };
}

/**
 * One sentence over all receivers.
 *
 * @param receivers nothing if they are not known
 */
export function receiversVerdict(receivers: readonly Receiver[] | undefined, nowMs: number): Said {
  if (receivers?.length === 0) return { level: 'unknown', text: 'This node has no receivers: alerts are told to no one.' };
  const delivery = deliveryOf(receivers, nowMs);
  if (delivery !== undefined) return { level: delivery.level, text: `${delivery.text[0]!.toUpperCase()}${delivery.text.slice(1)}.` };
  const untried = receivers!.filter((receiver) => timeOf(receiver.lastSuccess) === undefined).length;
  if (untried > 0) return { level: 'unknown', text: `Nothing waits; whether ${counted(untried, 'receiver takes', 'receivers take')} notifications is not known yet.` };
  return { level: 'good', text: `No notification waits; ${counted(receivers!.length, 'receiver takes', 'receivers take')} them.` };
}

function worst(levels: readonly Level[]): Level {
  return LEVELS.find((level) => levels.includes(level)) ?? 'good';
}

function secondsSince(text: string | undefined, nowMs: number): number | undefined {
  const ms = timeOf(text);
  return ms === undefined ? undefined : Math.max(0, (nowMs - ms) / 1000);
}

function sinceText(seconds: number | undefined): string {
  return seconds === undefined ? '' : ` since ${formatDuration(seconds)}`;
}

function errorText(text: string | undefined): string {
  const short = (text ?? '').trim().replace(/\.$/, '');
  return short === '' ? '' : `: ${short.length > ERROR_MAX ? `${short.slice(0, ERROR_MAX)}…` : short}`;
}
