//! Bytes in, bytes out: varints, bit streams, checksums. No series, no I/O.

mod bits;
mod crc;
mod varint;

pub use bits::{BitReader, BitWriter};
pub use crc::{crc32c, crc32c_append};
pub use tidepool_remote_write::{
    bytes_equal, hash_bytes, hash_word, put_uvarint, split_uvarint, uvarint_bytes,
};
pub use varint::{put_varint, split_varint};
