/** What a person should know first: is data safe, and has it left the node? */

import { formatCount, formatDuration, formatNumber } from '../format/number';
import type { Metrics } from '../source/exposition';
import type { DiskFigures } from './disk';
import type { Durability } from './durability';
import { isLeft, LAG_SECONDS_OK, type Destination, type Shipping } from './leaving';
import { shareOf, type Limits } from './limits';

/** Something that is not as it should be. */
export interface Finding {
  level: 'bad' | 'warn';
  /** What, and what to do. */
  text: string;
}

/** What is known of a node. */
export interface Known {
  metrics: Metrics;
  disk: DiskFigures;
  durability: Durability;
  destinations: readonly Destination[];
  shipping: Shipping | undefined;
  limits: Limits;
  /** What the node's clock is ahead of the browser's, in seconds. */
  clockAheadSeconds: number | undefined;
}

/** Clocks that differ by less are not worth a word: a slow answer makes as much. */
const CLOCK_SECONDS_MAX = 5;
/** The head's memory from which on new series are refused (`engine/src/memory.rs`). */
const HEAD_SHARE_MAX = 0.65;
/** Days of room from which on there is no hurry. */
const DAYS_MIN = 7;

/** All findings, the worst first. */
export function findings(known: Known): Finding[] {
  const all = [...disk(known.disk), ...safety(known.durability), ...leaving(known), ...clock(known), ...limitsOf(known.limits), ...config(known.metrics)];
  return [...all.filter((it) => it.level === 'bad'), ...all.filter((it) => it.level === 'warn')];
}

/** One sentence over all. */
export function verdict(known: Known, found: readonly Finding[]): { level: 'good' | 'warn' | 'bad'; text: string } {
  const isSafe = !found.some((it) => it.level === 'bad');
  const safe = isSafe ? 'Data is safe on this node' : 'Data may be at risk';
  return { level: found[0]?.level ?? 'good', text: `${safe}; ${left(known)}.` };
}

function left({ destinations, shipping }: Known): string {
  if (destinations.length === 0 && shipping === undefined) return 'it stays here: nothing is forwarded or shipped';
  const unsent = destinations.filter((it) => !isLeft(it));
  const behind = unsent.filter((it) => it.lagSeconds > LAG_SECONDS_OK);
  const silent = unsent.filter((it) => it.lagSeconds <= LAG_SECONDS_OK);
  const waiting = shipping?.waiting ?? 0;
  if (unsent.length === 0 && waiting === 0) return 'all of it has left the node';
  const parts: string[] = [];
  if (behind.length > 0) parts.push(`${formatDuration(Math.max(...behind.map((it) => it.lagSeconds)))} of it wait to be forwarded`);
  if (silent.length > 0) parts.push(`${silent.map(({ name }) => name).join(', ')} has taken nothing since the start`);
  if (waiting > 0) parts.push(`${formatCount(waiting)} ${waiting === 1 ? 'block waits' : 'blocks wait'} to be shipped`);
  return parts.join(', ');
}

function disk(figures: DiskFigures): Finding[] {
  if (figures.isPaused) return [{ level: 'bad', text: 'Writes are refused, because the disk is nearly full. Free space, or lower --retention-size.' }];
  const days = figures.daysUntilFull;
  if (days === undefined || days >= DAYS_MIN) return [];
  const when = days < 1 ? 'within a day' : `in ${formatDuration(days * 86_400)}`;
  if (figures.boundBy === 'disk') return [{ level: 'warn', text: `The disk is full ${when}; then writes are refused. Set --retention-size.` }];
  // To drop the oldest is what --retention-size is for.
  return [];
}

function safety(it: Durability): Finding[] {
  const found: Finding[] = [];
  const add = (level: Finding['level'], count: number, text: string): void => {
    if (count > 0) found.push({ level, text });
  };
  if (it.isReplaySkipped) found.push({ level: 'bad', text: unreplayed(it.memoryLimitNeededBytes) });
  add('bad', it.syncsFailed, `${formatCount(it.syncsFailed)} syncs of the log failed since the start: look at the disk.`);
  add('bad', it.writesFailed, `${formatCount(it.writesFailed)} writes to the log failed since the start.`);
  add('warn', it.damagedPlaces, `${formatCount(it.damagedPlaces)} damaged places were found in the log (${formatNumber(it.damagedBytes, 'bytes')}). What is before and behind them was kept.`);
  add('bad', it.blocksDamaged, `${formatCount(it.blocksDamaged)} damaged blocks were found; reads leave them out. The log names them.`);
  add('warn', it.quarantinedLogs, `${formatCount(it.quarantinedLogs)} logs were quarantined, because starts failed to replay them.`);
  add('warn', it.crashes, `${formatCount(it.crashes)} engine instances crashed or passed a limit since the start.`);
  add('warn', it.compactionsFailed, `${formatCount(it.compactionsFailed)} compactions failed since the start; they are retried.`);
  return found;
}

function unreplayed(neededBytes: number | undefined): string {
  const what = 'There is too little memory to replay the log: only blocks are shown, and writes are refused. The log is kept.';
  return neededBytes === undefined
    ? `${what} Give the machine more memory, or lower --memory-limit, and restart.`
    : `${what} Restart with --memory-limit=${Math.ceil(neededBytes / 2 ** 20)}MiB.`;
}

function leaving({ destinations, shipping }: Known): Finding[] {
  const found: Finding[] = [];
  for (const { name, lagSeconds, catchesUpSeconds, dropped, failed } of destinations) {
    if (lagSeconds > LAG_SECONDS_OK && catchesUpSeconds === Infinity) {
      found.push({ level: 'warn', text: `Forwarding to ${name} is ${formatDuration(lagSeconds)} behind, and does not catch up.` });
    }
    const lost = dropped.reduce((sum, { count }) => sum + count, 0) + failed;
    if (lost > 0) found.push({ level: 'warn', text: `${formatCount(lost)} samples did not reach ${name}: ${reasons(dropped, failed)}.` });
  }
  if (shipping !== undefined && shipping.droppedUnshipped > 0) {
    found.push({ level: 'bad', text: `${formatCount(shipping.droppedUnshipped)} blocks were dropped before they were shipped.` });
  }
  if (shipping !== undefined && shipping.waiting > 0 && shipping.failures > shipping.uploads) {
    found.push({ level: 'warn', text: `${formatCount(shipping.failures)} uploads of blocks failed since the start.` });
  }
  return found;
}

function reasons(dropped: readonly { reason: string; count: number }[], failed: number): string {
  const texts = dropped.map(({ reason, count }) => `${formatCount(count)} ${reason}`);
  if (failed > 0) texts.push(`${formatCount(failed)} refused by it`);
  return texts.join(', ');
}

function clock({ metrics, clockAheadSeconds }: Known): Finding[] {
  if (metrics.value('tidepool_clock_doubted') === 1) {
    return [{ level: 'warn', text: 'This node’s clock is known to be wrong: the senders’ time counts.' }];
  }
  if (clockAheadSeconds === undefined || Math.abs(clockAheadSeconds) < CLOCK_SECONDS_MAX) return [];
  const direction = clockAheadSeconds > 0 ? 'ahead of' : 'behind';
  return [{ level: 'warn', text: `The node’s clock is ${formatDuration(Math.abs(clockAheadSeconds))} ${direction} this browser’s.` }];
}

/** What is known of the node's clock. */
export function clockText({ metrics, clockAheadSeconds }: Known): string {
  if (metrics.value('tidepool_clock_doubted') === 1) return 'doubted';
  if (clockAheadSeconds === undefined) return 'not doubted';
  if (Math.abs(clockAheadSeconds) < CLOCK_SECONDS_MAX) return 'agrees with this browser’s';
  return `${formatDuration(Math.abs(clockAheadSeconds))} ${clockAheadSeconds > 0 ? 'ahead of' : 'behind'} this browser’s`;
}

function limitsOf({ series, memory, head }: Limits): Finding[] {
  const found: Finding[] = [];
  const [ofSeries, ofMemory, ofHead] = [shareOf(series) ?? 0, shareOf(memory) ?? 0, shareOf(head) ?? 0];
  if (ofHead >= HEAD_SHARE_MAX) found.push({ level: 'bad', text: 'The head’s memory is nearly used up: new series are refused. See Cardinality for the largest metrics.' });
  if (ofSeries >= 1) found.push({ level: 'bad', text: 'The limit of series is reached: new series are refused (--max-series).' });
  else if (ofSeries >= 0.9) found.push({ level: 'warn', text: `${formatNumber(ofSeries, 'ratio', 2)} of --max-series are used.` });
  if (ofMemory >= 0.95) found.push({ level: 'warn', text: `The process uses ${formatNumber(ofMemory, 'ratio', 2)} of --memory-limit.` });
  return found;
}

function config(metrics: Metrics): Finding[] {
  return metrics.value('prometheus_config_last_reload_successful') === 0
    ? [{ level: 'warn', text: 'The last reload of the configuration failed; the one before is in force.' }]
    : [];
}
