//! Bytes in, bytes out: varints, bit streams, checksums. No series, no I/O.

mod bits;
mod bytes;
mod crc;
mod varint;

pub use bits::{BitReader, BitWriter};
pub use bytes::{bytes_equal, hash_bytes, hash_word};
pub use crc::{crc32c, crc32c_append};
pub use varint::{
    put_uvarint, put_varint, split_uvarint, split_varint, uvarint_bytes, uvarint_of_six,
};
