//! Repairs damaged segments after a replay: the segment is quarantined as it was found, and
//! replaced by a segment with all of its readable records. Without a repair, the next start would
//! find the damage again, and upstream's programs would cut the log off at the first damage.
//!
//! ```text
//! 00000007 ── rewrite.tmp/00000000, synced ── link to set-aside/…-wal-00000007 ── rename over it
//! ```
//!
//! A crash at any step leaves either the damaged segment or the repaired segment under the name;
//! the repaired one gets the name only after the damaged one was quarantined. After a failure the
//! segment stays as it was; the next replay reads its readable records again. Segments that the
//! device refused to read stay as well, since a later read may succeed.

use super::Wal;
use super::reader::DamageTally;
use super::segment::SegmentFile;
use crate::error::Result;
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub(super) struct DamagedSegment {
    pub file: SegmentFile,
    pub damage: DamageTally,
    /// Number of records that could be read.
    pub records: u64,
    /// Whether the segment must stay unrepaired: see `Source::must_stay`.
    pub must_stay: bool,
}

impl Wal {
    /// Repairs the segments where possible. A failure does not keep the log from continuing.
    pub(super) fn repair(&mut self, found: Vec<DamagedSegment>) {
        for DamagedSegment { file, damage, records, must_stay } in &found {
            let path = file.path.display();
            self.removal.quarantine.count_damage(damage.places, damage.bytes);
            if damage.is_unreadable || *must_stay {
                tracing::warn!(
                    %path, records,
                    "a damaged WAL segment is kept until a checkpoint replaces it"
                );
                self.removal.note_damaged(file.path.clone());
                continue;
            }
            match self.repair_segment(file, *records) {
                Ok(kept) => tracing::warn!(
                    %path, to = kept.map(|kept| kept.display().to_string()), records,
                    damaged_places = damage.places, damaged_bytes = damage.bytes,
                    "repaired a damaged WAL segment: all readable records are kept, and the \
                     damaged file is quarantined"
                ),
                Err(error) => {
                    tracing::warn!(
                        %path, %error, records,
                        "could not repair a damaged WAL segment; it was read as far as possible"
                    );
                    self.removal.note_damaged(file.path.clone());
                }
            }
        }
        // Trimmed once, when all segments are quarantined and so count towards the size limit.
        if !found.is_empty() {
            self.removal.quarantine.trim();
        }
    }

    fn repair_segment(&self, file: &SegmentFile, records: u64) -> Result<Option<PathBuf>> {
        self.replace_segment(file, records, &|_| false, true)
    }
}
