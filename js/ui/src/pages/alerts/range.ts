/** The range of a view in its address. */

import { formatTime, parseTime } from '../../format/time';
import { parseDuration, printDuration } from '../../promql/duration';
import type { TimeRange } from '../../widgets/range';

export const DAY_MS = 86_400_000;

/** @param usualMs how long the range is if the address has no other */
export function rangeOf(params: URLSearchParams, usualMs = DAY_MS): TimeRange {
  const endMs = parseTime(params.get('end') ?? '', 'utc');
  return { rangeMs: parseDuration(params.get('range') ?? '') ?? usualMs, ...(endMs === undefined ? {} : { endMs }) };
}

/** What an address has of a range; empty texts are left out. */
export function paramsOf({ rangeMs, endMs }: TimeRange, usualMs = DAY_MS): { range: string; end: string } {
  return { range: rangeMs === usualMs ? '' : printDuration(rangeMs), end: endMs === undefined ? '' : formatTime(endMs, 'utc') };
}

export function isSameRange(a: TimeRange, b: TimeRange): boolean {
  return a.rangeMs === b.rangeMs && a.endMs === b.endMs;
}
