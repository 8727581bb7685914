/** The texts beside the axes of a graph. */

import { formatNumber, type Unit } from '../format/number';
import { formatTime, type Zone } from '../format/time';

/** Digits from which on more tell nothing. */
const DIGITS_MAX = 12;

/** Texts of values in as few digits as tell them apart. */
export function valueTexts(values: readonly (number | null)[], unit: Unit): string[] {
  const numbers = values.filter((value) => value !== null);
  for (let digits = 3; ; digits += 1) {
    const texts = numbers.map((value) => formatNumber(value, unit, digits));
    if (digits >= DIGITS_MAX || new Set(texts).size === texts.length) {
      const shown = texts.values();
      return values.map((value) => (value === null ? '' : shown.next().value!));
    }
  }
}

/** Texts of times in seconds that lie so far apart; the date stands where it changes. */
export function timeTexts(times: readonly number[], incrSeconds: number, zone: Zone): string[] {
  let shown = '';
  return times.map((time) => {
    const [date, clock] = formatTime(time * 1000, zone).split(' ') as [string, string];
    const short = incrSeconds >= 60 ? clock.slice(0, 5) : clock;
    const day = date.slice(5);
    if (incrSeconds >= 86_400) return incrSeconds >= 86_400 * 300 ? date : day;
    const isNew = day !== shown;
    const isFirst = shown === '';
    shown = day;
    return isNew && !isFirst ? `${short}\n${day}` : short;
  });
}

/** Distances of ticks of bytes: powers of two. */
export const BINARY_STEPS: number[] = Array.from({ length: 70 }, (_, power) => 2 ** (power - 10));
