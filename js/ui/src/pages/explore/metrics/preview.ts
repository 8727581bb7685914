/** The chart that shows a metric by its type. */

import type { ChartSpec } from '../../../charts/spec';
import { unitOf } from '../../../format/number';
import { selectorOf } from '../../../promql/selector';
import type { FamilyMetadata } from '../../../source/answers';

const RATE = '[5m]';
const QUANTILES = [0.5, 0.9, 0.99];

/** Counters as rates, histograms as quantiles, all else as it is. */
export function previewOf(metric: string, said: FamilyMetadata | undefined): ChartSpec {
  const selector = selectorOf(metric);
  const unit = unitOf(metric, said?.unit ?? '');
  const isCount = /_(total|count|sum)$/.test(metric);
  if (metric.endsWith('_bucket')) {
    return quantiles(metric, unit, `sum by (le) (rate(${selector}${RATE}))`);
  }
  if (said?.type === 'histogram' && !isCount) {
    return quantiles(metric, unit, `sum(rate(${selector}${RATE}))`);
  }
  if (said?.type === 'counter' || said?.type === 'histogram' || (said?.type !== 'gauge' && isCount)) {
    return { title: `rate(${selector}${RATE})`, unit: unit === 'bytes' ? 'bytes_per_second' : 'none', queries: [{ expr: `rate(${selector}${RATE})` }] };
  }
  return { title: selector, unit, queries: [{ expr: selector }] };
}

function quantiles(metric: string, unit: ChartSpec['unit'], rate: string): ChartSpec {
  return {
    title: `Quantiles of ${metric}`,
    unit,
    queries: QUANTILES.map((quantile) => ({ expr: `histogram_quantile(${quantile}, ${rate})`, title: `${quantile * 100} %` })),
  };
}
