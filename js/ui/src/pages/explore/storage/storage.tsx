/** The files: blocks, log, quarantine. */

import { useApp } from '../../../app/context';
import { useSnapshots } from '../../../app/metrics';
import { durability } from '../../../figures/durability';
import type { Snapshot } from '../../../figures/snapshots';
import { formatCount, formatNumber } from '../../../format/number';
import { formatTime } from '../../../format/time';
import type { Metrics } from '../../../source/exposition';
import { Facts } from '../../../widgets/facts';
import { Await } from '../../../widgets/state';
import { Blocks } from './blocks';

export function Storage() {
  const { source } = useApp();
  return (
    <>
      {source.metrics !== undefined && <Node />}
      <Blocks />
    </>
  );
}

function Node() {
  const snapshots = useSnapshots();
  return <Await of={snapshots}>{(snapshots) => <Cards snapshots={snapshots} />}</Await>;
}

function Cards({ snapshots }: { snapshots: readonly Snapshot[] }) {
  const { metrics } = snapshots.at(-1)!;
  const log = durability(snapshots);
  const written = metrics.all('tidepool_disk_written_bytes_total');
  return (
    <div class="cards">
      <section class="card" aria-label="Log">
        <h2>Log</h2>
        <Facts
          rows={[
            ['Size', formatNumber(log.walBytes, 'bytes')],
            ['Segment', formatCount(metrics.value('prometheus_tsdb_wal_segment_current'))],
            ['Records written', formatCount(metrics.value('tidepool_wal_records_written_total'))],
            ['Syncs', formatCount(log.syncs)],
            ['A sync takes', formatNumber(log.syncSeconds, 'seconds', 2)],
            ['Failed syncs', formatCount(log.syncsFailed)],
            ['Failed writes', formatCount(log.writesFailed)],
            ['Checkpoints', formatCount(metrics.value('tidepool_wal_checkpoints_total'))],
            ['Last replay took', formatNumber(metrics.value('prometheus_tsdb_data_replay_duration_seconds'), 'seconds', 2)],
          ]}
        />
      </section>
      <section class="card" aria-label="Damage and quarantine">
        <h2>Damage and quarantine</h2>
        <Facts
          rows={[
            ['Damaged places in logs', formatCount(log.damagedPlaces)],
            ['Bytes in them', formatNumber(log.damagedBytes, 'bytes')],
            ['Skipped at the last start', formatNumber(metrics.value('tidepool_wal_replay_damaged_bytes'), 'bytes')],
            ['Unfinished write removed', formatNumber(metrics.value('tidepool_wal_replay_torn_bytes'), 'bytes')],
            ['Damaged blocks', formatCount(log.blocksDamaged)],
            ['Segments in quarantine', formatCount(log.quarantinedSegments)],
            ['Logs in quarantine', formatCount(log.quarantinedLogs)],
            ['Size of the quarantine', formatNumber(log.quarantineBytes, 'bytes')],
          ]}
        />
      </section>
      <section class="card" aria-label="Blocks in all">
        <h2>Blocks in all</h2>
        <Facts
          rows={[
            ['Blocks', formatCount(metrics.value('prometheus_tsdb_blocks_loaded'))],
            ['Size', formatNumber(metrics.value('prometheus_tsdb_storage_blocks_bytes'), 'bytes')],
            ['Oldest sample', <Oldest metrics={metrics} />],
            ['Cut from the head', formatCount(metrics.value('tidepool_blocks_cut_total'))],
            ['Made by merges', formatCount(metrics.value('tidepool_blocks_merged_total'))],
            ['Dropped by retention', formatCount(metrics.value('tidepool_blocks_dropped_total'))],
            ['Failed compactions', formatCount(log.compactionsFailed)],
          ]}
        />
      </section>
      <section class="card" aria-label="Written since the start">
        <h2>Written since the start</h2>
        <Facts rows={written.map(({ labels, value }) => [labels['for'] ?? '', formatNumber(value, 'bytes')] as const)} />
      </section>
    </div>
  );
}

/** Years from which on a time stands for none. */
const FAR_SECONDS = 1e11;

function Oldest({ metrics }: { metrics: Metrics }) {
  const { zone } = useApp();
  const oldest = metrics.value('prometheus_tsdb_lowest_timestamp_seconds');
  return <>{oldest === undefined || oldest > FAR_SECONDS ? 'none' : formatTime(oldest * 1000, zone)}</>;
}
