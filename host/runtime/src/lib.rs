//! Runs the engine component with wasmtime: bindings, limits of time and memory, and the
//! component's imports, which `tidepool-disk` answers.
//!
//! Invariant: no call blocks for longer than its limits allow, and no instance uses more memory
//! than its limit. This crate does not know HTTP, threads or the purpose of an instance.
//!
//! One [`Runtime`] makes [`Instance`]s in the roles head, query and compactor. An instance runs one
//! call at a time, on the calling thread. After a trap it cannot be used any more.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod bindings;
#[cfg(test)]
mod contract;
mod deadline;
#[cfg(test)]
mod ends;
mod forward;
mod head_access;
mod head_reader;
mod import;
mod imports;
mod inspect;
mod instance;
mod memory;
mod messages;
mod precompiled;
mod query;
mod runtime;
mod state;
mod status;
mod ticker;
mod tuning;
mod wasi;
mod watch;
mod watchdog;

pub use bindings::exports::tidepool::tsdb::backfill::{AppendStep, PassStep, Rows, WrittenBlock};
pub use bindings::exports::tidepool::tsdb::forward::{
    Fed, MetadataRequest, Place, RelabelAction, RelabelRule, Request, ShardPosition, StoreWindow,
};
pub use bindings::exports::tidepool::tsdb::inspect::{
    AnalysisOptions, AnalysisReport, AnalysisStep, BlockInfo, BlockState, CheckStep, ChunkFigures,
    Finding, LogCounts, Occurrence, RecordFinding, Severity,
};
pub use bindings::exports::tidepool::tsdb::store::{
    BriefFigures, CardinalityList, Columns, ColumnsOutcome, CompactProgress, Deletion,
    DeletionReason, Exemplar, FamilyMetadata, Figures, FrameFormat, HeadDeletion, HeadPage,
    LabelLimits, Measured, NewBlock, Options, Refusal, RefusalReason, RefusedRow,
    RemoteWriteVersion, ReplayProgress, Role, Room, Selection, SeriesExemplars, TextFormat,
    WriteOutcome,
};
pub use bindings::tidepool::tsdb::types::{
    Damage, Error, HeadLost, Label, Limit, Lookup, MatchOp, Matcher, Ranked, StorageError,
    TimeRange,
};
pub use bindings::tidepool::tsdb::wal::Log;
pub use forward::{Destination, ForwardSettings};
pub use head_access::{FirstPage, HeadAccess, WithFirst};
pub use head_reader::{HeadCursorHandle, HeadOpened};
pub use import::ImporterHandle;
pub use inspect::{AnalysisHandle, LogVerificationHandle, VerificationHandle};
pub use instance::{
    CallError, CursorHandle, Instance, LinesHandle, SavedHeadHandle, StringsHandle,
};
pub use memory::{INSTANCE_BYTES_MAX, INSTANCE_BYTES_MIN, MemoryBound, MemoryPool, PoolShare};
pub use messages::{in_words, nothing_written};
pub use precompiled::Image;
pub use query::{
    Annotation, BucketSpan, CounterReset, Estimate, EvaluationHandle, NativeHistogram, ParseError,
    QueryError, QueryOptions, QueryStats, QueryTimes, ResultFormat, ResultSeries, ValueType,
};
pub use runtime::{InstanceLimits, Runtime};
pub use state::{InstanceLogs, InstanceStorage};
pub use status::{ExemplarsHandle, ScanHandle, WalkHandle};
pub use watchdog::{CallLimit, EPOCH_TICK, Overdue};

impl Options {
    /// Options without any limit, without exemplars and without out-of-order samples.
    pub const fn without_limits(role: Role, block_duration_ms: i64) -> Options {
        Options {
            role,
            block_duration_ms,
            future_limit_ms: 0,
            out_of_order_window_ms: 0,
            series_max: 0,
            exemplars_max: 0,
            memory_bytes_max: 0,
            label_limits: LabelLimits::NONE,
            block_duration_max_ms: 0,
            retention_ms: 0,
            retention_bytes: 0,
            hash_seed: 0,
        }
    }
}

impl LabelLimits {
    pub const NONE: LabelLimits =
        LabelLimits { labels_max: 0, name_bytes_max: 0, value_bytes_max: 0 };
}
