//! A chunk as it is stored in a block's files.
//!
//! ```text
//! ┌─────────────┬─────────────┬──────┬───────┐
//! │ len uvarint │ encoding u8 │ data │ CRC32 │
//! └─────────────┴─────────────┴──────┴───────┘
//! ```
//!
//! `len` counts `data` alone; the checksum (big-endian, Castagnoli) covers encoding and data. The
//! engine reads chunks to decode them, the host to copy them into frames.
//!
//! Source: upstream's `tsdb/docs/format/chunks.md`.

use crate::frames::Crc32c;
use crate::varint::split_uvarint;
use std::ops::Range;

/// Maximum length of chunk data, in bytes; a larger length is damage.
pub const CHUNK_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum bytes of a chunk's length and encoding.
pub const CHUNK_HEAD_BYTES_MAX: usize = 6;

const CHECKSUM_BYTES: usize = 4;

/// Reason for which bytes are not a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadChunk {
    #[error("no chunk begins here")]
    NoLength,
    #[error("the chunk is longer than any chunk may be")]
    TooLong,
    #[error("the file ends within this chunk")]
    CutShort,
    #[error("the chunk's checksum does not match")]
    Checksum,
}

/// Returns the range of encoding, data and checksum, counted from the chunk's first byte. `head` is
/// the first [`CHUNK_HEAD_BYTES_MAX`] bytes, fewer only at the end of the file.
#[inline]
pub fn chunk_extent(head: &[u8]) -> Result<Range<usize>, BadChunk> {
    let (len, rest) = split_uvarint(head).ok_or(BadChunk::NoLength)?;
    let start = head.len() - rest.len();
    let len = usize::try_from(len).ok().filter(|len| *len <= CHUNK_BYTES_MAX);
    Ok(start..start + 1 + len.ok_or(BadChunk::TooLong)? + CHECKSUM_BYTES)
}

/// Returns the encoding's number and the data of a chunk's extent, whose checksum must match.
#[inline]
pub fn checked_chunk(content: &[u8], crc32c: Crc32c) -> Result<(u8, &[u8]), BadChunk> {
    let (covered, checksum) =
        content.split_last_chunk::<CHECKSUM_BYTES>().ok_or(BadChunk::CutShort)?;
    match *checksum == crc32c(covered).to_be_bytes() {
        true => known_chunk(content),
        false => Err(BadChunk::Checksum),
    }
}

/// Like [`checked_chunk`], but for a chunk whose checksum was verified before.
#[inline]
pub fn known_chunk(content: &[u8]) -> Result<(u8, &[u8]), BadChunk> {
    let covered = content.split_last_chunk::<CHECKSUM_BYTES>().map(|(covered, _)| covered);
    let (encoding, data) = covered.and_then(<[u8]>::split_first).ok_or(BadChunk::CutShort)?;
    Ok((*encoding, data))
}

/// Returns the end offsets of consecutive chunks, up to the first chunk that is incomplete or whose
/// checksum does not match.
pub fn checked_ends(bytes: &[u8], crc32c: Crc32c) -> Vec<u32> {
    let mut ends = Vec::new();
    let mut rest = bytes;
    while let Ok(extent) = chunk_extent(rest.get(..CHUNK_HEAD_BYTES_MAX).unwrap_or(rest))
        && let Some((chunk, after)) = rest.split_at_checked(extent.end)
        && chunk.get(extent).is_some_and(|content| checked_chunk(content, crc32c).is_ok())
        && let Ok(end) = u32::try_from(bytes.len() - after.len())
    {
        ends.push(end);
        rest = after;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<(u8, &[u8]), BadChunk> {
        let extent = chunk_extent(&bytes[..bytes.len().min(CHUNK_HEAD_BYTES_MAX)])?;
        checked_chunk(bytes.get(extent).ok_or(BadChunk::CutShort)?, crc32c::crc32c)
    }

    fn stored(encoding: u8, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        crate::put_uvarint(&mut bytes, data.len() as u64);
        let start = bytes.len();
        bytes.push(encoding);
        bytes.extend_from_slice(data);
        bytes.extend(crc32c::crc32c(&bytes[start..]).to_be_bytes());
        bytes
    }

    proptest! {
        #[test]
        fn chunks_come_back(encoding: u8, data in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = stored(encoding, &data);
            let end = bytes.len();
            bytes.extend([9; 3]);
            prop_assert_eq!(read(&bytes), Ok((encoding, &*data)));
            for cut in 0..end {
                prop_assert!(read(&bytes[..cut]).is_err(), "{} of {}", cut, end);
            }
        }

        #[test]
        fn each_wrong_bit_is_found(data in prop::collection::vec(any::<u8>(), 1..200), at: usize) {
            let mut bytes = stored(1, &data);
            let at = at % (8 * bytes.len());
            bytes[at / 8] ^= 1 << (at % 8);
            prop_assert!(read(&bytes).is_err());
        }

        #[test]
        fn chunks_are_checked_up_to_the_first_that_is_not_right(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..8),
            wrong: prop::sample::Index,
            cut in 1..5usize,
        ) {
            let stored: Vec<Vec<u8>> = chunks.iter().map(|data| stored(1, data)).collect();
            let ends: Vec<u32> = stored
                .iter()
                .scan(0, |end, chunk| {
                    *end += chunk.len() as u32;
                    Some(*end)
                })
                .collect();
            let mut bytes = stored.concat();
            prop_assert_eq!(&checked_ends(&bytes, crc32c::crc32c), &ends);
            let shorter = &bytes[..bytes.len() - cut];
            prop_assert_eq!(checked_ends(shorter, crc32c::crc32c), &ends[..ends.len() - 1]);
            let wrong = wrong.index(bytes.len());
            bytes[wrong] ^= 0x10;
            let right = ends.iter().filter(|end| **end as usize <= wrong).count();
            prop_assert_eq!(checked_ends(&bytes, crc32c::crc32c), &ends[..right]);
        }

        #[test]
        fn hostile_bytes_are_survived(bytes: Vec<u8>) {
            let _ = checked_ends(&bytes, crc32c::crc32c);
            let _ = read(&bytes);
            let _ = checked_chunk(&bytes, crc32c::crc32c);
        }
    }

    #[test]
    fn lengths_that_no_chunk_has_are_refused() {
        assert_eq!(read(&[]), Err(BadChunk::NoLength));
        assert_eq!(read(&[0xff; 20]), Err(BadChunk::NoLength));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1]), Err(BadChunk::TooLong));
        assert_eq!(chunk_extent(&[0x80, 0x80, 0x80, 0x08]), Ok(4..4 + 1 + CHUNK_BYTES_MAX + 4));
        assert_eq!(chunk_extent(&[0x81, 0x80, 0x80, 0x08]), Err(BadChunk::TooLong));
        assert_eq!(read(&[0, 1]), Err(BadChunk::CutShort));
    }
}
