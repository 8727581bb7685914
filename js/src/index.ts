/**
 * tidepool in JavaScript: a Prometheus-compatible store of metrics, as a WebAssembly component.
 *
 * {@link open} opens a store on a storage; {@link Store} writes to it and reads from it.
 */

export * from './common.js';
export { open } from './open.js';
export type { Store } from './store.js';
