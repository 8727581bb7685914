//! Looking at blocks and logs for people: what there is, what it consists of, whether it is sound.
//!
//! Nothing here writes, and what is damaged is reported, not an end. Each job is done in slices of
//! bounded work, so that a host can show how far it is.

mod analysis;
mod listing;
mod verify;

pub use analysis::{
    Analysis, AnalysisOptions, AnalysisReport, AnalysisStep, ChunkFigures, Distribution, Ranking,
};
pub use listing::{ListedBlock, list_blocks};
pub use verify::{BlockCheck, CheckStep, Finding, Found, LogCheck, RecordFinding, Severity};
