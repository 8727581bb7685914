/** The plugins beside the store. */

import { useSnapshots } from '../../../app/metrics';
import { formatCount, formatNumber } from '../../../format/number';
import type { Labels } from '../../../source/answers';
import type { Metrics } from '../../../source/exposition';
import { Facts } from '../../../widgets/facts';
import { Await } from '../../../widgets/state';

export function Plugins() {
  const snapshots = useSnapshots();
  return (
    <Await of={snapshots}>
      {(snapshots) => {
        const { metrics } = snapshots.at(-1)!;
        const plugins = metrics.all('tidepool_plugin_loaded').map((sample) => sample.labels);
        const loading = metrics.value('tidepool_plugins_loading') ?? 0;
        return (
          <>
            {loading > 0 && <p class="notice">{formatCount(loading)} plugins are being loaded.</p>}
            {plugins.length === 0 && <p class="card muted">There are no plugins. --plugins-dir names their directory.</p>}
            {plugins.map((labels) => (
              <Plugin key={labels['plugin']} labels={labels} metrics={metrics} />
            ))}
          </>
        );
      }}
    </Await>
  );
}

function Plugin({ labels, metrics }: { labels: Labels; metrics: Metrics }) {
  const { plugin = '', world = '' } = labels;
  const value = (name: string): number | undefined => metrics.value(`tidepool_plugin_${name}`, { plugin });
  const calls = metrics.all('tidepool_plugin_calls_total').filter((sample) => sample.labels['plugin'] === plugin && sample.value > 0);
  const total = calls.reduce((sum, sample) => sum + sample.value, 0);
  const seconds = value('call_seconds_total');
  const isLoaded = value('loaded') === 1;
  const isDisabled = value('disabled') === 1;
  const level = isDisabled || !isLoaded ? 'bad' : 'good';
  return (
    <section class="card" aria-label={`Plugin ${plugin}`}>
      <h2>
        <i class={`dot ${level}`} aria-hidden="true" />
        {plugin} <span class="muted">{world}</span>
      </h2>
      <p class={`${level}-text`}>{!isLoaded ? 'It is not loaded.' : isDisabled ? 'It is disabled for a while after repeated faults.' : 'It is loaded.'}</p>
      <Facts
        rows={[
          ['Calls', calls.length === 0 ? 'none' : calls.map((sample) => `${formatCount(sample.value)} ${sample.labels['outcome']}`).join(', ')],
          ['A call takes', seconds === undefined || total === 0 ? undefined : formatNumber(seconds / total, 'seconds', 2)],
          ['Rows in', formatCount(value('rows_in_total'))],
          ['Rows out', formatCount(value('rows_out_total'))],
          ['Memory', formatNumber(value('memory_bytes'), 'bytes')],
          ['Times disabled', formatCount(value('disabled_total'))],
          ['Failed loads', formatCount(value('load_failures_total'))],
        ]}
      />
    </section>
  );
}
