//! Bytes in, bytes out: varints, bit streams, checksums. No series, no I/O.

mod bits;
mod bytes;
mod varint;

pub use bits::{BitReader, BitWriter};
pub use bytes::{bytes_equal, hash_bytes, hash_word};
pub use varint::{put_uvarint, put_varint, split_uvarint, split_varint, uvarint_bytes};

/// CRC-32C (Castagnoli), the checksum of every upstream format.
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}
