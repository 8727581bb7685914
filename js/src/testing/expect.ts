/**
 * Assertions on metrics, as Playwright and Vitest word theirs. Each is tried again until it holds
 * or its time is up, since what a page does takes its time; a failure shows what was there.
 */

import type { PlainSeries } from './recorder.js';
import { readSeries, type MetricSource } from './source.js';

/** Default time for which an assertion is retried. */
export const TIMEOUT_MS = 2000;

/** How long until it is tried again. */
const PAUSE_MS = 25;

/** Most names, series and values that a message shows. */
const SHOWN_MAX = 10;

/** Labels that a series must have; others it may have. */
export type WantedLabels = Readonly<Record<string, string | RegExp>>;

/** How to assert. */
export interface ExpectOptions {
  /** How long it is tried; 0: once. Default: {@link TIMEOUT_MS}. */
  readonly timeoutMs?: number;
}

/** What an assertion found, and why it does not hold. */
interface Verdict {
  readonly holds: boolean;
  /** `expected … to …`, and what stands against it. */
  readonly wanted: string;
  readonly found: string;
  readonly expected?: unknown;
  readonly actual?: unknown;
}

/** A metric is not as it was expected to be. Runners show `actual` and `expected`. */
export class MetricAssertionError extends Error {
  override readonly name = 'AssertionError';
  constructor(
    message: string,
    readonly actual: unknown,
    readonly expected: unknown,
  ) {
    super(message);
  }
}

/** Asserts on the series of this name with these labels, of which there should be one. */
export function expectMetric(
  source: MetricSource,
  name: string,
  labels: WantedLabels = {},
  options: ExpectOptions = {},
): MetricExpectation {
  return new MetricExpectation(source, name, labels, options, false);
}

/** What can be asserted of a metric. */
export class MetricExpectation {
  readonly #source: MetricSource;
  readonly #name: string;
  readonly #labels: WantedLabels;
  readonly #options: ExpectOptions;
  readonly #isNot: boolean;

  /** Use {@link expectMetric}. */
  constructor(
    source: MetricSource,
    name: string,
    labels: WantedLabels,
    options: ExpectOptions,
    isNot: boolean,
  ) {
    this.#source = source;
    this.#name = name;
    this.#labels = labels;
    this.#options = options;
    this.#isNot = isNot;
  }

  /** The opposite of what follows. */
  get not(): MetricExpectation {
    const { timeoutMs = TIMEOUT_MS } = this.#options;
    const opposite = !this.#isNot;
    return new MetricExpectation(this.#source, this.#name, this.#labels, { timeoutMs }, opposite);
  }

  /** Any series matches, with one sample at least. */
  toExist(): Promise<void> {
    return this.#assert((series) => {
      const samples = series.reduce((sum, { values }) => sum + values.length, 0);
      return { holds: samples > 0, wanted: 'to exist', found: `it has ${samples} samples` };
    });
  }

  /** So many series match. */
  toHaveSeries(count: number): Promise<void> {
    return this.#assert(({ length }) => ({
      ...compared(length, count, Object.is(length, count)),
      wanted: `to be ${count} series`,
      found: `there are ${length}`,
    }));
  }

  /** The newest value. */
  toHaveLast(value: number): Promise<void> {
    return this.#assertOne(({ values }) => {
      const last = values.at(-1);
      const wanted = `to have the last value ${value}`;
      return { ...compared(last, value, Object.is(last, value)), wanted, found: `it is ${last}` };
    });
  }

  /** The newest value, but for less than half a unit of so many digits behind the point. */
  toHaveLastCloseTo(value: number, digits = 2): Promise<void> {
    return this.#assertOne(({ values }) => {
      const last = values.at(-1) ?? NaN;
      const holds = Math.abs(last - value) < 10 ** -digits / 2;
      const wanted = `to have a last value of ${value}, to ${digits} digits`;
      return { ...compared(last, value, holds), wanted, found: `it is ${last}` };
    });
  }

  /** All values, from the first to the last. */
  toHaveValues(values: readonly number[]): Promise<void> {
    return this.#assertOne((series) => {
      const isSame = (one: number, i: number) => Object.is(one, values[i]);
      const holds = series.values.length === values.length && series.values.every(isSame);
      const wanted = `to have the values ${list(values)}`;
      const found = `they are ${list(series.values)}`;
      return { ...compared(series.values, values, holds), wanted, found };
    });
  }

  /** So many samples. */
  toHaveSamples(count: number): Promise<void> {
    return this.#assertOne(({ values: { length } }) => ({
      ...compared(length, count, Object.is(length, count)),
      wanted: `to have ${count} samples`,
      found: `it has ${length}`,
    }));
  }

  /** The last value less the first one; a value below the one before is a reset to 0. */
  toHaveIncreasedBy(amount: number): Promise<void> {
    return this.#assertOne(({ values }) => {
      let increase = 0;
      values.forEach((value, i) => {
        const before = values[i - 1];
        if (before !== undefined) increase += value < before ? value : value - before;
      });
      const wanted = `to have increased by ${amount}`;
      const found = `it increased by ${increase}`;
      return { ...compared(increase, amount, Object.is(increase, amount)), wanted, found };
    });
  }

  /** No value lies outside; what is left out has no bound. */
  toStayWithin({ min = -Infinity, max = Infinity }: { min?: number; max?: number }): Promise<void> {
    return this.#assertOne(({ values }) => {
      const outside = values.filter((value) => !(value >= min && value <= max));
      const wanted = `to stay within ${min} and ${max}`;
      const found = `${list(outside)} did not`;
      return { ...compared(outside, [], outside.length === 0), wanted, found };
    });
  }

  #assertOne(judge: (series: PlainSeries) => Verdict): Promise<void> {
    return this.#assert((series) => {
      const [only, ...others] = series;
      if (only !== undefined && others.length === 0) return judge(only);
      const wanted = judge({ labels: {}, timestampsMs: [], values: [] }).wanted;
      const found = only === undefined ? 'there is none' : `${series.length} series match`;
      // Neither an assertion nor its opposite can be said of what is not one series.
      return { holds: this.#isNot, wanted, found };
    });
  }

  async #assert(judge: (series: PlainSeries[]) => Verdict): Promise<void> {
    const endMs = performance.now() + (this.#options.timeoutMs ?? TIMEOUT_MS);
    for (;;) {
      try {
        const named = await readSeries(this.#source, this.#name);
        const verdict = judge(named.filter((series) => this.#matches(series)));
        if (verdict.holds !== this.#isNot) return;
        if (performance.now() >= endMs) throw await this.#failure(verdict, named);
      } catch (error) {
        // A page may have yet to begin, or be on its way to another one.
        const isPage = 'evaluate' in this.#source;
        if (!isPage || performance.now() >= endMs) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  #matches({ labels }: PlainSeries): boolean {
    return Object.entries(this.#labels).every(([name, wanted]) => {
      const value = labels[name] ?? '';
      return wanted instanceof RegExp ? wanted.test(value) : wanted === value;
    });
  }

  async #failure(verdict: Verdict, named: PlainSeries[]): Promise<MetricAssertionError> {
    const { wanted, found, actual, expected } = verdict;
    const metric = this.#name + braces(this.#labels);
    const not = this.#isNot ? 'not ' : '';
    const lines = [`expected ${metric} ${not}${wanted}, but ${found}`, ''];
    if (named.length > 0) {
      lines.push(`Series of ${this.#name}:`, ...shown(named.map(seriesLine)));
    } else {
      const all = await readSeries(this.#source);
      const names = [...new Set(all.map(({ labels }) => labels['__name__'] ?? ''))];
      const others = names.length === 0 ? ['  nothing at all'] : shown(names.map((n) => `  ${n}`));
      lines.push(`No series is called ${this.#name}. Recorded was:`, ...others);
    }
    return new MetricAssertionError(lines.join('\n'), actual, expected);
  }
}

function compared(actual: unknown, expected: unknown, holds: boolean) {
  return { actual, expected, holds };
}

/** `  {user="a"}  4 samples, last 2 at 12:00:01.123: 0 1 1 2` */
function seriesLine({ labels, timestampsMs, values }: PlainSeries): string {
  const { __name__, ...others } = labels;
  const last = timestampsMs.at(-1) ?? 0;
  const time = new Date(last).toISOString().slice(11, -1);
  const text = braces(others) || '{}';
  return `  ${text}  ${values.length} samples, the last at ${time}: ${list(values)}`;
}

function braces(labels: WantedLabels): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    return value instanceof RegExp ? `${name}=~${value}` : `${name}=${JSON.stringify(value)}`;
  });
  return pairs.length === 0 ? '' : `{${pairs.join(', ')}}`;
}

/** The last values count the most. */
function list(values: readonly number[]): string {
  if (values.length === 0) return 'none';
  const dots = values.length > SHOWN_MAX ? '… ' : '';
  const text = (value: number) => (Object.is(value, -0) ? '-0' : String(value));
  return dots + values.slice(-SHOWN_MAX).map(text).join(' ');
}

function shown(lines: readonly string[]): string[] {
  const rest = lines.length - SHOWN_MAX;
  return [...lines.slice(0, SHOWN_MAX), ...(rest > 0 ? [`  and ${rest} more`] : [])];
}
