/** Whether what the node scrapes and probes answers. */

import { formatCount, formatDuration } from '../format/number';
import { quoted } from '../promql/selector';
import type { InstantSeries, Labels, QueryData, Target, Targets } from '../source/answers';
import { numberOf } from '../source/exposition';
import type { Source } from '../source/source';
import type { Level } from './checks';

/** Some of many that do not answer. */
export interface Down {
  count: number;
  /** Seconds since the first of them answered; Infinity beyond an hour, nothing if not known. */
  longestSeconds: number | undefined;
}

/** Targets and probes that do not answer. */
export interface TargetsState {
  targets: Down;
  /** Targets of which nothing is known yet. */
  unknown: number;
  probes: Down;
}

/** What is compared by labels to find since when: more are only counted. */
const SHOWN_MAX = 100;
const SPAN = '[1h:1m]';

/** The expression for what answered, at each time. */
function selector(metric: string, jobs: readonly string[]): string {
  const escaped = jobs.map((job) => job.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return `${metric}{job=~${quoted(escaped.join('|'))}}`;
}

/** The expression for probes of these jobs that fail. */
export function failingProbes(jobs: readonly string[]): string {
  return `${selector('probe_success', jobs)} == 0`;
}

/** @param jobs of the node's own targets: others' series may be stored, too */
export async function loadTargets(source: Source, jobs: readonly string[], signal: AbortSignal): Promise<TargetsState> {
  const list = async (health: string): Promise<{ found: Target[]; total: number }> => {
    const params = new URLSearchParams({ state: 'active', health, offset: '0', limit: `${SHOWN_MAX}` });
    const { data, total } = await source.request('api/v1/targets', params, signal);
    const found = (data as Targets).activeTargets;
    return { found, total: total ?? found.length };
  };
  const ask = async (query: string): Promise<InstantSeries[]> => {
    const { data } = await source.request('api/v1/query', new URLSearchParams({ query, limit: '10000' }), signal);
    const answer = data as QueryData;
    return answer.resultType === 'vector' ? answer.result : [];
  };
  const longest = async (metric: string, down: readonly Labels[]): Promise<number | undefined> => {
    if (down.length === 0) return undefined;
    const wanted = [...new Set(down.map((labels) => labels['job'] ?? ''))];
    const ages = await ask(`time() - max_over_time(timestamp(${selector(metric, wanted)} == 1)${SPAN})`);
    const byLabels = new Map(ages.map(({ metric, value }) => [keyOf(metric), numberOf(value?.[1] ?? 'NaN')]));
    return Math.max(...down.map((labels) => byLabels.get(keyOf(labels)) ?? Infinity));
  };
  const [down, unknown, failing] = [await list('down'), await list('unknown'), await ask(failingProbes(jobs))];
  const series = failing.slice(0, SHOWN_MAX).map(({ metric }) => metric);
  return {
    targets: { count: down.total, longestSeconds: await longest('up', down.found.map(({ labels }) => labels)) },
    unknown: unknown.total,
    probes: { count: failing.length, longestSeconds: await longest('probe_success', series) },
  };
}

function keyOf({ __name__: _, ...labels }: Labels): string {
  return JSON.stringify(Object.entries(labels).sort());
}

/**
 * What is said of all.
 *
 * @param counts targets of each job
 * @param state nothing if it is not known
 */
export function targetsVerdict(counts: readonly number[], state: TargetsState | undefined): { level: Level; text: string } {
  if (state === undefined) return { level: 'unknown', text: 'Whether targets answer is unknown.' };
  const count = counts.reduce((sum, it) => sum + it, 0);
  // Discovery that fails from the start finds none.
  const empty = counts.filter((it) => it === 0).length;
  const { targets, unknown, probes } = state;
  const parts: string[] = [];
  if (targets.count > 0) parts.push(`${formatCount(targets.count)} of ${formatCount(count)} targets ${targets.count === 1 ? 'is' : 'are'} down${since(targets)}`);
  if (probes.count > 0) parts.push(`${formatCount(probes.count)} ${probes.count === 1 ? 'probe fails' : 'probes fail'}${since(probes)}`);
  if (unknown > 0) parts.push(`${formatCount(unknown)} of ${formatCount(count)} targets ${unknown === 1 ? 'was' : 'were'} not scraped yet`);
  if (empty > 0) parts.push(`${formatCount(empty)} of ${formatCount(counts.length)} jobs ${empty === 1 ? 'has' : 'have'} no targets`);
  const level = targets.count > 0 || probes.count > 0 ? 'warn' : unknown > 0 || empty > 0 ? 'unknown' : 'good';
  return { level, text: level === 'good' ? `${formatCount(count)} of ${formatCount(count)} targets ${count === 1 ? 'is' : 'are'} up.` : `${parts.join('; ')}.` };
}

function since({ count, longestSeconds: seconds }: Down): string {
  if (seconds === undefined) return '';
  const of = count === 1 ? '' : ' the longest';
  return seconds === Infinity ? `,${of} for more than an hour or since the start` : `,${of} for ${formatDuration(Math.round(seconds))}`;
}
