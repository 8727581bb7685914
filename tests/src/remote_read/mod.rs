//! A remote-read client for both kinds of answer, strict about everything that the protocol says.
//!
//! [`Reader::samples`] and [`Reader::streamed`] return an answer as series;
//! [`Reader::visit_streamed`] hands over frame by frame, for answers that do not fit in memory.
//! [`Reader::sampled_values`] and [`Reader::streamed_values`] are for series that may have
//! histograms. [`Reader::post`] returns the raw answer. The rules of a stream are held by
//! [`frames`].

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

/// Where a server answers remote reads.
pub const PATH: &str = "/api/v1/read";
/// The `Content-Type` of an answer of type SAMPLES.
pub const SAMPLES_CONTENT_TYPE: &str = "application/x-protobuf";
/// The `Content-Type` of a streamed answer, to the byte.
pub const STREAMED_CONTENT_TYPE: &str =
    "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";

/// Why a read gave no series.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No answer.
    #[error("the read got no answer")]
    Http(#[from] HttpError),
    /// The connection failed inside the answer.
    #[error("the answer broke off")]
    Connection(#[from] std::io::Error),
    /// Not a 200.
    #[error("status {status}: {body}")]
    Status {
        /// The status.
        status: u16,
        /// What the server said.
        body: String,
    },
    /// A header is not what this kind of answer must have.
    #[error("header {name} is {found:?}, not {expected:?}")]
    Header {
        /// The header's name.
        name: &'static str,
        /// What it must be.
        expected: Option<&'static str>,
        /// What it is.
        found: Option<String>,
    },
    /// The body is not a snappy block.
    #[error("the body is not a snappy block")]
    Snappy(#[from] snap::Error),
    /// The message does not decode.
    #[error("the message does not decode")]
    Message(#[from] prost::DecodeError),
    /// The answer breaks a rule of the protocol.
    #[error("the answer breaks the protocol")]
    Violation(#[from] Violation),
}

/// Reads from one server.
#[derive(Clone, Debug)]
pub struct Reader {
    client: Client,
    url: String,
}

/// What a streamed answer was made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStats {
    /// Frames.
    pub frames: u64,
    /// Chunks in all frames.
    pub chunks: u64,
    /// Samples in all chunks, those outside the asked range included.
    pub samples: u64,
    /// Bytes of all frames with their headers.
    pub bytes: u64,
}

/// A matcher of any kind.
pub fn matcher(kind: Type, name: &str, value: &str) -> LabelMatcher {
    LabelMatcher { r#type: kind.into(), name: name.to_string(), value: value.to_string() }
}

/// A query for a range of time, both ends included.
pub fn query(start_ms: i64, end_ms: i64, matchers: Vec<LabelMatcher>) -> Query {
    Query { start_timestamp_ms: start_ms, end_timestamp_ms: end_ms, matchers, hints: None }
}

/// A query for every series with a metric name.
pub fn everything(start_ms: i64, end_ms: i64) -> Query {
    query(start_ms, end_ms, vec![matcher(Type::Re, "__name__", ".+")])
}

impl Reader {
    /// A client of the server at this base address, such as `http://127.0.0.1:9201`.
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

    /// Asks for SAMPLES and returns the message.
    pub fn samples_message(&self, queries: &[Query]) -> Result<ReadResponse, ReadError> {
        let response = self.post(&request(queries, ResponseType::Samples))?;
        check_status(response.status, || response.text())?;
        check_header("Content-Type", Some(SAMPLES_CONTENT_TYPE), response.header("Content-Type"))?;
        check_header("Content-Encoding", Some("snappy"), response.header("Content-Encoding"))?;
        let message = snap::raw::Decoder::new().decompress_vec(&response.body)?;
        Ok(ReadResponse::decode(message.as_slice())?)
    }

    /// Asks for SAMPLES; one list of series per query.
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

    /// Asks for a stream; one list of series per query, trimmed to the queries' ranges.
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
        // A whole chunk may reach into the range without a sample of it lying inside.
        results.iter_mut().for_each(|series| series.retain(|s| !s.samples.is_empty()));
        Ok(results)
    }

    /// Asks for SAMPLES of a query whose series may have values of any kind.
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

    /// Asks for a stream of series that may have values of any kind, trimmed to the query's range.
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

    /// Asks for a stream and hands over each frame: query index, labels, decoded samples, which
    /// have to be floats.
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

    /// Asks for a stream and hands over each frame.
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

    /// Asks for a stream and only counts its bytes, for benchmarks of the server.
    pub fn drain_streamed(&self, queries: &[Query]) -> Result<u64, ReadError> {
        let body = compress(&request(queries, ResponseType::StreamedXorChunks).encode_to_vec());
        let mut response = self.client.post_streaming(&self.url, &HEADERS, &body)?;
        check_streamed(&mut response)?;
        Ok(std::io::copy(&mut response.body, &mut std::io::sink())?)
    }

    /// Asks for SAMPLES and only counts the answer's compressed bytes, for benchmarks.
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

/// A request that accepts one kind of answer.
pub fn request(queries: &[Query], kind: ResponseType) -> ReadRequest {
    ReadRequest { queries: queries.to_vec(), accepted_response_types: vec![kind.into()] }
}

/// Labels as an answer carries them; they must be sorted, distinct and not empty.
fn labels(labels: &[Label]) -> Result<Labels, Violation> {
    let labels = Labels::verbatim(labels.iter().map(|l| (l.name.clone(), l.value.clone())));
    let empty = labels.pairs().iter().any(|(name, value)| name.is_empty() || value.is_empty());
    if !labels.is_sorted() || empty {
        return Err(Violation::Labels { labels });
    }
    Ok(labels)
}

/// Times ascend, lie inside the range, and there are some.
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
