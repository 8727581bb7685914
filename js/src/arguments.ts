/**
 * From what a caller gives to what the component takes.
 *
 * All arguments are checked here, also those that only plain JavaScript can get wrong: generated
 * code must find nothing to throw about, since what it throws counts as a crash.
 */

import type { StoreExports } from './component.js';
import { InvalidError } from './errors.js';
import type { Columns, Labels, Lookup, Matcher, MatchOp, Selection } from './model.js';

const TIME_MIN = -(2n ** 63n);
const TIME_MAX = 2n ** 63n - 1n;

const MATCH_OPS = new Map<MatchOp, StoreExports.Matcher['op']>([
  ['=', 'equal'],
  ['!=', 'not-equal'],
  ['=~', 'regex'],
  ['!~', 'not-regex'],
]);

/** Columns that cross into the component as bytes. */
export interface TypedColumns {
  readonly series: BigUint64Array;
  readonly timestampsMs: BigInt64Array;
  readonly values: Float64Array;
}

/** Typed arrays are taken as they are; the rest is converted. */
export function typedColumns({ series, timestampsMs, values }: Columns): TypedColumns {
  const rows = values.length;
  return {
    series: seriesColumn(series, rows),
    timestampsMs: timestampsMs instanceof BigInt64Array ? timestampsMs : toBigInt64(timestampsMs),
    values: values instanceof Float64Array ? values : Float64Array.from(values),
  };
}

function seriesColumn(series: Columns['series'], rows: number): BigUint64Array {
  if (typeof series === 'bigint') return new BigUint64Array(rows).fill(series);
  if (series instanceof BigUint64Array) return series;
  const wrong = series.findIndex((one) => typeof one !== 'bigint');
  if (wrong !== -1) throw new InvalidError(`the series of row ${wrong} is not what seriesRef gave`);
  return BigUint64Array.from(series);
}

/** Writes whole numbers as 64-bit integers, in halves: a `bigint` for each would cost more. */
function toBigInt64(times: Float64Array | readonly number[]): BigInt64Array {
  const column = new BigInt64Array(times.length);
  const words = new Int32Array(column.buffer);
  for (let i = 0; i < times.length; i += 1) {
    const time = times[i]!;
    if (!Number.isSafeInteger(time)) {
      throw new InvalidError(`the time of row ${i} is ${time}, not a whole number of milliseconds`);
    }
    words[2 * i] = time;
    words[2 * i + 1] = Math.floor(time / 0x1_0000_0000);
  }
  return column;
}

/** One time. */
export function toMs(time: number, what: string): bigint {
  if (Number.isSafeInteger(time)) return BigInt(time);
  throw new InvalidError(`${what} is ${time}, not a whole number of milliseconds`);
}

/** One count. */
export function toCount(count: number, what: string): bigint {
  if (Number.isSafeInteger(count) && count >= 0) return BigInt(count);
  throw new InvalidError(`${what} is ${count}, not a whole number from zero`);
}

/** A limit that the component takes in 32 bits; 0 is none. */
export function toLimit(limit: number, what: string): number {
  return Number(toCount(Math.min(limit, 2 ** 32 - 1), what));
}

/** A label set as pairs. */
export function toLabels(labels: Labels): StoreExports.Label[] {
  return Object.entries(labels).map(([name, value]) => {
    return { name, value: toText(value, `the value of label ${name}`) };
  });
}

/** A selection, whose answer may come as chunks. */
export function toSelection(selection: Selection): StoreExports.Selection {
  const { matchers = [], startMs, endMs } = selection;
  return {
    matchers: matchers.map(toMatcher),
    range: {
      startMs: startMs === undefined ? TIME_MIN : toMs(startMs, 'startMs'),
      endMs: endMs === undefined ? TIME_MAX : toMs(endMs, 'endMs'),
    },
    // What follows matters to encoded frames only.
    format: 'samples',
    queryIndex: 0,
    frameBytesMax: 0,
    samplesMax: 0n,
    externalLabels: [],
  };
}

/** What to look up. */
export function toLookup(lookup: Lookup): StoreExports.Lookup {
  const { matchers, range } = toSelection(lookup);
  return { matcherSets: [matchers], range, limit: toCount(lookup.limit ?? 0, 'limit') };
}

/** Damage, for people. */
export function damageText(damage: { where: string; offset: bigint; reason: string }): string {
  return `${damage.where} at byte ${damage.offset}: ${damage.reason}`;
}

function toMatcher({ name, op, value }: Matcher): StoreExports.Matcher {
  const known = MATCH_OPS.get(op);
  if (known === undefined) {
    throw new InvalidError(`${op} is none of the operators ${[...MATCH_OPS.keys()].join(' ')}`);
  }
  const what = "a matcher's";
  return { name: toText(name, `${what} name`), op: known, value: toText(value, `${what} value`) };
}

/** A string. */
export function toText(text: unknown, what: string): string {
  if (typeof text === 'string') return text;
  throw new InvalidError(`${what} is ${String(text)}, not a string`);
}

/** Bytes, and no mere list of numbers. */
export function toBytes(bytes: unknown, what: string): Uint8Array {
  if (bytes instanceof Uint8Array) return bytes;
  throw new InvalidError(`${what} is no Uint8Array`);
}

/** A version of remote write. */
export function toVersion(version: unknown): StoreExports.RemoteWriteVersion {
  if (version === 'v1' || version === 'v2') return version;
  throw new InvalidError(`${String(version)} is no version of remote write: v1 and v2 are`);
}
