//! Compression of records: Snappy blocks or Zstandard frames, with reused buffers.

use super::page::Compression;
use super::zstandard;
use crate::error::{DiskError, Result};

/// Maximum length of a record that is written or decompressed, so that a hostile or damaged length
/// cannot exhaust the memory. It equals the default size of a segment.
pub const RECORD_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Compresses records, one after the other.
pub struct Packer {
    compression: Compression,
    snappy: snap::raw::Encoder,
    zstd: zstandard::Packer,
    /// Buffer for the compressed record. It only grows, so that most calls allocate nothing.
    packed: Vec<u8>,
}

/// Decompresses records, one after the other.
#[derive(Default)]
pub struct Unpacker {
    snappy: snap::raw::Decoder,
    zstd: zstandard::Unpacker,
}

impl Packer {
    pub fn new(compression: Compression) -> Packer {
        let (snappy, zstd) = (snap::raw::Encoder::new(), zstandard::Packer::default());
        Packer { compression, snappy, zstd, packed: Vec::new() }
    }

    /// Returns the bytes to write and their compression. If compressing does not make the record
    /// shorter, these are the record itself and `None`.
    pub fn pack<'a>(&'a mut self, record: &'a [u8]) -> Result<(&'a [u8], Compression)> {
        // Decompression refuses longer records, so this record could never be read back.
        if record.len() > RECORD_BYTES_MAX {
            let (bytes, bytes_max) = (record.len() as u64, RECORD_BYTES_MAX as u64);
            return Err(DiskError::RecordTooLong { bytes, bytes_max });
        }
        let failed = |reason: String| DiskError::Compress { bytes: record.len() as u64, reason };
        let len = match self.compression {
            Compression::None => return Ok((record, Compression::None)),
            Compression::Snappy => {
                let room = room(&mut self.packed, snap::raw::max_compress_len(record.len()));
                self.snappy.compress(record, room).map_err(|error| failed(error.to_string()))?
            }
            Compression::Zstd => {
                let room = room(&mut self.packed, zstandard::packed_bytes_max(record.len()));
                self.zstd.pack(record, room).map_err(failed)?
            }
        };
        // The header of each fragment has the compression, so records of one log can differ.
        match len < record.len() {
            true => Ok((&self.packed[..len], self.compression)),
            false => Ok((record, Compression::None)),
        }
    }

    /// Frees the buffer if a rare, long record has grown it beyond `bytes_kept_max`.
    pub fn shrink(&mut self, bytes_kept_max: usize) {
        if self.packed.len() > bytes_kept_max {
            self.packed = Vec::new();
        }
    }
}

impl Unpacker {
    /// Appends the decompressed record to `out`; returns whether the bytes are a valid record.
    pub fn unpack(&mut self, packed: &[u8], compression: Compression, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        let unpacked = match compression {
            Compression::None => {
                out.extend_from_slice(packed);
                Some(())
            }
            Compression::Snappy => self.unsnap(packed, out),
            Compression::Zstd => self.zstd.unpack(packed, out),
        };
        if unpacked.is_none() {
            // `out` has earlier records as well, so an invalid record must leave no bytes in it.
            out.truncate(before);
        }
        unpacked.is_some()
    }

    fn unsnap(&mut self, packed: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let len = snap::raw::decompress_len(packed).ok()?;
        let record = grown(out, len as u64)?;
        let written = self.snappy.decompress(packed, record).ok()?;
        (written == len).then_some(())
    }
}

fn room(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

/// Extends `out` by `len` zero bytes and returns them; `None` above `RECORD_BYTES_MAX`.
pub(super) fn grown(out: &mut Vec<u8>, len: u64) -> Option<&mut [u8]> {
    let len = usize::try_from(len).ok().filter(|len| *len <= RECORD_BYTES_MAX)?;
    let before = out.len();
    out.resize(before + len, 0);
    Some(&mut out[before..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_gives_up_where_nothing_is_gained() {
        let long: Vec<u8> = (0..100_000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        for compression in [Compression::None, Compression::Snappy, Compression::Zstd] {
            let mut packer = Packer::new(compression);
            let mut unpacker = Unpacker::default();
            for record in [&long[..], b"", b"x", &long[..300]] {
                let (packed, how) = packer.pack(record).expect("packs");
                assert!(packed.len() <= record.len());
                let how_short = if record.len() < 2 { Compression::None } else { compression };
                assert_eq!(how, how_short);
                let mut out = vec![9; 3];
                assert!(unpacker.unpack(packed, how, &mut out));
                assert_eq!((&out[..3], &out[3..]), (&[9; 3][..], record));
            }
        }
    }

    #[test]
    fn bytes_that_are_not_packed_are_refused() {
        let mut unpacker = Unpacker::default();
        // Claims of four gigabytes, of nothing, and of too much.
        for bytes in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[], &[5, 0], b"\x28\xb5\x2f\xfd\xe0"] {
            let mut out = vec![9; 3];
            assert!(!unpacker.unpack(bytes, Compression::Snappy, &mut out));
            assert!(!unpacker.unpack(bytes, Compression::Zstd, &mut out));
            assert_eq!(out, [9; 3]);
        }
    }

    #[test]
    fn lengths_beyond_the_limit_are_not_allocated() {
        let mut out = Vec::new();
        for len in [RECORD_BYTES_MAX as u64 + 1, u64::MAX] {
            assert!(grown(&mut out, len).is_none());
        }
        assert_eq!(out.capacity(), 0);
    }
}
