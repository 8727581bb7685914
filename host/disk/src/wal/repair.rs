//! Damaged segments, once all of the log was read: each is quarantined as it was found, and one
//! with all of its readable records takes its place, so that neither the next start nor upstream's
//! programs, which cut a log off at the first damage, stumble over it.
//!
//! ```text
//! 00000007 ── rewrite.tmp/00000000, synced ── link to set-aside/…-wal-00000007 ── rename over it
//! ```
//!
//! A crash at any place leaves the damaged segment or the repaired one, and once there is a
//! repaired one the other is quarantined. Whatever fails leaves the segment as it was: it was read
//! as far as it can be, and it will be again. What the device would not read stays, too: it may be
//! readable next time.

use super::Wal;
use super::reader::DamageTally;
use super::segment::SegmentFile;
use crate::error::Result;
use std::path::PathBuf;

/// A segment in which a replay found damage.
#[derive(Clone, Debug)]
pub(super) struct DamagedSegment {
    pub file: SegmentFile,
    pub damage: DamageTally,
    /// Records that could be read.
    pub records: u64,
    /// Whether it has to stay as it is, so that the next replay does again what this one did.
    pub must_stay: bool,
}

impl Wal {
    /// Repairs what can be. Nothing that fails here keeps the log from going on.
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
        if !found.is_empty() {
            self.removal.quarantine.trim();
        }
    }

    fn repair_segment(&self, file: &SegmentFile, records: u64) -> Result<Option<PathBuf>> {
        self.replace_segment(file, records, &|_| false, true)
    }
}
