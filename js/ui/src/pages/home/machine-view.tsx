/** The machine's own charts. */

import { useMemo, useState } from 'preact/hooks';
import { Chart } from '../../charts/chart';
import { useAnswer } from '../../app/load';
import { printDuration } from '../../promql/duration';
import type { Labels, QueryData, Targets } from '../../source/answers';
import { Failure } from '../../widgets/state';
import { MACHINE_JOB, machineCharts, machineInstance, machineMatchers } from './machine';

const HOUR_MS = 3_600_000;
const EVERY_MS = 60_000;
const RANGES_MS = [HOUR_MS / 4, HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS];
/** More targets of one job are not looked through for this machine. */
const TARGETS_MAX = 500;
const OF_JOB = new URLSearchParams({ state: 'active', scrapePool: MACHINE_JOB, offset: '0', limit: `${TARGETS_MAX}` });

/** @param instance the node's own; nothing if it cannot be known */
export function Machine({ flags, instance }: { flags: Labels | undefined; instance: string | undefined }) {
  const targets = useAnswer('api/v1/targets', OF_JOB);
  const isAsked = targets.value !== undefined || targets.error !== undefined;
  const found = (targets.value?.data as Targets | undefined)?.activeTargets ?? [];
  const own = isAsked && instance !== undefined ? machineInstance(found, instance) : undefined;
  const isThere = own === undefined ? undefined : new URLSearchParams({ query: `count({__name__=~"node_load1|node_memory_MemTotal_bytes",${machineMatchers(own)}})` });
  const there = useAnswer('api/v1/query', isThere, { everyMs: EVERY_MS });
  const charts = useMemo(() => machineCharts(own ?? ''), [own]);
  const [span, setSpan] = useState<{ rangeMs: number; endMs?: number }>({ rangeMs: HOUR_MS });
  const data = there.value?.data as QueryData | undefined;
  const hasData = data?.resultType === 'vector' && data.result.length > 0;
  return (
    <section aria-label="The machine">
      <div class="row head">
        <h2>This machine</h2>
        {hasData && (
          <span class="group" role="group" aria-label="Range">
            {RANGES_MS.map((rangeMs) => (
              <button type="button" aria-pressed={span.endMs === undefined && span.rangeMs === rangeMs} onClick={() => setSpan({ rangeMs })}>
                {printDuration(rangeMs)}
              </button>
            ))}
          </span>
        )}
      </div>
      {there.error !== undefined && <Failure error={there.error} />}
      {instance === undefined && <p class="muted">The node does not say which instance it is.</p>}
      {data !== undefined && !hasData && <HowTo flags={flags} instance={own!} />}
      {hasData && (
        <div class="charts">
          {charts.map((spec) => (
            <Chart
              key={spec.title}
              spec={spec}
              rangeMs={span.rangeMs}
              endMs={span.endMs}
              everyMs={EVERY_MS}
              syncKey="machine"
              onZoom={(start, end) => setSpan({ rangeMs: Math.max(60_000, Math.round(end - start) * 1000), endMs: Math.round(end) * 1000 })}
            />
          ))}
        </div>
      )}
    </section>
  );
}

const CONFIG = `scrape_configs:
  - job_name: ${MACHINE_JOB}
    static_configs: [{targets: ['127.0.0.1:9100']}]`;

/** How the node comes to figures of its machine. */
function HowTo({ flags, instance }: { flags: Labels | undefined; instance: string }) {
  // Nothing where this program has no metrics of the machine of its own.
  const isOff = flags?.['no-host-metrics'];
  return (
    <div class="card">
      <p>There are no metrics of this machine yet: none of the job “{MACHINE_JOB}” and the instance “{instance}”.</p>
      {isOff === 'false' && <p>tidepool records them by itself: the first appear within a minute.</p>}
      {isOff === 'true' && <p>tidepool was started with --no-host-metrics. Without it, it records them by itself.</p>}
      {isOff === undefined && (
        <>
          <p>With a node_exporter on this machine, this in the file of --config records them:</p>
          <pre class="sample">{CONFIG}</pre>
        </>
      )}
    </div>
  );
}
