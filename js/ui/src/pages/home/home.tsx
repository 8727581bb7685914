/** The node at a glance: is data safe, has it left, and how is the machine? */

import { useMemo } from 'preact/hooks';
import { useNow } from '../../app/clock';
import { useApp } from '../../app/context';
import { useAnswer } from '../../app/load';
import { useSnapshots } from '../../app/metrics';
import { diskFigures } from '../../figures/disk';
import { durability, unsyncedSeconds } from '../../figures/durability';
import { destinations, LAG_SECONDS_OK, shipping } from '../../figures/leaving';
import { limits } from '../../figures/limits';
import { clockText, findings, verdict, type Known } from '../../figures/checks';
import type { Snapshot } from '../../figures/snapshots';
import { formatAgo, formatTime, zoneName } from '../../format/time';
import type { Labels, RuntimeInfo } from '../../source/answers';
import { Failure } from '../../widgets/state';
import { hashOf } from '../../app/route';
import { AlertsVerdict } from './alerts-view';
import { DiskCard, DurabilityCard, IntakeCard, LeavingCard, LimitsCard } from './cards';
import { useNodeInfo } from './clock';
import { instanceOf } from './machine';
import { Machine } from './machine-view';
import { useOwn, type Own } from './own';
import { Starting, useReplay } from './starting';
import { TargetsVerdict } from './targets-view';

const NO_PARAMS = new URLSearchParams();
/** Figures are asked for each 15 s; older ones are not of now, in milliseconds. */
const OLD_MS = 60_000;

export function Home() {
  const snapshots = useSnapshots();
  const isReady = snapshots.value?.at(-1)?.metrics.value('tidepool_ready') !== 0;
  const replay = useReplay(!isReady);
  return (
    <>
      {!isReady && <Starting replay={replay} />}
      {snapshots.error !== undefined && snapshots.value === undefined && <Failure error={snapshots.error} what="/metrics" />}
      {snapshots.value === undefined && snapshots.error === undefined && <p class="muted loading">Loading…</p>}
      {isReady && snapshots.value !== undefined && <Node snapshots={snapshots.value} hasFailed={snapshots.error !== undefined} />}
    </>
  );
}

function Node({ snapshots, hasFailed }: { snapshots: readonly Snapshot[]; hasFailed: boolean }) {
  const { source } = useApp();
  const now = useNow(5000);
  const flagsAnswer = useAnswer('api/v1/status/flags', NO_PARAMS);
  const infoAnswer = useNodeInfo();
  const flags = flagsAnswer.value?.data as Labels | undefined;
  const info = infoAnswer.value;
  const isAsked = (flags === undefined && flagsAnswer.error === undefined) || (info === undefined && infoAnswer.error === undefined);
  const instance = instanceOf(flags, info?.runtime);
  const own = useOwn(instance);
  const known = useMemo(() => knownOf(snapshots, flags, own, info?.clockAheadSeconds), [snapshots, flags, own, info]);
  if (isAsked) return <p class="muted loading">Loading…</p>;
  const ageMs = now - snapshots.at(-1)!.atMs;
  const isOld = hasFailed || source.isLost || ageMs > OLD_MS;
  const found = findings(known);
  const { level, text } = verdict(known, found, isOld ? Math.max(0, ageMs / 1000) : undefined);
  return (
    <div class={isOld ? 'node old' : 'node'}>
      <section class={`verdict ${level}`} aria-label="State of the node">
        <h1>
          <i class={`dot ${level}`} aria-hidden="true" />
          {text}
        </h1>
        {found.length > 0 && (
          <ul>
            {found.map((finding) => (
              <li class={`${finding.level}-text`}>
                {finding.text} <a href={hashOf(['explore', finding.page])}>Why</a>
              </li>
            ))}
          </ul>
        )}
        <Where snapshots={snapshots} runtime={info?.runtime} />
      </section>
      <AlertsVerdict isOld={isOld} clockAheadSeconds={known.clockAheadSeconds} />
      <TargetsVerdict metrics={known.metrics} isOld={isOld} />
      <div class="cards home">
        <DurabilityCard figures={known.durability} flags={flags} clock={clockText(known)} />
        <DiskCard figures={known.disk} metrics={known.metrics} writtenPerDay={own?.writtenPerDay} />
        <LeavingCard destinations={known.destinations} shipping={known.shipping} />
        <LimitsCard limits={known.limits} metrics={known.metrics} />
        <IntakeCard snapshots={snapshots} />
      </div>
      <Machine flags={flags} instance={instance} />
    </div>
  );
}

/** Which node it is, since when it runs, and how old the figures are. */
function Where({ snapshots, runtime }: { snapshots: readonly Snapshot[]; runtime: RuntimeInfo | undefined }) {
  const { zone } = useApp();
  const now = useNow(5000);
  const newest = snapshots.at(-1)!;
  const started = newest.metrics.value('process_start_time_seconds');
  const version = newest.metrics.all('tidepool_build_info')[0]?.labels['version'];
  const parts = [
    runtime?.hostname,
    version === undefined ? undefined : `tidepool ${version}`,
    started === undefined ? undefined : `started ${formatAgo(started * 1000, now)} (${formatTime(started * 1000, zone)} ${zoneName(zone)})`,
  ];
  return (
    <p class="muted">
      {parts.filter((part) => part !== undefined && part !== '').join(' · ')} · <span aria-live="off">figures {formatAgo(newest.atMs, Math.max(now, newest.atMs))}</span>
    </p>
  );
}

function knownOf(snapshots: readonly Snapshot[], flags: Labels | undefined, own: Own | undefined, clockAheadSeconds: number | undefined): Known {
  const { metrics } = snapshots.at(-1)!;
  const behind = destinations(snapshots).map((it) => {
    const change = own?.lagChange.get(it.name);
    // Ten minutes of records tell more than what was seen since the page was opened.
    const isTold = change !== undefined && it.lagSeconds > LAG_SECONDS_OK;
    return isTold ? { ...it, catchesUpSeconds: change < -0.01 ? it.lagSeconds / -change : Infinity } : it;
  });
  return {
    metrics,
    flags,
    disk: diskFigures(metrics, flags),
    durability: durability(snapshots),
    destinations: behind,
    shipping: shipping(snapshots),
    limits: limits(metrics, flags),
    clockAheadSeconds,
    unsyncedSeconds: unsyncedSeconds(snapshots),
  };
}
