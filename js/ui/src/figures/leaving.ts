/** Whether data have left the node: forwarding to receivers, and shipping of blocks. */

import type { Labels } from '../source/answers';
import type { Metrics } from '../source/exposition';
import { changeOf, type Snapshot } from './snapshots';

/** A receiver of remote write. */
export interface Destination {
  name: string;
  url: string;
  /** What the newest delivered sample lies behind the newest stored one, in seconds. */
  lagSeconds: number;
  bytesLeft: number;
  pending: number;
  backlog: number;
  sent: number;
  failed: number;
  retried: number;
  /** Samples that were not sent, by reason, without those that rules drop. */
  dropped: { reason: string; count: number }[];
  shards: number;
  shardsMax: number;
  /**
   * Seconds until it has caught up; Infinity if the lag does not shrink, nothing if it cannot be
   * told.
   */
  catchesUpSeconds: number | undefined;
  /** Since when it takes nothing of what is sent, 0 if it does; nothing if that is not known. */
  failingSinceMs: number | undefined;
}

/** A lag up to this is that of requests on their way, in seconds. */
export const LAG_SECONDS_OK = 60;

/**
 * `all`: it has everything. `near`: the newest samples are on their way. `failing`: it takes
 * nothing of what is sent. `silent`: nothing since the start. `unknown`: nothing was sent yet, or
 * the node does not tell.
 */
export type DestinationState = 'all' | 'near' | 'behind' | 'failing' | 'silent' | 'unknown';

/** Whether a receiver has what it should. */
export function stateOf({ lagSeconds, pending, sent, retried, failingSinceMs }: Destination): DestinationState {
  if (lagSeconds > LAG_SECONDS_OK) return 'behind';
  if (sent === 0 && retried > 0) return 'silent';
  if (failingSinceMs === undefined) return 'unknown';
  if (failingSinceMs > 0) return 'failing';
  if (lagSeconds < 1 && (sent > 0 || pending === 0)) return 'all';
  return lagSeconds >= 0 && sent > 0 ? 'near' : 'unknown';
}

/** A reason that a person wants. */
const WANTED = 'dropped_series';

/** All receivers of the newest snapshot. */
export function destinations(snapshots: readonly Snapshot[]): Destination[] {
  const metrics = snapshots.at(-1)?.metrics;
  if (metrics === undefined) return [];
  return metrics.all('tidepool_remote_storage_lag_seconds').map(({ labels, value: lagSeconds }) => {
    const value = (name: string): number => metrics.value(`prometheus_remote_storage_${name}`, labels) ?? 0;
    const ours = (name: string): number => metrics.value(`tidepool_remote_storage_${name}`, labels) ?? 0;
    const since = metrics.value('tidepool_remote_storage_failing_since_timestamp_seconds', labels);
    return {
      name: labels['remote_name'] ?? '',
      url: labels['url'] ?? '',
      lagSeconds,
      bytesLeft: ours('bytes_left'),
      pending: value('samples_pending'),
      backlog: ours('backlog_samples'),
      sent: value('samples_total') + value('histograms_total'),
      failed: value('samples_failed_total') + value('histograms_failed_total'),
      retried: value('samples_retried_total') + value('histograms_retried_total'),
      dropped: droppedOf(metrics, labels),
      shards: value('shards'),
      shardsMax: value('shards_max'),
      catchesUpSeconds: catchesUp(snapshots, labels, lagSeconds),
      failingSinceMs: since === undefined ? undefined : since * 1000,
    };
  });
}

function droppedOf(metrics: Metrics, { remote_name: name }: Labels): { reason: string; count: number }[] {
  const all = metrics.all('prometheus_remote_storage_samples_dropped_total');
  const of = all.filter(({ labels, value }) => labels['remote_name'] === name && labels['reason'] !== WANTED && value > 0);
  return of.map(({ labels, value }) => ({ reason: labels['reason'] ?? '', count: value }));
}

function catchesUp(snapshots: readonly Snapshot[], labels: Labels, lagSeconds: number): number | undefined {
  if (lagSeconds <= LAG_SECONDS_OK) return 0;
  const perSecond = changeOf(snapshots, (metrics) => metrics.value('tidepool_remote_storage_lag_seconds', labels));
  if (perSecond === undefined) return undefined;
  // Less than a hundredth of a second in a second is standing still.
  return perSecond < -0.01 ? lagSeconds / -perSecond : Infinity;
}

/** Shipping of blocks; nothing if it is off. */
export interface Shipping {
  waiting: number;
  /** The time that they span, in seconds. */
  lagSeconds: number;
  /** Seconds until all are uploaded; nothing if it cannot be told. */
  catchesUpSeconds: number | undefined;
  uploads: number;
  failures: number;
  conflicts: number;
  uploadedBytes: number;
  /** Milliseconds since the epoch; nothing if there was none since the start. */
  lastUploadMs: number | undefined;
  /** Blocks that retention dropped before they were copied. */
  droppedUnshipped: number;
}

/** The figures of shipping, as the newest snapshot has them. */
export function shipping(snapshots: readonly Snapshot[]): Shipping | undefined {
  const metrics = snapshots.at(-1)?.metrics;
  const waiting = metrics?.value('tidepool_ship_blocks_waiting');
  if (metrics === undefined || waiting === undefined || Number.isNaN(waiting)) return undefined;
  const perSecond = changeOf(snapshots, (metrics) => metrics.value('tidepool_ship_uploads_total'));
  const count = (name: string): number => metrics.value(name) ?? 0;
  const last = count('tidepool_ship_last_upload_timestamp_seconds');
  return {
    waiting,
    lagSeconds: count('tidepool_ship_lag_seconds'),
    catchesUpSeconds: perSecond === undefined || perSecond <= 0 ? undefined : waiting / perSecond,
    uploads: count('tidepool_ship_uploads_total'),
    failures: count('tidepool_ship_upload_failures_total'),
    conflicts: count('tidepool_ship_conflicts_total'),
    uploadedBytes: count('tidepool_ship_uploaded_bytes_total'),
    lastUploadMs: last === 0 ? undefined : last * 1000,
    droppedUnshipped: count('tidepool_blocks_dropped_unshipped_total'),
  };
}
