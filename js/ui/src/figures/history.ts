/** What events of alerts say. */

import { formatDuration } from '../format/number';
import type { AlertEvent } from '../source/answers';
import { isHarmless, timeOf } from './alerts';
import type { Level } from './checks';

/** Why an alert ended, where that is not that its rule does not find it any more. */
const CAUSES: Record<string, string> = {
  evaluation: '',
  'rule-removed': 'its rule was removed',
  unseen: 'when it ended was not seen: the time is that of the first evaluation without it',
};

export function eventLevel({ change, labels }: AlertEvent): Level {
  if (change === 'resolved') return 'good';
  return change === 'firing' ? (isHarmless({ labels }) ? 'warn' : 'bad') : 'unknown';
}

/** What happened; of an alert that ended, after how long, as far as that is known. */
export function eventText({ change, time, firedAt }: AlertEvent): string {
  if (change !== 'resolved') return change;
  const [end, begin] = [timeOf(time), timeOf(firedAt)];
  return end === undefined || begin === undefined || begin > end ? change : `${change} after ${formatDuration((end - begin) / 1000)}`;
}

/** Why it happened; nothing for what is usual. */
export function causeText({ cause }: AlertEvent): string {
  return CAUSES[cause] ?? cause;
}
