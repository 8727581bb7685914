//! Storage for the component in plain memory, and the component's imports implemented over it.
//!
//! A host that must keep its data writes the same things to files. `wit/storage.wit` specifies each
//! call.

use crate::State;
use crate::bindings::tidepool::tsdb::blocks::{self, ChunkBytes};
use crate::bindings::tidepool::tsdb::types::StorageError;
use crate::bindings::tidepool::tsdb::wal;
use std::collections::BTreeMap;
use std::sync::Arc;
use wasmtime::Result;
use wasmtime::component::Resource;

/// Result of an import: the outer error is a trap, for bugs only; the inner one an expected
/// failure.
type Answer<T> = Result<Result<T, StorageError>>;

/// Logs and blocks. A store that opens them again reads the logs from the beginning.
#[derive(Default)]
pub struct Storage {
    in_order: Log,
    out_of_order: Log,
    /// Committed blocks by ULID, their files by name.
    blocks: BTreeMap<String, BTreeMap<String, File>>,
    blocks_created: u128,
}

#[derive(Default)]
struct Log {
    /// Records in order, each with the number of its segment.
    records: Vec<(u32, Vec<u8>)>,
    segment: u32,
    /// Number of records that the current replay has returned.
    replayed: usize,
}

/// A checkpoint that is being written.
pub struct Checkpoint {
    last_segment: u32,
    records: Vec<(u32, Vec<u8>)>,
}

/// A file of a block. Like any open file, it stays readable after the block's deletion.
pub type File = Arc<[u8]>;

/// A block that is being written.
pub struct Writer {
    id: String,
    files: BTreeMap<String, Vec<u8>>,
    /// Files shared with committed blocks.
    linked: BTreeMap<String, File>,
}

impl Storage {
    fn log(&mut self, log: wal::Log) -> &mut Log {
        match log {
            wal::Log::InOrder => &mut self.in_order,
            wal::Log::OutOfOrder => &mut self.out_of_order,
        }
    }
}

impl wal::Host for State {
    fn append(&mut self, log: wal::Log, records: Vec<Vec<u8>>) -> Answer<u32> {
        let log = self.storage.log(log);
        log.records.extend(records.into_iter().map(|record| (log.segment, record)));
        Ok(Ok(log.segment))
    }

    /// Returns one record at a time, the simplest form that the contract allows.
    fn replay(&mut self, _bytes_max: u32) -> Answer<Option<wal::Batch>> {
        for log in [wal::Log::InOrder, wal::Log::OutOfOrder] {
            let Log { records, replayed, .. } = self.storage.log(log);
            if let Some((segment, bytes)) = records.get(*replayed).cloned() {
                *replayed += 1;
                let lengths = vec![bytes.len() as u32];
                return Ok(Ok(Some(wal::Batch { log, segment, bytes, lengths })));
            }
        }
        // The next call begins a new replay.
        (self.storage.in_order.replayed, self.storage.out_of_order.replayed) = (0, 0);
        Ok(Ok(None))
    }

    fn cut_segment(&mut self, log: wal::Log) -> Answer<u32> {
        let log = self.storage.log(log);
        log.segment += 1;
        Ok(Ok(log.segment - 1))
    }

    fn truncate_out_of_order(&mut self, last_segment: u32) -> Answer<()> {
        self.storage.out_of_order.records.retain(|(segment, _)| *segment > last_segment);
        Ok(Ok(()))
    }
}

impl wal::HostCheckpoint for State {
    fn new(&mut self, last_segment: u32) -> Result<Resource<Checkpoint>> {
        Ok(self.table.push(Checkpoint { last_segment, records: Vec::new() })?)
    }

    fn append(&mut self, this: Resource<Checkpoint>, records: Vec<Vec<u8>>) -> Answer<()> {
        let checkpoint = self.table.get_mut(&this)?;
        let segment = checkpoint.last_segment;
        checkpoint.records.extend(records.into_iter().map(|record| (segment, record)));
        Ok(Ok(()))
    }

    fn commit(&mut self, this: Resource<Checkpoint>) -> Answer<()> {
        let Checkpoint { last_segment, mut records } = self.table.delete(this)?;
        let log = &mut self.storage.in_order.records;
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
    fn list(&mut self) -> Answer<Vec<String>> {
        Ok(Ok(self.storage.blocks.keys().cloned().collect()))
    }

    fn open(&mut self, block: String, name: String) -> Answer<Resource<File>> {
        match self.storage.blocks.get(&block).and_then(|files| files.get(&name)) {
            Some(file) => Ok(Ok(self.table.push(Arc::clone(file))?)),
            None => Ok(Err(StorageError::NotFound(format!("{block}/{name}")))),
        }
    }

    fn create(&mut self, now_ms: i64) -> Answer<Resource<Writer>> {
        self.storage.blocks_created += 1;
        let id = ulid(now_ms, self.storage.blocks_created);
        Ok(Ok(self.table.push(Writer { id, files: BTreeMap::new(), linked: BTreeMap::new() })?))
    }

    fn delete(&mut self, block: String) -> Answer<()> {
        let deleted = self.storage.blocks.remove(&block);
        Ok(deleted.map(drop).ok_or(StorageError::NotFound(block)))
    }

    fn replace_tombstones(&mut self, block: String, new: Vec<u8>, meta: Vec<u8>) -> Answer<()> {
        let Some(files) = self.storage.blocks.get_mut(&block) else {
            return Ok(Err(StorageError::NotFound(block)));
        };
        files.insert("tombstones".into(), new.into());
        files.insert("meta.json".into(), meta.into());
        Ok(Ok(()))
    }
}

impl blocks::HostFile for State {
    fn size(&mut self, this: Resource<File>) -> Result<u64> {
        Ok(self.table.get(&this)?.len() as u64)
    }

    fn read_at(&mut self, this: Resource<File>, offset: u64, len: u32) -> Answer<Vec<u8>> {
        let file = self.table.get(&this)?;
        let from = usize::try_from(offset).ok().and_then(|offset| file.get(offset..));
        let bytes = from.and_then(|from| from.get(..len as usize));
        let past_end = || StorageError::Io(format!("{len} bytes at {offset} reach past the end"));
        Ok(bytes.map(<[u8]>::to_vec).ok_or_else(past_end))
    }

    /// Returns no checked chunks, which the contract allows: the component checks them then.
    fn read_chunks(&mut self, this: Resource<File>, offset: u64, len: u32) -> Answer<ChunkBytes> {
        let read = self.read_at(this, offset, len)?;
        Ok(read.map(|bytes| ChunkBytes { bytes, ends: Vec::new() }))
    }

    /// Keeps no summary, which the contract allows: a summary would only save reads from memory.
    fn summary(&mut self, _this: Resource<File>) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn keep_summary(&mut self, _this: Resource<File>, _summary: Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn drop(&mut self, this: Resource<File>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl blocks::HostWriter for State {
    fn id(&mut self, this: Resource<Writer>) -> Result<String> {
        Ok(self.table.get(&this)?.id.clone())
    }

    fn write_at(
        &mut self,
        this: Resource<Writer>,
        name: String,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Answer<()> {
        let Writer { files, linked, .. } = self.table.get_mut(&this)?;
        if linked.contains_key(&name) {
            return Ok(Err(StorageError::Io(format!("{name} is another block's, too"))));
        }
        let size = files.get(&name).map_or(0, Vec::len);
        let Some(offset) = usize::try_from(offset).ok().filter(|offset| *offset <= size) else {
            return Ok(Err(StorageError::Io(format!("a write at {offset} leaves a hole"))));
        };
        let end = size.min(offset + bytes.len());
        files.entry(name).or_default().splice(offset..end, bytes);
        Ok(Ok(()))
    }

    /// Returns `false`, which the contract allows: the engine then writes the bytes itself.
    fn link_file(
        &mut self,
        this: Resource<Writer>,
        block: String,
        name: String,
        new_name: String,
    ) -> Answer<bool> {
        let Writer { files, linked, .. } = self.table.get_mut(&this)?;
        if files.contains_key(&new_name) || linked.contains_key(&new_name) {
            return Ok(Err(StorageError::Io(format!("{new_name} is there already"))));
        }
        match self.storage.blocks.get(&block).and_then(|files| files.get(&name)) {
            Some(file) => linked.insert(new_name, Arc::clone(file)),
            None => return Ok(Err(StorageError::NotFound(format!("{block}/{name}")))),
        };
        Ok(Ok(true))
    }

    fn commit(&mut self, this: Resource<Writer>) -> Answer<()> {
        let Writer { id, files, mut linked } = self.table.delete(this)?;
        linked.extend(files.into_iter().map(|(name, bytes)| (name, bytes.into())));
        self.storage.blocks.insert(id, linked);
        Ok(Ok(()))
    }

    fn drop(&mut self, this: Resource<Writer>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

/// Makes a ULID: 48 bits of milliseconds, then 80 bits, here a counter instead of random bits.
fn ulid(now_ms: i64, count: u128) -> String {
    const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let value = (now_ms.max(0) as u128 & 0xffff_ffff_ffff) << 80 | count;
    (0..26).rev().map(|i| char::from(CROCKFORD[(value >> (5 * i)) as usize & 31])).collect()
}
