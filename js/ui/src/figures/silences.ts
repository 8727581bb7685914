/** What silences say: which there are, and which alerts they keep quiet. */

import { testOf } from '../promql/matchers';
import type { Labels, Silence } from '../source/answers';
import { timeOf } from './alerts';

/** States of silences in the order in which they are shown; `unknown` is any other. */
export const SILENCE_STATES = ['active', 'pending', 'unknown', 'expired'] as const;
export type SilenceState = (typeof SILENCE_STATES)[number];

/** The state that a silence is shown with. */
export function silenceState({ status }: Silence): SilenceState {
  return SILENCE_STATES.find((state) => state === status?.state) ?? 'unknown';
}

/** Silences by state: what ends or begins first stands first, and what ended last. */
export function silencesByState(silences: readonly Silence[]): Record<SilenceState, Silence[]> {
  const of = (state: SilenceState, time: (silence: Silence) => string, sign = 1): Silence[] => {
    const order = (silence: Silence): number => sign * (timeOf(time(silence)) ?? 0);
    return silences.filter((silence) => silenceState(silence) === state).sort((a, b) => order(a) - order(b));
  };
  return {
    active: of('active', ({ endsAt }) => endsAt),
    pending: of('pending', ({ startsAt }) => startsAt),
    unknown: of('unknown', ({ endsAt }) => endsAt),
    expired: of('expired', ({ endsAt }) => endsAt, -1),
  };
}

/** The silence that keeps an alert quiet; `unknown` if a silence may do so. */
export type SilencedBy = Silence | 'unknown' | undefined;

/** Tells by its labels which active silence an alert has: of several the one that ends last. */
export type Silencer = (labels: Labels) => SilencedBy;

export function silencerOf(silences: readonly Silence[]): Silencer {
  const active = silencesByState(silences).active.map((silence) => ({ silence, tests: silence.matchers.map(testOf) })).reverse();
  return (labels) => {
    let isUnknown = false;
    for (const { silence, tests } of active) {
      const all = tests.map((test) => test(labels));
      if (all.includes(false)) continue;
      if (all.length > 0 && !all.includes(undefined)) return silence;
      isUnknown = true;
    }
    return isUnknown ? 'unknown' : undefined;
  };
}
