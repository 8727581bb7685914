//! Lists of targets, and the memory that they take.
//!
//! ```text
//! bytes of a list ─▶ Raw ─▶ groups, as they are read ─▶ List, shared by all that need it
//!                     │       │                           │
//!                     └───────┴── Room: counted first ────┘
//! ```
//!
//! Memory is counted before it is allocated: the bytes of a list as they arrive, each group, label
//! and address as it is read. A list that finds no memory is abandoned there, and its memory is
//! given back.

use super::LIST_BYTES_MAX;
use crate::error::{ScrapeError, beginning};
use crate::memory::{MemoryBound, MemoryShare};
use crate::target::TargetGroup;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read;
use std::sync::Arc;

/// Overhead of an allocation, in bytes.
const ALLOCATION_BYTES: usize = 16;

/// Reference counts of a shared text, in bytes.
const COUNTERS_BYTES: usize = 2 * size_of::<usize>();

/// Minimum capacity for the bytes of a list.
const RAW_BYTES_MIN: usize = 4096;

/// Bytes of a file that are read at a time.
const READ_BYTES: usize = 64 * 1024;

/// Groups that one file, server or name lists, with their share of the memory of targets.
#[derive(Debug)]
pub struct List {
    groups: Arc<Vec<TargetGroup>>,
    targets: usize,
    /// Hash of all groups, so that long lists need not be compared.
    digest: u64,
    /// Given back when the last user drops the list.
    _room: Option<Room>,
}

impl List {
    /// Creates a list that counts against no bound.
    pub fn unbounded(groups: Vec<TargetGroup>) -> List {
        List::new(Arc::new(groups), None)
    }

    /// Creates a list whose groups were counted.
    pub(super) fn held(groups: Arc<Vec<TargetGroup>>, room: Room) -> List {
        List::new(groups, Some(room))
    }

    fn new(groups: Arc<Vec<TargetGroup>>, room: Option<Room>) -> List {
        let targets = groups.iter().map(|group| group.targets.len()).sum();
        let mut hasher = DefaultHasher::new();
        groups.hash(&mut hasher);
        List { groups, targets, digest: hasher.finish(), _room: room }
    }

    pub fn groups(&self) -> &[TargetGroup] {
        &self.groups
    }

    /// Returns the number of targets in all groups.
    pub fn targets(&self) -> usize {
        self.targets
    }

    /// Returns whether another list has the same groups.
    pub fn is_same(&self, other: &List) -> bool {
        (self.digest, self.targets, self.groups.len())
            == (other.digest, other.targets, other.groups.len())
    }
}

/// Fault that makes a list unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListError {
    pub what: String,
    /// Whether the list found no memory. There may be some next time.
    pub is_memory: bool,
}

impl ListError {
    /// Makes an error of a fault. Only the beginning of the text is kept, since a list may hold
    /// anything.
    pub fn wrong(what: impl ToString) -> ListError {
        ListError { what: beginning(&what.to_string()), is_memory: false }
    }

    /// Returns whether both have the same cause, however much memory there was.
    pub fn is_same(&self, other: &ListError) -> bool {
        self == other || (self.is_memory && other.is_memory)
    }
}

impl From<NoRoom> for ListError {
    fn from(error: NoRoom) -> ListError {
        ListError { what: error.to_string(), is_memory: true }
    }
}

/// No memory is left for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no memory left for this list of targets: it would take {bytes} bytes, and all targets may take {limit_bytes}, one list half of that; shorten the list, or raise --memory-limit"
)]
pub struct NoRoom {
    /// Bytes that the list would hold.
    pub bytes: u64,
    /// Bytes that all targets and lists may hold.
    pub limit_bytes: u64,
}

/// Share of one list in the memory of targets.
#[derive(Debug)]
pub(super) struct Room {
    held: MemoryShare,
    bytes: u64,
    is_refused: bool,
}

impl Room {
    pub fn new(memory: &MemoryBound) -> Room {
        Room { held: memory.holder(), bytes: 0, is_refused: false }
    }

    /// Counts so many bytes, before they are allocated.
    pub fn take(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let bytes = self.bytes.saturating_add(bytes as u64);
        self.held.set(bytes).map_err(|error| {
            self.is_refused = true;
            match error {
                ScrapeError::Memory { bytes, limit_bytes } => NoRoom { bytes, limit_bytes },
                // Holders fail for no other reason.
                _ => NoRoom { bytes, limit_bytes: u64::MAX },
            }
        })?;
        self.bytes = bytes;
        Ok(())
    }

    /// Counts a text that is shared.
    pub fn take_text(&mut self, bytes: usize) -> Result<(), NoRoom> {
        self.take(ALLOCATION_BYTES + COUNTERS_BYTES + bytes)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives back all that was counted beyond so many bytes.
    pub fn back_to(&mut self, bytes: u64) {
        self.bytes = self.bytes.min(bytes);
        // Less is never refused.
        let _ = self.held.set(self.bytes);
    }

    /// Adds to a vector, and counts its growth.
    pub fn push<T>(&mut self, list: &mut Vec<T>, item: T) -> Result<(), NoRoom> {
        // The growth of the vector itself could not be counted before it happens.
        if list.len() == list.capacity() {
            let more = list.capacity().max(1);
            self.take(more * size_of::<T>())?;
            list.reserve_exact(more);
        }
        list.push(item);
        Ok(())
    }

    /// Counts groups that are allocated already.
    pub fn take_groups(&mut self, groups: &[TargetGroup]) -> Result<(), NoRoom> {
        for group in groups {
            self.take(size_of::<TargetGroup>() + ALLOCATION_BYTES + group.source.len())?;
            self.take_text(group.labels.bytes())?;
            for target in &group.targets {
                self.take(size_of_val(target))?;
                self.take_text(target.bytes())?;
            }
        }
        Ok(())
    }
}

/// Unparsed bytes of a list, and their memory.
#[derive(Debug)]
pub(super) struct Raw {
    bytes: Vec<u8>,
    room: Room,
}

impl Raw {
    pub fn new(memory: &MemoryBound) -> Raw {
        Raw { bytes: Vec::new(), room: Room::new(memory) }
    }

    /// Adds the next bytes of the list.
    pub fn push(&mut self, more: &[u8]) -> Result<(), NoRoom> {
        let (capacity, needed) = (self.bytes.capacity(), self.bytes.len() + more.len());
        if needed > capacity {
            // Doubled, but not beyond the limit, which a file may exceed by one piece only.
            let larger = (2 * capacity).min(LIST_BYTES_MAX as usize).max(needed).max(RAW_BYTES_MIN);
            self.room.take(larger - capacity)?;
            self.bytes.reserve_exact(larger - self.bytes.len());
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// Adds all bytes of a file, at most [`LIST_BYTES_MAX`].
    pub fn read(&mut self, file: impl Read) -> Result<(), ListError> {
        // One byte more, by which a file that is too long is known.
        let mut file = file.take(LIST_BYTES_MAX + 1);
        let mut piece = vec![0; READ_BYTES];
        loop {
            match file.read(&mut piece).map_err(ListError::wrong)? {
                0 => return Ok(()),
                bytes => self.push(piece.get(..bytes).unwrap_or_default())?,
            }
            if self.bytes.len() as u64 > LIST_BYTES_MAX {
                return Err(ListError::wrong(format!("it has more than {LIST_BYTES_MAX} bytes")));
            }
        }
    }

    /// Returns a hash of the bytes. A sender who makes lists of equal hashes only delays its own
    /// list.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.bytes);
        hasher.finish()
    }

    /// Makes the list, by a function that reads groups from the bytes, which are freed then.
    pub fn into_list(
        self,
        read: impl FnOnce(&[u8], &mut Room) -> Result<Vec<TargetGroup>, String>,
    ) -> Result<List, ListError> {
        let Raw { bytes, mut room } = self;
        let read = read(&bytes, &mut room);
        let groups = read
            .map_err(|what| ListError { is_memory: room.is_refused, ..ListError::wrong(what) })?;
        // Freed before its memory counts as free.
        let taken = bytes.capacity() as u64;
        drop(bytes);
        room.back_to(room.bytes.saturating_sub(taken));
        Ok(List::held(Arc::new(groups), room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_room_before_they_are_there() {
        const MIB: u64 = 1 << 20;
        let memory = MemoryBound::new(4 * MIB);
        let mut raw = Raw::new(&memory);
        raw.read(&vec![b'x'; MIB as usize][..]).expect("room");
        assert!(raw.room.bytes() >= MIB && memory.held_bytes() == raw.room.bytes());
        let error = raw.read(std::io::repeat(b'x')).expect_err("half is for others");
        assert!(error.is_memory, "{error:?}");
        assert!(raw.bytes.capacity() as u64 <= 2 * MIB, "{}", raw.bytes.capacity());
        drop(raw);
        assert_eq!(memory.held_bytes(), 0);
        let mut raw = Raw::new(&MemoryBound::unbounded());
        let error = raw.read(std::io::repeat(b'x')).expect_err("it has no end");
        assert_eq!(error, ListError::wrong("it has more than 33554432 bytes"));
    }
}
