//! A push request for a decoder, and its result.

use tidepool_store::{Body, StoreError};

/// A request for a decoder.
pub struct PushRequest {
    /// Its header of this name; empty without one.
    pub content_type: String,
    /// The part of the URL's path after the name.
    pub path: String,
    /// The query string of the URL.
    pub query: String,
    /// When it came.
    pub received_ms: i64,
    /// Its body.
    pub body: Body,
}

/// The result of decoding a body.
pub struct Decoded {
    /// A remote-write 2.0 body; nothing if there are no rows.
    pub body: Option<Vec<u8>>,
    /// Samples and histograms in it.
    pub rows: u64,
    /// Rows that the decoder did not understand.
    pub refused: u64,
    /// Why, for the first of them.
    pub reasons: Vec<String>,
}

/// Why there is nothing.
#[derive(Debug, thiserror::Error)]
pub enum Undecoded {
    /// There is no such decoder; names of those that are there.
    #[error("there is no decoder with that name; decoders: {}", .0.join(", "))]
    NoDecoder(Vec<String>),
    /// The body is wrong.
    #[error("{0}")]
    Malformed(String),
    /// Not for bodies of this type.
    #[error("{0}")]
    UnsupportedType(String),
    /// Nothing is at this path.
    #[error("{0}")]
    NotFound(String),
    /// The decoder failed.
    #[error("the plugin {plugin} failed: {why}")]
    Failed {
        /// Its name.
        plugin: String,
        /// What happened.
        why: String,
    },
    /// The decoder fails whenever it is given this body.
    #[error("the plugin {plugin} failed {failures} times on this body, the last time: {why}")]
    Poisonous {
        /// Its name.
        plugin: String,
        /// How often.
        failures: u32,
        /// What happened.
        why: String,
    },
    /// The store cannot take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}
