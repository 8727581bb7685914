//! Translates gauges and sums: one row for each data point.

use super::metric::Metric;
use super::proto::metrics::v1::NumberDataPoint;
use super::proto::metrics::v1::number_data_point::Value;
use super::{PartError, Translator, exemplar, float, millis, part};
use crate::prom::rows::{NAME, RowSink};

impl<S: RowSink> Translator<'_, S> {
    /// Translates a data point. Upstream ignores exemplars of gauges.
    pub(super) fn number(
        &mut self,
        metric: &Metric<'_>,
        message: &[u8],
        has_exemplars: bool,
    ) -> Result<(), PartError> {
        let point: NumberDataPoint = part(message, 7)?;
        let mut labels = self.labels(metric.source, &point.attributes)?;
        labels.set(NAME, metric.name.as_str());
        let value = match point.value {
            Some(Value::AsDouble(value)) => value,
            Some(Value::AsInt(value)) => value as f64,
            // A stale point has no value; `float` replaces this 0 by the marker.
            None => 0.0,
        };
        let timestamp_ms = millis(point.time_unix_nano);
        let exemplars = match has_exemplars {
            true => exemplar::translate(&point.exemplars, point.flags, timestamp_ms),
            false => Vec::new(),
        };
        Ok(self.sink.row(&labels, timestamp_ms, float(point.flags, value), &exemplars)?)
    }
}
