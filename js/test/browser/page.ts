/** What runs in the page for the tests: short calls on one store, whose answers can cross. */

import { deleteStore, openInWorker, type WorkerOpenOptions, type WorkerStore } from '../../src/worker/index.js';

let store: WorkerStore | undefined;

function opened(): WorkerStore {
  if (store === undefined) throw new Error('no store is open');
  return store;
}

/** Opens the store; an error comes as text. */
export async function open(options: WorkerOpenOptions = {}): Promise<string> {
  try {
    store = await openInWorker(options);
    return 'open';
  } catch (error) {
    return String(error);
  }
}

export function close(): Promise<void> {
  return opened().close();
}

/** Some time in November 2023, at the beginning of two hours. */
const START_MS = 1_699_999_200_000;

/** Writes so many series over these steps of 15 s, in batches of some steps; tells after each. */
export async function write(series: number, fromStep: number, toStep: number): Promise<number> {
  const labels = Array.from({ length: series }, (_, s) => ({ __name__: 'm', s: `${s}` }));
  const refs = BigUint64Array.from(await opened().seriesRefs(labels));
  let written = 0;
  const steps = Math.max(1, Math.floor(20_000 / series));
  for (let from = fromStep; from < toStep; from += steps) {
    const count = Math.min(steps, toStep - from);
    const column = new BigUint64Array(count * series);
    const timestampsMs = new Float64Array(count * series);
    const values = new Float64Array(count * series);
    for (let i = 0; i < count; i += 1) {
      column.set(refs, i * series);
      timestampsMs.fill(START_MS + 15_000 * (from + i), i * series, (i + 1) * series);
      for (let s = 0; s < series; s += 1) values[i * series + s] = s * 1000 + from + i;
    }
    const outcome = await opened().append({ series: column, timestampsMs, values });
    written += outcome.samplesWritten;
    console.log(`acknowledged ${written}`);
  }
  return written;
}

/** How much there is, and whether it is what `write` wrote from step 0 on. */
export async function check(): Promise<{ series: number; samples: number; wrong: number }> {
  const found = { series: 0, samples: 0, wrong: 0 };
  for await (const { labels, timestampsMs, values } of opened().select()) {
    const s = Number(labels['s']);
    found.series += 1;
    found.samples += values.length;
    for (let i = 0; i < values.length; i += 1) {
      const isRight = values[i] === s * 1000 + i && timestampsMs[i] === START_MS + 15_000 * i;
      if (!isRight) found.wrong += 1;
    }
  }
  return found;
}

export async function compact(): Promise<number> {
  return (await opened().compact()).length;
}

export async function stats(): Promise<{ blocks: number; headSeries: number }> {
  const { blocks, headSeries } = await opened().stats();
  return { blocks, headSeries };
}

/** Writes until an error comes, which is given with the samples that were written before. */
export async function writeUntilError(series: number): Promise<{ error: string; steps: number }> {
  for (let step = 0; ; step += 50) {
    try {
      await write(series, step, step + 50);
    } catch (error) {
      return { error: String(error), steps: step };
    }
    if (step > 100_000) return { error: '', steps: step };
  }
}

/** All files of the data directory, in base 64. */
export async function files(): Promise<{ path: string; base64: string }[]> {
  const all: { path: string; base64: string }[] = [];
  for await (const { path, bytes } of opened().files()) {
    let text = '';
    for (let at = 0; at < bytes.length; at += 8192) {
      text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    }
    all.push({ path, base64: btoa(text) });
  }
  return all;
}

/** Deletes a store; an error comes as text. */
export async function remove(name: string): Promise<string> {
  return deleteStore(name).then(() => 'deleted', String);
}
