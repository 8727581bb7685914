//! Lists of targets, and the memory that they take.
//!
//! ```text
//! bytes of a list ─▶ Raw ─▶ groups, as they are read ─▶ List, shared by all that need it
//!                     │       │                           │
//!                     └───────┴── Room: counted first ────┘
//! ```
//!
//! Whatever a list adds is taken of the memory of targets before it is there: its bytes as they
//! come, each group, label and address as it is read. One that finds no room is given up where it
//! is, and what it had taken is given back.

use super::LIST_BYTES_MAX;
use crate::error::{ScrapeError, beginning};
use crate::memory::{Held, MemoryBound};
use crate::target::TargetGroup;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read;
use std::sync::Arc;

/// What an allocation takes beside its bytes.
const ALLOCATION_BYTES: usize = 16;

/// Counters of references of a shared text.
const COUNTERS_BYTES: usize = 2 * size_of::<usize>();

/// Least bytes that are taken for the bytes of a list.
const RAW_BYTES_MIN: usize = 4096;

/// Bytes of a file that are read at a time.
const READ_BYTES: usize = 64 * 1024;

/// The groups that one file, server or name lists, with what they hold of the memory of targets.
#[derive(Debug)]
pub struct List {
    groups: Arc<Vec<TargetGroup>>,
    targets: usize,
    /// Of all groups, so that long lists need not be compared.
    digest: u64,
    /// Given back when the last who needs the list drops it.
    _room: Option<Room>,
}

impl List {
    /// Groups that are no part of any bound.
    pub fn unbounded(groups: Vec<TargetGroup>) -> List {
        List::new(Arc::new(groups), None)
    }

    /// Groups that were counted.
    pub(super) fn held(groups: Arc<Vec<TargetGroup>>, room: Room) -> List {
        List::new(groups, Some(room))
    }

    fn new(groups: Arc<Vec<TargetGroup>>, room: Option<Room>) -> List {
        let targets = groups.iter().map(|group| group.targets.len()).sum();
        let mut hasher = DefaultHasher::new();
        groups.hash(&mut hasher);
        List { groups, targets, digest: hasher.finish(), _room: room }
    }

    /// The groups.
    pub fn groups(&self) -> &[TargetGroup] {
        &self.groups
    }

    /// The number of targets of all groups.
    pub fn targets(&self) -> usize {
        self.targets
    }

    /// Whether another list has the same groups.
    pub fn is_same(&self, other: &List) -> bool {
        (self.digest, self.targets, self.groups.len())
            == (other.digest, other.targets, other.groups.len())
    }
}

/// Why a list cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListError {
    pub what: String,
    /// Whether there was no room for it. There may be next time.
    pub is_memory: bool,
}

impl ListError {
    /// What is wrong with it: the beginning, since a list may hold anything.
    pub fn wrong(what: impl ToString) -> ListError {
        ListError { what: beginning(&what.to_string()), is_memory: false }
    }

    /// Whether the other one says the same. How much room there was does not matter.
    pub fn is_same(&self, other: &ListError) -> bool {
        self == other || (self.is_memory && other.is_memory)
    }
}

impl From<NoRoom> for ListError {
    fn from(error: NoRoom) -> ListError {
        ListError { what: error.to_string(), is_memory: true }
    }
}

/// There is no room for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no memory left for this list of targets: it would take {bytes} bytes, and all targets may take {limit_bytes}, one list half of that; shorten the list, or raise --memory-limit"
)]
pub struct NoRoom {
    /// What the list would hold.
    pub bytes: u64,
    /// What all targets and lists may hold.
    pub limit_bytes: u64,
}

/// What one list takes of the memory of targets.
#[derive(Debug)]
pub(super) struct Room {
    held: Held,
    bytes: u64,
    is_refused: bool,
}

impl Room {
    pub fn new(memory: &MemoryBound) -> Room {
        Room { held: memory.holder(), bytes: 0, is_refused: false }
    }

    /// Takes room for so many bytes, before they are there.
    pub fn take(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let bytes = self.bytes.saturating_add(bytes as u64);
        self.held.set(bytes).map_err(|error| {
            self.is_refused = true;
            match error {
                ScrapeError::Memory { bytes, limit_bytes } => NoRoom { bytes, limit_bytes },
                // Nothing else is wrong with memory.
                _ => NoRoom { bytes, limit_bytes: u64::MAX },
            }
        })?;
        self.bytes = bytes;
        Ok(())
    }

    /// Takes room for a text that is shared.
    pub fn take_text(&mut self, bytes: usize) -> Result<(), NoRoom> {
        self.take(ALLOCATION_BYTES + COUNTERS_BYTES + bytes)
    }

    /// What is taken.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives back what was taken since so many bytes were.
    pub fn back_to(&mut self, bytes: u64) {
        self.bytes = self.bytes.min(bytes);
        // Less is never refused.
        let _ = self.held.set(self.bytes);
    }

    /// Adds to a vector that takes room as it grows.
    pub fn push<T>(&mut self, list: &mut Vec<T>, item: T) -> Result<(), NoRoom> {
        if list.len() == list.capacity() {
            let more = list.capacity().max(1);
            self.take(more * size_of::<T>())?;
            list.reserve_exact(more);
        }
        list.push(item);
        Ok(())
    }

    /// Takes room for groups that are there already.
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

/// The bytes of a list.
#[derive(Debug)]
pub(super) struct Raw {
    bytes: Vec<u8>,
    room: Room,
}

impl Raw {
    pub fn new(memory: &MemoryBound) -> Raw {
        Raw { bytes: Vec::new(), room: Room::new(memory) }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, more: &[u8]) -> Result<(), NoRoom> {
        let (capacity, needed) = (self.bytes.capacity(), self.bytes.len() + more.len());
        if needed > capacity {
            let larger = (2 * capacity).min(LIST_BYTES_MAX as usize).max(needed).max(RAW_BYTES_MIN);
            self.room.take(larger - capacity)?;
            self.bytes.reserve_exact(larger - self.bytes.len());
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// Takes all bytes of a file, at most [`LIST_BYTES_MAX`].
    pub fn read(&mut self, file: impl Read) -> Result<(), ListError> {
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

    /// A hash of the bytes. One who makes lists of the same hash is late with his own list only.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.bytes);
        hasher.finish()
    }

    /// Makes the list of them, by what reads groups of bytes. The bytes are gone then.
    pub fn into_list(
        self,
        read: impl FnOnce(&[u8], &mut Room) -> Result<Vec<TargetGroup>, String>,
    ) -> Result<List, ListError> {
        let Raw { bytes, mut room } = self;
        let read = read(&bytes, &mut room);
        let groups = read
            .map_err(|what| ListError { is_memory: room.is_refused, ..ListError::wrong(what) })?;
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
