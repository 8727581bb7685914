//! Translates summaries: rows for sum, count and quantiles.

use super::attributes::bound_text;
use super::metric::Metric;
use super::proto::metrics::v1::SummaryDataPoint;
use super::{PartError, Translator, float, millis, part};
use crate::prom::rows::{NAME, RowSink};

impl<S: RowSink> Translator<'_, S> {
    /// Translates a data point: its sum, its count and its quantiles.
    pub(super) fn summary(&mut self, metric: &Metric<'_>, message: &[u8]) -> Result<(), PartError> {
        let point: SummaryDataPoint = part(message, 7)?;
        let mut labels = self.labels(metric.source, &point.attributes)?;
        let timestamp_ms = millis(point.time_unix_nano);
        let row = |value| float(point.flags, value);
        for (end, value) in [("sum", point.sum), ("count", point.count as f64)] {
            labels.set(NAME, format!("{}_{end}", metric.name));
            self.sink.row(&labels, timestamp_ms, row(value), &[])?;
        }
        labels.set(NAME, metric.name.as_str());
        for at in &point.quantile_values {
            labels.set("quantile", bound_text(at.quantile));
            self.sink.row(&labels, timestamp_ms, row(at.value), &[])?;
        }
        Ok(())
    }
}
