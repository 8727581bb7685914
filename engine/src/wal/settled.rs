//! A record that upstream does not have: what deletions before it are done with.
//!
//! ```text
//! ┌──────────┬───────────────┐
//! │ type 200 │ floor ms  i64 │
//! └──────────┴───────────────┘
//! ```
//!
//! Upstream passes over types that it does not know, and leaves them out of its checkpoints. The
//! record follows tombstones and says of all that stands before it in the ordered log:
//!
//! - What the tombstones delete is gone from the log of late samples, too; what that log holds
//!   from now on came later and counts.
//! - Samples before the floor are in blocks, or were deleted with the blocks that held them. Replay
//!   knows the former by the blocks; of the latter nothing else would be left to tell.

use super::SETTLED;
use super::decode::{RecordError, split_be_u64};

/// The record.
pub fn settled_record(floor_ms: i64) -> Vec<u8> {
    let mut record = vec![SETTLED];
    record.extend_from_slice(&floor_ms.to_be_bytes());
    record
}

pub(super) fn floor_ms(record: &[u8], mut rest: &[u8]) -> Result<i64, RecordError> {
    match split_be_u64(rest) {
        Some((floor_ms, _)) => Ok(floor_ms as i64),
        None => Err(RecordError::at(record, &mut rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::{Record, decode};

    #[test]
    fn the_floor_survives_and_a_short_record_is_damage() {
        for floor_ms in [i64::MIN, -1, 0, 1_700_000_000_000, i64::MAX] {
            let record = settled_record(floor_ms);
            assert!(matches!(decode(&record), Ok(Record::Settled(found)) if found == floor_ms));
            assert!(decode(&record[..8]).is_err());
        }
    }
}
