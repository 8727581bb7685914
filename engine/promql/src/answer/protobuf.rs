//! Lossless answers: messages `prometheus.QueryResult` of remote read, in protobuf.
//!
//! Source: prometheus/prometheus, `prompb/types.proto`.

use crate::model::{CounterReset, Histogram, Labels, Samples, Span};

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// Writes a series as a field of a `QueryResult`. The message has no other fields, so consecutive
/// series form the whole message. A scalar is a series without labels.
pub fn protobuf_series(labels: &Labels, samples: &Samples, out: &mut Vec<u8>) {
    message(1, out, |out| {
        for (name, value) in labels.iter() {
            message(1, out, |out| {
                bytes(1, name.as_bytes(), out);
                bytes(2, value.as_bytes(), out);
            });
        }
        for point in &samples.floats {
            message(2, out, |out| {
                double(1, point.value, out);
                integer(2, point.time_ms as u64, out);
            });
        }
        for point in &samples.histograms {
            message(4, out, |out| histogram(point.time_ms, &point.histogram, out));
        }
    });
}

fn histogram(time_ms: i64, histogram: &Histogram, out: &mut Vec<u8>) {
    // Members of a `oneof` (counts) are written even if zero, since their presence is the choice.
    always_double(2, histogram.count, out);
    double(3, histogram.sum, out);
    integer(4, zigzag(histogram.schema), out);
    double(5, histogram.zero_threshold, out);
    always_double(7, histogram.zero_count, out);
    spans(8, &histogram.negative_spans, out);
    doubles(10, &histogram.negative_buckets, out);
    spans(11, &histogram.positive_spans, out);
    doubles(13, &histogram.positive_buckets, out);
    let reset = match histogram.counter_reset {
        CounterReset::Unknown => 0,
        CounterReset::Reset => 1,
        CounterReset::NotReset => 2,
        CounterReset::Gauge => 3,
    };
    integer(14, reset, out);
    integer(15, time_ms as u64, out);
    doubles(16, &histogram.custom_values, out);
}

fn spans(field: u64, spans: &[Span], out: &mut Vec<u8>) {
    for span in spans {
        message(field, out, |out| {
            integer(1, zigzag(span.offset), out);
            integer(2, span.length.into(), out);
        });
    }
}

fn zigzag(value: i32) -> u64 {
    // The arithmetic shift is all ones for a negative number, so XOR flips the number's bits.
    ((value << 1) ^ (value >> 31)) as u32 as u64
}

/// Writes an embedded message. Its length is appended at the end, then rotated to the front.
fn message(field: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    varint(field << 3 | BYTES, out);
    let start = out.len();
    write(out);
    let written = out.len();
    varint((written - start) as u64, out);
    let prefix = out.len() - written;
    out[start..].rotate_right(prefix);
}

fn bytes(field: u64, value: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | BYTES, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// Writes an integer, unless it is zero, as proto3 does.
fn integer(field: u64, value: u64, out: &mut Vec<u8>) {
    if value != 0 {
        varint(field << 3 | VARINT, out);
        varint(value, out);
    }
}

/// Writes a float, unless it is positive zero.
fn double(field: u64, value: f64, out: &mut Vec<u8>) {
    // Compared by bits, because negative zero must survive.
    if value.to_bits() != 0 {
        always_double(field, value, out);
    }
}

fn always_double(field: u64, value: f64, out: &mut Vec<u8>) {
    varint(field << 3 | FIXED64, out);
    out.extend_from_slice(&value.to_le_bytes());
}

fn doubles(field: u64, values: &[f64], out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    varint(field << 3 | BYTES, out);
    varint(values.len() as u64 * 8, out);
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FloatPoint, HistogramPoint};
    use prost::Message;

    /// Fields by their numbers in `prompb/types.proto`.
    #[derive(Message)]
    struct QueryResult {
        #[prost(message, repeated, tag = "1")]
        series: Vec<TimeSeries>,
    }

    #[derive(Message)]
    struct TimeSeries {
        #[prost(message, repeated, tag = "1")]
        labels: Vec<Label>,
        #[prost(message, repeated, tag = "2")]
        samples: Vec<Sample>,
        #[prost(message, repeated, tag = "4")]
        histograms: Vec<ProtoHistogram>,
    }

    #[derive(Message)]
    struct Label {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "2")]
        value: String,
    }

    #[derive(Message)]
    struct Sample {
        #[prost(double, tag = "1")]
        value: f64,
        #[prost(int64, tag = "2")]
        time_ms: i64,
    }

    #[derive(Message)]
    struct ProtoSpan {
        #[prost(sint32, tag = "1")]
        offset: i32,
        #[prost(uint32, tag = "2")]
        length: u32,
    }

    #[derive(Message)]
    struct ProtoHistogram {
        #[prost(double, optional, tag = "2")]
        count: Option<f64>,
        #[prost(double, tag = "3")]
        sum: f64,
        #[prost(sint32, tag = "4")]
        schema: i32,
        #[prost(double, tag = "5")]
        zero_threshold: f64,
        #[prost(double, optional, tag = "7")]
        zero_count: Option<f64>,
        #[prost(message, repeated, tag = "8")]
        negative_spans: Vec<ProtoSpan>,
        #[prost(double, repeated, tag = "10")]
        negative_counts: Vec<f64>,
        #[prost(message, repeated, tag = "11")]
        positive_spans: Vec<ProtoSpan>,
        #[prost(double, repeated, tag = "13")]
        positive_counts: Vec<f64>,
        #[prost(int32, tag = "14")]
        reset_hint: i32,
        #[prost(int64, tag = "15")]
        time_ms: i64,
        #[prost(double, repeated, tag = "16")]
        custom_values: Vec<f64>,
    }

    fn span(span: &ProtoSpan) -> Span {
        Span { offset: span.offset, length: span.length }
    }

    fn decoded(histogram: &ProtoHistogram) -> Histogram {
        Histogram {
            counter_reset: [
                CounterReset::Unknown,
                CounterReset::Reset,
                CounterReset::NotReset,
                CounterReset::Gauge,
            ][histogram.reset_hint as usize],
            schema: histogram.schema,
            zero_threshold: histogram.zero_threshold,
            zero_count: histogram.zero_count.unwrap(),
            count: histogram.count.unwrap(),
            sum: histogram.sum,
            positive_spans: histogram.positive_spans.iter().map(span).collect(),
            positive_buckets: histogram.positive_counts.clone(),
            negative_spans: histogram.negative_spans.iter().map(span).collect(),
            negative_buckets: histogram.negative_counts.clone(),
            custom_values: histogram.custom_values.clone(),
        }
    }

    #[test]
    fn nothing_is_lost() {
        let exponential = Histogram {
            counter_reset: CounterReset::Gauge,
            schema: -4,
            zero_threshold: 1e-128,
            zero_count: 0.5,
            count: 7.25,
            sum: -0.0,
            positive_spans: vec![Span { offset: -3, length: 1 }, Span { offset: 300, length: 1 }],
            positive_buckets: vec![1.5, 0.0],
            negative_spans: vec![Span { offset: 2, length: 1 }],
            negative_buckets: vec![f64::INFINITY],
            custom_values: vec![],
        };
        let custom = Histogram {
            counter_reset: CounterReset::NotReset,
            schema: -53,
            custom_values: vec![0.1, 5.0],
            ..Histogram::default()
        };
        let histograms = [exponential, custom];
        let point = |(i, histogram): (usize, &Histogram)| HistogramPoint {
            time_ms: i as i64 - 1,
            histogram: histogram.clone().into(),
        };
        let floats = vec![
            FloatPoint { time_ms: -5, value: -0.0 },
            FloatPoint { time_ms: 1_700_000_000_000, value: f64::NEG_INFINITY },
        ];
        let samples = Samples {
            floats: floats.clone(),
            histograms: histograms.iter().enumerate().map(point).collect(),
            ..Samples::default()
        };
        let labels = Labels::new([("a", "x".repeat(300)), ("b", "é".to_string())]);
        let mut out = Vec::new();
        protobuf_series(&labels, &samples, &mut out);
        protobuf_series(&Labels::default(), &Samples::default(), &mut out);
        let result = QueryResult::decode(&out[..]).unwrap();
        assert_eq!(result.series.len(), 2);
        let series = &result.series[0];
        let found = Labels::new(series.labels.iter().map(|l| (l.name.clone(), l.value.clone())));
        assert_eq!(found, labels);
        for (sample, point) in series.samples.iter().zip(&floats) {
            let bits = (sample.time_ms, sample.value.to_bits());
            assert_eq!(bits, (point.time_ms, point.value.to_bits()));
        }
        for (i, found) in series.histograms.iter().enumerate() {
            assert_eq!(found.time_ms, i as i64 - 1);
            assert!(decoded(found).is_same(&histograms[i]), "{found:?}");
            assert_eq!(decoded(found).counter_reset, histograms[i].counter_reset);
        }
        assert_eq!((series.samples.len(), series.histograms.len()), (2, 2));
    }
}
