/** `@tidepool/engine/promql/worker`: as `@tidepool/engine/worker`, with queries in PromQL. */

import { PromqlWorkerStore } from './client.js';
import type { WorkerOpenOptions } from '../../worker/protocol.js';

export * from '../../errors.js';
export { snappyUnpack as unpackSnappy } from '../../files/snappy.js';
export { histogramBuckets } from '../../histogram.js';
export type * from '../../model.js';
export { isStale, setStale } from '../../stale.js';
export { deleteStore } from '../../worker/delete.js';
export type { WorkerOpenOptions } from '../../worker/protocol.js';
export { QueryAnswer } from '../answer.js';
export * from '../model.js';
export type { PromqlWorkerStore as WorkerStore } from './client.js';

/**
 * Opens a store in a new worker, which keeps it in the browser's files. It is there again after a
 * reload; another tab that opens it meanwhile gets an error that says so.
 */
export function openInWorker(options: WorkerOpenOptions = {}): Promise<PromqlWorkerStore> {
  const worker = new Worker(new URL('./main.js', import.meta.url), { type: 'module' });
  return PromqlWorkerStore.open(worker, () => worker.terminate(), options);
}
