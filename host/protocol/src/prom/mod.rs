//! Messages of remote write and remote read, converted between wire and store; series selectors,
//! times, names. No sockets.

pub mod external_labels;
pub mod fields;
pub mod fragments;
pub mod label_name;
mod label_set;
pub mod media_type;
pub mod native;
pub mod newest;
pub mod points;
pub mod push;
pub mod query;
pub mod read;
pub mod rows;
pub mod selection;
pub mod selector;
pub mod time;
pub mod work;
pub mod write;

/// Types of remote read, generated from `proto/`. The engine encodes the types of answers itself.
#[allow(missing_docs, dead_code, clippy::all)]
mod proto {
    include!(concat!(env!("OUT_DIR"), "/prometheus.rs"));
}

/// Fault of a request body.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the body would have {bytes} bytes decompressed; at most {bytes_max} are allowed")]
    TooLarge {
        /// Length that the preamble states.
        bytes: usize,
        bytes_max: usize,
    },
    #[error("the body is not in Snappy's block format: {0}")]
    NotSnappy(#[from] snap::Error),
    #[error("the body of {compressed} bytes cannot have {bytes} bytes decompressed, as it says")]
    Implausible {
        /// Length that the preamble states.
        bytes: usize,
        compressed: usize,
    },
    #[error("the body does not decode: {0}")]
    NotProtobuf(#[from] prost::DecodeError),
    /// The bytes are not a sequence of protobuf fields.
    #[error("the body does not decode: {0}")]
    Malformed(#[from] tidepool_remote_write::Malformed),
}

/// Returns the decompressed length that a body in Snappy's block format states.
pub fn decompressed_len(body: &[u8], bytes_max: usize) -> Result<usize, BodyError> {
    let bytes = snap::raw::decompress_len(body)?;
    // Callers allocate this many bytes, so both bounds are checked first.
    if bytes > bytes_max {
        return Err(BodyError::TooLarge { bytes, bytes_max });
    }
    // The densest element of the format, a copy with an offset of two bytes, encodes 64 bytes in
    // three.
    if bytes > body.len().saturating_mul(64).div_ceil(3) {
        return Err(BodyError::Implausible { bytes, compressed: body.len() });
    }
    Ok(bytes)
}

/// Decompresses a body in Snappy's block format into `place`, which must be as long as the body
/// states. Returns the number of bytes written.
pub fn decompress(body: &[u8], place: &mut [u8]) -> Result<usize, BodyError> {
    Ok(snap::raw::Decoder::new().decompress(body, place)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_snappy_can_make_of_zeros_is_plausible() -> Result<(), BodyError> {
        for bytes in [0, 1, 64, 100_000, 10_000_000] {
            let compressed = snap::raw::Encoder::new().compress_vec(&vec![0; bytes])?;
            assert_eq!(decompressed_len(&compressed, bytes)?, bytes);
            let mut whole = vec![1; bytes];
            assert_eq!(decompress(&compressed, &mut whole)?, bytes);
            assert_eq!(whole, vec![0; bytes]);
            let too_large = decompressed_len(&compressed, bytes.saturating_sub(1));
            assert_eq!(too_large.is_err(), bytes > 0);
        }
        Ok(())
    }

    #[test]
    fn a_length_that_no_such_body_can_have_is_refused() {
        // The largest claim, and nothing behind it.
        let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
        let refused = decompressed_len(&claim, usize::MAX);
        assert!(matches!(refused, Err(BodyError::Implausible { .. })), "{refused:?}");
    }
}
