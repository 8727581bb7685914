//! Zstandard in Rust, which only decompresses.

// On targets with the C library, only a test uses this module.
#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]

use crate::wal::pack::RECORD_BYTES_MAX;
use ruzstd::decoding::StreamingDecoder;
use std::io::Read as _;

#[derive(Default)]
pub struct Packer {}

/// Decompresses records, one after the other.
#[derive(Default)]
pub struct Unpacker;

/// Returns 0, because this build does not compress.
pub fn packed_bytes_max(_record_bytes: usize) -> usize {
    0
}

impl Packer {
    /// Always fails: the library only decompresses.
    pub fn pack(&mut self, _record: &[u8], _room: &mut [u8]) -> Result<usize, String> {
        Err("this build reads Zstandard, but does not write it; choose Snappy".into())
    }
}

impl Unpacker {
    /// Appends the record to `out`. Returns `None` if the bytes are not a frame; `out` may then
    /// have any number of additional bytes.
    pub fn unpack(&mut self, packed: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut rest = packed;
        let stream = StreamingDecoder::new(&mut rest).ok()?;
        // One byte more than the limit, to tell a longer frame from a frame of the limit.
        let len = stream.take(RECORD_BYTES_MAX as u64 + 1).read_to_end(out).ok()?;
        (len <= RECORD_BYTES_MAX && rest.is_empty()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::Unpacker;
    use crate::wal::zstandard::system;
    use std::io::Write as _;

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    fn unpacked(frame: &[u8]) -> [Option<Vec<u8>>; 2] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let by_rust = Unpacker.unpack(frame, &mut ours);
        let by_c = system::Unpacker::default().unpack(frame, &mut theirs);
        [by_rust.map(|()| ours), by_c.map(|()| theirs)]
    }

    #[test]
    fn both_libraries_unpack_the_same() -> TestResult {
        let long: Vec<u8> = (0..100_000u32).flat_map(|i| (i / 7 * i).to_le_bytes()).collect();
        let mut packer = system::Packer::default();
        for record in [&long[..], b"x", &long[..300]] {
            let mut frame = vec![0; system::packed_bytes_max(record.len())];
            let len = packer.pack(record, &mut frame)?;
            frame.truncate(len);
            assert_eq!(unpacked(&frame), [Some(record.to_vec()), Some(record.to_vec())]);
            assert_eq!(unpacked(&frame[..frame.len() - 1]), [None, None]);
            frame.push(0);
            assert_eq!(unpacked(&frame), [None, None]);
        }
        Ok(())
    }

    #[test]
    fn frames_without_a_length_unpack() -> TestResult {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1)?;
        encoder.write_all(&[7; 5000])?;
        let frame = encoder.finish()?;
        assert!(matches!(zstd::zstd_safe::get_frame_content_size(&frame), Ok(None)));
        assert_eq!(unpacked(&frame), [Some(vec![7; 5000]), Some(vec![7; 5000])]);
        Ok(())
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bytes in [&[][..], &[5, 0], b"\x28\xb5\x2f\xfd\xe0"] {
            assert_eq!(unpacked(bytes), [None, None]);
        }
    }
}
