/** The pages of a node, and a node that has something to show on each. */

import { hostileLines, machineLines } from './data';
import { Program } from './program';

const config = (receiver: string): string => `scrape_configs:
  - job_name: web
    scrape_interval: 1s
    scrape_timeout: 1s
    static_configs: [{targets: ['127.0.0.1:1'], labels: {site: north}}]
    relabel_configs: [{source_labels: [site], target_label: region}]
    basic_auth: {username: anna, password: hunter2}
remote_write:
  - {url: '${receiver}', name: centre}
`;

/**
 * A node that is not started yet. It has a block of half a day ago, beside what is imported later.
 * Nothing listens where it forwards to, unless a receiver is named.
 */
export function fullProgram(flags: readonly string[] = [], receiver = 'http://127.0.0.1:1/api/v1/write'): Program {
  const program = new Program(['--no-host-metrics', '--host-metrics-instance=edge-7', '--config={tidepool.yml}', '--max-series=10000', ...flags], { 'tidepool.yml': config(receiver) });
  // Within one block, whatever the time of day.
  const beginMs = Math.floor(Date.now() / 7_200_000 - 6) * 7_200_000 + 1_800_000;
  program.importBlocks(Array.from({ length: 200 }, (_, i) => `old_samples{n="${i % 10}"} ${i} ${beginMs + Math.floor(i / 10) * 60_000}`));
  return program;
}

/** What such a node gets once it runs. */
export function fullLines(): string[] {
  return [...machineLines(Date.now()), ...hostileLines(Date.now())];
}

const QUERY = '?g0.expr=sum+by+(mode)+(rate(node_cpu_seconds_total%5B2m%5D))&g0.tab=';

/** Addresses of the pages, with a text that is there once the page is. */
export const PAGES: [string, string, string][] = [
  ['home', '', 'Temperature'],
  ['query-graph', `${QUERY}graph&g0.display_mode=stacked`, 'a point each'],
  ['query-table', `${QUERY}table`, 'samples read'],
  ['query-explain', `${QUERY}explain`, 'evaluation'],
  ['query-wrong', '?g0.expr=sum+by+(&g0.tab=graph', 'unclosed left parenthesis'],
  ['alerts-none', '#/alerts', 'This node has no rules.'],
  ['history-none', '#/alerts/history', 'The node has kept no event yet.'],
  ['silences-none', '#/alerts/silences', 'No silence is active.'],
  ['receivers-none', '#/alerts/receivers', 'This node has no receivers'],
  ['backtest-empty', '#/alerts/backtest', 'Rules, as in a rule file'],
  ['metrics', '#/explore/metrics', 'node_cpu_seconds_total'],
  ['metric', '#/explore/metrics?metric=node_load1', '1m load average'],
  ['hostile', '#/explore/metrics?metric=hostile', 'direction'],
  ['labels', '#/explore/labels', 'mountpoint'],
  ['label', '#/explore/labels?label=mode', 'iowait'],
  ['cardinality', '#/explore/cardinality', 'Pairs by series'],
  ['targets', '#/explore/targets', '127.0.0.1:1'],
  ['forwarding', '#/explore/forwarding', 'Samples in queues'],
  ['plugins', '#/explore/plugins', 'no plugins'],
  ['storage', '#/explore/storage', 'Size of the quarantine'],
  ['configuration', '#/explore/configuration', 'Memory limit'],
  ['flags', '#/explore/flags', '--wal-sync'],
];

/** Texts of errors that a page has by right: a browser's console names each answer that is none. */
export function expectedOn(name: string): string[] {
  return name === 'query-wrong' ? ['400 (Bad Request)'] : [];
}
