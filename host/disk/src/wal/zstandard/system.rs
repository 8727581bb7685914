//! Zstandard by the C library.

use crate::wal::pack::{RECORD_BYTES_MAX, grown};
use zstd::bulk::{Compressor, Decompressor};

/// The cheapest regular level, because every batch is compressed.
const LEVEL: i32 = 1;

/// Compresses records, one after the other.
#[derive(Default)]
pub struct Packer(Option<Compressor<'static>>);

/// Decompresses records, one after the other.
#[derive(Default)]
pub struct Unpacker(Option<Decompressor<'static>>);

/// Maximum length of a compressed record of `record_bytes`.
pub fn packed_bytes_max(record_bytes: usize) -> usize {
    zstd::zstd_safe::compress_bound(record_bytes)
}

impl Packer {
    /// Compresses a record into `room`, which must be large enough; returns the length.
    pub fn pack(&mut self, record: &[u8], room: &mut [u8]) -> Result<usize, String> {
        // Made at the first record: most logs use Snappy, and the compressor needs memory.
        let compressor = match &mut self.0 {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(LEVEL).map_err(|error| error.to_string())?),
        };
        compressor.compress_to_buffer(record, room).map_err(|error| error.to_string())
    }
}

impl Unpacker {
    /// Appends the record to `out`. Returns `None` if the bytes are not a frame; `out` may then
    /// have any number of additional bytes.
    pub fn unpack(&mut self, packed: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let Some(len) = zstd::zstd_safe::get_frame_content_size(packed).ok()? else {
            return unpack_stream(packed, out);
        };
        let record = grown(out, len)?;
        let decompressor = match &mut self.0 {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new().ok()?),
        };
        let written = decompressor.decompress_to_buffer(packed, &mut record[..]).ok()?;
        (written == record.len()).then_some(())
    }
}

/// Decompresses a frame that does not contain the length of its content.
fn unpack_stream(packed: &[u8], out: &mut Vec<u8>) -> Option<()> {
    use std::io::Read as _;

    let stream = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
    let len = stream.take(RECORD_BYTES_MAX as u64 + 1).read_to_end(out).ok()?;
    (len <= RECORD_BYTES_MAX).then_some(())
}
