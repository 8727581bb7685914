//! Checksums of streamed frames, with the instructions that this machine has for them: the engine
//! leaves them to its host.
//!
//! ```text
//! ┌────────────────┬──────────────────────────────┬─────────┐
//! │ length uvarint │ CRC-32C of the payload, BE   │ payload │  × frames
//! └────────────────┴──────────────────────────────┴─────────┘
//! ```

/// Puts the checksum into each of some whole frames. What is no frame gives its offset.
pub fn seal_frames(frames: &mut [u8]) -> Result<(), usize> {
    let bytes = frames.len();
    let mut rest = frames;
    while !rest.is_empty() {
        let offset = bytes - rest.len();
        let head = prost::decode_length_delimiter(&*rest).ok();
        let Some(payload_bytes) = head else { return Err(offset) };
        let (_, after) =
            rest.split_at_mut_checked(prost::length_delimiter_len(payload_bytes)).ok_or(offset)?;
        let (checksum, after) = after.split_first_chunk_mut::<4>().ok_or(offset)?;
        let (payload, after) = after.split_at_mut_checked(payload_bytes).ok_or(offset)?;
        *checksum = crc32c::crc32c(payload).to_be_bytes();
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
        assert_eq!(seal_frames(&mut frames), Ok(()));
        assert_eq!(frames, expected);
        assert_eq!(seal_frames(&mut []), Ok(()));
    }

    #[test]
    fn what_is_cut_short_is_no_frame() {
        let whole = [1, 0, 0, 0, 0, 9, 3, 0, 0, 0, 0, 1, 2, 3];
        for end in 7..whole.len() {
            let mut cut = whole;
            assert_eq!(seal_frames(&mut cut[..end]), Err(6), "{end}");
        }
        assert_eq!(seal_frames(&mut [0x80; 12]), Err(0));
    }
}
