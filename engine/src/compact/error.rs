//! Errors of merging blocks, with the reaction to each.

use super::BadBlock;
use crate::error::Error;
use crate::storage::StorageError;

/// Error of a merge. In every case no partial block is left, and no parent is lost.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One parent is damaged. Exclude it and plan again: the other parents can be merged.
    #[error(transparent)]
    BadParent(#[from] BadBlock),
    /// The parents are readable but do not make a valid block. Set `failed` in the metas of all
    /// parents before the next plan, because another attempt would end the same way.
    #[error("blocks {} cannot be merged: {source}", .parents.join(", "))]
    Refused {
        /// ULIDs of all the parents.
        parents: Vec<String>,
        /// The error that ended the merge.
        source: Box<Error>,
    },
    /// Samples of a parent were deleted during its merge. Plan again.
    #[error(
        "samples of block {block} were deleted while it was being merged; the merge was discarded"
    )]
    Deleted {
        /// ULID of the parent block.
        block: String,
    },
    /// Storage failed, or is full. The same merge may succeed later.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
