//! Cuts, merges and drops blocks, and deletes samples from them.
//!
//! ```text
//! head ──Cut──▶ level 1 ──┐
//!               level 1 ──┼─ plan ─▶ Merge ─▶ level 2 ── … ── retention ──▶ gone
//!               level 1 ──┘                      ▲
//!                                  tombstones ── deletion
//! ```
//!
//! Pure functions choose what is due: [`plan()`], [`superseded`] and [`beyond_retention`] take the
//! metas that [`survey()`] read, and return plain values. [`Cut`] and [`BlockMerge`] work in slices
//! of about [`SERIES_PER_SLICE`] series, so that an instance that also appends is not delayed.
//! Nothing is deleted before its replacement is durable.

mod block_time;
mod cut;
mod deletion;
mod error;
mod linked;
mod merge;
mod narrow_xor;
mod parent;
mod plan;
mod repack;
mod retention;
mod series_pass;
mod survey;

#[cfg(test)]
mod tests;

pub use cut::{Cut, CutProgress};
pub use deletion::{Deletion, delete_from_blocks, deletion_in_block};
pub use error::MergeError;
pub use merge::{BlockMerge, MergeProgress};
pub use plan::{
    HINT_OUT_OF_ORDER, LEVEL_FACTOR, LEVELS_MAX, Levels, Plan, RANGE_MS_MAX, Reason,
    TOMBSTONES_PERCENT_MAX, deleted_beside_log, head_start_ms, may_lie_beside_log, plan,
    plan_cleaning, superseded,
};
pub use repack::SAMPLES_PER_CHUNK_COMPACTED;
pub use retention::{
    Dropped, DroppedFor, Retention, SizedBlock, beyond_retention, largest_merge_bytes,
};
pub use survey::{BadBlock, Survey, block_bytes, survey};

/// Memory that does not depend on labels, in bytes: an idle instance, buffers, chunks of a series.
const MEMORY_BYTES_BASE: u64 = 4 * 1024 * 1024;

/// Number of series that one slice handles.
pub const SERIES_PER_SLICE: usize = 1000;
