//! Lists of targets, and the memory that they need.
//!
//! ```text
//! bytes of a list ─▶ Raw ─▶ groups, as they are read ─▶ List, shared by all that need it
//!                     │       │                           │
//!                     └───────┴── Room: counted first ────┘
//! ```
//!
//! Memory is counted before it is allocated: for the bytes of a list as they arrive, and for each
//! group, label and address as it is read. Reading a list stops where the bound refuses memory;
//! then the memory of the list is freed.

use super::LIST_BYTES_MAX;
use crate::error::{ScrapeError, beginning};
use crate::memory::{MemoryBound, MemoryShare};
use crate::target::TargetGroup;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read;
use std::sync::Arc;

/// Overhead of an allocation, in bytes.
const ALLOCATION_BYTES: usize = 16;

/// Size of the reference counts of a shared text, in bytes.
const COUNTERS_BYTES: usize = 2 * size_of::<usize>();

/// Minimum capacity for the bytes of a list.
const RAW_BYTES_MIN: usize = 4096;

/// Number of bytes that one read of a file requests.
const READ_BYTES: usize = 64 * 1024;

/// Groups of one file, server or DNS name, with their share of the memory of targets.
#[derive(Debug)]
pub struct List {
    groups: Arc<Vec<TargetGroup>>,
    targets: usize,
    /// Hash of all groups, so that long lists need not be compared.
    digest: u64,
    /// Share of the memory bound, released when the last user drops the list.
    _room: Option<Room>,
}

impl List {
    /// Creates a list whose memory is not counted.
    pub fn unbounded(groups: Vec<TargetGroup>) -> List {
        List::new(Arc::new(groups), None)
    }

    /// Creates a list whose memory `room` has counted.
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
    /// Whether the memory bound refused the list. The next attempt may succeed.
    pub is_memory: bool,
}

impl ListError {
    /// Creates an error. Only the beginning of the text is kept, because the text may quote the
    /// list.
    pub fn wrong(what: impl ToString) -> ListError {
        ListError { what: beginning(&what.to_string()), is_memory: false }
    }

    /// Returns whether both have the same cause. Numbers of bytes are not compared.
    pub fn is_same(&self, other: &ListError) -> bool {
        self == other || (self.is_memory && other.is_memory)
    }
}

impl From<NoRoom> for ListError {
    fn from(error: NoRoom) -> ListError {
        ListError { what: error.to_string(), is_memory: true }
    }
}

/// A list would exceed the memory bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no memory left for this list of targets: it would take {bytes} bytes, and all targets may take {limit_bytes}, one list half of that; shorten the list, or raise --memory-limit"
)]
pub struct NoRoom {
    /// Bytes that the list would need.
    pub bytes: u64,
    /// Maximum bytes of all targets and lists together.
    pub limit_bytes: u64,
}

/// Memory counted for one list, as a share of the memory of all targets.
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

    /// Counts bytes before they are allocated.
    pub fn take(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let bytes = self.bytes.saturating_add(bytes as u64);
        self.held.set(bytes).map_err(|error| {
            self.is_refused = true;
            match error {
                ScrapeError::Memory { bytes, limit_bytes } => NoRoom { bytes, limit_bytes },
                // A share fails for no other reason.
                _ => NoRoom { bytes, limit_bytes: u64::MAX },
            }
        })?;
        self.bytes = bytes;
        Ok(())
    }

    /// Counts a text that is reference-counted.
    pub fn take_text(&mut self, bytes: usize) -> Result<(), NoRoom> {
        self.take(ALLOCATION_BYTES + COUNTERS_BYTES + bytes)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Releases all memory that was counted above this number of bytes.
    pub fn back_to(&mut self, bytes: u64) {
        self.bytes = self.bytes.min(bytes);
        // Setting a smaller number never fails.
        let _ = self.held.set(self.bytes);
    }

    /// Adds an item to a vector, and counts the vector's growth.
    pub fn push<T>(&mut self, list: &mut Vec<T>, item: T) -> Result<(), NoRoom> {
        // The vector is grown here, because its own growth could not be counted before.
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

/// Unparsed bytes of a list, and their memory share.
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
            // Doubles, but up to the limit only, which a file may exceed by one piece.
            let larger = (2 * capacity).min(LIST_BYTES_MAX as usize).max(needed).max(RAW_BYTES_MIN);
            self.room.take(larger - capacity)?;
            self.bytes.reserve_exact(larger - self.bytes.len());
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// Adds all bytes of a file, at most [`LIST_BYTES_MAX`].
    pub fn read(&mut self, file: impl Read) -> Result<(), ListError> {
        // Reads one byte more than the limit, which shows that a file is too long.
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

    /// Returns a hash of the bytes. A sender who crafts lists with equal hashes only prevents
    /// updates of its own list.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.bytes);
        hasher.finish()
    }

    /// Makes the list by a function that parses the bytes, and frees the bytes.
    pub fn into_list(
        self,
        read: impl FnOnce(&[u8], &mut Room) -> Result<Vec<TargetGroup>, String>,
    ) -> Result<List, ListError> {
        let Raw { bytes, mut room } = self;
        let read = read(&bytes, &mut room);
        let groups = read
            .map_err(|what| ListError { is_memory: room.is_refused, ..ListError::wrong(what) })?;
        // The bytes are freed before their memory is counted as free.
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
