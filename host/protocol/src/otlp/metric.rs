//! One metric: its name, its metadata, and the kind of its data points.

use super::names::{NameKind, unit_word};
use super::proto::metrics::v1::AggregationTemporality;
use super::target::Times;
use super::{PartError, Source, Translator, beginning};
use crate::prom::fields::{last, last_number, messages};
use crate::prom::points::RowsOf;
use crate::prom::rows::{Family, MetricType, ReceiverClosed, RowSink};
use tidepool_remote_write::{Fields, Value};

/// Numbers of the fields that hold a metric's data, one for each kind.
pub const DATA: [u32; 5] = [5, 7, 9, 10, 11];

/// Numbers of a metric's other length-delimited fields: name, description, unit and metadata.
const NO_DATA: [u32; 4] = [1, 2, 3, 12];

/// Number of the time field in data points of all kinds.
const TIME: u32 = 3;

/// The kinds of data, in the order of [`DATA`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gauge,
    Sum { is_monotonic: bool },
    Histogram,
    ExponentialHistogram,
    Summary,
}

/// The properties that all data points of a metric share.
pub struct Metric<'a> {
    /// Source of the labels of resource and scope.
    pub source: &'a Source<'a>,
    pub name: String,
}

impl Kind {
    fn of(metric: &[u8]) -> Option<(Kind, &[u8])> {
        let found = DATA.iter().filter_map(|number| Some((*number, last(metric, *number)?)));
        // No sender writes several kinds; if one does, the last kind in the message is used.
        let (number, data) = found.max_by_key(|(_, data)| data.as_ptr_range().end)?;
        let kind = match number {
            5 => Kind::Gauge,
            7 => Kind::Sum { is_monotonic: last_number(data, 3) != 0 },
            9 => Kind::Histogram,
            10 => Kind::ExponentialHistogram,
            _ => Kind::Summary,
        };
        Some((kind, data))
    }

    fn has_temporality(self) -> bool {
        !matches!(self, Kind::Gauge | Kind::Summary)
    }

    fn name_kind(self) -> NameKind {
        match self {
            Kind::Sum { is_monotonic: true } => NameKind::Counter,
            Kind::Gauge => NameKind::Gauge,
            _ => NameKind::Other,
        }
    }

    fn rows_of(self) -> RowsOf {
        match self {
            Kind::Histogram | Kind::Summary => RowsOf::WidePoint,
            Kind::Gauge | Kind::Sum { .. } | Kind::ExponentialHistogram => RowsOf::Point,
        }
    }

    fn metric_type(self) -> MetricType {
        match self {
            Kind::Sum { is_monotonic: true } => MetricType::Counter,
            Kind::Gauge | Kind::Sum { .. } => MetricType::Gauge,
            Kind::Histogram | Kind::ExponentialHistogram => MetricType::Histogram,
            Kind::Summary => MetricType::Summary,
        }
    }
}

/// Counts the data points of unknown kinds, assuming that they are in field 1 as in known kinds.
fn unknown_points(metric: &[u8]) -> u64 {
    let data = Fields::new(metric).map_while(Result::ok).filter_map(|field| match field {
        (number, Value::Bytes(data)) if !NO_DATA.contains(&number) => Some(data),
        _ => None,
    });
    data.map(|data| messages(data, 1).count() as u64).sum()
}

impl<S: RowSink> Translator<'_, S> {
    /// Translates a metric. A metric without data points is skipped.
    pub(super) fn metric(
        &mut self,
        source: &Source<'_>,
        message: &[u8],
        times: &mut Times,
    ) -> Result<(), ReceiverClosed> {
        // Rejected metrics write no rows, so a disconnected client must be noticed here.
        self.sink.go_on()?;
        let text = |number| String::from_utf8_lossy(last(message, number).unwrap_or_default());
        let (name, help, unit) = (text(1), text(2), text(3));
        let shown = format!("metric {:?}", beginning(&name));
        let Some((kind, data)) = Kind::of(message) else {
            self.reject(unknown_points(message), &shown, &"it has no data of a known kind");
            return Ok(());
        };
        let points = messages(data, 1).count() as u64;
        if points == 0 {
            return Ok(());
        }
        // Prometheus stores cumulative values only.
        let is_cumulative = last_number(data, 2) == AggregationTemporality::Cumulative as u64;
        if kind.has_temporality() && !is_cumulative {
            let why = "its temporality is not cumulative; let the sender export cumulative values, \
                       or convert them in a collector (deltatocumulative)";
            self.reject(points, &shown, &why);
            return Ok(());
        }
        let built = match self.settings.strategy.metric(&name, &unit, kind.name_kind()) {
            Ok(built) => built,
            Err(why) => {
                self.reject(points, &shown, &why);
                return Ok(());
            }
        };
        let metric = Metric { source, name: built };
        let mut is_used = false;
        for point in messages(data, 1) {
            self.sink.go_on()?;
            let nanos = last_number(point, TIME);
            self.sink.begin(kind.rows_of());
            let taken = match kind {
                // Protobuf does not distinguish an absent time from zero.
                _ if nanos == 0 => Err(PartError::NoTime),
                Kind::Gauge => self.number(&metric, point, false),
                Kind::Sum { .. } => self.number(&metric, point, true),
                Kind::Histogram => self.histogram(&metric, point),
                Kind::ExponentialHistogram => self.exponential(&metric, point),
                Kind::Summary => self.summary(&metric, point),
            };
            match taken {
                Ok(()) => {
                    is_used = true;
                    times.add(nanos);
                }
                Err(PartError::ReceiverClosed(gone)) => return Err(gone),
                Err(why) => self.reject(1, &shown, &format_args!("a data point: {why}")),
            }
        }
        // Metadata is written only for families with rows.
        if !is_used {
            return Ok(());
        }
        let unit = unit_word(&unit);
        let kind = kind.metric_type();
        self.sink.family(Family { name: &metric.name, kind, help: &help, unit: &unit })
    }
}
