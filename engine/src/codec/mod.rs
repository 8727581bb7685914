//! Bytes in, bytes out: varints, bit streams, checksums. No series, no I/O.

mod bits;
mod bytes;
mod varint;

pub use bits::{BitReader, BitWriter};
pub use bytes::{bytes_equal, hash_bytes, hash_word};
pub use varint::{
    put_uvarint, put_varint, split_uvarint, split_varint, uvarint_bytes, uvarint_of_six,
};

/// CRC-32C (Castagnoli), the checksum of every upstream format.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

/// The checksum of what `crc` is of, followed by more.
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    // A fuzzer guesses no checksum; where there are none it gets at what lies behind them.
    if cfg!(fuzzing) { 0 } else { ::crc32c::crc32c_append(crc, bytes) }
}
