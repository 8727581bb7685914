//! One store: the only module that joins head, log and blocks.
//!
//! An engine plays one [`Role`]. The roles `All` and `Head` own the log and the head. The roles
//! `All`, `Query` and `Compactor` read blocks; `Query` and `Compactor` reach the head of another
//! instance through a [`HeadSource`]. Calls run one at a time, and none reads a clock.

mod deletion;
mod head_reader;
mod ingest;
mod kept_blocks;
mod local_head;
mod log;
mod lookup;
mod records;
mod request_templates;
mod saved;
mod status;
mod upkeep;
#[cfg(feature = "promql")]
mod view;

use crate::compact::{BadBlock, head_start_ms, survey};
use crate::error::{Error, Result};
use crate::head::{
    Batch, Head, HeadCounters, HeadOptions, LookupError, RefusalReason, WriteOutcome,
};
use crate::model::{
    Labels, Matcher, MatcherError, MatcherSpec, OrderGroup, Sample, TimeRange, Value,
};
use crate::select::{
    AllRead, BlockChunks, BlockSeries, Cursor, Damages, FoundChunk, HeadSource, LatestLabels,
    LineCursor, Merge, Selection, SeriesSource,
};
use crate::storage::{Blocks, Wal};
use crate::text::TextFormat;
use ingest::Ingest;
use kept_blocks::KeptBlocks;
use local_head::LocalHead;
use log::{BlockDeletions, Log};
use lookup::merged;
use request_templates::RequestTemplates;
use saved::Loading;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use upkeep::{Task, Upkeep, UpkeepOptions};

pub use deletion::Deleted;
pub use head_reader::{HeadReader, HeadStringReader};
pub use log::ReplayProgress;
pub use saved::SavedHead;
pub use status::{HeadCardinality, HeadExemplars};
pub use upkeep::{CommittedBlock, DeletedFor, Room, UpkeepProgress};
#[cfg(feature = "promql")]
pub use view::{First, Projection, View};

/// Shortest range of a block, in milliseconds.
pub const BLOCK_DURATION_MS_MIN: i64 = 1000;

/// Largest number of matchers in a selection: each is compiled and compared with labels.
const MATCHERS_MAX: usize = 200;

/// Role of an engine, which decides what it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Owns log, head and blocks in one instance.
    All,
    /// Owns the log and the head.
    Head,
    /// Reads blocks and the head of another instance.
    Query,
    /// Cuts blocks from the head of another instance.
    Compactor,
}

/// Options of a store, fixed when it is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Options of the head, with its limits.
    pub head: HeadOptions,
    /// Longest range of a merged block in milliseconds; 0 means a tenth of the retention, and 31
    /// days at most.
    pub block_duration_max_ms: i64,
    /// A block is dropped when it ends this many milliseconds before the newest block; 0 keeps all.
    pub retention_ms: i64,
    /// Limit of the bytes of blocks and all other files together; 0 means no limit.
    pub retention_bytes: u64,
}

impl From<HeadOptions> for Options {
    fn from(head: HeadOptions) -> Options {
        Options { head, block_duration_max_ms: 0, retention_ms: 0, retention_bytes: 0 }
    }
}

/// Storage that an engine works on.
pub struct Storage {
    /// The log; used with a head only.
    pub wal: Box<dyn Wal>,
    /// The blocks of the data directory.
    pub blocks: Rc<dyn Blocks>,
    /// Another instance's head, for roles that own none.
    pub head: Option<Rc<dyn HeadSource>>,
}

/// The version of a remote-write message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteWriteVersion {
    /// Version 1.0, the message `prometheus.WriteRequest`.
    V1,
    /// Version 2.0, the message `io.prometheus.write.v2.Request`.
    V2,
}

/// Figures of an engine at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Bytes of memory in use; 0 if they are not counted.
    pub memory_used_bytes: u64,
    /// Number of series in the head.
    pub head_series: u64,
    /// Number of chunks in the head.
    pub head_chunks: u64,
    /// Number of distinct label names and values in the head.
    pub head_symbols: u64,
    /// Number of exemplars in the head.
    pub head_exemplars: u64,
    /// Times of the oldest and newest sample in the head.
    pub head_range: TimeRange,
    /// Counts since the head was opened.
    pub counters: HeadCounters,
    /// Number of cursors open on the head.
    pub open_cursors: u64,
    /// Number of blocks in storage; 0 for the role `Head`.
    pub blocks: u64,
}

/// The few figures that a host reads all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BriefFigures {
    /// Bytes of memory in use; 0 if they are not counted.
    pub memory_used_bytes: u64,
    /// Time of the newest sample in the head or a block; `i64::MIN` if there is no sample.
    pub newest_time_ms: i64,
    /// Time of the oldest sample stored since the last call; `i64::MAX` if none was stored.
    pub oldest_stored_ms: i64,
}

/// Returns the median time of the samples of a decompressed remote-write body, if it has any.
pub fn sample_time_ms(version: RemoteWriteVersion, body: &[u8]) -> Result<Option<i64>> {
    let mut times = crate::wire::SampleTimes::default();
    match version {
        RemoteWriteVersion::V1 => crate::wire::decode_write_v1(body, &mut times)?,
        RemoteWriteVersion::V2 => crate::wire::decode_write_v2(body, &mut times)?,
    }
    Ok(times.median_ms())
}

/// An open store, in one role.
pub struct Engine {
    role: Role,
    /// Limit of the bytes of memory in use; 0 means no limit.
    memory_bytes_max: u64,
    /// Present with the roles that own a head.
    owned: Option<Owned>,
    blocks: Rc<dyn Blocks>,
    kept_blocks: RefCell<KeptBlocks>,
    /// Damaged blocks that reads left out, until [`Engine::take_damaged`] returns them.
    damaged_blocks: RefCell<BTreeMap<String, BadBlock>>,
    /// The head of this instance, or another instance's.
    head: Rc<dyn HeadSource>,
    /// Absent with the role `Head`, which has no blocks.
    upkeep: Option<Upkeep>,
}

/// Sources of a selection; the head takes precedence, then the newest block.
struct Sources {
    head: Box<dyn SeriesSource>,
    blocks: Vec<BlockSeries>,
}

/// State of a role that owns a head.
struct Owned {
    head: Rc<RefCell<Head>>,
    log: Rc<RefCell<Log>>,
    batch: Batch,
    templates: RequestTemplates,
    replayed: bool,
    /// A head snapshot that is being loaded in place of a replay.
    loading: Option<Loading>,
}

impl Engine {
    /// Opens a store. With a head, [`Engine::replay`] must follow.
    pub fn open(role: Role, options: impl Into<Options>, storage: Storage) -> Result<Engine> {
        let options: Options = options.into();
        let head_options = options.head;
        let HeadOptions { block_duration_ms, hash_seed, .. } = head_options;
        if block_duration_ms < BLOCK_DURATION_MS_MIN {
            return Err(Error::Invalid(format!(
                "the block duration is {block_duration_ms} ms; at least {BLOCK_DURATION_MS_MIN} ms \
                 are needed"
            )));
        }
        let upkeep_options = UpkeepOptions {
            block_duration_ms,
            block_duration_max_ms: options.block_duration_max_ms,
            retention_ms: options.retention_ms,
            retention_bytes: options.retention_bytes,
            hash_seed,
        };
        let Storage { wal, blocks, head: remote_head } = storage;
        let (owned, head): (_, Rc<dyn HeadSource>) = match role {
            Role::All | Role::Head => {
                // The head needs only the part of the log that is newer than the blocks.
                let metas = survey(&*blocks)?.metas;
                let mut head = Head::new(head_options, head_start_ms(&metas));
                head.set_replay_cut_ms(
                    upkeep_options.levels().ranges_ms().get(1).copied().unwrap_or(0),
                );
                let head = Rc::new(RefCell::new(head));
                let deletions = BlockDeletions::of(&blocks, &metas);
                let log = Rc::new(RefCell::new(Log::new(wal, deletions, block_duration_ms)));
                let local = LocalHead { head: Rc::clone(&head), log: Rc::clone(&log) };
                let (batch, templates) = (Batch::default(), RequestTemplates::default());
                let owned = Owned { head, log, batch, templates, replayed: false, loading: None };
                (Some(owned), Rc::new(local))
            }
            Role::Query | Role::Compactor => {
                let needed = || Error::Invalid("this role needs a head source".into());
                (None, remote_head.ok_or_else(needed)?)
            }
        };
        let upkeep = (role != Role::Head)
            .then(|| Upkeep::new(Rc::clone(&head), Rc::clone(&blocks), upkeep_options));
        let memory_bytes_max = head_options.memory.bytes_max;
        Ok(Engine {
            role,
            memory_bytes_max,
            owned,
            blocks,
            kept_blocks: RefCell::default(),
            damaged_blocks: RefCell::default(),
            head,
            upkeep,
        })
    }

    /// Reads about `bytes_max` bytes of the log; call until the result is `done`. Between calls, a
    /// cut that is due may be planned, read and truncated. Its block must not be committed before
    /// the end of the replay, nor if [`Engine::deletion_mark`] changes meanwhile.
    pub fn replay(&mut self, bytes_max: u32) -> Result<ReplayProgress> {
        let owned = self.owned.as_mut().ok_or(Error::WrongRole { call: "replay" })?;
        let mut head = owned.head.borrow_mut();
        let progress = owned.log.borrow_mut().replay(&mut head, &mut owned.batch, bytes_max)?;
        if progress.done && !owned.replayed {
            head.end_replay().map_err(|source| Error::Chunk {
                series: "with out-of-order samples".into(),
                source,
            })?;
            owned.replayed = true;
        }
        Ok(progress)
    }

    /// Writes in-order floats to the log as column records from now on. These need a fraction of
    /// the bytes, and Prometheus does not read them.
    pub fn log_by_columns(&mut self) -> Result<()> {
        let owned = self.owned.as_ref().ok_or(Error::WrongRole { call: "log-by-columns" })?;
        let seed = owned.head.borrow().options().hash_seed;
        owned.log.borrow_mut().write_columns(seed);
        Ok(())
    }

    /// Stores the content of a decompressed remote-write body; after an error, nothing is stored.
    pub fn append_remote_write(
        &mut self,
        version: RemoteWriteVersion,
        body: &[u8],
        now_ms: i64,
    ) -> Result<WriteOutcome> {
        let owned = self.owned.as_mut();
        // Moved out, because `owned` is borrowed for the head while the closure runs.
        let mut templates =
            owned.map(|owned| std::mem::take(&mut owned.templates)).unwrap_or_default();
        let outcome = self.append_batch("append-remote-write", now_ms, |head, batch| {
            let mut ingest = Ingest::new(head, batch, &mut templates);
            match version {
                RemoteWriteVersion::V1 => crate::wire::decode_write_v1(body, &mut ingest)?,
                RemoteWriteVersion::V2 => crate::wire::decode_write_v2(body, &mut ingest)?,
            }
            ingest.finish()
        });
        if let Some(owned) = &mut self.owned {
            owned.templates = templates;
        }
        outcome
    }

    /// Stores samples by series numbers of [`Engine::series_ref`]; after an error, none is stored.
    pub fn append(
        &mut self,
        rows: impl Iterator<Item = (u64, Sample)>,
        now_ms: i64,
    ) -> Result<WriteOutcome> {
        self.append_batch("append", now_ms, |head, batch| {
            Engine::check_rows(head, batch, rows, |_, _| {})
        })
    }

    /// Does the same as [`Engine::append`]. The batch also gets a staleness marker, at the given
    /// time, for each ended series without a value since then. Also returns the refused rows.
    pub fn append_and_end(
        &mut self,
        rows: impl Iterator<Item = (u64, Sample)>,
        (ended, ended_at_ms): (&[u64], i64),
        now_ms: i64,
    ) -> Result<(WriteOutcome, Vec<(u32, RefusalReason)>)> {
        let mut refused = Vec::new();
        let written = self.append_batch("append-and-end", now_ms, |head, batch| {
            Engine::check_rows(head, batch, rows, |row, reason| refused.push((row, reason)))?;
            for series_ref in ended {
                // A series that was dropped has already ended.
                let Some(slot) = head.by_ref(*series_ref) else { continue };
                if !head.has_value_since(batch, slot, ended_at_ms) {
                    Ingest::check(head, batch, slot, ended_at_ms, Value::STALE)?;
                }
            }
            Ok(())
        })?;
        Ok((written, refused))
    }

    fn check_rows(
        head: &mut Head,
        batch: &mut Batch,
        rows: impl Iterator<Item = (u64, Sample)>,
        mut refused: impl FnMut(u32, RefusalReason),
    ) -> Result<()> {
        for (row, (series_ref, sample)) in (0..).zip(rows) {
            let slot = head.by_ref(series_ref).ok_or_else(|| {
                Error::Invalid(format!(
                    "series {series_ref} is unknown or was dropped; ask series-ref for it"
                ))
            })?;
            Ingest::check_float(head, batch, slot, sample)?;
            if let Some(reason) = batch.take_refused() {
                refused(row, reason);
            }
        }
        Ok(())
    }

    /// Returns the number of a series for [`Engine::append`]; creates the series if it is new.
    pub fn series_ref(&mut self, labels: &Labels) -> Result<u64> {
        let mut found = None;
        // The batch has no rows, so it begins at the time that the head already has.
        let now_ms = self.owned.as_ref().map_or(i64::MAX, |owned| owned.head.borrow().now_ms());
        self.append_batch("series-ref", now_ms, |head, batch| {
            let slot = head.series_by_labels(batch, labels);
            found = Some(slot.map_err(|error| match error {
                LookupError::SeriesLimit { max } => {
                    Error::LimitExceeded { what: "series in the head", max }
                }
                LookupError::MemoryLimit { max } => Error::ShortOfMemory { max },
                other => Error::Invalid(other.to_string()),
            })?);
            Ok(())
        })?;
        let (Some(owned), Some(slot)) = (&self.owned, found) else { return Err(Error::NotOpen) };
        let mut head = owned.head.borrow_mut();
        head.remember_ref(slot);
        Ok(head.series_ref(slot))
    }

    /// Runs a batch: check, log, apply. If a step fails, the batch leaves no trace.
    fn append_batch(
        &mut self,
        call: &'static str,
        now_ms: i64,
        check: impl FnOnce(&mut Head, &mut Batch) -> Result<()>,
    ) -> Result<WriteOutcome> {
        let owned = self.owned.as_mut().ok_or(Error::WrongRole { call })?;
        if !owned.replayed {
            return Err(Error::NotOpen);
        }
        let (mut head, batch) = (owned.head.borrow_mut(), &mut owned.batch);
        // Checked before the request creates anything in the head.
        if head.is_out_of_memory() {
            return Err(Error::ShortOfMemory { max: head.memory_bytes_max() });
        }
        head.begin(batch, now_ms);
        let logged =
            check(&mut head, batch).and_then(|()| owned.log.borrow_mut().append(&mut head, batch));
        match logged {
            Ok(()) => Ok(head.apply(batch)),
            Err(error) => {
                head.abort(batch);
                Err(error)
            }
        }
    }

    /// Selects series and samples as of this call.
    pub fn select(&self, selection: &Selection) -> Result<Cursor> {
        let external = &selection.external;
        if external.iter().count() > OrderGroup::EXTERNAL_MAX {
            let max = OrderGroup::EXTERNAL_MAX as u64;
            return Err(Error::LimitExceeded { what: "external labels", max });
        }
        let Sources { head, blocks } =
            self.sources(&selection.matchers, selection.range, external, None)?;
        let mut sources: Vec<Box<dyn SeriesSource<FoundChunk>>> = vec![Box::new(AllRead(head))];
        // The cache of labels is shared, since neighbouring blocks mostly have the same series.
        let latest = LatestLabels::default();
        for series in blocks {
            sources.push(Box::new(BlockChunks(series.in_turn(&latest))));
        }
        let source: Box<dyn SeriesSource<FoundChunk>> = match external.is_empty() {
            true => merged(sources)?,
            // With external labels, even series of one source may become equal and must be merged.
            false => Box::new(Merge::new(sources)?),
        };
        Ok(Cursor::new(source, selection))
    }

    /// Returns the series that any selector matches, as lines of text. Damaged parts are skipped.
    pub fn dump(
        &self,
        selectors: &[Vec<MatcherSpec>],
        range: TimeRange,
        format: TextFormat,
    ) -> Result<LineCursor> {
        let (none, damages) = (Labels::default(), Damages::default());
        let source = |matchers: &Vec<MatcherSpec>| {
            let Sources { head, blocks } = self.sources(matchers, range, &none, Some(&damages))?;
            let mut sources = vec![head];
            for series in blocks {
                sources.push(Box::new(series.stepping_over(&damages)));
            }
            merged(sources)
        };
        let sources = selectors.iter().map(source);
        let source = merged(sources.collect::<Result<_>>()?)?;
        Ok(LineCursor::new(source, damages, range, format))
    }

    /// Returns the series that match all matchers, from the head and the blocks, with external
    /// labels added. With `damages`, blocks with a damaged index are skipped, and recorded there.
    fn sources(
        &self,
        specs: &[MatcherSpec],
        range: TimeRange,
        external: &Labels,
        damages: Option<&Damages>,
    ) -> Result<Sources> {
        if !self.is_cut_while_replaying() {
            self.check_replayed()?;
        }
        let matchers = compile(specs)?;
        // The head comes before the list of blocks: once its cursor is open the head truncates
        // nothing, so samples that are cut meanwhile are in the head, in a block, or in both.
        let head = self.head.select(specs, range, external)?;
        let mut blocks = Vec::new();
        let found = self.blocks_in(range)?;
        if let Some(damages) = damages {
            found.damaged.into_iter().for_each(|(_, error)| damages.put(error));
        }
        for block in found.open {
            let selected = BlockSeries::select(block, &matchers, range);
            let selected = selected.and_then(|series| series.with_external(external));
            match (selected, damages) {
                (Err(error), Some(damages)) => damages.put(error),
                (selected, _) => blocks.extend(selected?),
            }
        }
        Ok(Sources { head, blocks })
    }

    /// Excludes blocks from merges. Pass the blocks that earlier calls, also of other engines,
    /// returned as bad or unmerged; later calls do not return them again.
    pub fn exclude(&mut self, blocks: impl IntoIterator<Item = String>) -> Result<()> {
        let upkeep = self.upkeep.as_mut().ok_or(Error::WrongRole { call: "exclude" })?;
        upkeep.exclude(blocks);
        Ok(())
    }

    /// Replaces the set of pinned blocks: [`compact`](Engine::compact) neither merges a pinned
    /// block nor drops it for its age.
    pub fn pin(&mut self, blocks: impl IntoIterator<Item = String>) -> Result<()> {
        let upkeep = self.upkeep.as_mut().ok_or(Error::WrongRole { call: "pin" })?;
        upkeep.pin(blocks);
        Ok(())
    }

    /// Does a slice of the work that is due: cutting a block from the head, dropping blocks beyond
    /// retention, merging blocks.
    pub fn compact(&mut self, now_ms: i64, room: Room) -> Result<UpkeepProgress> {
        let room = self.room_beside_head(room);
        let upkeep = self.upkeep.as_mut().ok_or(Error::WrongRole { call: "compact" })?;
        upkeep.step(Task::Due, now_ms, room)
    }

    /// Returns a room without the memory that this instance's head uses.
    pub(super) fn room_beside_head(&self, room: Room) -> Room {
        let used_bytes = self.owned.as_ref().map_or(0, |o| o.head.borrow().memory_used_bytes());
        Room { memory_bytes: room.memory_bytes.saturating_sub(used_bytes), ..room }
    }

    /// Marks all samples of the head as due for a cut.
    pub fn cut_all(&mut self) -> Result<()> {
        let owned = self.owned.as_ref().ok_or(Error::WrongRole { call: "cut-all" })?;
        owned.head.borrow_mut().cut_all();
        Ok(())
    }

    /// Returns the head's plan for the next block; `None` if no cut is due.
    pub fn plan_cut(&self) -> Result<Option<TimeRange>> {
        self.head.plan_cut()
    }

    /// Drops samples that a committed block holds from head and log; returns whether work is left.
    pub fn truncate(&self, before_ms: i64) -> Result<bool> {
        self.head.truncate(before_ms)
    }

    /// Returns the figures of this moment.
    pub fn figures(&self) -> Result<Figures> {
        // Writes wait for this call in the role `Head`, so it does not list the storage.
        let blocks = match self.upkeep {
            Some(_) => self.blocks.list()?.len() as u64,
            None => 0,
        };
        let empty = TimeRange { start_ms: i64::MAX, end_ms: i64::MIN };
        let Some(owned) = &self.owned else {
            let counters = HeadCounters::default();
            return Ok(Figures {
                memory_used_bytes: 0,
                head_series: 0,
                head_chunks: 0,
                head_symbols: 0,
                head_exemplars: 0,
                head_range: empty,
                counters,
                open_cursors: 0,
                blocks,
            });
        };
        let head = owned.head.borrow();
        Ok(Figures {
            memory_used_bytes: head.memory_used_bytes(),
            head_series: head.series_count() as u64,
            head_chunks: head.chunk_count() as u64,
            head_symbols: head.symbol_count() as u64,
            head_exemplars: head.exemplars.len() as u64,
            head_range: head.range(),
            counters: head.counters,
            open_cursors: head.open_cursors(),
            blocks,
        })
    }

    /// Returns the figures that change with every write, and resets the oldest stored time.
    pub fn brief_figures(&self) -> BriefFigures {
        let Some(owned) = &self.owned else {
            return BriefFigures {
                memory_used_bytes: 0,
                newest_time_ms: i64::MIN,
                oldest_stored_ms: i64::MAX,
            };
        };
        let head = owned.head.borrow();
        BriefFigures {
            memory_used_bytes: head.memory_used_bytes(),
            newest_time_ms: head.newest_time_ms(),
            oldest_stored_ms: head.take_oldest_stored_ms(),
        }
    }
}

/// Returns the time before which blocks hold all in-order samples; `i64::MIN` without blocks.
fn newest_block_end_ms(blocks: &dyn Blocks) -> Result<i64> {
    Ok(head_start_ms(&survey(blocks)?.metas))
}

fn check_count(specs: &[MatcherSpec]) -> Result<()> {
    if specs.len() > MATCHERS_MAX {
        let max = MATCHERS_MAX as u64;
        return Err(Error::LimitExceeded { what: "matchers of one selection", max });
    }
    Ok(())
}

fn compile(specs: &[MatcherSpec]) -> Result<Vec<Matcher>> {
    // Counted first, because the limit bounds the cost of compiling regular expressions.
    check_count(specs)?;
    let matchers: std::result::Result<_, MatcherError> = specs.iter().map(Matcher::new).collect();
    Ok(matchers?)
}

#[cfg(test)]
mod tests;
