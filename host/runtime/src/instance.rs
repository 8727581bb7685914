//! One instance of the component. Its calls are Rust functions, named as in `wit/`.

use super::bindings::EngineWithQueries;
use super::bindings::exports::tidepool::tsdb::store::Guest;
use super::deadline::{Ends, epoch_ticks};
use super::memory::MemoryBound;
use super::messages::with_flags;
use super::state::InstanceState;
use super::watch::Running;
use super::watchdog::{CallLimit, Overdue};
use super::{
    BriefFigures, Columns, ColumnsOutcome, CompactProgress, Damage, Deletion, Error, Figures,
    FirstPage, HeadLost, Label, Lookup, Matcher, Measured, Options, RemoteWriteVersion,
    ReplayProgress, Room, Selection, TextFormat, TimeRange, WriteOutcome,
};
use std::time::Instant;
use tidepool_disk::BlockFile;
use wasmtime::component::ResourceAny;
use wasmtime::{Store, Trap, UpdateDeadline};

/// Reason for which a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The store refused the call; the instance can be used further.
    #[error("{}", super::in_words(.0))]
    Refused(Error),
    /// The instance crashed, and cannot be used any more.
    #[error("the engine instance stopped: {0:#}")]
    Trap(wasmtime::Error),
    /// The instance passed its deadline, and cannot be used any more.
    #[error("the engine instance passed its deadline")]
    Deadline,
    /// The instance was cancelled, and cannot be used any more.
    #[error("the engine instance was cancelled")]
    Cancelled,
    /// The instance exceeded a limit of its memory, and cannot be used any more.
    #[error("the engine instance ran out of memory")]
    Memory(MemoryBound),
    /// The instance reads the head of another instance, and that head is lost. This instance can be
    /// used further.
    #[error(transparent)]
    Head(HeadLost),
}

impl CallError {
    /// Returns whether the instance cannot be used any more.
    pub fn is_end(&self) -> bool {
        !matches!(self, CallError::Refused(_) | CallError::Head(_))
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> CallError {
        match error {
            Error::HeadLost(lost) => CallError::Head(lost),
            error => CallError::Refused(error),
        }
    }
}

/// A cursor of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct CursorHandle(ResourceAny);

/// A list of label names or values of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct StringsHandle(pub(super) ResourceAny);

/// A line cursor of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct LinesHandle(ResourceAny);

/// A saved head of one instance; invalid in any other.
#[derive(Clone, Copy)]
pub struct SavedHeadHandle(ResourceAny);

pub struct Instance {
    pub(super) store: Store<InstanceState>,
    pub(super) bindings: EngineWithQueries,
    ends: Ends,
    /// Time after which no call begins. A running call is only ended by ticks.
    deadline: Option<Instant>,
}

#[derive(Debug, thiserror::Error)]
#[error("the engine instance was cancelled")]
struct Cancelled;

/// Returns the reason for which an instance ended, or could not be made.
pub(super) fn why_ended(state: &InstanceState, trap: wasmtime::Error) -> CallError {
    // The limiter first: after a refusal the engine aborts, and the trap does not name memory.
    match state.limits.refused_by {
        Some(bound) => CallError::Memory(bound),
        None if trap.downcast_ref() == Some(&Trap::Interrupt) => CallError::Deadline,
        None if trap.is::<Cancelled>() => CallError::Cancelled,
        None => CallError::Trap(trap),
    }
}

/// Notes the begin of a call that only the end of the process can end.
fn begin(ends: &Ends) -> Option<Running<'_>> {
    match ends {
        // Ticks end calls of such an instance without notes.
        Ends::Instance(_) => None,
        Ends::Process(watch) => Some(watch.begin()),
    }
}

impl Instance {
    pub(super) fn new(
        store: Store<InstanceState>,
        bindings: EngineWithQueries,
        ends: Ends,
    ) -> Instance {
        Instance { store, bindings, ends, deadline: None }
    }

    pub(super) fn open(&mut self, options: Options) -> Result<(), CallError> {
        self.call(|guest, store| guest.call_open(store, options))
    }

    pub(super) fn call<T>(
        &mut self,
        call: impl FnOnce(&Guest, &mut Store<InstanceState>) -> wasmtime::Result<Result<T, Error>>,
    ) -> Result<T, CallError> {
        self.check_deadline()?;
        // Kept until the call is over, whether by an answer or a trap.
        let _running = begin(&self.ends);
        let guest = self.bindings.tidepool_tsdb_store();
        match call(guest, &mut self.store) {
            Ok(Ok(answer)) => Ok(answer),
            // `into` separates a lost head of another instance from a refusal by this instance.
            Ok(Err(refused)) => Err(refused.into()),
            Err(trap) => Err(why_ended(self.store.data(), trap)),
        }
    }

    /// Refuses a call that begins after the deadline: the next tick may be 50 ms away.
    pub(super) fn check_deadline(&self) -> Result<(), CallError> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(CallError::Deadline),
            _ => Ok(()),
        }
    }

    /// Drops a resource of the instance, which may run code of the component.
    pub(super) fn drop_resource(&mut self, resource: ResourceAny) -> Result<(), CallError> {
        let _running = begin(&self.ends);
        let dropped = resource.resource_drop(&mut self.store);
        dropped.map_err(|trap| why_ended(self.store.data(), trap))
    }

    /// Limits the total time of the calls from now on. Beyond the limit, interruptible machine code
    /// ends with [`CallError::Deadline`]; a limit of zero ends the next call at once.
    /// Uninterruptible machine code continues and is reported to [`Instance::on_overdue`].
    pub fn set_limit(&mut self, limit: Option<CallLimit>) {
        match &mut self.ends {
            Ends::Instance(ticks) => {
                ticks.set_needed(limit.is_some());
                self.store.set_epoch_deadline(epoch_ticks(limit.map(|limit| limit.time)));
            }
            Ends::Process(watch) => watch.set_limit(limit),
        }
    }

    /// Sets the action for an uninterruptible call that exceeds its limit. The action runs on a
    /// thread of its own.
    pub fn on_overdue(&mut self, act: impl Fn(Overdue) + Send + 'static) {
        if let Ends::Process(watch) = &self.ends {
            watch.set_act(act);
        }
    }

    /// Ends the instance as a call does that exceeds its memory limit; for tests of the recovery.
    #[doc(hidden)]
    pub fn run_out_of_memory(&mut self) -> Result<(), CallError> {
        self.store.data_mut().limits.stop_growth();
        // A body as large as the whole memory cannot be allocated, so the limiter refuses.
        let body = vec![0; self.memory_bytes()];
        self.sample_time(RemoteWriteVersion::V1, &body).map(drop)
    }

    /// Ends later calls at the deadline, or within a tick after `is_cancelled` returns true.
    /// `is_cancelled` is called once per tick, on the calling thread. With uninterruptible machine
    /// code no call begins after the deadline, and a running call ends by itself.
    pub fn end_when(
        &mut self,
        deadline: Option<Instant>,
        is_cancelled: impl Fn() -> bool + Send + Sync + 'static,
    ) {
        self.store.epoch_deadline_callback(move |_| {
            if is_cancelled() {
                return Err(Cancelled.into());
            }
            match deadline {
                Some(deadline) if Instant::now() >= deadline => Err(Trap::Interrupt.into()),
                // One tick at a time, so that a cancellation is noticed within one tick.
                _ => Ok(UpdateDeadline::Continue(1)),
            }
        });
        // Checked before a call: uninterruptible code never runs the callback.
        self.deadline = deadline;
        // The callback runs only on ticks, so ticks are needed even without a deadline.
        if let Ends::Instance(ticks) = &mut self.ends {
            ticks.set_needed(true);
        }
        self.store.set_epoch_deadline(1);
    }

    /// Removes the deadline and the cancellation of [`Instance::end_when`]. Returns whether another
    /// caller can use the instance: it may have no open resources of the host, except files of
    /// blocks, which the engine keeps open.
    pub fn rest(&mut self) -> bool {
        // Also drops the callback, which may keep state of the last caller in memory.
        self.store.epoch_deadline_trap();
        self.set_limit(None);
        self.deadline = None;
        self.store.data_mut().rests()
    }

    /// Sets the kind of page that the next call reads first from a cursor on the head.
    pub(super) fn expect_first(&mut self, first: Option<FirstPage>) {
        self.store.data_mut().first_page = first;
    }

    /// Size of the linear memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.store.data().limits.bytes
    }

    pub fn brief_stats(&mut self) -> Result<BriefFigures, CallError> {
        self.call(|guest, store| guest.call_brief_stats(store))
    }

    pub fn sample_time(
        &mut self,
        version: RemoteWriteVersion,
        body: &[u8],
    ) -> Result<Option<i64>, CallError> {
        self.call(|guest, store| guest.call_sample_time(store, version, body))
    }

    pub fn replay(&mut self, bytes_max: u32) -> Result<ReplayProgress, CallError> {
        self.call(|guest, store| guest.call_replay(store, bytes_max))
    }

    pub fn log_by_columns(&mut self) -> Result<(), CallError> {
        self.call(|guest, store| guest.call_log_by_columns(store))
    }

    pub fn save_head(&mut self) -> Result<SavedHeadHandle, CallError> {
        self.call(|guest, store| guest.call_save_head(store)).map(SavedHeadHandle)
    }

    pub fn next_of_saved_head(
        &mut self,
        saved: SavedHeadHandle,
        bytes_max: u32,
    ) -> Result<Vec<u8>, CallError> {
        self.call(|guest, store| Ok(Ok(guest.saved_head().call_next(store, saved.0, bytes_max)?)))
    }

    pub fn load_head(&mut self, piece: &[u8]) -> Result<bool, CallError> {
        self.call(|guest, store| guest.call_load_head(store, piece))
    }

    pub fn append_remote_write(
        &mut self,
        version: RemoteWriteVersion,
        body: &[u8],
        now_ms: i64,
    ) -> Result<WriteOutcome, CallError> {
        let written =
            self.call(|guest, store| guest.call_append_remote_write(store, version, body, now_ms));
        written.map(with_flags)
    }

    pub fn series_ref(&mut self, labels: &[Label]) -> Result<u64, CallError> {
        self.call(|guest, store| guest.call_series_ref(store, labels))
    }

    pub fn append_and_end(
        &mut self,
        rows: &Columns,
        ended: &[u64],
        ended_at_ms: i64,
        now_ms: i64,
    ) -> Result<ColumnsOutcome, CallError> {
        let stored = self.call(|guest, store| {
            guest.call_append_and_end(store, rows, ended, ended_at_ms, now_ms)
        });
        let named = |ColumnsOutcome { written, refused_rows }| ColumnsOutcome {
            written: with_flags(written),
            refused_rows,
        };
        stored.map(named)
    }

    pub fn select(&mut self, selection: &Selection) -> Result<CursorHandle, CallError> {
        // The engine opens its cursor on the head within this call and reads it soon after.
        self.expect_first(Some(FirstPage::Series));
        self.call(|guest, store| guest.call_select(store, selection)).map(CursorHandle)
    }

    pub fn next_frames(
        &mut self,
        cursor: CursorHandle,
        bytes_max: u32,
    ) -> Result<Vec<u8>, CallError> {
        self.call(|guest, store| guest.cursor().call_next_frames(store, cursor.0, bytes_max))
    }

    pub fn next_plan(
        &mut self,
        cursor: CursorHandle,
        bytes_max: u32,
    ) -> Result<Vec<u8>, CallError> {
        self.call(|guest, store| guest.cursor().call_next_plan(store, cursor.0, bytes_max))
    }

    pub fn read_planned(
        &mut self,
        cursor: CursorHandle,
        series: &[u8],
    ) -> Result<Vec<u8>, CallError> {
        self.call(|guest, store| guest.cursor().call_read_planned(store, cursor.0, series))
    }

    /// Returns a file of chunks that the instance has open, by its name in a plan.
    pub fn chunk_file(&self, name: &str) -> Option<BlockFile> {
        self.store.data().chunk_file(name)
    }

    pub fn measure(&mut self, cursor: CursorHandle, bytes_max: u32) -> Result<Measured, CallError> {
        self.call(|guest, store| guest.cursor().call_measure(store, cursor.0, bytes_max))
    }

    pub fn rewind(&mut self, cursor: CursorHandle) -> Result<(), CallError> {
        self.call(|guest, store| guest.cursor().call_rewind(store, cursor.0))
    }

    pub fn close_cursor(&mut self, cursor: CursorHandle) -> Result<(), CallError> {
        self.drop_resource(cursor.0)
    }

    pub fn series(&mut self, lookup: &Lookup) -> Result<CursorHandle, CallError> {
        // A look-up reads labels only, so the first page needs no chunks.
        self.expect_first(Some(FirstPage::Labels));
        self.call(|guest, store| guest.call_series(store, lookup)).map(CursorHandle)
    }

    /// `store.cursor.next`, reduced to the labels of the series.
    pub fn next_labels(
        &mut self,
        cursor: CursorHandle,
        bytes_max: u32,
    ) -> Result<Vec<Vec<Label>>, CallError> {
        let series = self.call(|guest, store| guest.cursor().call_next(store, cursor.0, bytes_max));
        Ok(series?.into_iter().map(|series| series.labels).collect())
    }

    pub fn cursor_is_truncated(&mut self, cursor: CursorHandle) -> Result<bool, CallError> {
        self.call(|guest, store| Ok(Ok(guest.cursor().call_is_truncated(store, cursor.0)?)))
    }

    pub fn label_names(&mut self, lookup: &Lookup) -> Result<StringsHandle, CallError> {
        self.call(|guest, store| guest.call_label_names(store, lookup)).map(StringsHandle)
    }

    pub fn label_values(
        &mut self,
        name: &str,
        lookup: &Lookup,
    ) -> Result<StringsHandle, CallError> {
        self.call(|guest, store| guest.call_label_values(store, name, lookup)).map(StringsHandle)
    }

    pub fn next_strings(
        &mut self,
        strings: StringsHandle,
        bytes_max: u32,
    ) -> Result<Vec<String>, CallError> {
        self.call(|guest, store| guest.strings().call_next(store, strings.0, bytes_max))
    }

    pub fn strings_are_truncated(&mut self, strings: StringsHandle) -> Result<bool, CallError> {
        self.call(|guest, store| Ok(Ok(guest.strings().call_is_truncated(store, strings.0)?)))
    }

    /// Drops a list of label names or values.
    pub fn close_strings(&mut self, strings: StringsHandle) -> Result<(), CallError> {
        self.drop_resource(strings.0)
    }

    pub fn dump(
        &mut self,
        selectors: &[Vec<Matcher>],
        range: TimeRange,
        format: TextFormat,
    ) -> Result<LinesHandle, CallError> {
        self.call(|guest, store| guest.call_dump(store, selectors, range, format)).map(LinesHandle)
    }

    pub fn next_lines(
        &mut self,
        cursor: LinesHandle,
        bytes_max: u32,
    ) -> Result<Vec<u8>, CallError> {
        self.call(|guest, store| guest.line_cursor().call_next(store, cursor.0, bytes_max))
    }

    pub fn cut_all(&mut self) -> Result<(), CallError> {
        self.call(|guest, store| guest.call_cut_all(store))
    }

    pub fn compact(&mut self, now_ms: i64, room: Room) -> Result<CompactProgress, CallError> {
        self.call(|guest, store| guest.call_compact(store, now_ms, room))
    }

    pub fn exclude(&mut self, blocks: &[String]) -> Result<(), CallError> {
        self.call(|guest, store| guest.call_exclude(store, blocks))
    }

    pub fn take_damaged_blocks(&mut self) -> Result<Vec<Damage>, CallError> {
        self.call(|guest, store| guest.call_take_damaged_blocks(store).map(Ok))
    }

    pub fn pin(&mut self, blocks: &[String]) -> Result<(), CallError> {
        self.call(|guest, store| guest.call_pin(store, blocks))
    }

    pub fn plan_cut(&mut self) -> Result<Option<TimeRange>, CallError> {
        self.call(|guest, store| guest.call_plan_cut(store))
    }

    pub fn truncate(&mut self, before_ms: i64) -> Result<bool, CallError> {
        self.call(|guest, store| guest.call_truncate(store, before_ms))
    }

    pub fn delete(
        &mut self,
        selectors: &[Vec<Matcher>],
        range: TimeRange,
    ) -> Result<Deletion, CallError> {
        self.call(|guest, store| guest.call_delete(store, selectors, range))
    }

    pub fn clean_tombstones(
        &mut self,
        now_ms: i64,
        room: Room,
    ) -> Result<CompactProgress, CallError> {
        self.call(|guest, store| guest.call_clean_tombstones(store, now_ms, room))
    }

    pub fn snapshot_head(&mut self, now_ms: i64) -> Result<CompactProgress, CallError> {
        self.call(|guest, store| guest.call_snapshot_head(store, now_ms))
    }

    pub fn deletion_mark(&mut self) -> Result<u64, CallError> {
        self.call(|guest, store| guest.call_deletion_mark(store))
    }

    pub fn stats(&mut self) -> Result<Figures, CallError> {
        self.call(|guest, store| guest.call_stats(store))
    }
}
