//! Storage for the component, in plain memory, and the component's imports answered from it.
//!
//! A host that wants its data to last keeps the same things in files. `wit/storage.wit` says what
//! each call promises.

use crate::State;
use crate::bindings::tidepool::tsdb::types::{
    Error, Label, Lookup, Matcher, StorageError, TimeRange,
};
use crate::bindings::tidepool::tsdb::{blocks, head_source, types, wal};
use std::collections::BTreeMap;
use std::sync::Arc;
use wasmtime::Result;
use wasmtime::component::Resource;

type Stored<T> = std::result::Result<T, StorageError>;

/// Logs and blocks. A store that is opened on it again reads the logs from their beginning.
#[derive(Default)]
pub struct Storage {
    ordered: Log,
    late: Log,
    /// Committed blocks by ULID, their files by name.
    blocks: BTreeMap<String, BTreeMap<String, File>>,
    blocks_created: u128,
}

/// One of the two logs.
#[derive(Default)]
struct Log {
    /// In order, each with its segment.
    records: Vec<(u32, Vec<u8>)>,
    segment: u32,
    /// How many records this life has read back.
    replayed: usize,
}

/// A checkpoint that is being written.
pub struct Checkpoint {
    last_segment: u32,
    records: Vec<(u32, Vec<u8>)>,
}

/// A file of a block. It outlives the block's deletion, as open files do.
pub type File = Arc<[u8]>;

/// A block that is being written.
pub struct Writer {
    id: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl types::Host for State {}

impl Storage {
    fn log(&mut self, log: wal::Log) -> &mut Log {
        match log {
            wal::Log::Ordered => &mut self.ordered,
            wal::Log::Late => &mut self.late,
        }
    }
}

impl Log {
    /// The next records of one segment, as many as fit.
    fn replay(&mut self, bytes_max: u32) -> Option<(u32, Vec<Vec<u8>>)> {
        let left = self.records.get(self.replayed..).unwrap_or_default();
        let (segment, first) = left.first()?;
        let mut records = vec![first.clone()];
        let mut bytes = 0;
        for (other_segment, record) in left.iter().skip(1) {
            bytes += record.len();
            if other_segment != segment || bytes > bytes_max as usize {
                break;
            }
            records.push(record.clone());
        }
        let segment = *segment;
        self.replayed += records.len();
        Some((segment, records))
    }
}

impl wal::Host for State {
    fn append(&mut self, log: wal::Log, records: Vec<Vec<u8>>) -> Result<Stored<u32>> {
        let log = self.storage.log(log);
        log.records.extend(records.into_iter().map(|record| (log.segment, record)));
        Ok(Ok(log.segment))
    }

    fn replay(&mut self, bytes_max: u32) -> Result<Stored<Option<wal::Batch>>> {
        for log in [wal::Log::Ordered, wal::Log::Late] {
            if let Some((segment, records)) = self.storage.log(log).replay(bytes_max) {
                let lengths = records.iter().map(|record| record.len() as u32).collect();
                let bytes = records.concat();
                return Ok(Ok(Some(wal::Batch { log, segment, bytes, lengths })));
            }
        }
        // The next life begins anew.
        (self.storage.ordered.replayed, self.storage.late.replayed) = (0, 0);
        Ok(Ok(None))
    }

    fn cut_segment(&mut self, log: wal::Log) -> Result<Stored<u32>> {
        let log = self.storage.log(log);
        log.segment += 1;
        Ok(Ok(log.segment - 1))
    }

    fn truncate_late(&mut self, last_segment: u32) -> Result<Stored<()>> {
        self.storage.late.records.retain(|(segment, _)| *segment > last_segment);
        Ok(Ok(()))
    }
}

impl wal::HostCheckpoint for State {
    fn new(&mut self, last_segment: u32) -> Result<Resource<Checkpoint>> {
        Ok(self.table.push(Checkpoint { last_segment, records: Vec::new() })?)
    }

    fn append(&mut self, to: Resource<Checkpoint>, records: Vec<Vec<u8>>) -> Result<Stored<()>> {
        let checkpoint = self.table.get_mut(&to)?;
        let segment = checkpoint.last_segment;
        checkpoint.records.extend(records.into_iter().map(|record| (segment, record)));
        Ok(Ok(()))
    }

    fn commit(&mut self, this: Resource<Checkpoint>) -> Result<Stored<()>> {
        let Checkpoint { last_segment, mut records } = self.table.delete(this)?;
        let log = &mut self.storage.ordered.records;
        records.extend(log.drain(..).filter(|(segment, _)| *segment > last_segment));
        *log = records;
        Ok(Ok(()))
    }

    fn drop(&mut self, this: Resource<Checkpoint>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl blocks::Host for State {
    fn list(&mut self) -> Result<Stored<Vec<String>>> {
        Ok(Ok(self.storage.blocks.keys().cloned().collect()))
    }

    fn open(&mut self, block: String, name: String) -> Result<Stored<Resource<File>>> {
        match self.storage.blocks.get(&block).and_then(|files| files.get(&name)) {
            Some(file) => Ok(Ok(self.table.push(Arc::clone(file))?)),
            None => Ok(Err(StorageError::NotFound(format!("{block}/{name}")))),
        }
    }

    fn create(&mut self, now_ms: i64) -> Result<Stored<Resource<Writer>>> {
        self.storage.blocks_created += 1;
        let id = ulid(now_ms, self.storage.blocks_created);
        Ok(Ok(self.table.push(Writer { id, files: BTreeMap::new() })?))
    }

    fn delete(&mut self, block: String) -> Result<Stored<()>> {
        let deleted = self.storage.blocks.remove(&block);
        Ok(deleted.map(drop).ok_or(StorageError::NotFound(block)))
    }

    fn replace_tombstones(
        &mut self,
        block: String,
        tombstones: Vec<u8>,
        meta: Vec<u8>,
    ) -> Result<Stored<()>> {
        let Some(files) = self.storage.blocks.get_mut(&block) else {
            return Ok(Err(StorageError::NotFound(block)));
        };
        files.insert("tombstones".into(), tombstones.into());
        files.insert("meta.json".into(), meta.into());
        Ok(Ok(()))
    }
}

impl blocks::HostFile for State {
    fn size(&mut self, file: Resource<File>) -> Result<u64> {
        Ok(self.table.get(&file)?.len() as u64)
    }

    fn read_at(&mut self, file: Resource<File>, offset: u64, len: u32) -> Result<Stored<Vec<u8>>> {
        let file = self.table.get(&file)?;
        let from = usize::try_from(offset).ok().and_then(|offset| file.get(offset..));
        let bytes = from.and_then(|from| from.get(..len as usize));
        let past_end = || StorageError::Io(format!("{len} bytes at {offset} reach past the end"));
        Ok(bytes.map(<[u8]>::to_vec).ok_or_else(past_end))
    }

    /// One instance that reads from memory has no need of them.
    fn notes(&mut self, _file: Resource<File>) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn keep_notes(&mut self, _file: Resource<File>, _notes: Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn drop(&mut self, file: Resource<File>) -> Result<()> {
        self.table.delete(file)?;
        Ok(())
    }
}

impl blocks::HostWriter for State {
    fn id(&mut self, writer: Resource<Writer>) -> Result<String> {
        Ok(self.table.get(&writer)?.id.clone())
    }

    fn write_at(
        &mut self,
        writer: Resource<Writer>,
        name: String,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<Stored<()>> {
        let file = self.table.get_mut(&writer)?.files.entry(name).or_default();
        let Some(offset) = usize::try_from(offset).ok().filter(|offset| *offset <= file.len())
        else {
            return Ok(Err(StorageError::Io(format!("a write at {offset} leaves a hole"))));
        };
        let end = file.len().min(offset + bytes.len());
        file.splice(offset..end, bytes);
        Ok(Ok(()))
    }

    fn commit(&mut self, this: Resource<Writer>) -> Result<Stored<()>> {
        let Writer { id, files } = self.table.delete(this)?;
        let files = files.into_iter().map(|(name, bytes)| (name, bytes.into())).collect();
        self.storage.blocks.insert(id, files);
        Ok(Ok(()))
    }

    fn drop(&mut self, writer: Resource<Writer>) -> Result<()> {
        self.table.delete(writer)?;
        Ok(())
    }
}

/// The store's own head answers in the role `all`, so that none of this is ever called.
impl head_source::Host for State {
    fn open(
        &mut self,
        _: Vec<Matcher>,
        _: TimeRange,
        _: Vec<Label>,
    ) -> Result<std::result::Result<Resource<head_source::Cursor>, Error>> {
        wasmtime::bail!("there is no other head")
    }

    fn series(
        &mut self,
        _: Lookup,
    ) -> Result<std::result::Result<Resource<head_source::Cursor>, Error>> {
        wasmtime::bail!("there is no other head")
    }

    fn label_names(
        &mut self,
        _: Lookup,
    ) -> Result<std::result::Result<Resource<head_source::Texts>, Error>> {
        wasmtime::bail!("there is no other head")
    }

    fn label_values(
        &mut self,
        _: String,
        _: Lookup,
    ) -> Result<std::result::Result<Resource<head_source::Texts>, Error>> {
        wasmtime::bail!("there is no other head")
    }

    fn plan_cut(&mut self) -> Result<std::result::Result<Option<TimeRange>, Error>> {
        wasmtime::bail!("there is no other head")
    }

    fn forget(&mut self, _: i64) -> Result<std::result::Result<bool, Error>> {
        wasmtime::bail!("there is no other head")
    }

    fn deletion_mark(&mut self) -> Result<std::result::Result<u64, Error>> {
        wasmtime::bail!("there is no other head")
    }
}

impl head_source::HostCursor for State {
    fn next(
        &mut self,
        _: Resource<head_source::Cursor>,
        _: u32,
    ) -> Result<std::result::Result<Vec<u8>, Error>> {
        wasmtime::bail!("there is no other head")
    }

    fn rewind(
        &mut self,
        _: Resource<head_source::Cursor>,
    ) -> Result<std::result::Result<(), Error>> {
        wasmtime::bail!("there is no other head")
    }

    fn drop(&mut self, _: Resource<head_source::Cursor>) -> Result<()> {
        Ok(())
    }
}

impl head_source::HostTexts for State {
    fn next(
        &mut self,
        _: Resource<head_source::Texts>,
        _: u32,
    ) -> Result<std::result::Result<Vec<String>, Error>> {
        wasmtime::bail!("there is no other head")
    }

    fn drop(&mut self, _: Resource<head_source::Texts>) -> Result<()> {
        Ok(())
    }
}

/// A ULID: 48 bits of milliseconds, then 80 that should be random and here just count.
fn ulid(now_ms: i64, count: u128) -> String {
    const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let value = (now_ms.max(0) as u128 & 0xffff_ffff_ffff) << 80 | count;
    (0..26).rev().map(|i| char::from(CROCKFORD[(value >> (5 * i)) as usize & 31])).collect()
}
