//! Remote read: converts requests to selections, and frames SAMPLES answers.
//!
//! Source: Prometheus' remote read protocol 1.0 (`prompb/remote.proto` and the remote-read API
//! document).
//!
//! Hints are optional advice and are ignored, even `func="series"`: clients treat streamed series
//! without chunks as broken, and clients that ask for SAMPLES expect samples.

use super::BodyError;
use super::external_labels::ExternalLabels;
use super::proto::read_request::ResponseType;
use super::proto::{ReadRequest, label_matcher};
use super::selection::{SelectionCount, SelectionError};
use prost::Message;
use tidepool_remote_write::{Fields, Value, put_uvarint, uvarint_bytes};
use tidepool_runtime::{FrameFormat, MatchOp, Matcher, TimeRange};

/// Content type of a SAMPLES answer.
pub const SAMPLES_CONTENT_TYPE: &str = "application/x-protobuf";

/// Content type of a streamed answer. Clients compare it byte by byte.
pub const STREAMED_CONTENT_TYPE: &str =
    "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";

/// Field numbers of `prometheus.ReadRequest` (queries) and `prometheus.Query` (matchers).
const QUERIES: u32 = 1;
const MATCHERS: u32 = 3;

/// One query of a read request.
#[derive(Clone, Debug)]
pub struct ReadQuery {
    /// Matchers that must all hold.
    pub matchers: Vec<Matcher>,
    /// Time range, both ends included.
    pub range: TimeRange,
}

/// Format and limits of the answer to a read.
#[derive(Clone, Copy, Debug)]
pub struct ReadFormat {
    /// Format of a part of the answer. A part of `samples` may end within a field; a part of
    /// another format ends between two frames or series.
    pub frames: FrameFormat,
    /// Size limit of a streamed frame; 0 means the engine's default.
    pub frame_bytes_max: u32,
    /// Limit on the samples of one query; 0 means no limit.
    pub samples_max: u64,
    /// For SAMPLES: the results form one `prometheus.ReadResponse` in Snappy's block format. The
    /// value limits its bytes before compression; 0 means only the format's limit. Limits are
    /// checked before the first part.
    pub message_bytes_max: Option<u64>,
}

impl ReadFormat {
    /// The fields `timeseries` of one `prometheus.QueryResult`, concatenated: series in label
    /// order, each with exactly the samples inside the range.
    pub const TIME_SERIES: ReadFormat = ReadFormat::of_frames(FrameFormat::Samples);

    /// Format in which one engine instance passes series to another.
    pub const CHUNKED_SERIES: ReadFormat = ReadFormat::of_frames(FrameFormat::ChunkedSeries);

    const fn of_frames(frames: FrameFormat) -> ReadFormat {
        ReadFormat { frames, frame_bytes_max: 0, samples_max: 0, message_bytes_max: None }
    }

    /// Returns the format of a response type of the protocol.
    fn of_response(kind: ResponseType, limits: ReadLimits) -> ReadFormat {
        let ReadLimits { frame_bytes_max, samples_max, bytes_max } = limits;
        match kind {
            ResponseType::Samples => ReadFormat {
                samples_max,
                message_bytes_max: Some(bytes_max),
                ..ReadFormat::of_frames(FrameFormat::Samples)
            },
            ResponseType::StreamedXorChunks => {
                ReadFormat { frame_bytes_max, ..ReadFormat::of_frames(FrameFormat::StreamedChunks) }
            }
        }
    }

    /// Returns whether the answer is one message, not a stream of frames.
    pub fn is_message(&self) -> bool {
        self.message_bytes_max.is_some()
    }
}

/// Limits of the answers to clients.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    pub frame_bytes_max: u32,
    /// Limit on the samples of one query of a SAMPLES read; 0 means no limit.
    pub samples_max: u64,
    /// Size limit of a SAMPLES answer before compression; 0 means only the format's limit.
    pub bytes_max: u64,
}

/// A read request that can be answered.
#[derive(Debug)]
pub struct ReadPlan {
    /// Format that the client prefers among the supported formats.
    pub format: ReadFormat,
    /// Queries in the order of the request.
    pub queries: Vec<ReadQuery>,
}

/// Faults of a read request.
#[derive(Debug, thiserror::Error)]
pub enum ReadRequestError {
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error(
        "none of the accepted response types {0:?} is supported; use SAMPLES (0) or STREAMED_XOR_CHUNKS (1)"
    )]
    NoKnownKind(Vec<i32>),
    #[error("query {query}: the matcher for label {label:?} has the unknown type {kind}")]
    UnknownMatcher {
        /// Index of the query in the request.
        query: usize,
        label: String,
        kind: i32,
    },
    #[error(transparent)]
    TooMuch(#[from] SelectionError),
}

/// Decodes a decompressed request.
///
/// An equality matcher for an external label of this node selects series without that label,
/// because the answer adds it. Other matchers are not changed.
pub fn plan(
    body: &[u8],
    external: &ExternalLabels,
    limits: ReadLimits,
) -> Result<ReadPlan, ReadRequestError> {
    count_queries(body)?;
    let request = ReadRequest::decode(body).map_err(BodyError::from)?;
    let format = preferred_format(&request.accepted_response_types, limits)
        .ok_or(ReadRequestError::NoKnownKind(request.accepted_response_types))?;
    let mut queries = Vec::with_capacity(request.queries.len());
    for (number, query) in request.queries.into_iter().enumerate() {
        let mut matchers = Vec::with_capacity(query.matchers.len());
        for matcher in query.matchers {
            let op = match label_matcher::Type::try_from(matcher.r#type) {
                Ok(label_matcher::Type::Eq) => MatchOp::Equal,
                Ok(label_matcher::Type::Neq) => MatchOp::NotEqual,
                Ok(label_matcher::Type::Re) => MatchOp::Regex,
                Ok(label_matcher::Type::Nre) => MatchOp::NotRegex,
                Err(_) => {
                    return Err(ReadRequestError::UnknownMatcher {
                        query: number,
                        label: matcher.name,
                        kind: matcher.r#type,
                    });
                }
            };
            // Stored series lack external labels, so the matcher must select an absent label.
            let is_external = op == MatchOp::Equal
                && external.get(&matcher.name).is_some_and(|value| value == matcher.value);
            let value = if is_external { String::new() } else { matcher.value };
            matchers.push(Matcher { name: matcher.name, op, value });
        }
        let range =
            TimeRange { start_ms: query.start_timestamp_ms, end_ms: query.end_timestamp_ms };
        queries.push(ReadQuery { matchers, range });
    }
    Ok(ReadPlan { format, queries })
}

/// Refuses too many queries and matchers before decoding: two bytes of a request can need fifty
/// bytes as a decoded matcher.
fn count_queries(body: &[u8]) -> Result<(), ReadRequestError> {
    let mut count = SelectionCount::default();
    for query in Fields::new(body) {
        let (QUERIES, Value::Bytes(query)) = query.map_err(BodyError::from)? else { continue };
        count.selector()?;
        for matcher in Fields::new(query) {
            if let (MATCHERS, Value::Bytes(_)) = matcher.map_err(BodyError::from)? {
                count.matcher()?;
            }
        }
    }
    Ok(())
}

/// Returns the first supported format of the client's list; an empty list means SAMPLES.
fn preferred_format(accepted: &[i32], limits: ReadLimits) -> Option<ReadFormat> {
    if accepted.is_empty() {
        return Some(ReadFormat::of_response(ResponseType::Samples, limits));
    }
    let mut known = accepted.iter().filter_map(|kind| ResponseType::try_from(*kind).ok());
    known.next().map(|kind| ReadFormat::of_response(kind, limits))
}

/// Writes the head of a query's result in a `prometheus.ReadResponse`. The caller appends
/// `result_bytes` bytes, the fields of a `prometheus.QueryResult`.
pub fn put_query_result_head(response: &mut Vec<u8>, result_bytes: u64) {
    // Tag of the field `results`, which is 1.
    response.push(0x0a);
    put_uvarint(response, result_bytes);
}

/// Returns the size of a query's result in a `prometheus.ReadResponse`.
pub fn query_result_bytes(result_bytes: u64) -> u64 {
    1 + uvarint_bytes(result_bytes) as u64 + result_bytes
}
