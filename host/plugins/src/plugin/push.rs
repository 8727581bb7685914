//! A push request for a decoder, and the result.

use tidepool_store::{Body, StoreError};

pub struct PushRequest {
    /// Header `Content-Type`; empty if there is none.
    pub content_type: String,
    /// Part of the URL's path after the decoder's name.
    pub path: String,
    pub query: String,
    /// Time of arrival by the node's clock.
    pub received_ms: i64,
    pub body: Body,
}

pub struct Decoded {
    /// Remote-write 2.0 body; `None` if there are no rows.
    pub body: Option<Vec<u8>>,
    /// Number of samples and histograms in the body.
    pub rows: u64,
    /// Number of rows that the decoder could not decode.
    pub refused: u64,
    /// Reasons for the first refused rows.
    pub reasons: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Undecoded {
    /// No decoder has this name. Has the names of the loaded decoders.
    #[error("there is no decoder with that name; decoders: {}", .0.join(", "))]
    NoDecoder(Vec<String>),
    /// The decoder refuses the body as malformed.
    #[error("{0}")]
    Malformed(String),
    /// The decoder refuses this content type.
    #[error("{0}")]
    UnsupportedType(String),
    /// The decoder has no endpoint at this path.
    #[error("{0}")]
    NotFound(String),
    /// The decoder failed; a retry may succeed.
    #[error("the plugin {plugin} failed: {why}")]
    Failed {
        plugin: String,
        /// Text of the fault, or the reason why the decoder is not loaded.
        why: String,
    },
    /// The decoder failed on this body too often, so that it is not tried again.
    #[error("the plugin {plugin} failed {failures} times on this body, the last time: {why}")]
    Poisonous {
        plugin: String,
        /// Number of failures on this body so far.
        failures: u32,
        why: String,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}
