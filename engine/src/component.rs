//! The engine as a WebAssembly component: the only file that sees generated WIT types.
//!
//! Converts in both directions and decides nothing. One instance is one store, so the engine lives
//! in a thread-local of the single thread that an instance has.

// Generated code calls the canonical ABI, which is unsafe by nature.
#[allow(unsafe_code, missing_docs, clippy::all, clippy::mem_forget)]
mod bindings {
    wit_bindgen::generate!({ path: "../wit", world: "engine", generate_all });

    use super::Component;
    export!(Component with_types_in self);
}

use crate::block::BlockError;
use crate::chunk::{Chunk, Encoding};
use crate::engine::{self, Engine, Storage};
use crate::error::Error;
use crate::head::{HeadOptions, RefusalReason, WriteOutcome};
use crate::index::IndexError;
use crate::model::{Labels, MatchOp, MatcherSpec, Sample, TimeRange};
use crate::select::{Cursor, FrameFormat, HeadSource, RemoteHeadSeries, Selection, SeriesSource};
use crate::storage::{
    BlockFile, BlockWriter, Blocks, LogKind, StorageError, StorageResult, Wal, WalBatch,
    WalCheckpoint,
};
use crate::wire::ChunkedSeries;
use bindings::exports::tidepool::tsdb::store::{self, Guest, GuestCursor};
use bindings::tidepool::tsdb::types as wit;
use bindings::tidepool::tsdb::{blocks, head_source, wal};
use std::cell::RefCell;
use std::rc::Rc;

struct Component;

thread_local! {
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
}

fn with_engine<T>(
    call: impl FnOnce(&mut Engine) -> crate::error::Result<T>,
) -> Result<T, wit::Error> {
    ENGINE.with_borrow_mut(|engine| match engine {
        Some(engine) => call(engine).map_err(Into::into),
        None => Err(wit::Error::NotOpen),
    })
}

impl Guest for Component {
    type Cursor = OpenCursor;

    fn open(options: store::Options) -> Result<(), wit::Error> {
        let role = match options.role {
            store::Role::All => engine::Role::All,
            store::Role::Head => engine::Role::Head,
            store::Role::Query => engine::Role::Query,
            store::Role::Compactor => engine::Role::Compactor,
        };
        let head_options = HeadOptions {
            block_duration_ms: options.block_duration_ms,
            future_limit_ms: options.future_limit_ms,
            out_of_order_window_ms: options.out_of_order_window_ms,
            series_max: options.series_max,
            hash_seed: options.hash_seed,
        };
        let storage = Storage {
            wal: Box::new(HostWal),
            blocks: Rc::new(HostBlocks),
            head: Some(Rc::new(HostHead)),
        };
        let opened = Engine::open(role, head_options, storage)?;
        ENGINE.set(Some(opened));
        Ok(())
    }

    fn replay(bytes_max: u32) -> Result<store::ReplayProgress, wit::Error> {
        let progress = with_engine(|engine| engine.replay(bytes_max))?;
        Ok(store::ReplayProgress {
            done: progress.done,
            segment: progress.segment,
            records: progress.records,
            samples: progress.samples,
            skipped_records: progress.skipped_records,
        })
    }

    fn append_remote_write(
        version: store::RemoteWriteVersion,
        body: Vec<u8>,
        now_ms: i64,
    ) -> Result<store::WriteOutcome, wit::Error> {
        let version = match version {
            store::RemoteWriteVersion::V1 => engine::RemoteWriteVersion::V1,
            store::RemoteWriteVersion::V2 => engine::RemoteWriteVersion::V2,
        };
        let outcome = with_engine(|engine| engine.append_remote_write(version, &body, now_ms))?;
        Ok(outcome.into())
    }

    fn series_ref(labels: Vec<wit::Label>) -> Result<u64, wit::Error> {
        let pairs = labels.iter().map(|label| (label.name.as_str(), label.value.as_str()));
        let labels = Labels::from_pairs(pairs).map_err(|e| wit::Error::Invalid(e.to_string()))?;
        with_engine(|engine| engine.series_ref(&labels))
    }

    fn append(rows: store::Columns, now_ms: i64) -> Result<store::WriteOutcome, wit::Error> {
        let store::Columns { series, timestamps_ms, values } = rows;
        if series.len() != timestamps_ms.len() || series.len() != values.len() {
            return Err(wit::Error::Invalid(format!(
                "the columns differ in length: {} series, {} timestamps, {} values",
                series.len(),
                timestamps_ms.len(),
                values.len()
            )));
        }
        let samples = timestamps_ms
            .into_iter()
            .zip(values)
            .map(|(timestamp_ms, value)| Sample { timestamp_ms, value });
        let rows = series.into_iter().zip(samples);
        Ok(with_engine(|engine| engine.append(rows, now_ms))?.into())
    }

    fn select(selection: store::Selection) -> Result<store::Cursor, wit::Error> {
        let selection = Selection {
            matchers: selection.matchers.into_iter().map(Into::into).collect(),
            range: selection.range.into(),
            format: match selection.format {
                store::FrameFormat::StreamedChunks => FrameFormat::StreamedChunks,
                store::FrameFormat::Samples => FrameFormat::Samples,
                store::FrameFormat::ChunkedSeries => FrameFormat::ChunkedSeries,
            },
            query_index: selection.query_index,
            frame_bytes_max: selection.frame_bytes_max,
            samples_max: selection.samples_max,
        };
        let cursor = with_engine(|engine| engine.select(&selection))?;
        Ok(store::Cursor::new(OpenCursor(RefCell::new(cursor))))
    }

    fn compact(now_ms: i64) -> Result<store::CompactProgress, wit::Error> {
        let progress = with_engine(|engine| engine.compact(now_ms))?;
        let engine::CutProgress { done, block, samples } = progress;
        Ok(store::CompactProgress { done, block, samples })
    }

    fn plan_cut() -> Result<Option<wit::TimeRange>, wit::Error> {
        Ok(with_engine(|engine| engine.plan_cut())?.map(Into::into))
    }

    fn forget(before_ms: i64) -> Result<bool, wit::Error> {
        with_engine(|engine| engine.forget(before_ms))
    }

    fn metadata() -> Result<Vec<store::FamilyMetadata>, wit::Error> {
        let families = with_engine(|engine| Ok(engine.metadata()))?;
        let family = |(family, metric_type, help, unit)| store::FamilyMetadata {
            family,
            metric_type,
            help,
            unit,
        };
        Ok(families.into_iter().map(family).collect())
    }

    fn stats() -> Result<store::Figures, wit::Error> {
        let figures = with_engine(|engine| engine.figures())?;
        let counters = figures.counters;
        Ok(store::Figures {
            head_series: figures.head_series,
            head_chunks: figures.head_chunks,
            head_symbols: figures.head_symbols,
            head_min_time_ms: figures.head_range.start_ms,
            head_max_time_ms: figures.head_range.end_ms,
            head_series_created: counters.series_created,
            head_series_removed: counters.series_removed,
            samples_appended: counters.samples_appended,
            samples_late: counters.samples_late,
            samples_duplicate: counters.samples_duplicate,
            samples_refused_duplicate: counters.samples_refused_duplicate,
            samples_refused_out_of_order: counters.samples_refused_out_of_order,
            samples_refused_too_old: counters.samples_refused_too_old,
            samples_refused_in_future: counters.samples_refused_in_future,
            open_cursors: figures.open_cursors,
            blocks: figures.blocks,
        })
    }

    fn close() -> Result<(), wit::Error> {
        match ENGINE.take() {
            Some(_) => Ok(()),
            None => Err(wit::Error::NotOpen),
        }
    }
}

struct OpenCursor(RefCell<Cursor>);

impl GuestCursor for OpenCursor {
    fn next(&self, bytes_max: u32) -> Result<Vec<wit::SeriesChunks>, wit::Error> {
        let series = self.0.borrow_mut().next(bytes_max)?;
        Ok(series.into_iter().map(Into::into).collect())
    }

    fn next_frames(&self, bytes_max: u32) -> Result<Vec<u8>, wit::Error> {
        Ok(self.0.borrow_mut().next_frames(bytes_max)?)
    }
}

struct HostWal;

impl Wal for HostWal {
    fn append(&mut self, log: LogKind, records: &[Vec<u8>]) -> StorageResult<u32> {
        Ok(wal::append(log.into(), records)?)
    }

    fn replay(&mut self, bytes_max: u32) -> StorageResult<Option<WalBatch>> {
        let batch = wal::replay(bytes_max)?;
        Ok(batch.map(|wal::Batch { log, segment, records }| {
            let log = match log {
                wal::Log::Ordered => LogKind::Ordered,
                wal::Log::Late => LogKind::Late,
            };
            WalBatch { log, segment, records }
        }))
    }

    fn cut_segment(&mut self, log: LogKind) -> StorageResult<u32> {
        Ok(wal::cut_segment(log.into())?)
    }

    fn truncate_late(&mut self, last_segment: u32) -> StorageResult<()> {
        Ok(wal::truncate_late(last_segment)?)
    }

    fn checkpoint(&mut self, last_segment: u32) -> StorageResult<Box<dyn WalCheckpoint>> {
        Ok(Box::new(HostCheckpoint(wal::Checkpoint::new(last_segment))))
    }
}

impl From<LogKind> for wal::Log {
    fn from(log: LogKind) -> wal::Log {
        match log {
            LogKind::Ordered => wal::Log::Ordered,
            LogKind::Late => wal::Log::Late,
        }
    }
}

struct HostCheckpoint(wal::Checkpoint);

impl WalCheckpoint for HostCheckpoint {
    fn append(&mut self, records: &[Vec<u8>]) -> StorageResult<()> {
        Ok(self.0.append(records)?)
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        Ok(wal::Checkpoint::commit(self.0)?)
    }
}

struct HostBlocks;

impl Blocks for HostBlocks {
    fn list(&self) -> StorageResult<Vec<String>> {
        Ok(blocks::list()?)
    }

    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        Ok(Rc::new(HostFile(blocks::open(block, file)?)))
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        let writer = blocks::create(now_ms)?;
        Ok(Box::new(HostBlockWriter { id: writer.id(), writer }))
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        Ok(blocks::delete(block)?)
    }
}

struct HostFile(blocks::File);

impl BlockFile for HostFile {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, len: u32) -> StorageResult<Vec<u8>> {
        Ok(self.0.read_at(offset, len)?)
    }
}

struct HostBlockWriter {
    id: String,
    writer: blocks::Writer,
}

impl BlockWriter for HostBlockWriter {
    fn id(&self) -> &str {
        &self.id
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> StorageResult<()> {
        Ok(self.writer.write_at(file, offset, bytes)?)
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        Ok(blocks::Writer::commit(self.writer)?)
    }
}

struct HostHead;

impl HeadSource for HostHead {
    fn select(
        &self,
        matchers: &[MatcherSpec],
        range: TimeRange,
    ) -> crate::error::Result<Box<dyn SeriesSource>> {
        let matchers: Vec<wit::Matcher> = matchers.iter().map(Into::into).collect();
        let cursor = head_source::open(&matchers, range.into())?;
        Ok(Box::new(RemoteHeadSeries::new(move |bytes_max| Ok(cursor.next(bytes_max)?))))
    }

    fn plan_cut(&self) -> crate::error::Result<Option<TimeRange>> {
        Ok(head_source::plan_cut()?.map(Into::into))
    }

    fn forget(&self, before_ms: i64) -> crate::error::Result<bool> {
        Ok(head_source::forget(before_ms)?)
    }
}

impl From<wit::StorageError> for StorageError {
    fn from(error: wit::StorageError) -> StorageError {
        match error {
            wit::StorageError::NotFound(what) => StorageError::NotFound { what },
            wit::StorageError::NoSpace(what) => StorageError::NoSpace { what },
            wit::StorageError::Io(reason) => StorageError::Io { reason },
        }
    }
}

impl From<StorageError> for wit::StorageError {
    fn from(error: StorageError) -> wit::StorageError {
        match error {
            StorageError::NotFound { what } => wit::StorageError::NotFound(what),
            StorageError::NoSpace { what } => wit::StorageError::NoSpace(what),
            StorageError::Io { reason } => wit::StorageError::Io(reason),
        }
    }
}

impl From<wit::Error> for Error {
    fn from(error: wit::Error) -> Error {
        match error {
            wit::Error::Busy => Error::Busy,
            wit::Error::Storage(error) => Error::Storage(error.into()),
            other => Error::Remote(other.to_string()),
        }
    }
}

impl From<Error> for wit::Error {
    fn from(error: Error) -> wit::Error {
        let text = error.to_string();
        match error {
            Error::NotOpen => wit::Error::NotOpen,
            Error::WrongRole { call } => wit::Error::WrongRole(call.into()),
            Error::Invalid(_) | Error::Matcher(_) => wit::Error::Invalid(text),
            Error::Malformed(error) => wit::Error::Malformed(wit::Damage {
                where_: error.message.into(),
                offset: error.offset as u64,
                reason: error.reason.into(),
            }),
            Error::Block(
                BlockError::Storage(error) | BlockError::Index(IndexError::Storage(error)),
            ) => wit::Error::Storage(error.into()),
            Error::Block(
                BlockError::Damaged(damage) | BlockError::Index(IndexError::Damaged(damage)),
            ) => wit::Error::Corrupt(wit::Damage {
                where_: format!("{}/{}", damage.block, damage.file),
                offset: damage.offset,
                reason: damage.what.into(),
            }),
            Error::Block(_) => {
                wit::Error::Corrupt(wit::Damage { where_: "block".into(), offset: 0, reason: text })
            }
            Error::Chunk { series, source } => wit::Error::Corrupt(wit::Damage {
                where_: series,
                offset: 0,
                reason: source.to_string(),
            }),
            Error::LimitExceeded { what, max } => {
                wit::Error::LimitExceeded(wit::Limit { what: what.into(), max })
            }
            Error::Busy => wit::Error::Busy,
            Error::Storage(error) => wit::Error::Storage(error.into()),
            Error::Remote(_) => wit::Error::Storage(wit::StorageError::Io(text)),
        }
    }
}

impl From<wit::TimeRange> for TimeRange {
    fn from(range: wit::TimeRange) -> TimeRange {
        TimeRange { start_ms: range.start_ms, end_ms: range.end_ms }
    }
}

impl From<TimeRange> for wit::TimeRange {
    fn from(range: TimeRange) -> wit::TimeRange {
        wit::TimeRange { start_ms: range.start_ms, end_ms: range.end_ms }
    }
}

impl From<wit::Matcher> for MatcherSpec {
    fn from(matcher: wit::Matcher) -> MatcherSpec {
        let op = match matcher.op {
            wit::MatchOp::Equal => MatchOp::Equal,
            wit::MatchOp::NotEqual => MatchOp::NotEqual,
            wit::MatchOp::Regex => MatchOp::Regex,
            wit::MatchOp::NotRegex => MatchOp::NotRegex,
        };
        MatcherSpec { name: matcher.name, op, value: matcher.value }
    }
}

impl From<&MatcherSpec> for wit::Matcher {
    fn from(matcher: &MatcherSpec) -> wit::Matcher {
        let op = match matcher.op {
            MatchOp::Equal => wit::MatchOp::Equal,
            MatchOp::NotEqual => wit::MatchOp::NotEqual,
            MatchOp::Regex => wit::MatchOp::Regex,
            MatchOp::NotRegex => wit::MatchOp::NotRegex,
        };
        wit::Matcher { name: matcher.name.clone(), op, value: matcher.value.clone() }
    }
}

impl From<ChunkedSeries> for wit::SeriesChunks {
    fn from(series: ChunkedSeries) -> wit::SeriesChunks {
        let label =
            |(name, value): (&str, &str)| wit::Label { name: name.into(), value: value.into() };
        let labels = series.labels.iter().map(label).collect();
        wit::SeriesChunks { labels, chunks: series.chunks.into_iter().map(Into::into).collect() }
    }
}

impl From<Chunk> for wit::Chunk {
    fn from(chunk: Chunk) -> wit::Chunk {
        let encoding = match chunk.encoding {
            Encoding::Xor => wit::ChunkEncoding::Xor,
            Encoding::Histogram => wit::ChunkEncoding::Histogram,
            Encoding::FloatHistogram => wit::ChunkEncoding::FloatHistogram,
        };
        wit::Chunk {
            encoding,
            min_time_ms: chunk.min_time_ms,
            max_time_ms: chunk.max_time_ms,
            data: chunk.data.to_vec(),
        }
    }
}

impl From<WriteOutcome> for store::WriteOutcome {
    fn from(outcome: WriteOutcome) -> store::WriteOutcome {
        let reason = |reason| match reason {
            RefusalReason::DuplicateSample => store::RefusalReason::DuplicateSample,
            RefusalReason::OutOfOrder => store::RefusalReason::OutOfOrder,
            RefusalReason::TooOld => store::RefusalReason::TooOld,
            RefusalReason::TooFarInFuture => store::RefusalReason::TooFarInFuture,
            RefusalReason::InvalidLabels => store::RefusalReason::InvalidLabels,
            RefusalReason::InvalidSymbolRef => store::RefusalReason::InvalidSymbolRef,
            RefusalReason::NoSamples => store::RefusalReason::NoSamples,
            RefusalReason::SeriesLimit => store::RefusalReason::SeriesLimit,
            RefusalReason::Unsupported => store::RefusalReason::Unsupported,
        };
        let refusals = outcome.refusals.into_iter().map(|refusal| store::Refusal {
            reason: reason(refusal.reason),
            detail: refusal.detail,
            timestamp_ms: refusal.timestamp_ms,
        });
        store::WriteOutcome {
            samples_written: outcome.samples_written,
            histograms_written: 0,
            exemplars_written: 0,
            refused: outcome.refused,
            refusals: refusals.collect(),
        }
    }
}
