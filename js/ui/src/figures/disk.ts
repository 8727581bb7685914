/** The disk: what is used of what may be used, and when it will be full. */

import type { Labels } from '../source/answers';
import type { Metrics } from '../source/exposition';
import { parseDuration } from '../promql/duration';

/** Figures of the disk; bytes, and bytes a day. */
export interface DiskFigures {
  /** Bytes of the data directory. */
  usedBytes: number | undefined;
  /** What the data directory may take: by --retention-size, or until writes are paused. */
  allowedBytes: number | undefined;
  /** What sets the bound. */
  boundBy: 'size' | 'disk' | undefined;
  sizeBytes: number | undefined;
  freeBytes: number | undefined;
  reserveBytes: number | undefined;
  isPaused: boolean;
  /** What a day of data takes, over all blocks; nothing while there are too few. */
  keptBytesPerDay: number | undefined;
  /** Days for which data are kept; nothing is without an end. */
  retentionDays: number | undefined;
  /** Days until the bound is reached; Infinity if retention keeps the data below it. */
  daysUntilFull: number | undefined;
}

const DAY_S = 86_400;
/** Blocks over less time tell too little of a day. */
const SPAN_S_MIN = 2 * 3600;

/** @param flags of `status/flags`; nothing is known of retention without them */
export function diskFigures(metrics: Metrics, flags: Labels | undefined): DiskFigures {
  // What is not a number is not known.
  const value = (name: string): number | undefined => ((metrics.value(name) ?? NaN) >= 0 ? metrics.value(name) : undefined);
  const usedBytes = value('tidepool_data_directory_bytes');
  const sizeBytes = value('tidepool_disk_size_bytes');
  const freeBytes = value('tidepool_disk_free_bytes');
  const reserveBytes = value('tidepool_disk_reserve_bytes');
  const byDisk = usedBytes === undefined || freeBytes === undefined ? undefined : usedBytes + Math.max(0, freeBytes - (reserveBytes ?? 0));
  const bySize = parseShare(flags?.['retention-size'] ?? '', sizeBytes);
  const isBySize = bySize !== undefined && (byDisk === undefined || bySize < byDisk);
  const allowedBytes = isBySize ? bySize : byDisk;
  const keptBytesPerDay = perDay(metrics);
  const retentionDays = daysOf(flags?.['retention-time']);
  return {
    usedBytes,
    allowedBytes,
    boundBy: allowedBytes === undefined ? undefined : isBySize ? 'size' : 'disk',
    sizeBytes,
    freeBytes,
    reserveBytes,
    isPaused: metrics.value('tidepool_writes_paused') === 1,
    keptBytesPerDay,
    retentionDays,
    daysUntilFull: untilFull(usedBytes, allowedBytes, keptBytesPerDay, retentionDays),
  };
}

function perDay(metrics: Metrics): number | undefined {
  const bytes = metrics.value('prometheus_tsdb_storage_blocks_bytes');
  const oldest = metrics.value('prometheus_tsdb_lowest_timestamp_seconds');
  const head = metrics.value('prometheus_tsdb_head_min_time_seconds');
  if (bytes === undefined || oldest === undefined || head === undefined) return undefined;
  const seconds = head - oldest;
  return bytes === 0 || seconds < SPAN_S_MIN ? undefined : (bytes / seconds) * DAY_S;
}

function untilFull(used: number | undefined, allowed: number | undefined, daily: number | undefined, retentionDays: number | undefined): number | undefined {
  if (used === undefined || allowed === undefined || daily === undefined || daily <= 0) return undefined;
  if (retentionDays !== undefined && daily * retentionDays <= allowed) return Infinity;
  return Math.max(0, allowed - used) / daily;
}

const SIZES: Record<string, number> = { B: 1, KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30, TB: 2 ** 40, KIB: 2 ** 10, MIB: 2 ** 20, GIB: 2 ** 30, TIB: 2 ** 40 };

/** Bytes of a flag such as `512MiB` or `80%`; nothing for 0, which is no bound. */
export function parseShare(text: string, wholeBytes: number | undefined): number | undefined {
  const parts = /^\s*(\d+(?:\.\d+)?)\s*(%|[KMGT]?i?B)?\s*$/i.exec(text);
  if (parts === null) return undefined;
  const number = Number(parts[1]);
  const unit = (parts[2] ?? 'B').toUpperCase();
  if (unit === '%') return wholeBytes === undefined || number === 0 ? undefined : (wholeBytes * number) / 100;
  return number * SIZES[unit]! || undefined;
}

function daysOf(text: string | undefined): number | undefined {
  const ms = text === undefined ? undefined : parseDuration(text);
  return ms === undefined ? undefined : ms / 1000 / DAY_S;
}
