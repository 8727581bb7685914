/** The figures of the node. */

import { useNow } from '../../app/clock';
import { hashOf } from '../../app/route';
import type { DiskFigures } from '../../figures/disk';
import type { Durability } from '../../figures/durability';
import { LAG_SECONDS_OK, stateOf, type Destination, type DestinationState, type Shipping } from '../../figures/leaving';
import type { Limits } from '../../figures/limits';
import { changeOf, type Snapshot } from '../../figures/snapshots';
import { formatCount, formatDuration, formatNumber } from '../../format/number';
import { formatAgo } from '../../format/time';
import type { Labels } from '../../source/answers';
import type { Metrics } from '../../source/exposition';
import { Facts } from '../../widgets/facts';
import { Meter } from '../../widgets/meter';

/** What a power cut may lose, by --wal-sync (`host/docs/durability.md`). */
const MAY_LOSE: Record<string, string> = {
  always: 'nothing that was acknowledged',
  interval: 'what came since the last sync',
  batch: 'the last batch',
  off: 'what the system has not written',
};

export function DurabilityCard({ figures, flags, clock }: { figures: Durability; flags: Labels | undefined; clock: string }) {
  const now = useNow(1000);
  const { lastSyncMs, syncsPerSecond, syncs, unwrittenBytes } = figures;
  const sync = flags?.['wal-sync'];
  const last =
    lastSyncMs !== undefined
      ? formatAgo(lastSyncMs, Math.max(now, lastSyncMs))
      : syncsPerSecond === undefined
        ? `${formatCount(syncs)} since the start`
        : syncsPerSecond > 0
          ? `one each ${formatDuration(1 / syncsPerSecond)} now`
          : 'none since this page was opened';
  return (
    <section class="card" aria-label="Safety">
      <h2>On the disk</h2>
      <Facts
        rows={[
          [lastSyncMs === undefined ? 'Syncs of the log' : 'Last sync of the log', last],
          ['A sync takes', figures.syncSeconds === undefined ? undefined : formatNumber(figures.syncSeconds, 'seconds', 2)],
          ['A power cut may lose', sync === undefined ? undefined : MAY_LOSE[sync]],
          ['In memory only', unwrittenBytes > 0 ? formatNumber(unwrittenBytes, 'bytes') : undefined],
          ['Damage', damage(figures)],
          ['Clock', clock],
        ]}
      />
    </section>
  );
}

function damage({ damagedPlaces, blocksDamaged, quarantineBytes }: Durability) {
  if (damagedPlaces === 0 && blocksDamaged === 0 && quarantineBytes === 0) return <span class="good-text">none found</span>;
  return (
    <a href={hashOf(['explore', 'storage'])}>
      {formatCount(damagedPlaces)} places, {formatCount(blocksDamaged)} blocks, {formatNumber(quarantineBytes, 'bytes')} in quarantine
    </a>
  );
}

export function DiskCard({ figures, metrics, writtenPerDay }: { figures: DiskFigures; metrics: Metrics; writtenPerDay: number | undefined }) {
  const now = useNow(60_000);
  const { usedBytes, allowedBytes, boundBy, keptBytesPerDay, daysUntilFull, retentionDays } = figures;
  const written = metrics.sum('tidepool_disk_written_bytes_total');
  const started = metrics.value('process_start_time_seconds');
  const days = started === undefined ? undefined : (now / 1000 - started) / 86_400;
  // Minutes tell too little of a day.
  const sinceStart = written === undefined || days === undefined || days < 0.01 ? undefined : written / days;
  return (
    <section class="card" aria-label="Disk">
      <h2>Disk</h2>
      <Meter label="Data" use={{ used: usedBytes, limit: allowedBytes }} unit="bytes" by={boundBy === 'size' ? '--retention-size' : 'free space of the file system, less its reserve'} />
      <Facts
        rows={[
          ['Full', full(daysUntilFull, boundBy, retentionDays)],
          ['A day of data takes', keptBytesPerDay === undefined ? undefined : formatNumber(keptBytesPerDay, 'bytes')],
          [
            'Written a day',
            writtenPerDay !== undefined
              ? formatNumber(writtenPerDay, 'bytes')
              : sinceStart === undefined
                ? undefined
                : <span title="At the rate since the start">about {formatNumber(sinceStart, 'bytes')}</span>,
          ],
          ['Free space', formatNumber(figures.freeBytes, 'bytes')],
        ]}
      />
    </section>
  );
}

function full(days: number | undefined, boundBy: DiskFigures['boundBy'], retentionDays: number | undefined) {
  if (days === undefined) return 'known after a few hours';
  if (days === Infinity) return `never: after ${formatDuration((retentionDays ?? 0) * 86_400)} retention drops the oldest`;
  const then = boundBy === 'size' ? 'then the oldest blocks are dropped' : 'then writes are refused';
  return days < 1 / 24 ? `now: ${then}` : `in ${formatDuration(days * 86_400)}; ${then}`;
}

const DOTS: Record<DestinationState, string> = { all: 'good', near: 'good', behind: 'warn', failing: 'warn', silent: 'warn', unknown: 'unknown' };

export function LeavingCard({ destinations, shipping }: { destinations: readonly Destination[]; shipping: Shipping | undefined }) {
  const now = useNow(15_000);
  return (
    <section class="card" aria-label="Forwarding and shipping">
      <h2>
        Off the node <a href={hashOf(['explore', 'forwarding'])}>Details</a>
      </h2>
      {destinations.length === 0 && shipping === undefined && (
        <p class="muted">Nothing leaves this node. --remote-write-url forwards samples, --ship copies blocks to object storage.</p>
      )}
      <ul class="plain">
        {destinations.map((it) => (
          <li key={it.name}>
            <i class={`dot ${it.catchesUpSeconds === Infinity ? 'bad' : DOTS[stateOf(it)]}`} aria-hidden="true" />
            <b>{it.name}</b> {lagText(it)}
            {it.bytesLeft > 0 && it.lagSeconds > LAG_SECONDS_OK && <span class="muted"> · {formatNumber(it.bytesLeft, 'bytes')} left</span>}
          </li>
        ))}
        {shipping !== undefined && (
          <li>
            <i class={`dot ${shipping.waiting === 0 ? 'good' : shipping.failures > 0 ? 'warn' : 'unknown'}`} aria-hidden="true" />
            <b>Object storage</b>{' '}
            {shippingText(shipping)}
            <span class="muted"> · {shipping.lastUploadMs === undefined ? 'no upload since the start' : `last upload ${formatAgo(shipping.lastUploadMs, Math.max(now, shipping.lastUploadMs))}`}</span>
          </li>
        )}
      </ul>
    </section>
  );
}

/** How far object storage is behind, and when it has caught up. */
export function shippingText({ waiting, lagSeconds, catchesUpSeconds }: Shipping): string {
  if (waiting === 0) return 'has all blocks';
  const behind = `waits for ${formatCount(waiting)} ${waiting === 1 ? 'block' : 'blocks'} of ${formatDuration(lagSeconds)}`;
  return catchesUpSeconds === undefined ? behind : `${behind}, has caught up in ${formatDuration(catchesUpSeconds)}`;
}

/** How far a destination is behind, and when it has caught up. */
export function lagText(destination: Destination): string {
  const { lagSeconds, catchesUpSeconds } = destination;
  const state = stateOf(destination);
  const behind = `is ${formatDuration(lagSeconds)} behind`;
  if (state === 'all') return 'has all samples';
  if (state === 'silent') return 'has taken nothing since the start';
  if (state === 'failing') return `takes nothing now, and ${behind}`;
  if (state === 'unknown') return `${behind}; whether it takes what is sent is not known yet`;
  if (state === 'near') return behind;
  if (catchesUpSeconds === undefined) return behind;
  return catchesUpSeconds === Infinity ? `${behind} and does not catch up` : `${behind}, has caught up in ${formatDuration(catchesUpSeconds)}`;
}

export function LimitsCard({ limits, metrics }: { limits: Limits; metrics: Metrics }) {
  const created = metrics.value('prometheus_tsdb_head_series_created_total');
  return (
    <section class="card" aria-label="Series and memory">
      <h2>
        Series and memory <a href={hashOf(['explore', 'cardinality'])}>Details</a>
      </h2>
      <Meter label="Series" use={limits.series} unit="none" by="--max-series" />
      <Meter label="Head" use={limits.head} unit="bytes" by="the head’s part of --memory-limit" />
      <Meter label="Process" use={limits.memory} unit="bytes" by="--memory-limit" />
      <Facts rows={[['Series created', created === undefined ? undefined : `${formatCount(created)} since the start`]]} />
    </section>
  );
}

export function IntakeCard({ snapshots }: { snapshots: readonly Snapshot[] }) {
  const { metrics } = snapshots.at(-1)!;
  const total = (metrics: Metrics): number | undefined => metrics.sum('prometheus_tsdb_head_samples_appended_total');
  const rate = changeOf(snapshots, total);
  const refused = metrics.all('tidepool_head_samples_refused_total').filter((sample) => sample.value > 0);
  const targets = metrics.sum('prometheus_target_scrape_pool_targets');
  return (
    <section class="card" aria-label="Intake">
      <h2>
        Intake {targets !== undefined && <a href={hashOf(['explore', 'targets'])}>Targets</a>}
      </h2>
      <Facts
        rows={[
          ['Samples', rate === undefined ? `${formatCount(total(metrics))} since the start` : `${formatNumber(rate)} a second`],
          ['Targets', targets === undefined ? undefined : formatCount(targets)],
          ['Out of order', formatCount(metrics.sum('prometheus_tsdb_head_out_of_order_samples_appended_total') ?? 0)],
          ['Refused', refused.length === 0 ? 'none' : refused.map(({ labels, value }) => `${formatCount(value)} ${labels['reason']}`).join(', ')],
        ]}
      />
    </section>
  );
}
