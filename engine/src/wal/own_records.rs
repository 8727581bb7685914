//! Two records that upstream does not have, of one number each. Upstream skips types that it does
//! not know, and leaves them out of its checkpoints.
//!
//! ```text
//! applied   ┌──────────┬───────────────┐     retired   ┌──────────┬──────────────┐
//!           │ type 200 │ floor ms  i64 │               │ type 202 │ last ref u64 │
//!           └──────────┴───────────────┘               └──────────┴──────────────┘
//! ```
//!
//! A retired record states that no new series may get a number up to its own. Checkpoints have one,
//! since the rest of the log, and copies that forwarding reads, may refer to omitted series.
//!
//! A deletions-applied record follows tombstones. It says of the in-order log before it:
//!
//! - Samples that the tombstones delete were removed from the out-of-order log, too; samples that
//!   the out-of-order log has from now on are newer than the tombstones and are kept.
//! - Samples before the floor are in blocks, or were deleted with their blocks. Only this record
//!   keeps a replay from restoring deleted ones.

use super::decode::{RecordError, split_be_u64};
use super::{DELETIONS_APPLIED, RETIRED};

/// Encodes a deletions-applied record with its floor in milliseconds.
pub fn deletions_applied_record(floor_ms: i64) -> Vec<u8> {
    let mut record = vec![DELETIONS_APPLIED];
    record.extend_from_slice(&floor_ms.to_be_bytes());
    record
}

/// Encodes a retired record with the largest number that must not be used again.
pub fn retired_record(last_ref: u64) -> Vec<u8> {
    let mut record = vec![RETIRED];
    record.extend_from_slice(&last_ref.to_be_bytes());
    record
}

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
