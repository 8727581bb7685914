//! Comparing and hashing short byte strings, eight bytes at a time.
//!
//! The `memcmp` of WebAssembly's C library goes byte by byte, and products of 128 bits are slow
//! there; both would dominate the cost of finding a series by its labels.

/// An odd number with well-mixed bits (the golden ratio's fraction).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Whether two byte strings are equal.
#[inline]
pub fn bytes_equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    if a.len() < 8 {
        return short_word(a) == short_word(b);
    }
    if a.len() < 16 {
        return a.first_chunk::<8>() == b.first_chunk::<8>()
            && a.last_chunk::<8>() == b.last_chunk::<8>();
    }
    let (Some(a_last), Some(b_last)) = (a.last_chunk::<16>(), b.last_chunk::<16>()) else {
        return false;
    };
    // As numbers: arrays of this size are compared by a call. The last bytes overlap others, which
    // spares a loop over the rest.
    let number = |bytes: &[u8; 16]| u128::from_ne_bytes(*bytes);
    if number(a_last) != number(b_last) {
        return false;
    }
    let (a_words, _) = a.as_chunks::<16>();
    let (b_words, _) = b.as_chunks::<16>();
    a_words.iter().zip(b_words).all(|(x, y)| number(x) == number(y))
}

/// Mixes one more word into a hash.
#[inline]
pub fn hash_word(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(MULTIPLIER);
    mixed ^ (mixed >> 32)
}

/// Hash of a byte string; the seed keeps others from crafting collisions.
#[inline]
pub fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let hash = hash_word(seed, bytes.len() as u64);
    if bytes.len() < 8 {
        return hash_word(hash, short_word(bytes));
    }
    let (words, _) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(hash, |hash, word| hash_word(hash, u64::from_le_bytes(*word)));
    bytes.last_chunk::<8>().map_or(hash, |last| hash_word(hash, u64::from_le_bytes(*last)))
}

/// Fewer than eight bytes as one number. Only unambiguous together with the length.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(head), Some(tail)) => {
            u64::from(u32::from_le_bytes(*head)) | u64::from(u32::from_le_bytes(*tail)) << 32
        }
        _ if len == 0 => 0,
        _ => {
            let (first, middle, last) = (bytes[0], bytes[len / 2], bytes[len - 1]);
            u64::from(first) | u64::from(middle) << 8 | u64::from(last) << 16
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_plain_comparison(a: Vec<u8>, b: Vec<u8>, flip in 0usize..64) {
            prop_assert!(bytes_equal(&a, &a.clone()));
            prop_assert_eq!(bytes_equal(&a, &b), a == b);
            let mut changed = a.clone();
            if let Some(byte) = changed.get_mut(flip) {
                *byte ^= 1;
                prop_assert!(!bytes_equal(&a, &changed));
                prop_assert_ne!(hash_bytes(7, &a), hash_bytes(7, &changed));
            }
        }
    }

    #[test]
    fn every_short_length_is_told_apart() {
        let text = b"abcdefghijklmnopqrst";
        for len in 0..text.len() {
            assert!(bytes_equal(&text[..len], &text[..len]));
            assert!(!bytes_equal(&text[..len], &text[..len + 1]));
            assert_ne!(hash_bytes(1, &text[..len]), hash_bytes(1, &text[..len + 1]));
            assert_ne!(hash_bytes(1, &text[..len]), hash_bytes(2, &text[..len]));
        }
    }
}
