/** Whether targets and probes answer: beside the state of the node, which is another matter. */

import { useApp } from '../../app/context';
import { useLoad } from '../../app/load';
import { hashOf, queryHref } from '../../app/route';
import { failingProbes, loadTargets, targetsVerdict } from '../../figures/targets';
import { formatCount } from '../../format/number';
import type { Metrics } from '../../source/exposition';

const EVERY_MS = 30_000;
/** Why samples of scrapes are not stored, as Prometheus counts it: before the store and by it. */
const REFUSALS = ['duplicate_timestamp', 'out_of_order', 'out_of_bounds'];
/** The store's other reasons. */
const MORE_REFUSALS = ['labels', 'series_limit', 'memory', 'disk', 'other'];

export function TargetsVerdict({ metrics, isOld }: { metrics: Metrics; isOld: boolean }) {
  const { source } = useApp();
  const pools = metrics.all('prometheus_target_scrape_pool_targets');
  const jobs = pools.map(({ labels }) => labels['scrape_job'] ?? '');
  const loaded = useLoad(jobs.length === 0 ? undefined : `targets ${jobs.join()}`, (signal) => loadTargets(source, jobs, signal), { everyMs: EVERY_MS, keeps: true });
  // A node that scrapes nothing, or a build that cannot.
  if (pools.length === 0) return null;
  const isKnown = loaded.error === undefined && !isOld;
  if (isKnown && loaded.value === undefined) return <p class="muted loading">Loading…</p>;
  const said = targetsVerdict(pools.map(({ value }) => value), isKnown ? loaded.value : undefined);
  const refused = refusedSamples(metrics);
  const level = refused > 0 && said.level === 'good' ? 'warn' : said.level;
  const isProbed = isKnown && loaded.value!.probes.count > 0;
  return (
    <section class={`verdict ${level}`} aria-label="Targets and probes">
      <h2>
        <i class={`dot ${level}`} aria-hidden="true" />
        {said.text} <a href={hashOf(['explore', 'targets'], isKnown && loaded.value!.targets.count > 0 ? { health: 'down' } : {})}>Targets</a>
        {isProbed && <a href={queryHref(new URLSearchParams({ 'g0.expr': failingProbes(jobs), 'g0.tab': 'table' }))}>Probes that fail</a>}
      </h2>
      {loaded.error !== undefined && <p class="muted">{loaded.error.message}</p>}
      {refused > 0 && <p class="warn-text">{formatCount(refused)} samples of scrapes were refused since the start.</p>}
    </section>
  );
}

function refusedSamples(metrics: Metrics): number {
  const counts = REFUSALS.map((reason) => metrics.value(`prometheus_target_scrapes_sample_${reason}_total`) ?? 0);
  const more = metrics.all('tidepool_target_samples_refused_total').filter(({ labels }) => MORE_REFUSALS.includes(labels['reason'] ?? ''));
  return [...counts, ...more.map(({ value }) => value)].reduce((sum, count) => sum + count, 0);
}
