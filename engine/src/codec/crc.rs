//! CRC-32C (Castagnoli), the checksum of every upstream format.
//!
//! WebAssembly has no instruction for CRC-32C: there, sixteen bytes at a time are looked up in
//! sixteen tables. The look-ups are independent, so sixteen bytes take little longer than eight.

/// The polynomial, lowest bit first.
#[cfg(any(target_arch = "wasm32", test))]
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Table `n` maps a byte to its effect on a checksum after which `n` more bytes follow.
#[cfg(any(target_arch = "wasm32", test))]
static TABLES: [[u32; 256]; 16] = tables();

/// Returns the CRC-32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

/// Extends `crc`, the checksum of earlier bytes, by more bytes.
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    match () {
        // A fuzzer cannot guess checksums; with a constant it reaches the code after the check.
        () if cfg!(fuzzing) => 0,
        #[cfg(target_arch = "wasm32")]
        () => append_by_tables(crc, bytes),
        #[cfg(not(target_arch = "wasm32"))]
        () => ::crc32c::crc32c_append(crc, bytes),
    }
}

#[cfg(any(target_arch = "wasm32", test))]
fn append_by_tables(crc: u32, bytes: &[u8]) -> u32 {
    let (blocks, rest) = bytes.as_chunks::<16>();
    let look_up = |followed_by: usize, byte: u64| TABLES[followed_by][(byte & 0xff) as usize];
    let crc = blocks.iter().fold(!crc, |crc, block| {
        let block = u128::from_le_bytes(*block);
        // The checksum so far only affects the first four bytes of a block.
        let (first, second) = (block as u64 ^ u64::from(crc), (block >> 64) as u64);
        let first = (look_up(15, first) ^ look_up(14, first >> 8))
            ^ (look_up(13, first >> 16) ^ look_up(12, first >> 24))
            ^ (look_up(11, first >> 32) ^ look_up(10, first >> 40))
            ^ (look_up(9, first >> 48) ^ look_up(8, first >> 56));
        let second = (look_up(7, second) ^ look_up(6, second >> 8))
            ^ (look_up(5, second >> 16) ^ look_up(4, second >> 24))
            ^ (look_up(3, second >> 32) ^ look_up(2, second >> 40))
            ^ (look_up(1, second >> 48) ^ look_up(0, second >> 56));
        first ^ second
    });
    !rest.iter().fold(crc, |crc, byte| crc >> 8 ^ look_up(0, u64::from(crc) ^ u64::from(*byte)))
}

#[cfg(any(target_arch = "wasm32", test))]
const fn tables() -> [[u32; 256]; 16] {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 16 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            // Each further table has the effect of a byte before one more zero byte.
            tables[table][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tables_agree_with_the_crate(a: Vec<u8>, b: Vec<u8>) {
            let first = append_by_tables(0, &a);
            prop_assert_eq!(first, ::crc32c::crc32c(&a));
            prop_assert_eq!(append_by_tables(first, &b), ::crc32c::crc32c_append(first, &b));
        }
    }

    /// Test vectors of RFC 3720, section B.4.
    #[test]
    fn known_answers() {
        for (bytes, crc) in [([0u8; 32], 0x8a91_36aa), ([0xff; 32], 0x62a8_ab43)] {
            assert_eq!((append_by_tables(0, &bytes), crc32c(&bytes)), (crc, crc));
        }
    }
}
