//! The postings offset table: where the list of each label's series begins.
//!
//! ```text
//! ┌─────────┬───────────┬─────────────────────────────────────────────────────────────┬───────┐
//! │ len u32 │ count u32 │ (2 │ name string │ value string │ offset uvarint) × count   │ CRC32 │
//! └─────────┴───────────┴─────────────────────────────────────────────────────────────┴───────┘
//!                          string: len uvarint, UTF-8
//! ```
//!
//! Entries ascend by name, then value. The first has an empty name and value: all series.
//! [`PostingsTable`] keeps every 32nd value of each name in memory and reads what is between.

use super::named_file::ENTRY_BYTES_MAX;
use super::{IndexError, NamedFile, ReadAhead, SAMPLING};
use crate::codec::{put_uvarint, split_uvarint};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// How much is read ahead when the values of a name are walked.
const WALK_BYTES_MAX: usize = 64 * 1024;

/// Fields of an entry that name it: a label's name and value.
const ENTRY_KEYS: u8 = 2;

/// Appends one entry.
pub(super) fn put_entry(out: &mut Vec<u8>, name: &str, value: &str, offset: u64) {
    out.push(ENTRY_KEYS);
    put_string(out, name.as_bytes());
    put_string(out, value.as_bytes());
    put_uvarint(out, offset);
}

/// Appends a string with its length.
pub(super) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_uvarint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Takes a string with its length off the front.
pub(super) fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = split_uvarint(bytes)?;
    rest.split_at_checked(usize::try_from(len).ok()?)
}

struct Entry<'a> {
    name: &'a [u8],
    value: &'a [u8],
    postings_offset: u64,
}

fn split_entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (keys, rest) = bytes.split_first()?;
    if *keys != ENTRY_KEYS {
        return None;
    }
    let (name, rest) = split_string(rest)?;
    let (value, rest) = split_string(rest)?;
    let (postings_offset, rest) = split_uvarint(rest)?;
    Some((Entry { name, value, postings_offset }, rest))
}

/// The table of an index, sampled.
pub(super) struct PostingsTable {
    file: NamedFile,
    /// Where the section's content begins; the samples' offsets count from there.
    start: u64,
    names: BTreeMap<Box<str>, Values>,
}

/// The values of one name.
struct Values {
    count: u32,
    /// Every 32nd value, the first one included.
    samples: Vec<Sampled>,
    /// Where the last value's entry ends.
    end: u32,
}

struct Sampled {
    value: Box<str>,
    offset: u32,
}

impl PostingsTable {
    /// Reads the table once from front to back.
    pub(super) fn read(file: NamedFile, offset: u64) -> Result<PostingsTable, IndexError> {
        let section = file.section(offset)?;
        let mut names: BTreeMap<Box<str>, Values> = BTreeMap::new();
        let mut current: Option<(Box<str>, Values)> = None;
        let mut unsorted_at = None;
        file.scan_section(section, |offset, bytes| {
            let (entry, rest) = split_entry(bytes)?;
            let len = bytes.len() - rest.len();
            if current.as_ref().is_none_or(|(name, _)| name.as_bytes() != entry.name) {
                let name = std::str::from_utf8(entry.name).ok()?.into();
                let before = current.replace((name, Values::new()));
                let ascends = before.as_ref().is_none_or(|(name, _)| name.as_bytes() < entry.name);
                if !ascends {
                    unsorted_at.get_or_insert(offset);
                }
                names.extend(before);
            }
            let (_, values) = current.as_mut()?;
            if (values.count as usize).is_multiple_of(SAMPLING) {
                let value: Box<str> = std::str::from_utf8(entry.value).ok()?.into();
                if values.samples.last().is_some_and(|before| before.value >= value) {
                    unsorted_at.get_or_insert(offset);
                }
                values.samples.push(Sampled { value, offset });
            }
            values.count += 1;
            values.end = offset + len as u32;
            Some(len)
        })?;
        names.extend(current);
        if let Some(offset) = unsorted_at {
            let offset = section.start + u64::from(offset);
            return Err(file
                .damage(offset, "the labels in the postings offset table do not ascend")
                .into());
        }
        Ok(PostingsTable { file, start: section.start, names })
    }

    /// All label names, ascending.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(|name| &**name).filter(|name| !name.is_empty())
    }

    /// How many values a name has.
    pub(super) fn value_count(&self, name: &str) -> usize {
        self.names.get(name).map_or(0, |values| values.count as usize)
    }

    /// Calls `found` for those of `wanted` (ascending) that the name has, with their lists'
    /// offsets.
    pub(super) fn find(
        &self,
        name: &str,
        wanted: &[impl AsRef<str>],
        mut found: impl FnMut(u64),
    ) -> Result<(), IndexError> {
        let Some(values) = self.names.get(name) else { return Ok(()) };
        let mut window = ReadAhead::new(self.file.clone(), WALK_BYTES_MAX);
        let mut wanted = wanted.iter().map(AsRef::as_ref).peekable();
        while let Some(value) = wanted.peek() {
            let after = values.samples.partition_point(|sample| &*sample.value <= *value);
            let Some(sample) = after.checked_sub(1).and_then(|at| values.samples.get(at)) else {
                // It sorts before the name's first value.
                wanted.next();
                continue;
            };
            let end = values.samples.get(after).map_or(values.end, |next| next.offset);
            let walk = self.walk_entries(&mut window, sample.offset..end, |value, offset| {
                while wanted.next_if(|wanted| *wanted < value).is_some() {}
                if wanted.next_if(|wanted| *wanted == value).is_some() {
                    found(offset);
                }
                match wanted.peek() {
                    Some(_) => Ok(ControlFlow::Continue(())),
                    None => Ok(ControlFlow::Break(())),
                }
            })?;
            if walk.is_break() {
                break;
            }
            // What is still wanted before the next sample does not exist.
            match values.samples.get(after) {
                Some(next) => while wanted.next_if(|wanted| *wanted < &*next.value).is_some() {},
                None => break,
            }
        }
        Ok(())
    }

    /// Calls `visit` with each value of a name, ascending, and its list's offset.
    pub(super) fn walk(
        &self,
        name: &str,
        visit: impl FnMut(&str, u64) -> Result<ControlFlow<()>, IndexError>,
    ) -> Result<(), IndexError> {
        let Some(values) = self.names.get(name) else { return Ok(()) };
        let Some(first) = values.samples.first() else { return Ok(()) };
        let mut window = ReadAhead::new(self.file.clone(), WALK_BYTES_MAX);
        self.walk_entries(&mut window, first.offset..values.end, visit).map(|_| ())
    }

    fn walk_entries(
        &self,
        window: &mut ReadAhead,
        range: std::ops::Range<u32>,
        mut visit: impl FnMut(&str, u64) -> Result<ControlFlow<()>, IndexError>,
    ) -> Result<ControlFlow<()>, IndexError> {
        let (mut offset, end) =
            (self.start + u64::from(range.start), self.start + u64::from(range.end));
        let mut wanted = 1;
        while offset < end {
            let mut bytes = window.at_least(offset, wanted)?;
            let before = bytes.len();
            while offset < end
                && let Some((entry, rest)) = split_entry(bytes)
            {
                let Ok(value) = std::str::from_utf8(entry.value) else { break };
                if visit(value, entry.postings_offset)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                offset += (bytes.len() - rest.len()) as u64;
                bytes = rest;
            }
            let read_something = bytes.len() < before;
            let could_read_more =
                (before as u64) < end.saturating_sub(offset) && before < ENTRY_BYTES_MAX;
            wanted = match (read_something, could_read_more) {
                (true, _) => 1,
                (false, true) => before.max(wanted) * 2,
                (false, false) => {
                    let what = "an entry of the postings offset table does not decode";
                    return Err(self.file.damage(offset, what).into());
                }
            };
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Values {
    fn new() -> Values {
        Values { count: 0, samples: Vec::new(), end: 0 }
    }
}
