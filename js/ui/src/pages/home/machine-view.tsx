/** The machine's own charts. */

import { useState } from 'preact/hooks';
import { Chart } from '../../charts/chart';
import { useAnswer } from '../../app/load';
import { printDuration } from '../../promql/duration';
import type { Labels, QueryData } from '../../source/answers';
import { Failure } from '../../widgets/state';
import { MACHINE_CHARTS, MACHINE_JOB } from './machine';

const HOUR_MS = 3_600_000;
const EVERY_MS = 60_000;
const RANGES_MS = [HOUR_MS / 4, HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS];
const IS_THERE = new URLSearchParams({ query: `count({__name__=~"node_load1|node_memory_MemTotal_bytes",job="${MACHINE_JOB}"})` });

export function Machine({ flags }: { flags: Labels | undefined }) {
  const there = useAnswer('api/v1/query', IS_THERE, { everyMs: EVERY_MS });
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
      {data !== undefined && !hasData && <HowTo flags={flags} />}
      {hasData && (
        <div class="charts">
          {MACHINE_CHARTS.map((spec) => (
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
function HowTo({ flags }: { flags: Labels | undefined }) {
  // Nothing where this program has no metrics of the machine of its own.
  const isOff = flags?.['no-host-metrics'];
  return (
    <div class="card">
      <p>There are no metrics of this machine yet: none of the job “{MACHINE_JOB}”.</p>
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
