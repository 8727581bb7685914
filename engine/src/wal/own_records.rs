//! Two records that upstream does not have, of one number each. Upstream passes over types that it
//! does not know, and leaves them out of its checkpoints.
//!
//! ```text
//! applied   ┌──────────┬───────────────┐     retired   ┌──────────┬──────────────┐
//!           │ type 200 │ floor ms  i64 │               │ type 202 │ last ref u64 │
//!           └──────────┴───────────────┘               └──────────┴──────────────┘
//! ```
//!
//! A record of retired numbers says that no new series may get a number up to this one. It is part
//! of a checkpoint, which may leave out the series that had the largest: other parts of the log,
//! and copies that a destination still reads, name it.
//!
//! A deletions-applied record follows tombstones and says of all that stands before it in the
//! in-order log:
//!
//! - What the tombstones delete is gone from the out-of-order log, too; what that log holds
//!   from now on came later and counts.
//! - Samples before the floor are in blocks, or were deleted with the blocks that held them. Replay
//!   knows the former by the blocks; of the latter nothing else would be left to tell.

use super::decode::{RecordError, split_be_u64};
use super::{DELETIONS_APPLIED, RETIRED};

/// The deletions-applied record.
pub fn deletions_applied_record(floor_ms: i64) -> Vec<u8> {
    let mut record = vec![DELETIONS_APPLIED];
    record.extend_from_slice(&floor_ms.to_be_bytes());
    record
}

/// The record of retired numbers.
pub fn retired_record(last_ref: u64) -> Vec<u8> {
    let mut record = vec![RETIRED];
    record.extend_from_slice(&last_ref.to_be_bytes());
    record
}

/// The number of either.
pub(super) fn number(record: &[u8], mut rest: &[u8]) -> Result<u64, RecordError> {
    match split_be_u64(rest) {
        Some((number, _)) => Ok(number),
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
            let record = deletions_applied_record(floor_ms);
            assert!(
                matches!(decode(&record), Ok(Record::DeletionsApplied(found)) if found == floor_ms)
            );
            assert!(decode(&record[..8]).is_err());
        }
    }

    #[test]
    fn the_worked_bytes_of_retired_numbers() {
        let record = retired_record(0x0102);
        assert_eq!(record, [202, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert!(matches!(decode(&record), Ok(Record::Retired(0x0102))));
        assert!(decode(&record[..8]).is_err());
    }
}
