//! Which blocks stay as they are until somebody has copied them elsewhere.

use crate::disk::BlockDirs;
use crate::ship::plan::survey;
use crate::ship::state::Shipped;
use std::path::PathBuf;

/// Whose list says what has been copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldConfig {
    /// The list, in the format of Thanos' sidecar.
    pub file: PathBuf,
    /// Whether merged blocks are copied, too.
    pub with_compacted: bool,
}

impl HoldConfig {
    /// The blocks that wait. If the list does not read, all do that might be on it.
    pub(super) fn held(&self, blocks: &BlockDirs) -> Vec<String> {
        let shipped = Shipped::read(&self.file).unwrap_or_else(|error| {
            tracing::warn!(%error, "no block is merged until this reads again");
            Shipped::default()
        });
        let found = survey(blocks).unwrap_or_else(|error| {
            tracing::debug!(%error, "blocks not listed");
            Vec::new()
        });
        let due = found.into_iter().filter(|block| block.is_due(&shipped, self.with_compacted));
        due.map(|block| block.ulid).collect()
    }
}
