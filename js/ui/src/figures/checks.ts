/** What a person should know first: is data safe, and has it left the node? */

import { formatCount, formatDuration, formatNumber } from '../format/number';
import { parseDuration } from '../promql/duration';
import type { Labels } from '../source/answers';
import type { Metrics } from '../source/exposition';
import type { DiskFigures } from './disk';
import type { Durability } from './durability';
import { stateOf, type Destination, type DestinationState, type Shipping } from './leaving';
import { shareOf, type Limits } from './limits';

/** How good a state is. What is not known is not good. */
export type Level = 'bad' | 'warn' | 'unknown' | 'good';

/** Something that is not as it should be, or that is not known. */
export interface Finding {
  level: Exclude<Level, 'good'>;
  /** What, and what to do. */
  text: string;
  /** The page of Explore that tells more. */
  page: string;
  /** What the headline says of it instead of that data is safe. */
  headline?: string;
}

/** What is known of a node. */
export interface Known {
  metrics: Metrics;
  flags: Labels | undefined;
  disk: DiskFigures;
  durability: Durability;
  destinations: readonly Destination[];
  shipping: Shipping | undefined;
  limits: Limits;
  /** What the node's clock is ahead of the browser's, in seconds. */
  clockAheadSeconds: number | undefined;
  /** How long the log was seen to be written and not synced, in seconds. */
  unsyncedSeconds: number;
}

/** Clocks that differ by less are not worth a word: a slow answer makes as much. */
const CLOCK_SECONDS_MAX = 5;
/** The head's memory from which on new series are refused (`engine/src/memory.rs`). */
const HEAD_SHARE_MAX = 0.65;
/** Days of room from which on there is no hurry. */
const DAYS_MIN = 7;
/** Days before a certificate expires from which on it should be renewed. */
const CERTIFICATE_DAYS_MIN = 14;
/** The share of the disk's size that should be left before writes are refused. */
const ROOM_MIN = 0.05;
/** The log may be written for so long without a sync, beside its interval, in seconds. */
const UNSYNCED_SECONDS_MAX = 60;
/** What of `/metrics` a state is known by. */
const NEEDED: Record<string, readonly string[]> = {
  'the log': ['prometheus_tsdb_wal_writes_failed_total', 'tidepool_wal_fsyncs_failed_total', 'tidepool_wal_replay_skipped', 'tidepool_blocks_damaged_total'],
  'the disk': ['tidepool_writes_paused', 'tidepool_disk_free_bytes', 'tidepool_disk_size_bytes'],
};

/** All findings, the worst first. */
export function findings(known: Known): Finding[] {
  const { metrics } = known;
  const all = [
    ...disk(known.disk),
    ...safety(known.durability),
    ...syncing(known),
    ...lacking(metrics),
    ...leaving(known),
    ...clock(known),
    ...limitsOf(known.limits),
    ...config(known),
    ...plugins(metrics),
  ];
  return (['bad', 'warn', 'unknown'] as const).flatMap((level) => all.filter((it) => it.level === level));
}

/**
 * One sentence over all.
 *
 * @param oldSeconds how old the figures are, if the node does not give newer ones
 */
export function verdict(known: Known, found: readonly Finding[], oldSeconds?: number): { level: Level; text: string } {
  const isAtRisk = found.some((it) => it.level === 'bad');
  const safe = isAtRisk ? 'Data may be at risk' : (found.find((it) => it.headline !== undefined)?.headline ?? 'Data is safe on this node');
  const level = found[0]?.level ?? 'good';
  const text = `${safe}; ${left(known)}.`;
  if (oldSeconds === undefined) return { level, text };
  return { level: level === 'good' ? 'unknown' : level, text: `There are no figures of the last ${formatDuration(Math.max(1, Math.round(oldSeconds)))}. Before that: ${text}` };
}

function left({ destinations, shipping, flags }: Known): string {
  const isOff = (flag: string): boolean => (flags?.[flag] ?? '') === '';
  if (destinations.length === 0 && shipping === undefined) {
    return isOff('remote-write-url') && isOff('ship') ? 'it stays here: nothing is forwarded or shipped' : 'whether it leaves the node is unknown';
  }
  const of = (state: DestinationState): readonly Destination[] => destinations.filter((it) => stateOf(it) === state);
  const names = (all: readonly Destination[]): string => all.map(({ name }) => name).join(', ');
  const longest = (all: readonly Destination[]): string => formatDuration(Math.max(...all.map((it) => it.lagSeconds)));
  const [behind, failing, silent, unknown, near] = [of('behind'), of('failing'), of('silent'), of('unknown'), of('near')];
  const waiting = shipping?.waiting ?? 0;
  const parts: string[] = [];
  if (behind.length > 0) parts.push(`${longest(behind)} of it wait to be forwarded`);
  if (failing.length > 0) parts.push(`${names(failing)} takes nothing now`);
  if (silent.length > 0) parts.push(`${names(silent)} has taken nothing since the start`);
  if (unknown.length > 0) parts.push(`whether ${names(unknown)} takes it is not known yet`);
  if (waiting > 0) parts.push(`${formatCount(waiting)} ${waiting === 1 ? 'block waits' : 'blocks wait'} to be shipped`);
  if (parts.length > 0) return parts.join(', ');
  if (destinations.length === 0) return 'all blocks of it are shipped';
  return near.length > 0 ? `all but the newest ${longest(near)} has left` : 'all of it has left the node';
}

function disk(figures: DiskFigures): Finding[] {
  const page = 'storage';
  if (figures.isPaused) return [{ level: 'bad', page, text: 'Writes are refused, because the disk is nearly full. Free space, or lower --retention-size.' }];
  const { freeBytes, reserveBytes = 0, sizeBytes, daysUntilFull: days } = figures;
  if (freeBytes !== undefined && sizeBytes !== undefined && freeBytes - reserveBytes < ROOM_MIN * sizeBytes) {
    const text = `${formatNumber(Math.max(0, freeBytes - reserveBytes), 'bytes')} of the disk are left; then writes are refused. Free space, or set --retention-size.`;
    return [{ level: 'warn', page, text, headline: 'The disk is nearly full' }];
  }
  if (days === undefined || days >= DAYS_MIN) return [];
  const when = days < 1 ? 'within a day' : `in ${formatDuration(days * 86_400)}`;
  if (figures.boundBy === 'disk') return [{ level: 'warn', page, text: `The disk is full ${when}; then writes are refused. Set --retention-size.` }];
  // To drop the oldest is what --retention-size is for.
  return [];
}

/** Whether a power cut loses more than it should. */
function syncing({ flags, unsyncedSeconds }: Known): Finding[] {
  const page = 'flags';
  const headline = 'Whether data is safe is unknown';
  const policy = flags?.['wal-sync'];
  if (policy === undefined) return [{ level: 'unknown', page, headline, text: 'The node does not say whether it syncs its log (--wal-sync).' }];
  if (policy === 'off') {
    const text = 'The log is never synced (--wal-sync=off): a power cut loses what the system has not written.';
    return [{ level: 'warn', page, text, headline: 'A power cut may lose data' }];
  }
  const interval = (parseDuration(flags?.['wal-sync-interval'] ?? '') ?? (policy === 'batch' ? 300_000 : 1000)) / 1000;
  if (unsyncedSeconds < UNSYNCED_SECONDS_MAX + interval) return [];
  return [{ level: 'bad', page: 'storage', text: `The log has been written for ${formatDuration(unsyncedSeconds)} and not been synced: look at the disk.` }];
}

function lacking(metrics: Metrics): Finding[] {
  return Object.entries(NEEDED).flatMap(([what, names]): Finding[] => {
    // Not a number is no answer either.
    const missing = names.filter((name) => !((metrics.value(name) ?? NaN) >= 0));
    const text = `The state of ${what} is unknown: /metrics lacks ${missing.join(', ')}.`;
    return missing.length === 0 ? [] : [{ level: 'unknown', page: 'storage', text, headline: 'Whether data is safe is unknown' }];
  });
}

function safety(it: Durability): Finding[] {
  const found: Finding[] = [];
  const add = (level: Finding['level'], count: number, text: string): void => {
    if (count > 0) found.push({ level, text, page: 'storage' });
  };
  if (it.isReplaySkipped) found.push({ level: 'bad', page: 'storage', text: unreplayed(it.memoryLimitNeededBytes) });
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

function leaving({ destinations, shipping, flags }: Known): Finding[] {
  const found: Finding[] = [];
  const add = (level: Finding['level'], text: string): void => void found.push({ level, text, page: 'forwarding' });
  if (destinations.length === 0 && (flags?.['remote-write-url'] ?? '') !== '') add('unknown', '/metrics says nothing of --remote-write-url.');
  if (shipping === undefined && (flags?.['ship'] ?? '') !== '') add('unknown', '/metrics says nothing of --ship.');
  for (const it of destinations) {
    const { name, lagSeconds, catchesUpSeconds: rest, dropped, failed } = it;
    const behind = formatDuration(lagSeconds);
    const state = stateOf(it);
    const end = rest === undefined ? '' : rest === Infinity ? ', and does not catch up' : `, and has caught up in ${formatDuration(rest)}`;
    if (state === 'behind') add('warn', `Forwarding to ${name} is ${behind} behind${end}.`);
    if (state === 'failing') add('warn', `${name} takes nothing now: what was sent last is sent again. ${behind} of samples wait; the node’s log names the error.`);
    if (state === 'silent') add('warn', `${name} has taken nothing since the start; the node’s log names the error.`);
    if (state === 'unknown') add('unknown', `Whether ${name} takes what is sent is not known yet.`);
    const lost = dropped.reduce((sum, { count }) => sum + count, 0) + failed;
    if (lost > 0) add('warn', `${formatCount(lost)} samples did not reach ${name}: ${reasons(dropped, failed)}.`);
  }
  if (shipping === undefined) return found;
  const { waiting, failures, conflicts, droppedUnshipped } = shipping;
  if (droppedUnshipped > 0) add('bad', `${formatCount(droppedUnshipped)} blocks were dropped before they were shipped.`);
  if (conflicts > 0) add('warn', `${formatCount(conflicts)} blocks were not shipped: object storage has others of their names.`);
  if (waiting > 0 && failures > 0) add('warn', `${formatCount(waiting)} blocks wait to be shipped, and ${formatCount(failures)} uploads failed since the start.`);
  else if (waiting > 0) add('unknown', 'Blocks wait to be shipped; no upload of them has failed.');
  return found;
}

function reasons(dropped: readonly { reason: string; count: number }[], failed: number): string {
  const texts = dropped.map(({ reason, count }) => `${formatCount(count)} ${reason}`);
  if (failed > 0) texts.push(`${formatCount(failed)} refused by it`);
  return texts.join(', ');
}

function clock({ metrics, clockAheadSeconds }: Known): Finding[] {
  const page = 'configuration';
  const doubted = metrics.value('tidepool_clock_doubted');
  if (doubted === 1) return [{ level: 'warn', page, text: 'This node’s clock is known to be wrong: the senders’ time counts.' }];
  if (doubted !== 0 || clockAheadSeconds === undefined) return [{ level: 'unknown', page, text: 'Whether the node’s clock is right is unknown.' }];
  if (Math.abs(clockAheadSeconds) < CLOCK_SECONDS_MAX) return [];
  const direction = clockAheadSeconds > 0 ? 'ahead of' : 'behind';
  return [{ level: 'warn', page, text: `The node’s clock is ${formatDuration(Math.abs(clockAheadSeconds))} ${direction} this browser’s.` }];
}

/** What is known of the node's clock. */
export function clockText({ metrics, clockAheadSeconds }: Known): string {
  if (metrics.value('tidepool_clock_doubted') === 1) return 'doubted';
  if (clockAheadSeconds === undefined) return 'unknown';
  if (Math.abs(clockAheadSeconds) < CLOCK_SECONDS_MAX) return 'agrees with this browser’s';
  return `${formatDuration(Math.abs(clockAheadSeconds))} ${clockAheadSeconds > 0 ? 'ahead of' : 'behind'} this browser’s`;
}

function limitsOf({ series, memory, head }: Limits): Finding[] {
  const found: Finding[] = [];
  const [ofSeries, ofMemory, ofHead] = [shareOf(series) ?? 0, shareOf(memory) ?? 0, shareOf(head) ?? 0];
  if (ofHead >= HEAD_SHARE_MAX) found.push({ level: 'bad', page: 'cardinality', text: 'The head’s memory is nearly used up: new series are refused. See Cardinality for the largest metrics.' });
  if (ofSeries >= 1) found.push({ level: 'bad', page: 'cardinality', text: 'The limit of series is reached: new series are refused (--max-series).' });
  else if (ofSeries >= 0.9) found.push({ level: 'warn', page: 'cardinality', text: `${formatNumber(ofSeries, 'ratio', 2)} of --max-series are used.` });
  if (ofMemory >= 0.95) found.push({ level: 'warn', page: 'cardinality', text: `The process uses ${formatNumber(ofMemory, 'ratio', 2)} of --memory-limit.` });
  return found;
}

function config({ metrics, clockAheadSeconds }: Known): Finding[] {
  const found: Finding[] = [];
  const add = (text: string, page = 'configuration'): void => void found.push({ level: 'warn', page, text });
  if (metrics.value('prometheus_config_last_reload_successful') === 0) add('The last reload of the configuration failed; the one before is in force.');
  const waiting = metrics.value('tidepool_config_flags_need_restart') ?? 0;
  if (waiting > 0) add(`${formatCount(waiting)} changed ${waiting === 1 ? 'flag takes' : 'flags take'} effect only after a restart; the log names ${waiting === 1 ? 'it' : 'them'}.`, 'flags');
  for (const { labels, value } of metrics.all('tidepool_access_file_last_reload_successful')) {
    if (value === 0) add(`The file of --${labels['flag'] ?? ''} has changed and cannot be used; what it was before is in force. The log says why.`, 'flags');
  }
  const nowSeconds = Date.now() / 1000 + (clockAheadSeconds ?? 0);
  for (const { labels, value } of metrics.all('tidepool_tls_certificate_expiry_timestamp_seconds')) {
    const left = value - nowSeconds;
    const what = `The certificate of --${labels['flag'] ?? ''}`;
    if (left <= 0) add(`${what} has expired: clients refuse it.`, 'flags');
    else if (left < CERTIFICATE_DAYS_MIN * 86_400) add(`${what} expires in ${formatDuration(left)}.`, 'flags');
  }
  return found;
}

function plugins(metrics: Metrics): Finding[] {
  return metrics
    .all('tidepool_plugin_disabled')
    .filter(({ value }) => value > 0)
    .map(({ labels }) => ({ level: 'warn', page: 'plugins', text: `The plugin ${labels['plugin'] ?? ''} is disabled for a while after repeated faults.` }));
}
