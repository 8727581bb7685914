//! OpenTelemetry metrics: requests of every kind, and a sender.

use crate::clock::now_ms;
use crate::histogram::ValueSeries;
use crate::http::{Client, HttpError, Response};
use crate::process::Server;
use crate::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceRequest;
use crate::proto::opentelemetry::common::v1::any_value::Value as Any;
use crate::proto::opentelemetry::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList,
};
use crate::proto::opentelemetry::metrics::v1::exponential_histogram_data_point::Buckets;
use crate::proto::opentelemetry::metrics::v1::metric::Data;
use crate::proto::opentelemetry::metrics::v1::number_data_point::Value;
use crate::proto::opentelemetry::metrics::v1::summary_data_point::ValueAtQuantile;
use crate::proto::opentelemetry::metrics::v1::{
    AggregationTemporality, Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge,
    Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
    Summary, SummaryDataPoint, exemplar,
};
use crate::proto::opentelemetry::resource::v1::Resource;
use crate::remote_read::{Reader, everything};
use crate::series::Random;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::{self, Write as _};

/// Path at which Prometheus and tidepool accept OTLP.
pub const PATH: &str = "/api/v1/otlp/v1/metrics";

/// The media type of the requests.
pub const CONTENT_TYPE: &str = "application/x-protobuf";

/// Temporality of sums and histograms that count from a fixed start.
pub const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

/// Temporality of those that count from the data point before.
pub const DELTA: i32 = AggregationTemporality::Delta as i32;

const NS_PER_MS: i64 = 1_000_000;
const ROUNDS: i64 = 20;
const ROUND_MS: i64 = 15_000;

/// Posts a request to the server at this base address.
pub fn send(base_url: &str, request: &ExportMetricsServiceRequest) -> Result<Response, HttpError> {
    send_body(base_url, &[], &request.encode_to_vec())
}

/// Posts a request compressed with gzip.
pub fn send_gzip(
    base_url: &str,
    request: &ExportMetricsServiceRequest,
) -> Result<Response, HttpError> {
    let body = gzip(&request.encode_to_vec())?;
    send_body(base_url, &[("Content-Encoding", "gzip")], &body)
}

/// Posts any body with the media type of a request.
pub fn send_body(
    base_url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Response, HttpError> {
    let mut all = vec![("Content-Type", CONTENT_TYPE)];
    all.extend(headers);
    Client::default().post(&format!("{base_url}{PATH}"), &all, body)
}

pub fn gzip(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body)?;
    encoder.finish()
}

/// Makes an attribute with a string value.
pub fn attribute(key: &str, value: &str) -> KeyValue {
    any(key, Any::StringValue(value.into()))
}

fn any(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }) }
}

/// Makes attributes with string values.
pub fn attributes(pairs: &[(&str, &str)]) -> Vec<KeyValue> {
    pairs.iter().map(|(key, value)| attribute(key, value)).collect()
}

/// Makes a gauge with one value.
pub fn gauge(name: &str, timestamp_ms: i64, value: f64) -> Metric {
    let point = NumberDataPoint {
        time_unix_nano: nanos(timestamp_ms),
        value: Some(Value::AsDouble(value)),
        ..NumberDataPoint::default()
    };
    metric(name, "", Data::Gauge(Gauge { data_points: vec![point] }))
}

pub fn metric(name: &str, unit: &str, data: Data) -> Metric {
    Metric {
        name: name.into(),
        description: format!("What {name} means: \u{2103}."),
        unit: unit.into(),
        data: Some(data),
        metadata: vec![],
    }
}

/// Makes a request with metrics of one resource.
pub fn request(resource: Vec<KeyValue>, metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
    let scope = InstrumentationScope {
        name: "meter".into(),
        version: "1.2".into(),
        attributes: attributes(&[("team.name", "x")]),
        dropped_attributes_count: 0,
    };
    let scope_metrics = ScopeMetrics { scope: Some(scope), metrics, schema_url: "u".into() };
    let resource = Resource { attributes: resource, dropped_attributes_count: 0 };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![scope_metrics],
            schema_url: String::new(),
        }],
    }
}

/// Returns nanoseconds, with a random part below a millisecond.
pub fn nanos(timestamp_ms: i64) -> u64 {
    (timestamp_ms * NS_PER_MS + 999_999) as u64
}

/// Makes requests of every kind, whose values continue from one to the next.
pub struct Generator {
    random: Random,
    round: u64,
}

impl Generator {
    /// Makes a generator; the same seed returns the same requests.
    pub fn new(seed: u64) -> Generator {
        Generator { random: Random::new(seed, 0), round: 0 }
    }

    /// Returns the next request, measured at a time: three resources, one of which is no target and
    /// one has no attributes.
    pub fn request(&mut self, timestamp_ms: i64) -> ExportMetricsServiceRequest {
        let whole = vec![
            attribute("service.name", "api"),
            attribute("service.namespace", "shop"),
            attribute("service.instance.id", "i-1"),
            attribute("host.name", "edge <7>"),
            attribute("k8s.pod.name", "pod"),
            attribute("http.method", "of the resource"),
            any("cpus", Any::IntValue(4)),
            any("load", Any::DoubleValue(1e-7)),
            any("tags", Any::ArrayValue(ArrayValue { values: values() })),
        ];
        let mut all = request(whole, self.metrics(timestamp_ms));
        for resource in [
            attributes(&[("host.name", "b"), ("k8s.pod.name", "pod-b")]),
            attributes(&[("service.name", "bare")]),
        ] {
            let more = request(resource, self.metrics(timestamp_ms));
            all.resource_metrics.extend(more.resource_metrics);
        }
        self.round += 1;
        all
    }

    fn metrics(&mut self, timestamp_ms: i64) -> Vec<Metric> {
        let counts: Vec<NumberDataPoint> = (0..6).map(|i| self.count(timestamp_ms, i)).collect();
        let sum = |is_monotonic| Sum {
            data_points: counts.clone(),
            aggregation_temporality: CUMULATIVE,
            is_monotonic,
        };
        let values: Vec<NumberDataPoint> = (0..8).map(|i| self.value(timestamp_ms, i)).collect();
        let gauge = Gauge { data_points: values };
        let classic = Histogram {
            data_points: (0..4).map(|i| self.classic(timestamp_ms, i)).collect(),
            aggregation_temporality: CUMULATIVE,
        };
        let native = ExponentialHistogram {
            data_points: (0..8).map(|i| self.native(timestamp_ms, i)).collect(),
            aggregation_temporality: CUMULATIVE,
        };
        let summary =
            Summary { data_points: (0..3).map(|i| self.summary(timestamp_ms, i)).collect() };
        vec![
            metric("http.server.requests", "1", Data::Sum(sum(true))),
            metric("http.server.bytes.total", "By", Data::Sum(sum(true))),
            metric("queue.length", "{items}", Data::Sum(sum(false))),
            metric("cpu.usage", "1", Data::Gauge(gauge.clone())),
            metric("2nd_größe", "m/s", Data::Gauge(gauge)),
            metric("request.duration", "s", Data::Histogram(classic)),
            metric("latency", "ms", Data::ExponentialHistogram(native)),
            metric("quantiles", "", Data::Summary(summary)),
            metric("empty", "", Data::Gauge(Gauge::default())),
        ]
    }

    /// Returns attributes of every type, some of which map to the same label name.
    fn labels(&mut self, number: u64) -> Vec<KeyValue> {
        let mut list = attributes(&[("http.method", "GET"), ("zone", "a"), ("__name__", "x")]);
        list.push(any("number", Any::IntValue(number as i64)));
        match number {
            0 => list.clear(),
            1 => list.extend(attributes(&[("b.c", "1"), ("b_c", "2"), ("b-c", "3")])),
            2 => list.extend(attributes(&[("2xx", "digit"), ("_private", "p"), ("größe", "ö")])),
            3 => {
                list.push(any("bool", Any::BoolValue(true)));
                list.push(any("bytes", Any::BytesValue(vec![0, 255, 7])));
                list.push(any("list", Any::ArrayValue(ArrayValue { values: values() })));
                let inside = vec![attribute("z", "1"), any("a", Any::DoubleValue(0.5))];
                list.push(any("inside", Any::KvlistValue(KeyValueList { values: inside })));
            }
            4 => {
                for (key, value) in [("f", 1e21), ("g", -0.0), ("h", 123456.75), ("i", 1e-6)] {
                    list.push(any(key, Any::DoubleValue(value)));
                }
            }
            _ => list.push(attribute("empty", "")),
        }
        list
    }

    fn count(&mut self, timestamp_ms: i64, number: u64) -> NumberDataPoint {
        let value = match number % 2 {
            0 => Value::AsInt((self.round * 1000 + number) as i64),
            _ => Value::AsDouble(self.round as f64 + self.random.fraction()),
        };
        NumberDataPoint {
            attributes: self.labels(number),
            start_time_unix_nano: 1,
            time_unix_nano: nanos(timestamp_ms),
            value: Some(value),
            exemplars: self.exemplars(timestamp_ms, &[0.5]),
            flags: self.flags(number),
        }
    }

    fn value(&mut self, timestamp_ms: i64, number: u64) -> NumberDataPoint {
        let odd = [-0.0, 5e-324, f64::INFINITY, f64::from_bits(0x7ff8_0000_0000_beef), f64::MAX];
        let value = match number {
            0 => None,
            1 => Some(Value::AsInt(i64::MAX - self.round as i64)),
            2 => Some(Value::AsDouble(self.random.pick(&odd))),
            _ => Some(Value::AsDouble(self.random.fraction() * 100.0)),
        };
        NumberDataPoint {
            attributes: self.labels(number),
            time_unix_nano: nanos(timestamp_ms),
            value,
            // Receivers ignore exemplars of gauges.
            exemplars: self.exemplars(timestamp_ms, &[0.25]),
            flags: self.flags(number),
            ..NumberDataPoint::default()
        }
    }

    /// Returns the data point's flags, which end one series in every fourth round.
    fn flags(&mut self, number: u64) -> u32 {
        u32::from(number == 5 && self.round % 4 == 3)
    }

    fn exemplars(&mut self, timestamp_ms: i64, values: &[f64]) -> Vec<Exemplar> {
        let mut exemplar = |value: f64| {
            let long = "x".repeat(self.random.pick(&[3, 200]));
            Exemplar {
                filtered_attributes: attributes(&[("user.id", &long)]),
                time_unix_nano: nanos(timestamp_ms),
                value: Some(match value.fract() == 0.0 {
                    true => exemplar::Value::AsInt(value as i64),
                    false => exemplar::Value::AsDouble(value),
                }),
                span_id: self.random.next_u64().to_be_bytes().to_vec(),
                trace_id: [7, self.random.next_u64()].map(u64::to_be_bytes).concat(),
            }
        };
        values.iter().map(|value| exemplar(*value)).collect()
    }

    fn classic(&mut self, timestamp_ms: i64, number: u64) -> HistogramDataPoint {
        let bounds = vec![0.005, 0.5, 10.0, 1e21];
        let counts: Vec<u64> = (0..5).map(|i| self.round * (i + 1)).collect();
        // One exemplar for each bucket.
        let examples = if number == 3 { &[0.5][..] } else { &[0.001, 0.5, 2.0, 1e22] };
        HistogramDataPoint {
            attributes: self.labels(number),
            time_unix_nano: nanos(timestamp_ms),
            count: counts.iter().sum(),
            sum: (number != 2).then_some(self.round as f64 * 0.1),
            bucket_counts: if number == 3 { vec![] } else { counts },
            explicit_bounds: if number == 3 { vec![] } else { bounds },
            exemplars: self.exemplars(timestamp_ms, examples),
            flags: u32::from(number == 1 && self.round % 4 == 3),
            ..HistogramDataPoint::default()
        }
    }

    fn native(&mut self, timestamp_ms: i64, number: u64) -> ExponentialHistogramDataPoint {
        let scale = [-4, -1, 0, 3, 8, 9, 12, 20][number as usize % 8];
        // Prometheus 3.15 moves observations into the bucket before when it joins several buckets
        // and the first of these are empty.
        let least = u64::from(scale > 8);
        let mut buckets = |from: i32| {
            let counts = 1 + self.random.below(12);
            let mut count = |i: u64| {
                let gap = least == 0 && (self.random.one_in(3) || (2..7).contains(&i));
                if gap { 0 } else { least + self.random.below(5) }
            };
            let bucket_counts: Vec<u64> = (0..counts).map(&mut count).collect();
            Buckets { offset: from, bucket_counts }
        };
        let (positive, negative) = (buckets(-3), buckets(40));
        let zero_count = self.random.below(3);
        let in_buckets = positive.bucket_counts.iter().chain(&negative.bucket_counts).sum::<u64>();
        ExponentialHistogramDataPoint {
            attributes: self.labels(number),
            time_unix_nano: nanos(timestamp_ms),
            count: in_buckets + zero_count,
            sum: (number != 3).then_some(if number == 4 {
                -0.0
            } else {
                self.random.fraction() - 0.5
            }),
            scale,
            zero_count,
            positive: Some(positive),
            negative: Some(negative),
            flags: u32::from(number == 6 && self.round % 4 == 3),
            zero_threshold: 0.001,
            ..ExponentialHistogramDataPoint::default()
        }
    }

    fn summary(&mut self, timestamp_ms: i64, number: u64) -> SummaryDataPoint {
        let quantile_values = [0.0, 0.5, 0.99, 1.0]
            .map(|quantile| ValueAtQuantile { quantile, value: self.random.fraction() });
        SummaryDataPoint {
            attributes: self.labels(number),
            time_unix_nano: nanos(timestamp_ms),
            count: self.round,
            sum: self.random.fraction(),
            quantile_values: quantile_values.to_vec(),
            flags: u32::from(number == 2 && self.round % 4 == 3),
            ..SummaryDataPoint::default()
        }
    }
}

fn values() -> Vec<AnyValue> {
    let values = [
        Some(Any::StringValue("a\"<&>\n\u{2028}".into())),
        Some(Any::IntValue(-1)),
        Some(Any::DoubleValue(1e300)),
        Some(Any::BytesValue(vec![1])),
        None,
    ];
    values.into_iter().map(|value| AnyValue { value }).collect()
}

/// Makes requests that ascend in time. The first has a resource whose data points are minutes
/// apart.
pub fn requests(seed: u64) -> Vec<ExportMetricsServiceRequest> {
    let start_ms = now_ms() - ROUNDS * ROUND_MS;
    let mut generator = Generator::new(seed);
    let mut requests: Vec<_> =
        (0..ROUNDS).map(|round| generator.request(start_ms + round * ROUND_MS)).collect();
    let resource = attributes(&[("service.name", "slow"), ("host.name", "s")]);
    let ago = |minutes: i64| start_ms - minutes * 60_000;
    let points = [11, 4, 1].map(|minutes| gauge("slow", ago(minutes), minutes as f64));
    let slow = request(resource, points.to_vec());
    requests[0].resource_metrics.extend(slow.resource_metrics);
    requests
}

/// Returns all stored series, without Prometheus' own.
#[track_caller]
pub fn all_series(server: &Server) -> Vec<ValueSeries> {
    let query = everything(0, now_ms() + 60_000);
    let read = Reader::new(&server.url()).streamed_values(&query);
    let mut series = read.expect("an answer");
    series.retain(|series| !series.labels.value("__name__").starts_with("prometheus_"));
    series
}

/// Returns the metadata of metric families by name: type, help, unit as JSON.
pub fn metadata(server: &Server) -> BTreeMap<String, String> {
    let response = Client::default().get(&format!("{}/api/v1/metadata", server.url()));
    let answer: Json =
        serde_json::from_slice(&response.expect("an answer").body).expect("it is JSON");
    let families = answer["data"].as_object().expect("families");
    let says =
        |one: &Json| [&one["type"], &one["help"], &one["unit"]].map(Json::to_string).join(" ");
    families.iter().map(|(family, list)| (family.clone(), says(&list[0]))).collect()
}

/// Asserts that a response accepts all data points.
#[track_caller]
pub fn assert_taken(what: &str, response: &Response) {
    assert_eq!(response.status, 200, "{what}: {}", response.text());
    assert_eq!(response.body, b"", "{what}");
}
