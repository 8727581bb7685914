/**
 * `@tidepool/engine/promql`: as `@tidepool/engine`, with a component that has PromQL. A program
 * loads one of the two.
 */

export * from '../common.js';
export { QueryAnswer } from './answer.js';
export * from './model.js';
export { open, type PromqlStore as Store } from './store.js';
