/** Where an assertion finds metrics: a recorder, a store, or a page that a runner drives. */

import type { Selection, Series } from '../model.js';
import { GLOBAL_NAME, toPlain, type PlainSeries } from './recorder.js';

/** Something that was recorded into. */
export type MetricSource = RecorderLike | StoreLike | PageLike;

/** A `MetricRecorder`. */
export interface RecorderLike {
  read(name?: string): PlainSeries[];
}

/** A `Store`, or a `WorkerStore`. */
export interface StoreLike {
  select(selection?: Selection): Iterable<Series> | AsyncIterable<Series>;
}

/** A page, frame or worker of Playwright's, or of Puppeteer's, in which a recorder was begun. */
export interface PageLike {
  evaluate(run: (argument: Asked) => unknown, argument: Asked): Promise<unknown>;
}

/** Name of the recorder, and of the metric. */
export type Asked = readonly [global: string, name: string | undefined];

/** All series of a name, or of all names. */
export async function readSeries(source: MetricSource, name?: string): Promise<PlainSeries[]> {
  if ('evaluate' in source) return readPage(source, name);
  if ('read' in source) return source.read(name);
  const matchers = name === undefined ? [] : [{ name: '__name__', op: '=', value: name } as const];
  const all: PlainSeries[] = [];
  for await (const series of source.select({ matchers })) all.push(toPlain(series));
  return all;
}

async function readPage(page: PageLike, name: string | undefined): Promise<PlainSeries[]> {
  // Runs in the page, so that it sees nothing of this module.
  const read = ([global, name]: Asked) => {
    const recorder = (globalThis as Record<string, unknown>)[global] as RecorderLike | undefined;
    return recorder?.read(name);
  };
  const series = await page.evaluate(read, [GLOBAL_NAME, name]);
  if (series !== undefined) return series as PlainSeries[];
  throw new Error('the page records no metrics: call recordMetrics() of @tidepool/engine/testing');
}
