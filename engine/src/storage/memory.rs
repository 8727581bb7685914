//! Log and blocks in memory: for tests, and for embedders that need no durability.
//!
//! Clones share their content, so a test can restart an engine on the same content.

use super::*;
use std::cell::RefCell;
use std::collections::BTreeMap;

type Files = BTreeMap<String, Rc<Vec<u8>>>;

/// A log in memory, shared by clones.
#[derive(Clone, Default)]
pub struct MemoryWal {
    log: Rc<RefCell<Log>>,
    /// Number of batches that `replay` has returned.
    replayed: usize,
}

type LogRecords = Vec<Vec<u8>>;

#[derive(Default)]
struct Log {
    checkpoint: Option<(u32, LogRecords)>,
    in_order: BTreeMap<u32, LogRecords>,
    out_of_order: BTreeMap<u32, LogRecords>,
}

struct MemoryCheckpoint {
    log: Rc<RefCell<Log>>,
    last_segment: u32,
    records: LogRecords,
}

/// Blocks in memory, shared by clones.
#[derive(Clone, Default)]
pub struct MemoryBlocks {
    blocks: Rc<RefCell<BTreeMap<String, Files>>>,
    created: Rc<RefCell<u64>>,
}

struct MemoryFile(Rc<Vec<u8>>);

struct MemoryBlockWriter {
    id: String,
    files: BTreeMap<String, Vec<u8>>,
    linked: Files,
    blocks: Rc<RefCell<BTreeMap<String, Files>>>,
}

impl MemoryWal {
    /// Returns the same log for a restart: replay begins again.
    pub fn reopened(&self) -> MemoryWal {
        MemoryWal { log: Rc::clone(&self.log), replayed: 0 }
    }

    /// Returns the numbers of a log's segments, ascending.
    pub fn segments(&self, log: LogKind) -> Vec<u32> {
        self.log.borrow_mut().segments(log).keys().copied().collect()
    }
}

impl Log {
    fn segments(&mut self, log: LogKind) -> &mut BTreeMap<u32, LogRecords> {
        match log {
            LogKind::InOrder => &mut self.in_order,
            LogKind::OutOfOrder => &mut self.out_of_order,
        }
    }

    fn current(&mut self, log: LogKind) -> u32 {
        // Numbers continue after the checkpoint, so that none is used twice.
        let next = self.checkpoint.as_ref().map_or(0, |(last, _)| last + 1);
        self.segments(log).keys().next_back().copied().unwrap_or(next)
    }
}

impl Wal for MemoryWal {
    fn append(&mut self, log: LogKind, records: &[Vec<u8>]) -> StorageResult<u32> {
        let mut logs = self.log.borrow_mut();
        let segment = logs.current(log);
        logs.segments(log).entry(segment).or_default().extend_from_slice(records);
        Ok(segment)
    }

    /// Returns a single record at a time: the least that the contract promises.
    fn replay(&mut self, _bytes_max: u32) -> StorageResult<Option<WalBatch>> {
        let logs = self.log.borrow();
        let checkpoint = logs.checkpoint.iter().map(|(last, records)| (last, records));
        let in_order = checkpoint.chain(&logs.in_order).map(|found| (LogKind::InOrder, found));
        let all =
            in_order.chain(logs.out_of_order.iter().map(|found| (LogKind::OutOfOrder, found)));
        let mut batches = all.flat_map(|(log, (segment, records))| {
            records.iter().map(move |record| (log, *segment, record))
        });
        // Quadratic in the number of records, of which tests have few.
        let next = batches.nth(self.replayed);
        self.replayed += 1;
        Ok(next.map(|(log, segment, record)| WalBatch {
            log,
            segment,
            records: [record].into_iter().collect(),
        }))
    }

    fn cut_segment(&mut self, log: LogKind) -> StorageResult<u32> {
        let mut logs = self.log.borrow_mut();
        let last = logs.current(log);
        // Left empty, so that `current` finds the new number.
        logs.segments(log).insert(last + 1, Vec::new());
        Ok(last)
    }

    fn truncate_out_of_order(&mut self, last_segment: u32) -> StorageResult<()> {
        self.log.borrow_mut().out_of_order.retain(|segment, _| *segment > last_segment);
        Ok(())
    }

    fn checkpoint(&mut self, last_segment: u32) -> StorageResult<Box<dyn WalCheckpoint>> {
        let log = Rc::clone(&self.log);
        if let Some((before, _)) = &log.borrow().checkpoint
            // An equal number is allowed: a commit that failed may have taken effect.
            && *before > last_segment
        {
            let reason = format!("a checkpoint cannot end with {last_segment}, before {before}");
            return Err(StorageError::Io { reason });
        }
        Ok(Box::new(MemoryCheckpoint { log, last_segment, records: Vec::new() }))
    }
}

impl WalCheckpoint for MemoryCheckpoint {
    fn append(&mut self, records: &[Vec<u8>]) -> StorageResult<()> {
        self.records.extend_from_slice(records);
        Ok(())
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        let mut log = self.log.borrow_mut();
        // Only on commit: a checkpoint that is not committed leaves no trace.
        log.in_order.retain(|segment, _| *segment > self.last_segment);
        log.checkpoint = Some((self.last_segment, self.records));
        Ok(())
    }
}

impl Blocks for MemoryBlocks {
    fn list(&self) -> StorageResult<Vec<String>> {
        Ok(self.blocks.borrow().keys().cloned().collect())
    }

    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        let blocks = self.blocks.borrow();
        let found = blocks.get(block).and_then(|files| files.get(file));
        match found {
            Some(bytes) => Ok(Rc::new(MemoryFile(Rc::clone(bytes)))),
            None => Err(StorageError::NotFound { what: format!("{block}/{file}") }),
        }
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        *self.created.borrow_mut() += 1;
        // The counter tells ULIDs of one millisecond apart.
        let id = ulid_text(now_ms, *self.created.borrow());
        let blocks = Rc::clone(&self.blocks);
        Ok(Box::new(MemoryBlockWriter { id, files: BTreeMap::new(), linked: Files::new(), blocks }))
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        match self.blocks.borrow_mut().remove(block) {
            Some(_) => Ok(()),
            None => Err(StorageError::NotFound { what: block.to_owned() }),
        }
    }

    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()> {
        match self.blocks.borrow_mut().get_mut(block) {
            Some(files) => {
                files.insert("tombstones".to_owned(), Rc::new(tombstones.to_vec()));
                files.insert("meta.json".to_owned(), Rc::new(meta.to_vec()));
                Ok(())
            }
            None => Err(StorageError::NotFound { what: block.to_owned() }),
        }
    }
}

impl BlockFile for MemoryFile {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, len: u32) -> StorageResult<Vec<u8>> {
        let range = usize::try_from(offset).ok().map(|at| at..at.saturating_add(len as usize));
        let bytes = range.and_then(|range| self.0.get(range));
        bytes.map(<[u8]>::to_vec).ok_or_else(|| StorageError::Io {
            reason: format!("{len} bytes at {offset} reach past the end ({} bytes)", self.0.len()),
        })
    }
}

impl BlockWriter for MemoryBlockWriter {
    fn id(&self) -> &str {
        &self.id
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> StorageResult<()> {
        // A linked file belongs to another block, too.
        if self.linked.contains_key(file) {
            return Err(taken(file));
        }
        let content = self.files.entry(file.to_owned()).or_default();
        let hole =
            || StorageError::Io { reason: format!("write at {offset} leaves a hole in {file}") };
        let at = usize::try_from(offset).ok().filter(|at| *at <= content.len()).ok_or_else(hole)?;
        // Sections are overwritten when their lengths become known.
        let overwritten = bytes.len().min(content.len() - at);
        content[at..at + overwritten].copy_from_slice(&bytes[..overwritten]);
        content.extend_from_slice(&bytes[overwritten..]);
        Ok(())
    }

    fn link_file(&mut self, block: &str, file: &str, new_file: &str) -> StorageResult<bool> {
        if self.linked.contains_key(new_file) || self.files.contains_key(new_file) {
            return Err(taken(new_file));
        }
        let blocks = self.blocks.borrow();
        let found = blocks.get(block).and_then(|files| files.get(file));
        let missing = || StorageError::NotFound { what: format!("{block}/{file}") };
        self.linked.insert(new_file.to_owned(), Rc::clone(found.ok_or_else(missing)?));
        Ok(true)
    }

    fn commit(self: Box<Self>) -> StorageResult<()> {
        let mut files = self.linked;
        files.extend(self.files.into_iter().map(|(name, bytes)| (name, Rc::new(bytes))));
        // One insertion, so that readers see all files or none.
        self.blocks.borrow_mut().insert(self.id, files);
        Ok(())
    }
}

fn taken(file: &str) -> StorageError {
    StorageError::Io { reason: format!("{file} is there already, or is linked") }
}

/// A ULID's text: 48 bits of milliseconds, then 80 bits that here are a counter.
fn ulid_text(now_ms: i64, counter: u64) -> String {
    const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let value = (u128::from(now_ms.max(0) as u64 & 0xffff_ffff_ffff) << 80) | u128::from(counter);
    (0..26).rev().map(|i| char::from(CROCKFORD[(value >> (5 * i)) as usize & 31])).collect()
}
