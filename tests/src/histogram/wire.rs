//! Histograms and floats in remote-write requests and in answers.

use super::generate::{SentSeries, SentValue};
use super::{Point, Value, ValueSeries};
use crate::proto::prometheus::histogram::ResetHint;
use crate::proto::prometheus::{self, Histogram};
use crate::proto::write_v2;
use crate::remote_write::{Symbols, Version, compress, labels_v1};
use crate::series::Labels;
use prost::{Message, encoding};

/// One value of a series in a request.
#[derive(Clone, Copy, Debug)]
pub struct SentRow<'a> {
    pub labels: &'a Labels,
    pub timestamp_ms: i64,
    pub value: &'a SentValue,
}

/// An exemplar in a request.
#[derive(Clone, Debug)]
pub struct SentExemplar {
    /// Index of the request's row that carries the exemplar.
    pub row: usize,
    /// Labels of the exemplar itself.
    pub labels: Labels,
    pub timestamp_ms: i64,
    pub value: f64,
}

/// Returns the body of a request with these rows, each as a series of its own.
pub fn encode(version: Version, rows: &[SentRow<'_>]) -> Vec<u8> {
    encode_with(version, rows, &[])
}

/// As [`encode`], with exemplars.
///
/// Samples are written field by field: prost, like Prometheus' own encoder, takes negative zero for
/// the default value and leaves it out. Both versions write histograms alike.
pub fn encode_with(version: Version, rows: &[SentRow<'_>], exemplars: &[SentExemplar]) -> Vec<u8> {
    let mut message = Vec::new();
    let mut symbols = Symbols::default();
    for (number, row) in rows.iter().enumerate() {
        let mut series = Vec::new();
        match version {
            Version::V1 => {
                for label in labels_v1(row.labels) {
                    encoding::message::encode(1, &label, &mut series);
                }
            }
            Version::V2 => {
                encoding::uint32::encode_packed(1, &symbols.labels(row.labels), &mut series);
            }
        }
        match row.value {
            SentValue::Float(value) => {
                let mut sample = Vec::new();
                encoding::double::encode(1, value, &mut sample);
                encoding::int64::encode(2, &row.timestamp_ms, &mut sample);
                encoding::bytes::encode(2, &sample, &mut series);
            }
            SentValue::Histogram(histogram) => {
                let number = if version == Version::V1 { 4 } else { 3 };
                encoding::bytes::encode(number, &bytes(histogram, row.timestamp_ms), &mut series);
            }
        }
        for exemplar in exemplars.iter().filter(|exemplar| exemplar.row == number) {
            let SentExemplar { labels, timestamp_ms: timestamp, value, .. } = exemplar;
            let (timestamp, value) = (*timestamp, *value);
            match version {
                Version::V1 => {
                    let labels = labels_v1(labels);
                    let exemplar = prometheus::Exemplar { labels, value, timestamp };
                    encoding::message::encode(3, &exemplar, &mut series);
                }
                Version::V2 => {
                    let labels_refs = symbols.labels(labels);
                    let exemplar = write_v2::Exemplar { labels_refs, value, timestamp };
                    encoding::message::encode(4, &exemplar, &mut series);
                }
            }
        }
        let number = if version == Version::V1 { 1 } else { 5 };
        encoding::bytes::encode(number, &series, &mut message);
    }
    if version == Version::V2 {
        encoding::string::encode_repeated(4, &symbols.into_strings(), &mut message);
    }
    compress(&message)
}

fn bytes(histogram: &Histogram, timestamp_ms: i64) -> Vec<u8> {
    let mut bytes = Histogram { timestamp: timestamp_ms, ..histogram.clone() }.encode_to_vec();
    if histogram.sum.to_bits() == (-0.0f64).to_bits() {
        encoding::double::encode(3, &histogram.sum, &mut bytes);
    }
    bytes
}

/// Returns the expected answer to the sent series: the values at the resolution that is stored.
pub fn expected<'a>(series: impl IntoIterator<Item = &'a SentSeries>) -> Vec<ValueSeries> {
    let point = |(timestamp_ms, value): &(i64, SentValue)| Point {
        timestamp_ms: *timestamp_ms,
        value: value.canonical(),
        hint: ResetHint::Unknown,
    };
    let series = series.into_iter().map(|series| ValueSeries {
        labels: series.labels.clone(),
        points: series.values.iter().map(point).collect(),
    });
    series.filter(|series| !series.points.is_empty()).collect()
}

/// Returns the values of a series in a SAMPLES answer, which has floats and histograms in separate
/// lists.
pub fn points(series: &prometheus::TimeSeries) -> Vec<Point> {
    let float = |sample: &prometheus::Sample| Point {
        timestamp_ms: sample.timestamp,
        value: Value::of_float(sample.value),
        hint: ResetHint::Unknown,
    };
    let histogram = |message: &Histogram| Point {
        timestamp_ms: message.timestamp,
        value: Value::of_message(message),
        hint: message.reset_hint(),
    };
    let floats = series.samples.iter().map(float);
    let mut points: Vec<Point> = floats.chain(series.histograms.iter().map(histogram)).collect();
    points.sort_by_key(|point| point.timestamp_ms);
    points
}
