/** `@tidepool/engine/worker`: a store in a worker of its own, for pages. */

import { WorkerStore } from './client.js';
import type { WorkerOpenOptions } from './protocol.js';

export * from '../errors.js';
export { snappyUnpack as unpackSnappy } from '../files/snappy.js';
export { histogramBuckets } from '../histogram.js';
export type * from '../model.js';
export { isStale, setStale } from '../stale.js';
export type { WorkerStore } from './client.js';
export { deleteStore } from './delete.js';
export type { WorkerOpenOptions } from './protocol.js';

/**
 * Opens a store in a new worker, which keeps it in the browser's files. It is there again after a
 * reload; another tab that opens it meanwhile gets an error that says so.
 */
export function openInWorker(options: WorkerOpenOptions = {}): Promise<WorkerStore> {
  const worker = new Worker(new URL('./main.js', import.meta.url), { type: 'module' });
  return WorkerStore.open(worker, () => worker.terminate(), options);
}
