//! A remote-read client for both kinds of answer, which checks all rules of the protocol.
//!
//! [`Reader::samples`] and [`Reader::streamed`] return an answer as series;
//! [`Reader::visit_streamed`] passes on frame by frame, for answers larger than memory.
//! [`Reader::sampled_values`] and [`Reader::streamed_values`] are for series that may have
//! histograms. [`Reader::post`] returns the raw answer. [`frames`] checks the rules of a stream.

pub mod frames;

use crate::histogram::{Point, Value, ValueSeries, wire};
use crate::http::{Client, HttpError, Response, Streaming};
use crate::proto::prometheus::chunk::Encoding;
use crate::proto::prometheus::histogram::ResetHint;
use crate::proto::prometheus::label_matcher::Type;
use crate::proto::prometheus::read_request::ResponseType;
use crate::proto::prometheus::{Label, LabelMatcher, Query, ReadRequest, ReadResponse};
use crate::remote_write::compress;
use crate::series::{Labels, Sample, Series};
use frames::{FrameReader, Part, StreamRules, Violation};
use prost::Message;
use std::io::BufReader;

/// Path at which servers answer remote reads.
pub const PATH: &str = "/api/v1/read";
/// The `Content-Type` of an answer of type SAMPLES.
pub const SAMPLES_CONTENT_TYPE: &str = "application/x-protobuf";
/// The exact `Content-Type` of a streamed answer.
pub const STREAMED_CONTENT_TYPE: &str =
    "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";

/// Reason why a read returned no series.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the read got no answer")]
    Http(#[from] HttpError),
    /// The connection failed inside the answer.
    #[error("the answer broke off")]
    Connection(#[from] std::io::Error),
    /// The status is not 200.
    #[error("status {status}: {body}")]
    Status {
        status: u16,
        /// Body of the response as text.
        body: String,
    },
    /// A header does not have the value for this kind of answer.
    #[error("header {name} is {found:?}, not {expected:?}")]
    Header {
        name: &'static str,
        /// Required value of the header.
        expected: Option<&'static str>,
        found: Option<String>,
    },
    /// The body is not a snappy block.
    #[error("the body is not a snappy block")]
    Snappy(#[from] snap::Error),
    /// The message cannot be decoded.
    #[error("the message does not decode")]
    Message(#[from] prost::DecodeError),
    /// The answer breaks a rule of the protocol.
    #[error("the answer breaks the protocol")]
    Violation(#[from] Violation),
}

/// Client for reads from one server.
#[derive(Clone, Debug)]
pub struct Reader {
    client: Client,
    url: String,
}

/// Counts of a streamed answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStats {
    pub frames: u64,
    /// Number of chunks in all frames.
    pub chunks: u64,
    /// Number of samples in all chunks, including those outside the requested range.
    pub samples: u64,
    /// Size of all frames with their headers.
    pub bytes: u64,
}

/// Makes a matcher of any kind.
pub fn matcher(kind: Type, name: &str, value: &str) -> LabelMatcher {
    LabelMatcher { r#type: kind.into(), name: name.to_string(), value: value.to_string() }
}

/// Makes a query for a time range, both ends included.
pub fn query(start_ms: i64, end_ms: i64, matchers: Vec<LabelMatcher>) -> Query {
    Query { start_timestamp_ms: start_ms, end_timestamp_ms: end_ms, matchers, hints: None }
}

/// Makes a query for every series with a metric name.
pub fn everything(start_ms: i64, end_ms: i64) -> Query {
    query(start_ms, end_ms, vec![matcher(Type::Re, "__name__", ".+")])
}

impl Reader {
    /// Makes a client of the server at this base address, such as `http://127.0.0.1:9201`.
    pub fn new(base_url: &str) -> Reader {
        Reader { client: Client::default(), url: format!("{base_url}{PATH}") }
    }

    /// Sends a request and returns the answer as it came.
    pub fn post(&self, request: &ReadRequest) -> Result<Response, HttpError> {
        self.post_body(&compress(&request.encode_to_vec()))
    }

    /// Sends any body and returns the answer as it came.
    pub fn post_body(&self, body: &[u8]) -> Result<Response, HttpError> {
        self.client.post(&self.url, &HEADERS, body)
    }

    /// Requests SAMPLES and returns the message.
    pub fn samples_message(&self, queries: &[Query]) -> Result<ReadResponse, ReadError> {
        let response = self.post(&request(queries, ResponseType::Samples))?;
        check_status(response.status, || response.text())?;
        check_header("Content-Type", Some(SAMPLES_CONTENT_TYPE), response.header("Content-Type"))?;
        check_header("Content-Encoding", Some("snappy"), response.header("Content-Encoding"))?;
        let message = snap::raw::Decoder::new().decompress_vec(&response.body)?;
        Ok(ReadResponse::decode(message.as_slice())?)
    }

    /// Requests SAMPLES; returns a list of series for each query.
    pub fn samples(&self, queries: &[Query]) -> Result<Vec<Vec<Series>>, ReadError> {
        let message = self.samples_message(queries)?;
        if message.results.len() != queries.len() {
            let (results, queries) = (message.results.len(), queries.len());
            return Err(Violation::ResultCount { results, queries }.into());
        }
        let mut results = Vec::with_capacity(queries.len());
        for (result, query) in message.results.into_iter().zip(queries) {
            let mut list = Vec::with_capacity(result.timeseries.len());
            for series in result.timeseries {
                let labels = labels(&series.labels)?;
                let samples = series.samples.iter();
                let samples: Vec<Sample> =
                    samples.map(|s| Sample { timestamp_ms: s.timestamp, value: s.value }).collect();
                check_times(&labels, samples.iter().map(|s| s.timestamp_ms), query)?;
                list.push(Series { labels, samples });
            }
            results.push(list);
        }
        Ok(results)
    }

    /// Requests a stream; returns a list of series for each query, trimmed to the queries' ranges.
    pub fn streamed(&self, queries: &[Query]) -> Result<Vec<Vec<Series>>, ReadError> {
        let mut results: Vec<Vec<Series>> = vec![Vec::new(); queries.len()];
        self.visit_streamed(queries, |index, labels, samples| {
            let Query { start_timestamp_ms: start, end_timestamp_ms: end, .. } = queries[index];
            let inside = samples.iter().filter(|s| (start..=end).contains(&s.timestamp_ms));
            let result = &mut results[index];
            if result.last().is_none_or(|last| last.labels != *labels) {
                result.push(Series { labels: labels.clone(), samples: Vec::new() });
            }
            if let Some(last) = result.last_mut() {
                last.samples.extend(inside);
            }
        })?;
        // A chunk may overlap the range although none of its samples is inside.
        results.iter_mut().for_each(|series| series.retain(|s| !s.samples.is_empty()));
        Ok(results)
    }

    /// Requests SAMPLES of a query whose series may have values of any kind.
    pub fn sampled_values(&self, query: &Query) -> Result<Vec<ValueSeries>, ReadError> {
        let message = self.samples_message(std::slice::from_ref(query))?;
        let [result] = message.results.as_slice() else {
            return Err(
                Violation::ResultCount { results: message.results.len(), queries: 1 }.into()
            );
        };
        let mut list = Vec::with_capacity(result.timeseries.len());
        for series in &result.timeseries {
            let labels = labels(&series.labels)?;
            let ascends = series.samples.is_sorted_by(|a, b| a.timestamp < b.timestamp)
                && series.histograms.is_sorted_by(|a, b| a.timestamp < b.timestamp);
            if !ascends {
                return Err(Violation::SampleOrder { series: labels }.into());
            }
            let points = wire::points(series);
            check_times(&labels, points.iter().map(|point| point.timestamp_ms), query)?;
            list.push(ValueSeries { labels, points });
        }
        Ok(list)
    }

    /// Requests a stream of series that may have values of any kind, trimmed to the query's range.
    pub fn streamed_values(&self, query: &Query) -> Result<Vec<ValueSeries>, ReadError> {
        let range = query.start_timestamp_ms..=query.end_timestamp_ms;
        let mut list: Vec<ValueSeries> = Vec::new();
        self.visit_parts(std::slice::from_ref(query), |part| {
            let Part { labels, samples, mut histograms, .. } = part;
            let float = |sample: Sample| Point {
                timestamp_ms: sample.timestamp_ms,
                value: Value::of_float(sample.value),
                hint: ResetHint::Unknown,
            };
            histograms.extend(samples.into_iter().map(float));
            histograms.retain(|point| range.contains(&point.timestamp_ms));
            histograms.sort_by_key(|point| point.timestamp_ms);
            match list.last_mut().filter(|last| last.labels == labels) {
                Some(last) => last.points.extend(histograms),
                None => list.push(ValueSeries { labels, points: histograms }),
            }
            Ok(())
        })?;
        list.retain(|series| !series.points.is_empty());
        Ok(list)
    }

    /// Requests a stream and passes on each frame: query index, labels, decoded samples, which must
    /// be floats.
    pub fn visit_streamed(
        &self,
        queries: &[Query],
        mut visit: impl FnMut(usize, &Labels, &[Sample]),
    ) -> Result<StreamStats, ReadError> {
        self.visit_parts(queries, |part| {
            if !part.histograms.is_empty() {
                let encoding = Encoding::Histogram.into();
                return Err(Violation::Encoding { series: part.labels, encoding }.into());
            }
            visit(part.query_index, &part.labels, &part.samples);
            Ok(())
        })
    }

    /// Requests a stream and passes on each frame.
    pub fn visit_parts(
        &self,
        queries: &[Query],
        mut visit: impl FnMut(Part) -> Result<(), ReadError>,
    ) -> Result<StreamStats, ReadError> {
        let body = compress(&request(queries, ResponseType::StreamedXorChunks).encode_to_vec());
        let mut response = self.client.post_streaming(&self.url, &HEADERS, &body)?;
        check_streamed(&mut response)?;
        let mut frames = FrameReader::new(BufReader::with_capacity(1 << 18, response.body));
        let mut rules = StreamRules::new(queries);
        let mut stats = StreamStats::default();
        while let Some(frame) = frames.next_frame()? {
            let part = rules.check(&frame.payload)?;
            stats.frames += 1;
            stats.chunks += part.chunks;
            stats.samples += (part.samples.len() + part.histograms.len()) as u64;
            stats.bytes += frame.bytes;
            visit(part)?;
        }
        Ok(stats)
    }

    /// Requests a stream and only counts its bytes, for benchmarks of the server.
    pub fn drain_streamed(&self, queries: &[Query]) -> Result<u64, ReadError> {
        let body = compress(&request(queries, ResponseType::StreamedXorChunks).encode_to_vec());
        let mut response = self.client.post_streaming(&self.url, &HEADERS, &body)?;
        check_streamed(&mut response)?;
        Ok(std::io::copy(&mut response.body, &mut std::io::sink())?)
    }

    /// Requests SAMPLES and only counts the answer's compressed bytes, for benchmarks.
    pub fn drain_samples(&self, queries: &[Query]) -> Result<u64, ReadError> {
        let body = compress(&request(queries, ResponseType::Samples).encode_to_vec());
        let mut response = self.client.post_streaming(&self.url, &HEADERS, &body)?;
        check_status(response.status, || body_text(&mut response.body))?;
        Ok(std::io::copy(&mut response.body, &mut std::io::sink())?)
    }
}

const HEADERS: [(&str, &str); 5] = [
    ("Content-Type", "application/x-protobuf"),
    ("Content-Encoding", "snappy"),
    ("Accept-Encoding", "snappy"),
    ("X-Prometheus-Remote-Read-Version", "0.1.0"),
    ("User-Agent", "tidepool-tests"),
];

/// Makes a request that accepts one kind of answer.
pub fn request(queries: &[Query], kind: ResponseType) -> ReadRequest {
    ReadRequest { queries: queries.to_vec(), accepted_response_types: vec![kind.into()] }
}

/// Converts an answer's labels, which must be sorted, distinct and not empty.
fn labels(labels: &[Label]) -> Result<Labels, Violation> {
    let labels = Labels::verbatim(labels.iter().map(|l| (l.name.clone(), l.value.clone())));
    let empty = labels.pairs().iter().any(|(name, value)| name.is_empty() || value.is_empty());
    if !labels.is_sorted() || empty {
        return Err(Violation::Labels { labels });
    }
    Ok(labels)
}

/// Checks that times ascend and are inside the range, and that there are some.
fn check_times(
    labels: &Labels,
    times_ms: impl Iterator<Item = i64> + Clone,
    query: &Query,
) -> Result<(), Violation> {
    let series = || labels.clone();
    if times_ms.clone().next().is_none() {
        return Err(Violation::NoSamples { series: series() });
    }
    if !times_ms.clone().is_sorted_by(|a, b| a < b) {
        return Err(Violation::SampleOrder { series: series() });
    }
    let range = query.start_timestamp_ms..=query.end_timestamp_ms;
    match times_ms.into_iter().find(|time_ms| !range.contains(time_ms)) {
        Some(timestamp_ms) => Err(Violation::OutsideRange { series: series(), timestamp_ms }),
        None => Ok(()),
    }
}

fn check_streamed(response: &mut Streaming) -> Result<(), ReadError> {
    check_status(response.status, || body_text(&mut response.body))?;
    check_header("Content-Type", Some(STREAMED_CONTENT_TYPE), response.header("Content-Type"))?;
    check_header("Content-Encoding", None, response.header("Content-Encoding"))
}

fn check_status(status: u16, body: impl FnOnce() -> String) -> Result<(), ReadError> {
    if status == 200 { Ok(()) } else { Err(ReadError::Status { status, body: body() }) }
}

fn check_header(
    name: &'static str,
    expected: Option<&'static str>,
    found: Option<&str>,
) -> Result<(), ReadError> {
    if found.filter(|value| !value.is_empty()) == expected {
        return Ok(());
    }
    Err(ReadError::Header { name, expected, found: found.map(str::to_string) })
}

fn body_text(body: &mut dyn std::io::Read) -> String {
    let mut text = Vec::new();
    match std::io::Read::read_to_end(body, &mut text) {
        Ok(_) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) => format!("(the body broke off: {error})"),
    }
}
