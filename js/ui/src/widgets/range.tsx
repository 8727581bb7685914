/** A range of time: how long it is, and its end. */

import { useApp } from '../app/context';
import { formatTime, parseTime } from '../format/time';
import { parseDuration, printDuration } from '../promql/duration';
import { Field } from './field';

export interface TimeRange {
  rangeMs: number;
  /** Nothing is now, or the end of the data. */
  endMs?: number;
}

interface Props {
  range: TimeRange;
  onChange: (range: TimeRange) => void;
}

/** How long it is. */
export function RangeControl({ range, onChange }: Props) {
  const set = (rangeMs: number): void => onChange({ ...range, rangeMs });
  return (
    <span class="group" role="group" aria-label="Range">
      <button type="button" aria-label="Shorter range" onClick={() => set(nextRange(range.rangeMs, -1))}>
        −
      </button>
      <Field
        label="Range, as 1h30m"
        value={printDuration(range.rangeMs)}
        width="w-short"
        onText={(text) => {
          const rangeMs = parseDuration(text);
          if (rangeMs !== undefined) set(rangeMs);
          return rangeMs !== undefined;
        }}
      />
      <button type="button" aria-label="Longer range" onClick={() => set(nextRange(range.rangeMs, 1))}>
        +
      </button>
    </span>
  );
}

/** Its end, or a time. */
export function EndControl({ range, onChange, label }: Props & { label: string }) {
  const { zone, source } = useApp();
  const { rangeMs, endMs } = range;
  const at = endMs ?? source.endMs ?? Date.now();
  const set = (endMs: number | undefined): void => onChange(endMs === undefined ? { rangeMs } : { rangeMs, endMs });
  const move = (by: number) => set(Math.round((at + by * Math.max(rangeMs / 2, 1000)) / 1000) * 1000);
  return (
    <span class="group" role="group" aria-label={label}>
      <button type="button" aria-label={`${label}: earlier`} onClick={() => move(-1)}>
        ‹
      </button>
      <Field
        label={`${label}, as 2026-01-31 13:05:09 in ${zone === 'utc' ? 'UTC' : 'local time'}`}
        value={endMs === undefined ? '' : formatTime(endMs, zone)}
        width="w-time"
        placeholder={source.endMs === undefined ? 'now' : 'end of the data'}
        onText={(text) => {
          const endMs = text.trim() === '' ? undefined : parseTime(text, zone);
          if (endMs === undefined && text.trim() !== '') return false;
          set(endMs);
          return true;
        }}
      />
      <button type="button" aria-label={`${label}: later`} onClick={() => move(1)}>
        ›
      </button>
      {endMs !== undefined && (
        <button type="button" onClick={() => set(undefined)}>
          Now
        </button>
      )}
    </span>
  );
}

const RANGES_MS = ['1m', '5m', '15m', '30m', '1h', '2h', '6h', '12h', '1d', '2d', '7d', '14d', '28d', '56d', '182d', '365d'].map((text) => parseDuration(text)!);

/** The next longer (1) or shorter (-1) usual range. */
export function nextRange(rangeMs: number, by: 1 | -1): number {
  if (by > 0) return RANGES_MS.find((range) => range > rangeMs) ?? rangeMs;
  return RANGES_MS.findLast((range) => range < rangeMs) ?? rangeMs;
}
