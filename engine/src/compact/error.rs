//! Why blocks cannot be merged, and what is to be done about it.

use super::BadBlock;
use crate::error::Error;
use crate::storage::StorageError;

/// Why blocks cannot be merged. Whatever it is, no half block is left and no parent is lost.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One parent is damaged. Leave it out and plan again: the others can go on.
    #[error(transparent)]
    BadParent(#[from] BadBlock),
    /// The parents read, but what they make is not a block. Set `failed` on all of them in the
    /// list that plans are made of; trying again would end the same way.
    #[error("blocks {} cannot be merged: {source}", .parents.join(", "))]
    Refused {
        /// ULIDs of the parents.
        parents: Vec<String>,
        /// The error.
        source: Box<Error>,
    },
    /// Samples of a parent were deleted while it was being merged. Plan again.
    #[error(
        "samples of block {block} were deleted while it was being merged; the merge was discarded"
    )]
    Deleted {
        /// ULID of the parent.
        block: String,
    },
    /// Storage failed, or is full. The same merge may succeed later.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
