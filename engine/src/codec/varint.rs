//! Signed variable-length integers of Go's `encoding/binary`: zigzag-folded, then as unsigned ones.

use tidepool_remote_write::{put_uvarint, split_uvarint};

/// Appends a signed value, zigzag-folded.
pub fn put_varint(out: &mut Vec<u8>, value: i64) {
    put_uvarint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Takes a zigzag-folded value off the front; `None` if it is cut short or exceeds 64 bits.
#[inline]
pub fn split_varint(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (folded, rest) = split_uvarint(bytes)?;
    Some((((folded >> 1) as i64) ^ -((folded & 1) as i64), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back(unsigned: u64, signed: i64) {
            let mut bytes = Vec::new();
            put_uvarint(&mut bytes, unsigned);
            put_varint(&mut bytes, signed);
            let (first, rest) = split_uvarint(&bytes).expect("first value");
            let (second, rest) = split_varint(rest).expect("second value");
            prop_assert_eq!((first, second, rest.len()), (unsigned, signed, 0));
        }
    }
}
