/** `@tidepool/engine/testing`: a web application's tests record metrics and assert on them. */

export {
  expectMetric,
  MetricAssertionError,
  MetricExpectation,
  TIMEOUT_MS,
  type ExpectOptions,
  type WantedLabels,
} from './expect.js';
export { MetricRecorder, recordMetrics, type PlainSeries } from './recorder.js';
export type { MetricSource, PageLike, RecorderLike, StoreLike } from './source.js';
