//! Translates OTLP metrics to rows of the store, by the rules of Prometheus.
//!
//! ```text
//! resource ─▶ job, instance, promoted attributes;  target_info        labels, target
//!  └ scope ─▶ otel_scope_* if asked for                               labels
//!     └ metric ─▶ name with unit and type; metadata                   names
//!        ├ gauge, sum ─▶ one row a data point                         number
//!        ├ histogram ─▶ _sum, _count, _bucket rows                    histogram
//!        ├ exponential histogram ─▶ one native histogram              exponential
//!        └ summary ─▶ _sum, _count, quantile rows                     summary
//! ```
//!
//! Source: `storage/remote/otlptranslator/prometheusremotewrite` of Prometheus 3.15, with its
//! default configuration. Differences: upstream drops a whole request and answers 500 if one data
//! point cannot be translated; here the other points are kept, and the answer is OTLP's partial
//! success. Upstream writes samples of `target_info` between data points at any distance. Upstream
//! may move observations when it merges buckets after empty ones; here none move.
//!
//! No sockets and no clock. A request is read in place, and one data point of bounded size is
//! decoded at a time.

mod attributes;
mod exemplar;
mod exponential;

mod histogram;
mod labels;
mod metric;
mod names;
mod number;
pub mod proto;
mod summary;
mod target;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use names::Strategy;
pub use tidepool_remote_write::Malformed;

use crate::prom::fields::{last, messages};
use crate::prom::rows::{LabelSet, ReceiverClosed, RowSink, RowValue};
use labels::ResourceLabels;
use prost::Message;
use proto::common::v1::{InstrumentationScope, KeyValue};
use proto::metrics::v1::DataPointFlags;
use proto::resource::v1::Resource;
use std::fmt::Display;
use target::{Targets, Times};
use tidepool_model::STALE_NAN;
use tidepool_remote_write::{Fields, Value};

/// Settings of the OTLP translation.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Translation of metric and label names.
    pub strategy: Strategy,
    /// Resource attributes that become labels of all series of the resource.
    pub promoted_attributes: Vec<String>,
    /// Whether `target_info` also has the attributes that became job and instance.
    pub keep_identifying: bool,
    /// Whether name, version and attributes of the scope become labels.
    pub promote_scope: bool,
}

/// Size limit of a data point, resource or scope: decoding can need sixty bytes for each byte.
pub const PART_BYTES_MAX: usize = 256 * 1024;

/// Limit on the attributes of a data point, resource or scope: each row repeats them.
pub const ATTRIBUTES_MAX: usize = 256;

/// Maximum number of reasons in a report.
const REASONS_MAX: usize = 10;

/// Limit on the characters of a name in a reason.
const NAME_CHARS_MAX: usize = 200;

/// Returns the beginning of a name, for an error.
fn beginning(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// Result of translating a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of data points that were not translated.
    pub rejected_points: u64,
    /// Reasons of the first rejections.
    pub reasons: Vec<String>,
}

/// Error that ends a translation.
#[derive(Debug, thiserror::Error)]
pub enum TranslateError {
    /// The body is not a valid request; no part of it was translated.
    #[error("the body is not an ExportMetricsServiceRequest: {0}")]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    ReceiverClosed(#[from] ReceiverClosed),
}

/// Reason for rejecting a part of a request.
#[derive(Debug, thiserror::Error)]
enum PartError {
    #[error("it has no time")]
    NoTime,
    #[error("{0}")]
    Decode(#[from] prost::DecodeError),
    #[error("it has {bytes} bytes, more than {PART_BYTES_MAX}")]
    TooLarge { bytes: usize },
    #[error("it has {attributes} attributes, more than {ATTRIBUTES_MAX}")]
    TooManyAttributes { attributes: usize },
    #[error(transparent)]
    Name(#[from] names::NameError),
    #[error(transparent)]
    Exponential(#[from] exponential::ExponentialError),
    #[error(transparent)]
    ReceiverClosed(#[from] ReceiverClosed),
}

/// Field numbers on the path to data points: resources of a request, scopes of a resource, metrics
/// of a scope, data of a metric.
const PATH: [&[u32]; 4] = [&[1], &[2], &[2], &metric::DATA];

/// Translates a request; the report counts the parts that cannot be translated.
pub fn translate(
    body: &[u8],
    settings: &Settings,
    sink: &mut impl RowSink,
) -> Result<Report, TranslateError> {
    // Written rows cannot be taken back, so damage must be found before the first row.
    walk(body, &PATH)?;
    let mut translator =
        Translator { settings, sink, report: Report::default(), targets: Targets::default() };
    for resource_metrics in messages(body, 1) {
        translator.resource_metrics(resource_metrics)?;
    }
    Ok(translator.report)
}

/// Checks the structure down to the data points, so that a truncated body writes no rows.
fn walk(message: &[u8], path: &[&[u32]]) -> Result<(), Malformed> {
    for field in Fields::new(message) {
        if let ((number, Value::Bytes(inside)), [numbers, path @ ..]) = (field?, path)
            && numbers.contains(&number)
        {
            walk(inside, path)?;
        }
    }
    Ok(())
}

/// Counts the data points of a part of a request.
fn count_points(message: &[u8], path: &[&[u32]]) -> u64 {
    let [numbers, path @ ..] = path else { return messages(message, 1).count() as u64 };
    numbers
        .iter()
        .flat_map(|number| messages(message, *number))
        .fold(0, |points, inside| points + count_points(inside, path))
}

/// State of a translation in progress.
struct Translator<'a, S> {
    settings: &'a Settings,
    sink: &'a mut S,
    report: Report,
    targets: Targets,
}

/// Properties that the metrics of one scope share.
struct Source<'a> {
    resource: &'a ResourceLabels,
    scope: Option<LabelSet>,
}

impl<S: RowSink> Translator<'_, S> {
    fn resource_metrics(&mut self, message: &[u8]) -> Result<(), ReceiverClosed> {
        self.sink.go_on()?;
        let resource: Result<Resource, _> = part(last(message, 1).unwrap_or_default(), 1);
        let resource = resource.and_then(|resource| {
            let labels = ResourceLabels::new(self.settings, &resource.attributes)?;
            Ok((resource, labels))
        });
        let (resource, labels) = match resource {
            Ok(found) => found,
            Err(why) => {
                // Without the resource's labels, the series of its data points are unknown.
                self.reject(count_points(message, &PATH[1..]), "a resource", &why);
                return Ok(());
            }
        };
        let mut times = Times::default();
        for scope_metrics in messages(message, 2) {
            self.scope_metrics(&labels, scope_metrics, &mut times)?;
        }
        // Written last, because the times of the data points determine its samples.
        self.target_info(&resource.attributes, &labels, &times)
    }

    fn scope_metrics(
        &mut self,
        resource: &ResourceLabels,
        message: &[u8],
        times: &mut Times,
    ) -> Result<(), ReceiverClosed> {
        self.sink.go_on()?;
        let schema_url = String::from_utf8_lossy(last(message, 3).unwrap_or_default());
        let scope: Result<InstrumentationScope, _> = part(last(message, 1).unwrap_or_default(), 3);
        let scope =
            scope.and_then(|scope| Ok(labels::of_scope(self.settings, &scope, &schema_url)?));
        let scope = match scope {
            Ok(scope) => scope,
            Err(why) => {
                self.reject(count_points(message, &PATH[2..]), "a scope", &why);
                return Ok(());
            }
        };
        let source = Source { resource, scope };
        messages(message, 2).try_for_each(|metric| self.metric(&source, metric, times))
    }

    fn labels(
        &self,
        source: &Source<'_>,
        attributes: &[KeyValue],
    ) -> Result<LabelSet, names::NameError> {
        labels::of_point(self.settings, source.resource, source.scope.as_ref(), attributes)
    }

    fn reject(&mut self, points: u64, what: &str, why: &dyn Display) {
        self.report.rejected_points += points;
        if self.report.reasons.len() < REASONS_MAX {
            self.report.reasons.push(format!("{what}: {why}"));
        }
    }
}

/// Decodes a message of bounded size; `attributes` is the number of its attributes field.
fn part<M: Message + Default>(bytes: &[u8], attributes: u32) -> Result<M, PartError> {
    // Both limits are checked before decoding, which multiplies the size.
    if bytes.len() > PART_BYTES_MAX {
        return Err(PartError::TooLarge { bytes: bytes.len() });
    }
    let attributes = messages(bytes, attributes).count();
    if attributes > ATTRIBUTES_MAX {
        return Err(PartError::TooManyAttributes { attributes });
    }
    Ok(M::decode(bytes)?)
}

/// Converts to milliseconds, rounding toward zero as upstream does.
fn millis(nanos: u64) -> i64 {
    // Wraps beyond 2^63 ns, as upstream's conversion does.
    nanos as i64 / 1_000_000
}

/// Returns a data point's value, or the stale marker.
fn float(flags: u32, value: f64) -> RowValue<'static> {
    RowValue::Float(if is_stale(flags) { STALE_NAN } else { value })
}

/// Returns whether a data point is a stale marker.
fn is_stale(flags: u32) -> bool {
    flags & DataPointFlags::NoRecordedValueMask as u32 != 0
}
