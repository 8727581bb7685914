//! The answer to a query as a message, `tidepool.QueryResponse` of `proto/`.
//!
//! The engine writes the field `timeseries`, piece by piece; what stands before and behind it is
//! written here. One behind the other they are the message.

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

/// What an answer is, and its text if it is one.
pub fn begin(kind: ResultType, text: String) -> Vec<u8> {
    QueryResponse { result_type: kind.into(), text, ..QueryResponse::default() }.encode_to_vec()
}

/// What is known at the end.
pub fn end(warnings: Vec<String>, infos: Vec<String>, stats: Option<QueryStats>) -> Vec<u8> {
    QueryResponse { warnings, infos, stats, ..QueryResponse::default() }.encode_to_vec()
}
