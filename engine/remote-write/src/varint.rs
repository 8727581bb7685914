//! Unsigned variable-length integers: seven bits a byte, least significant first, at most ten
//! bytes, as in protobuf and in Go's `encoding/binary`.

/// Longest encoding of a 64-bit value, in bytes.
const VARINT_BYTES_MAX: usize = 10;

pub fn put_uvarint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns the number of bytes that [`put_uvarint`] appends.
pub fn uvarint_bytes(value: u64) -> usize {
    // `| 1` makes zero one bit long, so that it takes one byte.
    (u64::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// Splits a value off the front; `None` if the value is cut short or overflows 64 bits.
#[inline]
pub fn split_uvarint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match bytes {
        [first @ 0..0x80, rest @ ..] => Some((u64::from(*first), rest)),
        // References to symbols mostly have two bytes.
        [first, second @ 0..0x80, rest @ ..] => {
            Some((u64::from(*first & 0x7f) | u64::from(*second) << 7, rest))
        }
        _ => split_long_uvarint(bytes),
    }
}

/// Decodes a value of six bytes, the length of current times, with the first byte lowest. `None` if
/// the value does not end with the sixth byte; higher bytes must be zero.
#[inline]
pub fn uvarint_of_six(bytes: u64) -> Option<u64> {
    // The upper bits say that five bytes continue and the sixth ends the value.
    if bytes & 0x8080_8080_8080 != 0x0080_8080_8080 {
        return None;
    }
    // Joins groups of seven bits to fourteen, then to the whole.
    let pairs = (bytes & 0x007f_007f_007f) | (bytes & 0x7f00_7f00_7f00) >> 1;
    Some((pairs & 0x3fff) | (pairs >> 2 & 0x0fff_c000) | (pairs >> 4 & 0x03ff_f000_0000))
}

fn split_long_uvarint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        let last_may_hold_one_bit = i == VARINT_BYTES_MAX - 1 && *byte > 1;
        if last_may_hold_one_bit {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if *byte < 0x80 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back(value: u64) {
            let mut bytes = Vec::new();
            put_uvarint(&mut bytes, value);
            prop_assert_eq!(bytes.len(), uvarint_bytes(value));
            prop_assert_eq!(split_uvarint(&bytes), Some((value, &[][..])));
        }

        #[test]
        fn six_bytes_are_read_as_by_any_other_way(bytes: [u8; 6], value in 0u64..1 << 43) {
            let mut encoded = Vec::new();
            put_uvarint(&mut encoded, value);
            for bytes in [&bytes[..], &encoded] {
                let mut word = [0; 8];
                let Some(place) = word.get_mut(..bytes.len()) else { continue };
                place.copy_from_slice(bytes);
                let plain = split_uvarint(bytes);
                let expected = plain.filter(|_| bytes.len() == 6).filter(|(_, rest)| rest.is_empty());
                let found = uvarint_of_six(u64::from_le_bytes(word));
                prop_assert_eq!(found, expected.map(|(value, _)| value));
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = split_uvarint(&bytes);
        }
    }

    #[test]
    fn cut_and_overlong_encodings_are_refused() {
        assert_eq!(split_uvarint(&[]), None);
        assert_eq!(split_uvarint(&[0x80]), None);
        assert_eq!(split_uvarint(&[0xff; 11]), None);
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(split_uvarint(&largest), Some((u64::MAX, &[][..])));
    }
}
