/** Whether what was accepted is on the disk, and whether what is on the disk is whole. */

import type { Metrics } from '../source/exposition';
import { changeOf, type Snapshot } from './snapshots';

/** Figures of the log and of damage. */
export interface Durability {
  /** When the log was last synced, in milliseconds; only from a node that says so. */
  lastSyncMs: number | undefined;
  /** Syncs in a second, while the page is open. */
  syncsPerSecond: number | undefined;
  syncs: number | undefined;
  /** Seconds of a sync, in the mean. */
  syncSeconds: number | undefined;
  syncsFailed: number;
  writesFailed: number;
  /** Bytes that were accepted and wait in memory. */
  unwrittenBytes: number;
  walBytes: number | undefined;
  damagedPlaces: number;
  damagedBytes: number;
  blocksDamaged: number;
  quarantineBytes: number;
  quarantinedSegments: number;
  quarantinedLogs: number;
  crashes: number;
  failedStarts: number;
  /** Whether the log was not replayed for want of memory. */
  isReplaySkipped: boolean;
  /** The --memory-limit with which it can be, as far as known. */
  memoryLimitNeededBytes: number | undefined;
  compactionsFailed: number;
}

/** The figures of the newest snapshot. */
export function durability(snapshots: readonly Snapshot[]): Durability {
  const metrics = snapshots.at(-1)?.metrics;
  const value = (name: string): number | undefined => metrics?.value(name);
  const count = (name: string): number => value(name) ?? 0;
  const syncs = value('tidepool_wal_fsyncs_total');
  const lastSync = value('tidepool_wal_last_fsync_timestamp_seconds');
  return {
    lastSyncMs: lastSync === undefined || lastSync === 0 ? undefined : lastSync * 1000,
    syncsPerSecond: changeOf(snapshots, (metrics: Metrics) => metrics.value('tidepool_wal_fsyncs_total')),
    syncs,
    syncSeconds: syncs === undefined || syncs === 0 ? undefined : count('tidepool_wal_fsync_seconds_total') / syncs,
    syncsFailed: count('tidepool_wal_fsyncs_failed_total'),
    writesFailed: count('prometheus_tsdb_wal_writes_failed_total'),
    unwrittenBytes: count('tidepool_wal_unwritten_bytes'),
    walBytes: value('prometheus_tsdb_wal_storage_size_bytes'),
    damagedPlaces: count('prometheus_tsdb_wal_corruptions_total'),
    damagedBytes: count('tidepool_wal_damaged_bytes_total'),
    blocksDamaged: count('tidepool_blocks_damaged_total'),
    quarantineBytes: count('tidepool_quarantine_bytes'),
    quarantinedSegments: count('tidepool_wal_quarantined_total'),
    quarantinedLogs: count('tidepool_logs_quarantined_total'),
    crashes: metrics?.sum('tidepool_instance_crashes_total') ?? 0,
    failedStarts: count('tidepool_failed_starts_total'),
    isReplaySkipped: value('tidepool_wal_replay_skipped') === 1,
    memoryLimitNeededBytes: value('tidepool_memory_limit_needed_bytes') || undefined,
    compactionsFailed: count('prometheus_tsdb_compactions_failed_total'),
  };
}

/** How long the log has been written without a sync, in seconds, as far as it was seen. */
export function unsyncedSeconds(snapshots: readonly Snapshot[]): number {
  const newest = snapshots.at(-1);
  const value = (it: Snapshot | undefined, name: string): number => it?.metrics.value(name) ?? 0;
  const isSame = (it: Snapshot): boolean => value(it, 'tidepool_wal_fsyncs_total') === value(newest, 'tidepool_wal_fsyncs_total');
  const first = snapshots.find(isSame);
  // What was written last may be synced a moment later.
  const written = snapshots.findIndex((it) => isSame(it) && value(it, 'tidepool_wal_written_bytes_total') > value(first, 'tidepool_wal_written_bytes_total'));
  return written === -1 ? 0 : (newest!.atMs - snapshots[written]!.atMs) / 1000;
}
