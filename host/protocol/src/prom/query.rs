//! Encodes the answer to a query as a message, `tidepool.QueryResponse` of `proto/`.
//!
//! The engine writes the field `timeseries` piece by piece; this module writes the fields before
//! and after it. All parts concatenated are the message.

use prost::Message;

/// Content type of the message.
pub const QUERY_CONTENT_TYPE: &str = "application/vnd.tidepool.queryresponse+protobuf";

mod messages {
    use super::super::proto as prometheus;

    #[allow(missing_docs, dead_code, clippy::all)]
    pub mod tidepool {
        include!(concat!(env!("OUT_DIR"), "/tidepool.rs"));
    }
}

pub use messages::tidepool::{QueryResponse, QueryStats, ResultType};

/// Encodes the result type of an answer, and the text of a string result.
pub fn begin(kind: ResultType, text: String) -> Vec<u8> {
    QueryResponse { result_type: kind.into(), text, ..QueryResponse::default() }.encode_to_vec()
}

/// Encodes the fields that are known only at the end.
pub fn end(warnings: Vec<String>, infos: Vec<String>, stats: Option<QueryStats>) -> Vec<u8> {
    QueryResponse { warnings, infos, stats, ..QueryResponse::default() }.encode_to_vec()
}
