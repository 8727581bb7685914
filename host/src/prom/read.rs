//! Remote read: requests to selections, and the frame of a SAMPLES answer.
//!
//! Source: Prometheus' remote read protocol 1.0 (`prompb/remote.proto` and the remote-read API
//! document).
//!
//! Hints are advice and are not used. That goes for `func="series"` too: a stream of series without
//! chunks would have frames that clients take for broken, and who asks by SAMPLES is used to get
//! samples.

use super::BodyError;
use super::external_labels::ExternalLabels;
use super::fields::{Field, Fields};
use super::proto::{ReadRequest, label_matcher, read_request};
use super::selection::{SelectionCount, SelectionError};
use crate::store::ReadQuery;
use crate::wasm::{MatchOp, Matcher, TimeRange};
use prost::Message;

/// Content type of a SAMPLES answer.
pub const SAMPLES_CONTENT_TYPE: &str = "application/x-protobuf";

/// Content type of a streamed answer. Clients compare these bytes.
pub const STREAMED_CONTENT_TYPE: &str =
    "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";

/// Fields of `prometheus.ReadRequest` and `prometheus.Query`.
const QUERIES: u64 = 1;
const MATCHERS: u64 = 3;

/// The two kinds of answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// One message of plain samples.
    Samples,
    /// A stream of frames with chunks.
    StreamedXorChunks,
}

/// A read request that can be answered.
#[derive(Debug)]
pub struct ReadPlan {
    /// The kind that the client prefers among those spoken here.
    pub kind: ResponseKind,
    /// In request order.
    pub queries: Vec<ReadQuery>,
}

/// Why a read request cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum ReadRequestError {
    /// The body does not decode.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// None of the accepted kinds of answer is known.
    #[error(
        "none of the accepted response types {0:?} is supported; use SAMPLES (0) or STREAMED_XOR_CHUNKS (1)"
    )]
    NoKnownKind(Vec<i32>),
    /// A matcher of an unknown type.
    #[error("query {query}: the matcher for label {label:?} has the unknown type {kind}")]
    UnknownMatcher {
        /// Place of the query in the request.
        query: usize,
        /// The label's name.
        label: String,
        /// The type given.
        kind: i32,
    },
    /// Too many queries or matchers.
    #[error(transparent)]
    TooMuch(#[from] SelectionError),
}

/// Decodes a decompressed request.
///
/// What asks for the value of an external label gets what is stored without that label, since it is
/// added to the answer. Matchers of other kinds are taken as they are.
pub fn plan(body: &[u8], external: &ExternalLabels) -> Result<ReadPlan, ReadRequestError> {
    count_queries(body)?;
    let request = ReadRequest::decode(body).map_err(BodyError::from)?;
    let kind = preferred_kind(&request.accepted_response_types)
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
            let is_external = op == MatchOp::Equal
                && external.get(&matcher.name).is_some_and(|value| value == matcher.value);
            let value = if is_external { String::new() } else { matcher.value };
            matchers.push(Matcher { name: matcher.name, op, value });
        }
        let range =
            TimeRange { start_ms: query.start_timestamp_ms, end_ms: query.end_timestamp_ms };
        queries.push(ReadQuery { matchers, range });
    }
    Ok(ReadPlan { kind, queries })
}

/// Refuses too many queries and matchers before they are decoded: two bytes of a request can make
/// fifty of a matcher.
fn count_queries(body: &[u8]) -> Result<(), ReadRequestError> {
    let mut count = SelectionCount::default();
    for query in Fields::new(body) {
        let (QUERIES, Field::Bytes(query)) = query.map_err(BodyError::from)? else { continue };
        count.selector()?;
        for matcher in Fields::new(query) {
            if let (MATCHERS, Field::Bytes(_)) = matcher.map_err(BodyError::from)? {
                count.matcher()?;
            }
        }
    }
    Ok(())
}

/// The first kind of the client's list that is spoken here; an empty list means SAMPLES.
fn preferred_kind(accepted: &[i32]) -> Option<ResponseKind> {
    if accepted.is_empty() {
        return Some(ResponseKind::Samples);
    }
    accepted.iter().find_map(|kind| match read_request::ResponseType::try_from(*kind).ok()? {
        read_request::ResponseType::Samples => Some(ResponseKind::Samples),
        read_request::ResponseType::StreamedXorChunks => Some(ResponseKind::StreamedXorChunks),
    })
}

/// Begins a query's result in a `prometheus.ReadResponse`: so many bytes of fields of a
/// `prometheus.QueryResult` follow.
pub fn put_query_result_head(response: &mut Vec<u8>, result_bytes: u64) {
    response.push(0x0a);
    // Writing into a vector cannot run out of room.
    prost::encoding::encode_varint(result_bytes, response);
}

/// How many bytes a query's result takes in a `prometheus.ReadResponse`.
pub fn query_result_bytes(result_bytes: u64) -> u64 {
    1 + prost::encoding::encoded_len_varint(result_bytes) as u64 + result_bytes
}
