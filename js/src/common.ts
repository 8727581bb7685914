/** What the package exports with PromQL and without it. */

export { decodeChunk, type Samples } from './chunk.js';
export * from './errors.js';
export { decodeHistograms, histogramBuckets, type Bucket } from './histogram.js';
export { snappyUnpack as unpackSnappy } from './files/snappy.js';
export { MemoryStorage } from './imports/memory.js';
export type * from './imports/storage.js';
export type * from './model.js';
export { decodeSeries } from './select.js';
export { isStale, setStale, STALE_NAN_BITS } from './stale.js';
export {
  BLOCK_DURATION_MS,
  FUTURE_LIMIT_MS,
  LABEL_NAME_BYTES_MAX,
  LABEL_VALUE_BYTES_MAX,
  LABELS_MAX,
  OUT_OF_ORDER_WINDOW_MS,
  type OpenOptions,
} from './store.js';
