//! Implements the engine's storage and head source by the imports of the component.

use super::bindings::tidepool::tsdb::types as wit;
use super::bindings::tidepool::tsdb::{blocks, head_source, wal};
use crate::error::Result;
use crate::model::{Labels, MatcherSpec, TimeRange};
use crate::select::{
    ExemplarSource, HeadDeletion, HeadPage, Lookup, Opened, RemoteCursor, RemoteExemplars,
    RemoteHead, RemoteStrings,
};
use crate::storage::{
    BlockFile, BlockWriter, Blocks, ChunkBytes, LogKind, Records, StorageResult, Wal, WalBatch,
    WalCheckpoint,
};
use std::rc::Rc;

pub(super) struct HostWal;

impl Wal for HostWal {
    fn append(&mut self, log: LogKind, records: &[Vec<u8>]) -> StorageResult<u32> {
        Ok(wal::append(log.into(), records)?)
    }

    fn replay(&mut self, bytes_max: u32) -> StorageResult<Option<WalBatch>> {
        let batch = wal::replay(bytes_max)?;
        Ok(batch.map(|wal::Batch { log, segment, bytes, lengths }| WalBatch {
            log: log.into(),
            segment,
            records: Records { bytes, lengths },
        }))
    }

    fn cut_segment(&mut self, log: LogKind) -> StorageResult<u32> {
        Ok(wal::cut_segment(log.into())?)
    }

    fn truncate_out_of_order(&mut self, last_segment: u32) -> StorageResult<()> {
        Ok(wal::truncate_out_of_order(last_segment)?)
    }

    fn checkpoint(&mut self, last_segment: u32) -> StorageResult<Box<dyn WalCheckpoint>> {
        Ok(Box::new(HostCheckpoint(wal::Checkpoint::new(last_segment))))
    }
}

impl From<wal::Log> for LogKind {
    fn from(log: wal::Log) -> LogKind {
        match log {
            wal::Log::InOrder => LogKind::InOrder,
            wal::Log::OutOfOrder => LogKind::OutOfOrder,
        }
    }
}

impl From<LogKind> for wal::Log {
    fn from(log: LogKind) -> wal::Log {
        match log {
            LogKind::InOrder => wal::Log::InOrder,
            LogKind::OutOfOrder => wal::Log::OutOfOrder,
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

pub(super) struct HostBlocks;

impl Blocks for HostBlocks {
    fn list(&self) -> StorageResult<Vec<String>> {
        Ok(blocks::list()?)
    }

    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        Ok(Rc::new(HostFile(blocks::open(block, file)?)))
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        let writer = blocks::create(now_ms)?;
        // The id is read once, because each call of `writer.id` crosses to the host.
        Ok(Box::new(HostBlockWriter { id: writer.id(), writer }))
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        Ok(blocks::delete(block)?)
    }

    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()> {
        Ok(blocks::replace_tombstones(block, tombstones, meta)?)
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

    fn read_chunks(&self, offset: u64, len: u32) -> StorageResult<ChunkBytes> {
        let blocks::ChunkBytes { bytes, ends } = self.0.read_chunks(offset, len)?;
        Ok(ChunkBytes { bytes, ends })
    }

    fn summary(&self) -> Option<Vec<u8>> {
        self.0.summary()
    }

    fn keep_summary(&self, summary: &[u8]) {
        self.0.keep_summary(summary);
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

    fn link_file(&mut self, block: &str, file: &str, new_file: &str) -> StorageResult<bool> {
        Ok(self.writer.link_file(block, file, new_file)?)
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        Ok(blocks::Writer::commit(self.writer)?)
    }
}

pub(super) struct HostHead;

impl RemoteHead for HostHead {
    type Cursor = head_source::Cursor;
    type Strings = head_source::Strings;

    fn open(
        &self,
        sets: &[Vec<MatcherSpec>],
        range: TimeRange,
        external: &Labels,
    ) -> Result<Opened<head_source::Cursor>> {
        let set = |set: &Vec<MatcherSpec>| set.iter().map(Into::into).collect();
        let sets: Vec<Vec<wit::Matcher>> = sets.iter().map(set).collect();
        let label =
            |(name, value): (&str, &str)| wit::Label { name: name.into(), value: value.into() };
        let external: Vec<wit::Label> = external.iter().map(label).collect();
        Ok(match head_source::open(&sets, range.into(), &external)? {
            head_source::OpenedCursor::Cursor(cursor) => Opened::Ready(cursor),
            head_source::OpenedCursor::Again => Opened::Again,
            head_source::OpenedCursor::TooCostly => Opened::TooCostly,
        })
    }

    fn label_names(&self, lookup: &Lookup) -> Result<Opened<head_source::Strings>> {
        Ok(head_source::label_names(&lookup.into())?.into())
    }

    fn label_values(&self, name: &str, lookup: &Lookup) -> Result<Opened<head_source::Strings>> {
        Ok(head_source::label_values(name, &lookup.into())?.into())
    }

    fn exemplars(&self, range: TimeRange) -> Result<Box<dyn ExemplarSource>> {
        let exemplars = head_source::scan_exemplars(range.into())?;
        Ok(Box::new(RemoteExemplars::new(move |bytes_max| Ok(exemplars.next(bytes_max)?))))
    }

    fn plan_cut(&self) -> Result<Option<TimeRange>> {
        Ok(head_source::plan_cut()?.map(Into::into))
    }

    fn truncate(&self, before_ms: i64) -> Result<bool> {
        Ok(head_source::truncate(before_ms)?)
    }

    fn deletion_mark(&self) -> Result<u64> {
        Ok(head_source::deletion_mark()?)
    }
}

impl From<head_source::OpenedStrings> for Opened<head_source::Strings> {
    fn from(opened: head_source::OpenedStrings) -> Opened<head_source::Strings> {
        match opened {
            head_source::OpenedStrings::Strings(strings) => Opened::Ready(strings),
            head_source::OpenedStrings::Again => Opened::Again,
            head_source::OpenedStrings::TooCostly => Opened::TooCostly,
        }
    }
}

impl RemoteCursor for head_source::Cursor {
    fn next(&mut self, bytes_max: u32) -> Result<HeadPage> {
        let head_source::Page { series, is_last } = head_source::Cursor::next(self, bytes_max)?;
        Ok(HeadPage { series, is_last })
    }

    fn labels(&mut self, bytes_max: u32, only_in_range: bool) -> Result<HeadPage> {
        let page = head_source::Cursor::labels(self, bytes_max, only_in_range)?;
        Ok(HeadPage { series: page.series, is_last: page.is_last })
    }

    fn keep(&mut self, positions: &[u32]) -> Result<()> {
        Ok(head_source::Cursor::keep(self, positions)?)
    }

    fn rewind(&mut self) -> Result<()> {
        Ok(head_source::Cursor::rewind(self)?)
    }

    fn delete(&mut self) -> Result<HeadDeletion> {
        let head_source::Deletion { series, is_done } = head_source::Cursor::delete(self)?;
        Ok(HeadDeletion { series, is_done })
    }
}

impl RemoteStrings for head_source::Strings {
    fn next(&mut self, bytes_max: u32) -> Result<Vec<String>> {
        Ok(head_source::Strings::next(self, bytes_max)?)
    }
}
