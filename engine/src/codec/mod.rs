//! Bytes in, bytes out: varints, bit streams, checksums. No series, no I/O.

mod bits;
mod varint;

pub use bits::{BitReader, BitWriter};
pub use varint::{put_uvarint, put_varint, split_uvarint, split_varint};

/// CRC-32C (Castagnoli), the checksum of every upstream format.
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}
