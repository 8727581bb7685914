//! The engine as a WebAssembly component: the only module that sees generated WIT types.
//!
//! It converts types in both directions and decides nothing. An instance has one store and one
//! thread, so the engine is a thread-local variable.

// Generated code calls the canonical ABI, which needs unsafe code.
#[allow(unsafe_code, missing_docs, clippy::all, clippy::mem_forget)]
mod bindings {
    #[cfg(feature = "promql")]
    wit_bindgen::generate!({ path: "../wit", world: "engine-with-queries", generate_all });
    #[cfg(not(feature = "promql"))]
    wit_bindgen::generate!({ path: "../wit", world: "engine", generate_all });

    use super::Component;
    export!(Component with_types_in self);
}

mod backfill;
mod convert;
mod forward;
mod head_reader;
mod imports;
mod inspect;
mod memory;
#[cfg(feature = "promql")]
mod query;
mod status;

use crate::engine::{self, Engine, HeadStringReader, SavedHead, Storage};
use crate::head::HeadOptions;
use crate::memory::MemoryBudget;
use crate::model::{LabelLimits, MatcherSpec};
use crate::select::{Cursor, LineCursor, Measured, Selection, StringCursor};
use crate::text::TextFormat;
use bindings::exports::tidepool::tsdb::store::{
    self, Guest, GuestCursor, GuestLineCursor, GuestSavedHead, GuestStrings,
};
use bindings::tidepool::tsdb::types as wit;
use convert::{to_labels, to_rows};
use head_reader::OpenHeadCursor;
use imports::{HostBlocks, HostHead, HostWal};
use std::cell::RefCell;
use std::rc::Rc;

struct Component;

thread_local! {
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
}

fn to_specs(sets: Vec<Vec<wit::Matcher>>) -> Vec<Vec<MatcherSpec>> {
    sets.into_iter().map(|set| set.into_iter().map(Into::into).collect()).collect()
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
    type Strings = OpenStrings;
    type HeadCursor = OpenHeadCursor;
    type LineCursor = OpenLineCursor;
    type SavedHead = OpenSavedHead;
    type ExemplarCursor = status::OpenExemplars;
    type ExemplarScan = status::OpenExemplarScan;
    type CardinalityWalk = status::OpenCardinality;

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
            exemplars_max: options.exemplars_max,
            memory: MemoryBudget {
                bytes_max: options.memory_bytes_max,
                used_bytes: memory::used_bytes,
            },
            label_limits: LabelLimits {
                labels_max: options.label_limits.labels_max,
                name_bytes_max: options.label_limits.name_bytes_max,
                value_bytes_max: options.label_limits.value_bytes_max,
            },
            hash_seed: options.hash_seed,
        };
        let options = engine::Options {
            head: head_options,
            block_duration_max_ms: options.block_duration_max_ms,
            retention_ms: options.retention_ms,
            retention_bytes: options.retention_bytes,
        };
        let storage = Storage {
            wal: Box::new(HostWal),
            blocks: Rc::new(HostBlocks),
            head: Some(Rc::new(HostHead)),
        };
        // Set only after a successful open, so that an error keeps the engine of an earlier call.
        let opened = Engine::open(role, options, storage)?;
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

    fn log_by_columns() -> Result<(), wit::Error> {
        with_engine(|engine| engine.log_by_columns())
    }

    fn append_remote_write(
        version: store::RemoteWriteVersion,
        body: Vec<u8>,
        now_ms: i64,
    ) -> Result<store::WriteOutcome, wit::Error> {
        let version = version.into();
        let outcome = with_engine(|engine| engine.append_remote_write(version, &body, now_ms))?;
        Ok(outcome.into())
    }

    fn series_ref(labels: Vec<wit::Label>) -> Result<u64, wit::Error> {
        let labels = to_labels(&labels)?;
        with_engine(|engine| engine.series_ref(&labels))
    }

    fn append(rows: store::Columns, now_ms: i64) -> Result<store::WriteOutcome, wit::Error> {
        let rows = to_rows(rows)?;
        Ok(with_engine(|engine| engine.append(rows, now_ms))?.into())
    }

    fn append_and_end(
        rows: store::Columns,
        ended: Vec<u64>,
        ended_at_ms: i64,
        now_ms: i64,
    ) -> Result<store::ColumnsOutcome, wit::Error> {
        let rows = to_rows(rows)?;
        let ended = (&*ended, ended_at_ms);
        let (written, refused) = with_engine(|engine| engine.append_and_end(rows, ended, now_ms))?;
        let refused = refused
            .into_iter()
            .map(|(row, reason)| store::RefusedRow { row, reason: reason.into() });
        Ok(store::ColumnsOutcome { written: written.into(), refused_rows: refused.collect() })
    }

    fn select(selection: store::Selection) -> Result<store::Cursor, wit::Error> {
        let selection = Selection {
            matchers: selection.matchers.into_iter().map(Into::into).collect(),
            range: selection.range.into(),
            format: selection.format.into(),
            query_index: selection.query_index,
            frame_bytes_max: selection.frame_bytes_max,
            samples_max: selection.samples_max,
            external: to_labels(&selection.external_labels)?,
        };
        let cursor = with_engine(|engine| engine.select(&selection))?;
        Ok(store::Cursor::new(OpenCursor(RefCell::new(cursor))))
    }

    fn label_names(lookup: wit::Lookup) -> Result<store::Strings, wit::Error> {
        let names = with_engine(|engine| engine.label_names(&lookup.into()))?;
        Ok(store::Strings::new(OpenStrings::Merged(RefCell::new(names))))
    }

    fn label_values(name: String, lookup: wit::Lookup) -> Result<store::Strings, wit::Error> {
        let values = with_engine(|engine| engine.label_values(&name, &lookup.into()))?;
        Ok(store::Strings::new(OpenStrings::Merged(RefCell::new(values))))
    }

    fn series(lookup: wit::Lookup) -> Result<store::Cursor, wit::Error> {
        let cursor = with_engine(|engine| engine.series(&lookup.into()))?;
        Ok(store::Cursor::new(OpenCursor(RefCell::new(cursor))))
    }

    fn read_head(
        matcher_sets: Vec<Vec<wit::Matcher>>,
        range: wit::TimeRange,
        external_labels: Vec<wit::Label>,
    ) -> Result<store::OpenedCursor, wit::Error> {
        let sets: Vec<Vec<_>> = to_specs(matcher_sets);
        let external = to_labels(&external_labels)?;
        Ok(with_engine(|engine| engine.read_head(&sets, range.into(), &external))?.into())
    }

    fn read_head_names(lookup: wit::Lookup) -> Result<store::OpenedStrings, wit::Error> {
        Ok(with_engine(|engine| engine.read_head_names(&lookup.into()))?.into())
    }

    fn read_head_values(
        name: String,
        lookup: wit::Lookup,
    ) -> Result<store::OpenedStrings, wit::Error> {
        Ok(with_engine(|engine| engine.read_head_values(&name, &lookup.into()))?.into())
    }

    fn dump(
        selectors: Vec<Vec<wit::Matcher>>,
        range: wit::TimeRange,
        format: store::TextFormat,
    ) -> Result<store::LineCursor, wit::Error> {
        let selectors = to_specs(selectors);
        let format = match format {
            store::TextFormat::Dump => TextFormat::Dump,
            store::TextFormat::OpenMetrics => TextFormat::OpenMetrics,
        };
        let cursor = with_engine(|engine| engine.dump(&selectors, range.into(), format))?;
        Ok(store::LineCursor::new(OpenLineCursor(RefCell::new(cursor))))
    }

    fn compact(now_ms: i64, room: store::Room) -> Result<store::CompactProgress, wit::Error> {
        Ok(with_engine(|engine| engine.compact(now_ms, room.into()))?.into())
    }

    fn cut_all() -> Result<(), wit::Error> {
        with_engine(|engine| engine.cut_all())
    }

    fn exclude(blocks: Vec<String>) -> Result<(), wit::Error> {
        with_engine(|engine| engine.exclude(blocks))
    }

    fn take_damaged_blocks() -> Vec<wit::Damage> {
        ENGINE.with_borrow(|engine| {
            let damaged = engine.as_ref().map(Engine::take_damaged).unwrap_or_default();
            damaged.into_iter().map(Into::into).collect()
        })
    }

    fn pin(blocks: Vec<String>) -> Result<(), wit::Error> {
        with_engine(|engine| engine.pin(blocks))
    }

    fn plan_cut() -> Result<Option<wit::TimeRange>, wit::Error> {
        Ok(with_engine(|engine| engine.plan_cut())?.map(Into::into))
    }

    fn truncate(before_ms: i64) -> Result<bool, wit::Error> {
        with_engine(|engine| engine.truncate(before_ms))
    }

    fn exemplars(
        matcher_sets: Vec<Vec<wit::Matcher>>,
        range: wit::TimeRange,
    ) -> Result<store::ExemplarCursor, wit::Error> {
        let matcher_sets = to_specs(matcher_sets);
        let cursor = with_engine(|engine| engine.exemplars(&matcher_sets, range.into()))?;
        Ok(store::ExemplarCursor::new(status::OpenExemplars(RefCell::new(cursor))))
    }

    fn scan_exemplars(range: wit::TimeRange) -> Result<store::ExemplarScan, wit::Error> {
        let scan = with_engine(|engine| engine.scan_exemplars(range.into()))?;
        Ok(store::ExemplarScan::new(status::OpenExemplarScan(RefCell::new(scan))))
    }

    fn delete(
        selectors: Vec<Vec<wit::Matcher>>,
        range: wit::TimeRange,
    ) -> Result<store::Deletion, wit::Error> {
        let selectors = to_specs(selectors);
        let deleted = with_engine(|engine| engine.delete(&selectors, range.into()))?;
        Ok(deleted.into())
    }

    fn clean_tombstones(
        now_ms: i64,
        room: store::Room,
    ) -> Result<store::CompactProgress, wit::Error> {
        Ok(with_engine(|engine| engine.clean_tombstones(now_ms, room.into()))?.into())
    }

    fn snapshot_head(now_ms: i64) -> Result<store::CompactProgress, wit::Error> {
        Ok(with_engine(|engine| engine.snapshot_head(now_ms))?.into())
    }

    fn deletion_mark() -> Result<u64, wit::Error> {
        with_engine(|engine| engine.deletion_mark())
    }

    fn metadata(first: String, bytes_max: u32) -> Result<Vec<store::FamilyMetadata>, wit::Error> {
        let families = with_engine(|engine| Ok(engine.metadata(&first, bytes_max)))?;
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
            memory_bytes: memory::linear_bytes(),
            memory_used_bytes: figures.memory_used_bytes,
            head_series: figures.head_series,
            head_chunks: figures.head_chunks,
            head_symbols: figures.head_symbols,
            head_exemplars: figures.head_exemplars,
            head_min_time_ms: figures.head_range.start_ms,
            head_max_time_ms: figures.head_range.end_ms,
            head_series_created: counters.series_created,
            head_series_removed: counters.series_removed,
            samples_appended: counters.samples_appended,
            samples_out_of_order: counters.samples_out_of_order,
            samples_duplicate: counters.samples_duplicate,
            samples_refused_duplicate: counters.samples_refused_duplicate,
            samples_refused_out_of_order: counters.samples_refused_out_of_order,
            samples_refused_too_old: counters.samples_refused_too_old,
            samples_refused_in_future: counters.samples_refused_in_future,
            samples_refused_labels: counters.samples_refused_labels,
            samples_refused_series_limit: counters.samples_refused_series_limit,
            samples_refused_memory: counters.samples_refused_memory,
            samples_refused_histogram: counters.samples_refused_histogram,
            open_cursors: figures.open_cursors,
            blocks: figures.blocks,
        })
    }

    fn brief_stats() -> Result<store::BriefFigures, wit::Error> {
        let brief = with_engine(|engine| Ok(engine.brief_figures()))?;
        Ok(store::BriefFigures {
            memory_bytes: memory::linear_bytes(),
            memory_used_bytes: brief.memory_used_bytes,
            newest_time_ms: brief.newest_time_ms,
            oldest_stored_ms: brief.oldest_stored_ms,
        })
    }

    fn sample_time(
        version: store::RemoteWriteVersion,
        body: Vec<u8>,
    ) -> Result<Option<i64>, wit::Error> {
        Ok(engine::sample_time_ms(version.into(), &body)?)
    }

    fn cardinality(items_max: u32) -> Result<store::CardinalityWalk, wit::Error> {
        let walk = with_engine(|engine| engine.cardinality(items_max as usize))?;
        Ok(store::CardinalityWalk::new(status::OpenCardinality(RefCell::new(walk))))
    }

    fn save_head() -> Result<store::SavedHead, wit::Error> {
        // `save_head` consumes the engine, even if saving fails.
        let engine = ENGINE.take().ok_or(wit::Error::NotOpen)?;
        let saved = engine.save_head()?;
        Ok(store::SavedHead::new(OpenSavedHead(RefCell::new(saved))))
    }

    fn load_head(piece: Vec<u8>) -> Result<bool, wit::Error> {
        with_engine(|engine| engine.load_head(&piece))
    }

    fn close() -> Result<(), wit::Error> {
        match ENGINE.take() {
            Some(_) => Ok(()),
            None => Err(wit::Error::NotOpen),
        }
    }
}

struct OpenSavedHead(RefCell<SavedHead>);

impl GuestSavedHead for OpenSavedHead {
    fn next(&self, bytes_max: u32) -> Vec<u8> {
        self.0.borrow_mut().next(bytes_max)
    }
}

struct OpenLineCursor(RefCell<LineCursor>);

impl GuestLineCursor for OpenLineCursor {
    fn next(&self, bytes_max: u32) -> Result<Vec<u8>, wit::Error> {
        Ok(self.0.borrow_mut().next(bytes_max)?.into_bytes())
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

    fn next_plan(&self, bytes_max: u32) -> Result<Vec<u8>, wit::Error> {
        Ok(self.0.borrow_mut().next_plan(bytes_max)?)
    }

    fn read_planned(&self, series: Vec<u8>) -> Result<Vec<u8>, wit::Error> {
        Ok(self.0.borrow().read_planned(&series)?)
    }

    fn measure(&self, bytes_max: u32) -> Result<store::Measured, wit::Error> {
        let Measured { done, bytes, samples } = self.0.borrow_mut().measure(bytes_max)?;
        Ok(store::Measured { done, bytes, samples })
    }

    fn rewind(&self) -> Result<(), wit::Error> {
        Ok(self.0.borrow_mut().rewind()?)
    }

    fn is_truncated(&self) -> bool {
        self.0.borrow().is_truncated()
    }
}

enum OpenStrings {
    Merged(RefCell<StringCursor>),
    OfHead(RefCell<HeadStringReader>),
}

impl GuestStrings for OpenStrings {
    fn next(&self, bytes_max: u32) -> Result<Vec<String>, wit::Error> {
        match self {
            OpenStrings::Merged(strings) => Ok(strings.borrow_mut().next(bytes_max)?),
            OpenStrings::OfHead(strings) => Ok(strings.borrow_mut().next(bytes_max)?),
        }
    }

    fn is_truncated(&self) -> bool {
        match self {
            OpenStrings::Merged(strings) => strings.borrow().is_truncated(),
            // Only the instance that merges these strings with others applies the limit.
            OpenStrings::OfHead(_) => false,
        }
    }
}
