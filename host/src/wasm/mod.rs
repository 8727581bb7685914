//! The engine component and its surroundings: runtime, limits, bindings, and the imports that it
//! asks for, answered from the disk room. No HTTP.
//!
//! One [`Runtime`] makes [`Instance`]s in the three roles of the design. An instance runs one call
//! at a time on the thread that calls it; after a trap it is of no further use.

mod bindings;
mod imports;
mod instance;
mod precompiled;
mod runtime;
mod state;
mod tuning;

pub use bindings::exports::tidepool::tsdb::store::{
    CompactProgress, DeletionReason, Exemplar, FamilyMetadata, Figures, FrameFormat, Options,
    Refusal, RefusalReason, RemoteWriteVersion, ReplayProgress, Role, Room, Selection,
    SeriesExemplars, WriteOutcome,
};
pub use bindings::tidepool::tsdb::types::{
    Damage, Error, Label, Limit, Lookup, MatchOp, Matcher, StorageError, TimeRange,
};
pub use instance::{CallError, CursorHandle, Instance, TextsHandle};
pub use runtime::{EPOCH_TICK, InstanceLimits, Runtime};
pub use state::{HeadAccess, InstanceStorage};
