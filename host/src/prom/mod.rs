//! Remote-write and remote-read messages, between the wire and the store; series selectors. No
//! sockets.

pub mod read;
pub mod selector;
pub mod time;
pub mod write;

/// Types of remote read, generated from `proto/`; the answers' types are encoded by the engine.
#[allow(missing_docs, dead_code, clippy::all)]
mod proto {
    include!(concat!(env!("OUT_DIR"), "/prometheus.rs"));
}

/// What is wrong with a compressed body.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Its length preamble says more than is allowed.
    #[error("the body would have {bytes} bytes decompressed; at most {bytes_max} are allowed")]
    TooLarge {
        /// What the preamble says.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// It is not Snappy's block format.
    #[error("the body is not in Snappy's block format: {0}")]
    NotSnappy(#[from] snap::Error),
    /// It does not decode.
    #[error("the body does not decode: {0}")]
    NotProtobuf(#[from] prost::DecodeError),
}

/// Decompresses a body in Snappy's block format. The length it claims is checked first.
pub fn decompress(body: &[u8], bytes_max: usize) -> Result<Vec<u8>, BodyError> {
    let bytes = snap::raw::decompress_len(body)?;
    if bytes > bytes_max {
        return Err(BodyError::TooLarge { bytes, bytes_max });
    }
    Ok(snap::raw::Decoder::new().decompress_vec(body)?)
}
