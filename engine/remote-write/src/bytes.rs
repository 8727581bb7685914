//! Comparison and hashing of short byte strings, eight bytes at a time.
//!
//! In WebAssembly, the `memcmp` of the C library works byte by byte, and 128-bit products are slow;
//! both would dominate the cost of finding a series by its labels.

/// Odd multiplier with well-mixed bits (fraction of the golden ratio).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
pub fn bytes_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && match a.len() {
            0..8 => short_word(a) == short_word(b),
            8..16 => ends_equal::<8>(a, b, |a, b| u64::from_ne_bytes(*a) == u64::from_ne_bytes(*b)),
            // Compared as integers, because arrays of this size are compared by a function call.
            16..32 => {
                ends_equal::<16>(a, b, |a, b| u128::from_ne_bytes(*a) == u128::from_ne_bytes(*b))
            }
            32..=64 => ends_equal::<32>(a, b, equal_32),
            _ => long_equal(a, b),
        }
}

/// Compares the first and the last bytes, which overlap, so that no loop over the rest is needed.
#[inline(always)]
fn ends_equal<const N: usize>(
    a: &[u8],
    b: &[u8],
    is_equal: impl Fn(&[u8; N], &[u8; N]) -> bool,
) -> bool {
    match (a.first_chunk(), b.first_chunk(), a.last_chunk(), b.last_chunk()) {
        (Some(a_first), Some(b_first), Some(a_last), Some(b_last)) => {
            is_equal(a_first, b_first) && is_equal(a_last, b_last)
        }
        _ => false,
    }
}

/// Compares byte strings of more than 64 bytes.
fn long_equal(a: &[u8], b: &[u8]) -> bool {
    let (Some(a_last), Some(b_last)) = (a.last_chunk(), b.last_chunk()) else { return false };
    // Label sets mostly differ near the end.
    equal_32(a_last, b_last) && {
        // The remainder of less than 32 bytes is part of the last chunk.
        let (a_chunks, _) = a.as_chunks::<32>();
        let (b_chunks, _) = b.as_chunks::<32>();
        a_chunks.iter().zip(b_chunks).all(|(a, b)| equal_32(a, b))
    }
}

/// Compares two vectors at once, because each iteration of a loop costs WebAssembly a check of its
/// deadline.
#[cfg(target_feature = "simd128")]
#[inline(always)]
fn equal_32(a: &[u8; 32], b: &[u8; 32]) -> bool {
    use std::arch::wasm32::{u64x2, v128_any_true, v128_or, v128_xor};
    let vectors = |bytes: &[u8; 32]| {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| words.get(at).copied().map_or(0, u64::from_ne_bytes);
        (u64x2(word(0), word(1)), u64x2(word(2), word(3)))
    };
    let (a, b) = (vectors(a), vectors(b));
    !v128_any_true(v128_or(v128_xor(a.0, b.0), v128_xor(a.1, b.1)))
}

#[cfg(not(target_feature = "simd128"))]
#[inline(always)]
fn equal_32(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a == b
}

/// Mixes a word into a hash.
#[inline]
pub fn hash_word(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(MULTIPLIER);
    mixed ^ (mixed >> 32)
}

/// Hashes a byte string; a secret seed keeps clients from crafting collisions.
#[inline]
pub fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    // The length distinguishes strings that differ only in zeros at the end.
    let hash = hash_word(seed, bytes.len() as u64);
    if bytes.len() < 8 {
        return hash_word(hash, short_word(bytes));
    }
    let add = |hash: u64, word: &[u8; 8]| hash_word(hash, u64::from_le_bytes(*word));
    let (pairs, rest) = bytes.as_chunks::<16>();
    let hash = pairs.iter().fold(hash, |hash, pair| {
        let (words, _) = pair.as_chunks::<8>();
        words.iter().fold(hash, add)
    });
    let hash = rest.first_chunk().map_or(hash, |word| add(hash, word));
    // The last eight bytes may overlap the words before, which saves a loop over the remainder.
    bytes.last_chunk().map_or(hash, |last| add(hash, last))
}

/// Returns fewer than eight bytes as one number, which is unique only together with the length.
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
    fn every_length_and_every_byte_is_told_apart() {
        let text: Vec<u8> = (0..150).collect();
        for len in 0..text.len() {
            let same = text[..len].to_vec();
            assert!(bytes_equal(&text[..len], &same));
            assert!(!bytes_equal(&text[..len], &text[..len + 1]));
            for at in 0..len {
                let mut other = same.clone();
                other[at] ^= 0x80;
                assert!(!bytes_equal(&text[..len], &other), "byte {at} of {len}");
            }
            assert_ne!(hash_bytes(1, &same), hash_bytes(1, &text[..len + 1]));
            assert_ne!(hash_bytes(1, &same), hash_bytes(2, &same));
        }
    }

    /// Files of nodes contain hashes: positions and gaps of forwarding.
    #[test]
    fn hashes_stay_as_they_are() {
        let text: Vec<u8> = (0..100).collect();
        let word =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        for len in 8..text.len() {
            let bytes = &text[..len];
            let words = bytes.chunks_exact(8).chain([&bytes[len - 8..]]);
            let hash = |hash, bytes| hash_word(hash, word(bytes));
            assert_eq!(hash_bytes(5, bytes), words.fold(hash_word(5, len as u64), hash), "{len}");
        }
    }
}
