//! The symbol table: every label name and value, once, in ascending order.
//!
//! ```text
//! ┌─────────┬───────────┬──────────────────────────────────┬───────┐
//! │ len u32 │ count u32 │ (len uvarint │ UTF-8) × count    │ CRC32 │
//! └─────────┴───────────┴──────────────────────────────────┴───────┘
//! ```
//!
//! A symbol's number is its position in the table, from 0. Series refer to symbols by number; in
//! version 1, by the byte offset in the file at which the symbol begins. [`SymbolTable`] keeps the
//! offset of every 32nd symbol in memory, and a bounded cache of groups of 32 decoded symbols.

use super::postings_table::{put_string, split_string};
use super::summary::split_u32;
use super::{FileSink, IndexError, NamedFile, SAMPLING, SymbolList};
use crate::codec::{put_uvarint, split_uvarint, uvarint_bytes};
use crate::storage::BlockWriter;

/// Largest memory of decoded symbols; beyond it all of them are dropped. Small in tests.
const CACHE_BYTES_MAX: usize = if cfg!(test) { 32 * 1024 } else { 4 * 1024 * 1024 };

/// After `ALONE_MAX` groups were decoded alone, about `READ_BYTES` bytes are read and all groups in
/// them decoded: only a narrow read needs few groups.
const READ_BYTES: u64 = 16 * 1024;
const ALONE_MAX: usize = 16;

/// Largest memory of decoded symbols that is kept from one read to the next.
const RESTING_BYTES_MAX: usize = 64 * 1024;

/// Memory of a group besides its text and ends.
const GROUP_OVERHEAD_BYTES: usize = 48;

pub(super) fn write_symbols(
    symbols: &SymbolList,
    sink: &mut FileSink,
    out: &mut dyn BlockWriter,
) -> Result<(), IndexError> {
    sink.begin_section();
    sink.put_u32(symbols.len() as u32);
    for symbol in symbols.iter() {
        put_string(sink.buffer(), symbol.as_bytes());
        sink.flush_full(out)?;
    }
    sink.end_section(out, "the symbol table")
}

pub(crate) struct SymbolTable {
    file: NamedFile,
    /// Start of the section's content, to which the offsets of groups are relative.
    start: u64,
    /// End of the last symbol.
    end: u64,
    count: u32,
    by_offset: bool,
    groups: Vec<Group>,
    cached_bytes: usize,
    /// Number of groups that the current read decoded one by one.
    alone: usize,
}

/// 32 symbols, fewer in the last group.
struct Group {
    offset: u32,
    decoded: Option<Box<Decoded>>,
}

struct Decoded {
    text: Box<str>,
    ends: Box<[u32]>,
}

impl SymbolTable {
    /// Reads the section once. With `by_offset`, series refer to symbols by byte offset.
    pub(crate) fn read(
        file: NamedFile,
        offset: u64,
        by_offset: bool,
    ) -> Result<SymbolTable, IndexError> {
        let section = file.section(offset)?;
        let mut groups = Vec::new();
        let mut number = 0;
        let count = file.scan_section(section, |offset, bytes| {
            // UTF-8 is checked when a group is decoded.
            let (_, rest) = split_string(bytes)?;
            if usize::is_multiple_of(number, SAMPLING) {
                groups.push(Group { offset, decoded: None });
            }
            number += 1;
            Some(bytes.len() - rest.len())
        })?;
        groups.shrink_to_fit();
        let (start, end) = (section.start, section.end);
        Ok(SymbolTable { file, start, end, count, by_offset, groups, cached_bytes: 0, alone: 0 })
    }

    /// Appends the offsets of the groups, for [`SymbolTable::split_summary`].
    pub(super) fn put_summary(&self, summary: &mut Vec<u8>) {
        for number in [self.start, self.end, u64::from(self.count)] {
            put_uvarint(summary, number);
        }
        let mut before = 0;
        for Group { offset, .. } in &self.groups {
            put_uvarint(summary, u64::from(offset.wrapping_sub(before)));
            before = *offset;
        }
    }

    /// Reads a table from the front of a summary, and returns it with the rest.
    pub(super) fn split_summary(file: NamedFile, summary: &[u8]) -> Option<(SymbolTable, &[u8])> {
        let (start, summary) = split_uvarint(summary)?;
        let (end, summary) = split_uvarint(summary)?;
        let (count, mut summary) = split_u32(summary)?;
        let group_count = (count as usize).div_ceil(SAMPLING);
        // A step has one byte or more, so a false count cannot allocate much memory.
        let mut groups = Vec::with_capacity(group_count.min(summary.len()));
        let mut offset = 0u32;
        for _ in 0..group_count {
            let (step, rest) = split_u32(summary)?;
            offset = offset.wrapping_add(step);
            groups.push(Group { offset, decoded: None });
            summary = rest;
        }
        // Tables of version 1 have no summary.
        let by_offset = false;
        Some((
            SymbolTable { file, start, end, count, by_offset, groups, cached_bytes: 0, alone: 0 },
            summary,
        ))
    }

    /// Returns the number of the symbol that a series refers to.
    #[inline]
    pub(super) fn number(&mut self, reference: u32) -> Result<u32, IndexError> {
        if self.by_offset { self.number_at(reference) } else { Ok(reference) }
    }

    fn number_at(&mut self, offset: u32) -> Result<u32, IndexError> {
        let in_section = u64::from(offset).saturating_sub(self.start);
        let after = self.groups.partition_point(|group| u64::from(group.offset) <= in_section);
        let group = after.saturating_sub(1);
        let first = (group * SAMPLING) as u32;
        self.load(first)?;
        let mut at = self.groups.get(group).map_or(0, |group| u64::from(group.offset));
        let last = self.count.min(first.saturating_add(SAMPLING as u32));
        // Offsets between the samples are not kept, so lengths are added up.
        let found = (first..last).find(|number| {
            let is_it = at == in_section;
            let len = self.text(*number).len();
            at += (uvarint_bytes(len as u64) + len) as u64;
            is_it
        });
        let what = "a series uses a symbol that does not begin at this offset";
        found.ok_or_else(|| self.file.damage(u64::from(offset), what).into())
    }

    /// Estimates the memory of the table after long use, in bytes.
    pub(super) fn memory_bytes_max(&self) -> u64 {
        // Decoded, a text takes less than twice its bytes in the file.
        let decoded = 2 * (self.end - self.start);
        let groups = (self.groups.len() * size_of::<Group>()) as u64;
        groups + decoded.min(CACHE_BYTES_MAX as u64)
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// End of the section's content, before its checksum.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Makes a symbol available to [`text`](Self::text) until [`trim`](Self::trim).
    #[inline]
    pub(crate) fn load(&mut self, number: u32) -> Result<(), IndexError> {
        let group = number as usize / SAMPLING;
        match self.groups.get(group) {
            Some(Group { decoded: Some(_), .. }) if number < self.count => Ok(()),
            Some(_) if number < self.count => self.decode_from(group),
            _ => {
                let what = "a series uses a symbol that the table does not have";
                Err(self.file.damage(self.start, what).into())
            }
        }
    }

    /// Returns a loaded symbol; the empty string if it is not loaded.
    #[inline]
    pub(crate) fn text(&self, number: u32) -> &str {
        let group = self.groups.get(number as usize / SAMPLING);
        let decoded = group.and_then(|group| group.decoded.as_deref());
        decoded.map_or("", |decoded| decoded.text(number as usize % SAMPLING))
    }

    /// Ends a read: drops decoded symbols, unless they need little memory.
    pub(super) fn rest(&mut self) {
        self.alone = 0;
        if self.cached_bytes > RESTING_BYTES_MAX {
            self.groups.iter_mut().for_each(|group| group.decoded = None);
            self.cached_bytes = 0;
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.groups.len() * size_of::<Group>() + self.cached_bytes
    }

    /// Drops decoded symbols if they take too much memory.
    #[inline]
    pub(crate) fn trim(&mut self) {
        if self.cached_bytes > CACHE_BYTES_MAX {
            self.groups.iter_mut().for_each(|group| group.decoded = None);
            self.cached_bytes = 0;
        }
    }

    /// Decodes a group. If the whole table may stay in memory, the groups after it in the same read
    /// are decoded, too; in a larger table they would only displace other groups.
    #[cold]
    fn decode_from(&mut self, first: usize) -> Result<(), IndexError> {
        let place = |group: Option<&Group>| {
            group.map_or(self.end, |group| self.start + u64::from(group.offset))
        };
        let offset = place(self.groups.get(first));
        let group_bytes = place(self.groups.get(first + 1)).saturating_sub(offset);
        let fits_in_cache = self.end - self.start <= CACHE_BYTES_MAX as u64;
        self.alone += 1;
        let reads_ahead = fits_in_cache && self.alone > ALONE_MAX;
        let ahead_bytes = if reads_ahead { READ_BYTES.min(self.end - offset) } else { 0 };
        let damage = || self.file.damage(offset, "a symbol does not decode");
        let len = usize::try_from(group_bytes.max(ahead_bytes)).map_err(|_| damage())?;
        let bytes = self.file.read(offset, len)?.ok_or_else(damage)?;
        let mut rest = bytes.as_slice();
        for number in first..self.groups.len() {
            let symbols = SAMPLING.min(self.count as usize - number * SAMPLING);
            let Some((decoded, after)) = Decoded::split(rest, symbols) else {
                // Only the group that was asked for has to be complete.
                return if number == first { Err(damage().into()) } else { Ok(()) };
            };
            rest = after;
            // A group is counted once, also when several reads cover it.
            if let Some(group) = self.groups.get_mut(number)
                && group.decoded.is_none()
            {
                self.cached_bytes += decoded.memory_bytes();
                group.decoded = Some(Box::new(decoded));
            }
        }
        Ok(())
    }
}

impl Decoded {
    /// Decodes `symbols` symbols at the front; `None` if they are cut short or not UTF-8.
    fn split(bytes: &[u8], symbols: usize) -> Option<(Decoded, &[u8])> {
        let mut text = String::new();
        let mut ends = Vec::with_capacity(symbols);
        let mut rest = bytes;
        for _ in 0..symbols {
            let symbol;
            (symbol, rest) = split_string(rest)?;
            text.push_str(std::str::from_utf8(symbol).ok()?);
            ends.push(u32::try_from(text.len()).ok()?);
        }
        Some((Decoded { text: text.into_boxed_str(), ends: ends.into_boxed_slice() }, rest))
    }

    #[inline]
    fn text(&self, place: usize) -> &str {
        let start = match place {
            0 => 0,
            _ => self.ends.get(place - 1).copied().unwrap_or_default(),
        };
        let end = self.ends.get(place).copied().unwrap_or_default();
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    fn memory_bytes(&self) -> usize {
        self.text.len() + 4 * self.ends.len() + GROUP_OVERHEAD_BYTES
    }
}
