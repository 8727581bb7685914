//! Translates histograms with explicit bounds to classic histograms, whose buckets are series.

use super::attributes::bound_text;
use super::metric::Metric;
use super::proto::metrics::v1::ExponentialHistogramDataPoint;
use super::proto::metrics::v1::HistogramDataPoint;
use super::{PartError, Translator, exemplar, exponential, float, millis, part};
use crate::prom::rows::{NAME, RowSink, RowValue};

const LE: &str = "le";

impl<S: RowSink> Translator<'_, S> {
    /// Translates a data point to rows: the sum if present, the count, and all cumulative buckets.
    pub(super) fn histogram(
        &mut self,
        metric: &Metric<'_>,
        message: &[u8],
    ) -> Result<(), PartError> {
        let point: HistogramDataPoint = part(message, 9)?;
        let mut labels = self.labels(metric.source, &point.attributes)?;
        let name = &metric.name;
        let timestamp_ms = millis(point.time_unix_nano);
        let row = |value| float(point.flags, value);
        let count = row(point.count as f64);
        if let Some(sum) = point.sum {
            labels.set(NAME, format!("{name}_sum"));
            self.sink.row(&labels, timestamp_ms, row(sum), &[])?;
        }
        labels.set(NAME, format!("{name}_count"));
        self.sink.row(&labels, timestamp_ms, count, &[])?;
        labels.set(NAME, format!("{name}_bucket"));
        let exemplars = exemplar::translate(&point.exemplars, point.flags, timestamp_ms);
        let mut exemplars = exemplars.as_slice();
        let mut below = 0u64;
        for (bound, in_bucket) in point.explicit_bounds.iter().zip(&point.bucket_counts) {
            // Hostile counts may overflow 64 bits; the addition must not panic.
            below = below.wrapping_add(*in_bucket);
            labels.set(LE, bound_text(*bound));
            // Bounds and exemplars ascend, so the next exemplars are those of this bucket.
            let beyond = exemplars.iter().position(|exemplar| exemplar.value > *bound);
            let (own, rest) = exemplars.split_at(beyond.unwrap_or(exemplars.len()));
            self.sink.row(&labels, timestamp_ms, row(below as f64), own)?;
            exemplars = rest;
        }
        // The bucket `+Inf` includes all observations, so its count is that of the point.
        labels.set(LE, "+Inf");
        Ok(self.sink.row(&labels, timestamp_ms, count, exemplars)?)
    }

    /// Translates a data point of an exponential histogram: one native histogram.
    pub(super) fn exponential(
        &mut self,
        metric: &Metric<'_>,
        message: &[u8],
    ) -> Result<(), PartError> {
        let point: ExponentialHistogramDataPoint = part(message, 1)?;
        let histogram = exponential::translate(&point)?;
        let mut labels = self.labels(metric.source, &point.attributes)?;
        labels.set(NAME, metric.name.as_str());
        let timestamp_ms = histogram.timestamp;
        let exemplars = exemplar::translate(&point.exemplars, point.flags, timestamp_ms);
        let value = RowValue::Histogram(&histogram);
        Ok(self.sink.row(&labels, timestamp_ms, value, &exemplars)?)
    }
}
