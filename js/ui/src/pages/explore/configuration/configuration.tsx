/** The configuration, the process, and its version. */

import { useApp } from '../../../app/context';
import { useAnswer } from '../../../app/load';
import { formatNumber } from '../../../format/number';
import { formatTime } from '../../../format/time';
import type { Labels, RuntimeInfo } from '../../../source/answers';
import { Copy } from '../../../widgets/copy';
import { Facts } from '../../../widgets/facts';
import { Await } from '../../../widgets/state';

const NO_PARAMS = new URLSearchParams();

export function Configuration() {
  const { zone } = useApp();
  const runtime = useAnswer('api/v1/status/runtimeinfo', NO_PARAMS);
  const build = useAnswer('api/v1/status/buildinfo', NO_PARAMS);
  const config = useAnswer('api/v1/status/config', NO_PARAMS);
  return (
    <>
      <div class="cards">
        <section class="card" aria-label="Process">
          <h2>Process</h2>
          <Await of={runtime}>
            {({ data }) => {
              const it = data as RuntimeInfo;
              const time = (text: string): string => formatTime(Date.parse(text), zone);
              return (
                <Facts
                  rows={[
                    ['Host', it.hostname],
                    ['Started', time(it.startTime)],
                    ['Configuration loaded', `${time(it.lastConfigTime)}${it.reloadConfigSuccess ? '' : '; the last reload failed'}`],
                    ['Retention', it.storageRetention],
                    ['Memory limit', formatNumber(it.GOMEMLIMIT, 'bytes')],
                    ['Processors', it.GOMAXPROCS],
                    ['Directory', <span class="mono">{it.CWD}</span>],
                  ]}
                />
              );
            }}
          </Await>
        </section>
        <section class="card" aria-label="Version">
          <h2>Version</h2>
          <Await of={build}>{({ data }) => <Facts rows={Object.entries(data as Labels).filter(([, value]) => value !== '')} />}</Await>
        </section>
      </div>
      <section class="card" aria-label="Configuration">
        <h2>Configuration</h2>
        <Await of={config}>
          {({ data }) => {
            const { yaml } = data as { yaml: string };
            return (
              <>
                <Copy what="the configuration" text={() => yaml} />
                <pre class="sample" tabIndex={0} role="region" aria-label="Configuration as YAML">
                  {yaml}
                </pre>
              </>
            );
          }}
        </Await>
      </section>
    </>
  );
}
