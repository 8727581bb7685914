//! Frames of a streamed remote read. Their checksums may be put in later, by whom that costs less:
//! a host has instructions for it.
//!
//! ```text
//! ┌────────────────┬──────────────────────────────┬─────────┐
//! │ length uvarint │ CRC-32C of the payload, BE   │ payload │  × frames
//! └────────────────┴──────────────────────────────┴─────────┘
//! ```
//!
//! Source: Prometheus' remote read API document, section "Streamed chunks".

use crate::varint::{put_uvarint, split_uvarint};

/// Begins a frame whose payload will have so many bytes; zeros stand where its checksum belongs.
pub fn put_frame_head(out: &mut Vec<u8>, payload_bytes: usize) {
    put_uvarint(out, payload_bytes as u64);
    out.extend_from_slice(&[0; 4]);
}

/// Puts the checksum, a CRC-32C, into each of some whole frames. Bytes that are no frame return
/// their offset.
pub fn seal_frames(frames: &mut [u8], crc32c: impl Fn(&[u8]) -> u32) -> Result<(), usize> {
    let bytes = frames.len();
    let mut rest = frames;
    while !rest.is_empty() {
        let offset = bytes - rest.len();
        let (payload_bytes, after) = split_uvarint(rest).ok_or(offset)?;
        let head_bytes = rest.len() - after.len();
        let payload_bytes = usize::try_from(payload_bytes).map_err(|_| offset)?;
        let (_, after) = rest.split_at_mut_checked(head_bytes).ok_or(offset)?;
        let (checksum, after) = after.split_first_chunk_mut::<4>().ok_or(offset)?;
        let (payload, after) = after.split_at_mut_checked(payload_bytes).ok_or(offset)?;
        *checksum = crc32c(payload).to_be_bytes();
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_gets_its_checksum() {
        let long = [7u8; 200];
        let mut frames = vec![3, 0, 0, 0, 0, 1, 2, 3, 200, 1, 0, 0, 0, 0];
        frames.extend_from_slice(&long);
        let mut expected = frames.clone();
        expected[1..5].copy_from_slice(&crc32c::crc32c(&[1, 2, 3]).to_be_bytes());
        expected[10..14].copy_from_slice(&crc32c::crc32c(&long).to_be_bytes());
        assert_eq!(seal_frames(&mut frames, crc32c::crc32c), Ok(()));
        assert_eq!(frames, expected);
        assert_eq!(seal_frames(&mut [], crc32c::crc32c), Ok(()));
    }

    #[test]
    fn what_is_cut_short_is_no_frame() {
        let whole = [1, 0, 0, 0, 0, 9, 3, 0, 0, 0, 0, 1, 2, 3];
        for end in 7..whole.len() {
            let mut cut = whole;
            assert_eq!(seal_frames(&mut cut[..end], crc32c::crc32c), Err(6), "{end}");
        }
        assert_eq!(seal_frames(&mut [0x80; 12], crc32c::crc32c), Err(0));
    }
}
