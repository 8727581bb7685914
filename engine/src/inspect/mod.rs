//! Inspection of blocks and logs for tools: lists, analysis and verification.
//!
//! Nothing here writes. Damage is reported instead of ending the work. Each job runs in slices of
//! bounded work, so that a host can show its progress.

mod analysis;
mod listing;
mod verify;

pub use analysis::{
    Analysis, AnalysisOptions, AnalysisReport, AnalysisStep, ChunkFigures, Distribution, Ranking,
};
pub use listing::{ListedBlock, list_blocks};
pub use verify::{
    BlockCheck, BlockCounts, CheckStep, Finding, LogCheck, LogCounts, RecordFinding, Severity,
};
