/** Times for people, in the browser's zone or in UTC. Times are milliseconds since the epoch. */

import { formatDuration } from './number';

/** Which clock times are shown by. */
export type Zone = 'local' | 'utc';

/** A time as `2026-01-31 13:05:09`. */
export function formatTime(ms: number, zone: Zone): string {
  const date = dateOf(ms);
  if (date === undefined) return '–';
  const [year, ...parts] = fieldsOf(date, zone);
  const [month, day, hour, minute, second] = parts.map((part) => part!.toString().padStart(2, '0'));
  return `${year!.toString().padStart(4, '0')}-${month}-${day} ${hour}:${minute}:${second}`;
}

/** Reads what {@link formatTime} writes, also without seconds or without a time of day. */
export function parseTime(text: string, zone: Zone): number | undefined {
  const parts = /^\s*(\d{4})-(\d\d?)-(\d\d?)(?:[ T](\d\d?):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?\s*(Z)?\s*$/.exec(text);
  if (parts === null) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map((part) => Number(part ?? 0));
  const fields = [year!, month! - 1, day!, hour!, minute!, second!] as const;
  const isUtc = zone === 'utc' || parts[7] !== undefined;
  const ms = isUtc ? Date.UTC(...fields) : new Date(...fields).getTime();
  // A month or hour that does not exist would have been carried over.
  const [readYear, readMonth, readDay] = fieldsOf(new Date(ms), isUtc ? 'utc' : 'local');
  return readYear === year && readMonth === month && readDay === day && hour! < 24 && minute! < 60 ? ms : undefined;
}

/** How long ago a time was, such as `4 min ago` or `in 3 s`. */
export function formatAgo(ms: number, nowMs: number): string {
  const seconds = (nowMs - ms) / 1000;
  if (Math.abs(seconds) < 1) return 'now';
  return seconds > 0 ? `${formatDuration(seconds)} ago` : `in ${formatDuration(-seconds)}`;
}

/** The name of the zone that times are shown in. */
export function zoneName(zone: Zone): string {
  if (zone === 'utc') return 'UTC';
  return Intl.DateTimeFormat().resolvedOptions().timeZone ?? 'local time';
}

function dateOf(ms: number): Date | undefined {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

function fieldsOf(date: Date, zone: Zone): number[] {
  return zone === 'utc'
    ? [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()]
    : [date.getFullYear(), date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes(), date.getSeconds()];
}
