//! Time in the ULID of a new block. If two blocks have samples of one series at the same time, the
//! larger ULID wins. So a new ULID must exceed all others, even after the clock was set back.

use crate::storage::{Blocks, StorageResult};

/// A block further ahead of clock and samples was not made by this node, and is ignored.
const AHEAD_MS_MAX: i64 = 24 * 3_600_000;

/// Digits of a ULID that hold its time (github.com/ulid/spec, "Canonical String Representation").
const TIME_DIGITS: usize = 10;
/// Digits of Crockford's base 32.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Returns the time for the ULID of a new block, whose samples end at `samples_end_ms`: the clock's
/// time, or one millisecond after the newest block if that is later.
pub fn new_block_ms(blocks: &dyn Blocks, now_ms: i64, samples_end_ms: i64) -> StorageResult<i64> {
    // The times of the samples count too, because the clock may have been reset.
    let latest_ms = now_ms.max(samples_end_ms).saturating_add(AHEAD_MS_MAX);
    let times_ms = blocks.list()?.into_iter().filter_map(|block| ulid_ms(&block));
    let newest_ms = times_ms.filter(|time_ms| *time_ms <= latest_ms).max();
    Ok(newest_ms.map_or(now_ms, |newest_ms| now_ms.max(newest_ms.saturating_add(1))))
}

/// Returns the time in a ULID, in milliseconds since the epoch.
fn ulid_ms(ulid: &str) -> Option<i64> {
    ulid.as_bytes().get(..TIME_DIGITS)?.iter().try_fold(0i64, |time_ms, digit| {
        let value = DIGITS.iter().position(|known| known == digit)?;
        // Ten digits of five bits fit an `i64`.
        Some(time_ms << 5 | value as i64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::memory::MemoryBlocks;

    #[test]
    fn the_time_in_a_ulid() {
        // The example of the specification, and the largest that it names.
        assert_eq!(ulid_ms("01ARZ3NDEKTSV4RRFFQ69G5FAV"), Some(1_469_922_850_259));
        assert_eq!(ulid_ms("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), Some((1 << 48) - 1));
        assert_eq!(ulid_ms("01ARZ3NDE"), None);
        assert_eq!(ulid_ms("01ARZ3NDEUTSV4RRFFQ69G5FAV"), None, "U is no digit");
    }

    #[test]
    fn a_new_block_is_later_than_all_but_those_dated_ahead() -> StorageResult<()> {
        const NOW_MS: i64 = 1_700_000_000_000;
        let blocks = MemoryBlocks::default();
        assert_eq!(new_block_ms(&blocks, NOW_MS, i64::MIN)?, NOW_MS);
        let put = |time_ms: i64| {
            let mut writer = blocks.create(time_ms)?;
            writer.write_at("meta.json", 0, b"{}")?;
            writer.commit()
        };
        put(NOW_MS)?;
        let hour_ms = 3_600_000;
        assert_eq!(new_block_ms(&blocks, NOW_MS + 5, i64::MIN)?, NOW_MS + 5);
        assert_eq!(new_block_ms(&blocks, NOW_MS - hour_ms, i64::MIN)?, NOW_MS + 1);
        // A board without a battery starts in 1970; what it is to cut says what time it was.
        assert_eq!(new_block_ms(&blocks, 0, i64::MIN)?, 0);
        assert_eq!(new_block_ms(&blocks, 0, NOW_MS - hour_ms)?, NOW_MS + 1);
        put(NOW_MS + 25 * hour_ms)?;
        assert_eq!(new_block_ms(&blocks, NOW_MS - hour_ms, i64::MIN)?, NOW_MS + 1);
        Ok(())
    }
}
