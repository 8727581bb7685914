//! Chooses the blocks to be shipped, from their `meta.json` alone.
//!
//! As in Thanos' sidecar, blocks cut from the head (level 1) are shipped. A block of a higher level
//! was made of other blocks. It is shipped only if it was merely rewritten without deleted samples,
//! or if shipping of merged blocks is enabled; and never if one of its sources was shipped before,
//! because the bucket would have those samples twice.

use super::ShipError;
use super::block_info::BlockInfo;
use super::state::Shipped;
use tidepool_disk::BlockDirs;

impl BlockInfo {
    /// Returns whether the block is to be shipped.
    pub fn is_due(&self, shipped: &Shipped, with_compacted: bool) -> bool {
        // As in Thanos' sidecar, empty blocks are skipped.
        if self.samples == 0 || shipped.contains(&self.ulid) {
            return false;
        }
        // A block with one source was rewritten, not merged.
        let is_rewritten = self.sources.len() == 1;
        match self.level {
            0 | 1 => true,
            _ if self.sources.iter().any(|source| shipped.contains(source)) => false,
            _ => is_rewritten || with_compacted,
        }
    }
}

/// The blocks of a data directory.
#[derive(Debug, Default)]
pub struct Survey {
    /// Blocks whose `meta.json` is readable, oldest first.
    pub found: Vec<BlockInfo>,
    /// Other blocks, with the error of reading `meta.json`. Some may have been removed meanwhile.
    pub unread: Vec<(String, ShipError)>,
}

/// Reads `meta.json` of all blocks. Damage is reported by the compactor, not here.
pub fn survey(blocks: &BlockDirs) -> Result<Survey, ShipError> {
    let mut survey = Survey::default();
    for ulid in blocks.list()? {
        match BlockInfo::read(blocks, &ulid) {
            Ok(info) => survey.found.push(info),
            Err(error) => {
                tracing::debug!(%error, "not shipped");
                survey.unread.push((ulid, error));
            }
        }
    }
    survey.found.sort_by(|a, b| (a.min_time_ms, &a.ulid).cmp(&(b.min_time_ms, &b.ulid)));
    Ok(survey)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn block(ulid: &str, level: u64, sources: &[&str]) -> Option<BlockInfo> {
        let compaction = json!({ "level": level, "sources": sources });
        let stats = json!({ "numSamples": 5 });
        let meta = json!({ "minTime": 1, "maxTime": 2, "stats": stats, "compaction": compaction });
        BlockInfo::of(ulid, meta)
    }

    #[test]
    fn what_was_cut_goes_once_and_what_was_made_of_it_does_not() {
        let shipped: Shipped = ["a", "b"].into_iter().map(str::to_owned).collect();
        let cases = [
            // ulid, level, sources, due, due with compacted
            ("a", 1, &["a"][..], false, false),
            ("c", 1, &["c"], true, true),
            ("d", 2, &["a", "b"], false, false),
            ("e", 2, &["a", "c"], false, false),
            ("f", 2, &["c", "g"], false, true),
            ("h", 2, &["a"], false, false),
            // Rewritten without its deletions before it was shipped.
            ("i", 2, &["c"], true, true),
        ];
        for (ulid, level, sources, due, due_with_compacted) in cases {
            let Some(block) = block(ulid, level, sources) else { panic!("{ulid}") };
            assert_eq!(block.is_due(&shipped, false), due, "{ulid}");
            assert_eq!(block.is_due(&shipped, true), due_with_compacted, "{ulid}");
        }
    }

    #[test]
    fn empty_blocks_do_not_go() {
        let Some(mut block) = block("a", 1, &["a"]) else { panic!() };
        block.samples = 0;
        assert!(!block.is_due(&Shipped::default(), true));
    }
}
