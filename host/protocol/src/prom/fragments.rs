//! Compresses a body in Snappy's block format, piece by piece.
//!
//! ```text
//! ┌─────────────────────────┬──────────────────────────┬───
//! │ length of all, uvarint  │ 64 KiB of it, compressed │ …
//! └─────────────────────────┴──────────────────────────┴───
//! ```
//!
//! Snappy's encoders compress each 64 KiB independently. So only the total length must be known at
//! the beginning, and the output equals that of a single call for the whole body. Source: Snappy's
//! `format_description.txt`.

use snap::raw::{Encoder, max_compress_len};
use tidepool_remote_write::put_uvarint;

/// Number of bytes compressed at a time.
const FRAGMENT_BYTES: usize = 64 * 1024;

/// Maximum size of a body, because the format's length field has 32 bits.
pub const BODY_BYTES_MAX: u64 = u32::MAX as u64;

/// Maximum length of the preamble that the encoder writes for each fragment, in bytes.
const PREAMBLE_BYTES_MAX: usize = 5;

/// Errors of compressing in pieces.
#[derive(Debug, thiserror::Error)]
pub enum FragmentError {
    #[error("a body of {0} bytes is longer than Snappy's block format allows")]
    TooLong(u64),
    #[error("{announced} bytes were announced, and there are {given}")]
    OtherLength {
        /// Length in the preamble of the body.
        announced: u64,
        /// Number of bytes passed so far.
        given: u64,
    },
    #[error(transparent)]
    Snappy(#[from] snap::Error),
}

/// Compresses a body whose length is known in advance.
pub struct FragmentEncoder {
    encoder: Encoder,
    /// Bytes that do not fill a fragment yet.
    pending: Vec<u8>,
    announced: u64,
    given: u64,
}

impl FragmentEncoder {
    /// Begins a body of the given length.
    pub fn begin(out: &mut Vec<u8>, bytes: u64) -> Result<FragmentEncoder, FragmentError> {
        if bytes > BODY_BYTES_MAX {
            return Err(FragmentError::TooLong(bytes));
        }
        put_uvarint(out, bytes);
        let pending = Vec::with_capacity(FRAGMENT_BYTES);
        Ok(FragmentEncoder { encoder: Encoder::new(), pending, announced: bytes, given: 0 })
    }

    /// Takes the next bytes, and appends each fragment that is complete to `out`.
    pub fn put(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), FragmentError> {
        self.given += bytes.len() as u64;
        if self.given > self.announced {
            return Err(self.other_length());
        }
        // Fragments must be full, because their boundaries determine the compressed bytes.
        if !self.pending.is_empty() {
            let room = FRAGMENT_BYTES - self.pending.len();
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.pending.extend_from_slice(now);
            bytes = later;
            if self.pending.len() < FRAGMENT_BYTES {
                return Ok(());
            }
            compress(&mut self.encoder, &self.pending, out)?;
            self.pending.clear();
        }
        let (whole, rest) = bytes.as_chunks::<FRAGMENT_BYTES>();
        for fragment in whole {
            compress(&mut self.encoder, fragment, out)?;
        }
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    /// Appends the rest; fails unless all announced bytes were passed.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), FragmentError> {
        if self.given != self.announced {
            return Err(self.other_length());
        }
        match self.pending.is_empty() {
            true => Ok(()),
            false => compress(&mut self.encoder, &self.pending, out),
        }
    }

    fn other_length(&self) -> FragmentError {
        FragmentError::OtherLength { announced: self.announced, given: self.given }
    }
}

/// Appends a compressed fragment, without the length that the encoder writes before it.
fn compress(
    encoder: &mut Encoder,
    fragment: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), FragmentError> {
    let start = out.len();
    out.resize(start + max_compress_len(fragment.len()), 0);
    let place = out.get_mut(start..).unwrap_or_default();
    let bytes = encoder.compress(fragment, place)?;
    // The encoder writes the length as a varint first, but only the whole body may have a length.
    let is_last = |byte: &u8| *byte < 0x80;
    let preamble = place.iter().take(PREAMBLE_BYTES_MAX).position(is_last).map_or(0, |at| at + 1);
    place.copy_within(preamble..bytes, 0);
    out.truncate(start + bytes - preamble);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(whole: &[u8], piece_bytes: usize) -> Result<Vec<u8>, FragmentError> {
        let mut out = Vec::new();
        let mut encoder = FragmentEncoder::begin(&mut out, whole.len() as u64)?;
        for piece in whole.chunks(piece_bytes) {
            encoder.put(piece, &mut out)?;
        }
        encoder.finish(&mut out)?;
        Ok(out)
    }

    #[test]
    fn a_body_in_pieces_is_the_body_made_at_once() -> Result<(), FragmentError> {
        let mut state = 1u32;
        let bytes: Vec<u8> = (0..400_000)
            .map(|at| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Some of the bytes compress and some do not.
                if at % 90_000 < 50_000 { (at / 7) as u8 } else { (state >> 24) as u8 }
            })
            .collect();
        for len in [0, 1, 65_535, 65_536, 65_537, 131_072, 400_000] {
            let whole = bytes.get(..len).unwrap_or_default();
            let at_once = Encoder::new().compress_vec(whole)?;
            for piece_bytes in [999, 65_536, 100_000, 300_000] {
                assert_eq!(pieces(whole, piece_bytes)?, at_once, "{len} by {piece_bytes}");
            }
        }
        Ok(())
    }

    #[test]
    fn other_bytes_than_announced_are_an_error() -> Result<(), FragmentError> {
        let mut out = Vec::new();
        let mut encoder = FragmentEncoder::begin(&mut out, 3)?;
        encoder.put(b"ab", &mut out)?;
        assert!(encoder.put(b"cd", &mut out).is_err());
        let mut encoder = FragmentEncoder::begin(&mut out, 3)?;
        encoder.put(b"ab", &mut out)?;
        assert!(encoder.finish(&mut out).is_err());
        assert!(FragmentEncoder::begin(&mut out, BODY_BYTES_MAX + 1).is_err());
        Ok(())
    }
}
