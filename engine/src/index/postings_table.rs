//! The postings offset table: for each label, the offset of the list of its series.
//!
//! ```text
//! ┌─────────┬───────────┬─────────────────────────────────────────────────────────────┬───────┐
//! │ len u32 │ count u32 │ (2 │ name string │ value string │ offset uvarint) × count   │ CRC32 │
//! └─────────┴───────────┴─────────────────────────────────────────────────────────────┴───────┘
//!                          string: len uvarint, UTF-8
//! ```
//!
//! Entries ascend by name, then value (not always in version 1). The entry with an empty name and
//! value is for the list of all series. [`PostingsTable`] keeps every 32nd value of each name in
//! memory and reads the values between them from the file.

use super::label_samples::{Group, LabelSamples};
use super::named_file::{ENTRY_BYTES_MAX, Section};
use super::summary::split_u32;
use super::{IndexError, NamedFile, ReadAhead, SAMPLING};
use crate::codec::{put_uvarint, split_uvarint};
use std::ops::ControlFlow;
use tidepool_model::sort;

/// Number of bytes read ahead when the values of a name are walked, at most.
const WALK_BYTES_MAX: usize = 64 * 1024;

/// Longest table, in bytes, that is kept whole because its entries do not ascend.
const UNSORTED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Number of strings that name an entry: a label's name and value.
const ENTRY_KEYS: u8 = 2;

pub(super) fn put_entry(out: &mut Vec<u8>, name: &str, value: &str, offset: u64) {
    out.push(ENTRY_KEYS);
    put_string(out, name.as_bytes());
    put_string(out, value.as_bytes());
    put_uvarint(out, offset);
}

pub(super) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_uvarint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Splits a string with its length off the front.
pub(super) fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = split_uvarint(bytes)?;
    rest.split_at_checked(usize::try_from(len).ok()?)
}

pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) postings_offset: u64,
}

pub(crate) fn split_entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (keys, rest) = bytes.split_first()?;
    if *keys != ENTRY_KEYS {
        return None;
    }
    let (name, rest) = split_string(rest)?;
    let (value, rest) = split_string(rest)?;
    let (postings_offset, rest) = split_uvarint(rest)?;
    Some((Entry { name, value, postings_offset }, rest))
}

pub(super) struct PostingsTable {
    file: NamedFile,
    /// Start of the section's content, to which the offsets of groups are relative.
    start: u64,
    labels: LabelSamples,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryOrder {
    /// Ascending, as version 2 demands.
    Ascending,
    /// Perhaps unsorted, as in some indexes of version 1.
    Any,
}

impl PostingsTable {
    /// Reads the table once from front to back.
    pub(super) fn read(
        file: NamedFile,
        offset: u64,
        order: EntryOrder,
    ) -> Result<PostingsTable, IndexError> {
        let section = file.section(offset)?;
        let mut labels = LabelSamples::default();
        let mut unsorted_at = None;
        let mut value_before = Vec::new();
        file.scan_section(section, |offset, bytes| {
            let (entry, rest) = split_entry(bytes)?;
            let end = offset + (bytes.len() - rest.len()) as u32;
            let before = labels.last();
            let is_new_name = before.is_none_or(|(name, _)| name.as_bytes() != entry.name);
            if is_new_name {
                if before.is_some_and(|(name, _)| name.as_bytes() >= entry.name) {
                    // An error only in version 2: tables of version 1 are sorted below.
                    unsorted_at.get_or_insert(offset);
                }
                labels.add_name(std::str::from_utf8(entry.name).ok()?).ok()?;
            }
            let (_, count) = labels.last()?;
            let begins_group = (count as usize).is_multiple_of(SAMPLING);
            if order == EntryOrder::Any {
                // Every entry is checked, not just the first of each group.
                if !is_new_name && value_before.as_slice() >= entry.value {
                    unsorted_at.get_or_insert(offset);
                }
                value_before.clear();
                value_before.extend_from_slice(entry.value);
            } else if begins_group
                && labels.last_first_value().is_some_and(|before| before.as_bytes() >= entry.value)
            {
                unsorted_at.get_or_insert(offset);
            }
            if begins_group {
                let first_value = std::str::from_utf8(entry.value).ok()?;
                labels.add_group(first_value, offset, end).ok()?;
            }
            labels.add_values(1);
            labels.end_group(end);
            Some((end - offset) as usize)
        })?;
        match (unsorted_at, order) {
            (None, _) => {}
            (Some(_), EntryOrder::Any) => labels = sorted(&file, section)?,
            (Some(offset), EntryOrder::Ascending) => {
                let offset = section.start + u64::from(offset);
                let what = "the labels in the postings offset table do not ascend";
                return Err(file.damage(offset, what).into());
            }
        }
        Ok(PostingsTable { file, start: section.start, labels: labels.shrink() })
    }

    /// Appends the groups of a table that ascends, for [`PostingsTable::split_summary`].
    pub(super) fn put_summary(&self, summary: &mut Vec<u8>) {
        put_uvarint(summary, self.start);
        put_uvarint(summary, self.labels.names().len() as u64);
        for (name, values) in self.labels.iter() {
            put_string(summary, name.as_bytes());
            put_uvarint(summary, u64::from(values.count));
            for group in values.groups {
                put_string(summary, values.first_value(group).as_bytes());
                put_uvarint(summary, u64::from(group.offset));
                put_uvarint(summary, u64::from(group.end));
            }
        }
    }

    /// Reads a table from the front of a summary, and returns it with the rest.
    pub(super) fn split_summary(file: NamedFile, summary: &[u8]) -> Option<(PostingsTable, &[u8])> {
        let (start, summary) = split_uvarint(summary)?;
        let (name_count, mut summary) = split_uvarint(summary)?;
        let mut labels = LabelSamples::default();
        for _ in 0..name_count {
            let (name, rest) = split_string(summary)?;
            let (count, mut rest) = split_u32(rest)?;
            labels.add_name(std::str::from_utf8(name).ok()?).ok()?;
            for _ in 0..(count as usize).div_ceil(SAMPLING) {
                let (first_value, after) = split_string(rest)?;
                let (offset, after) = split_u32(after)?;
                let (end, after) = split_u32(after)?;
                labels.add_group(std::str::from_utf8(first_value).ok()?, offset, end).ok()?;
                rest = after;
            }
            labels.add_values(count);
            summary = rest;
        }
        Some((PostingsTable { file, start, labels: labels.shrink() }, summary))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.labels.memory_bytes()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.labels.names().filter(|name| !name.is_empty())
    }

    pub(super) fn value_count(&self, name: &str) -> usize {
        self.labels.values(name).map_or(0, |values| values.count as usize)
    }

    /// Returns an upper bound of the number of values of a name that begin with a prefix.
    pub(super) fn value_count_about(&self, name: &str, prefix: &str) -> usize {
        self.labels.values(name).map_or(0, |values| values.count_about(prefix))
    }

    /// Calls `found` with the list offset of each `wanted` value (ascending) that the name has.
    pub(super) fn find(
        &self,
        name: &str,
        wanted: &[impl AsRef<str>],
        mut found: impl FnMut(u64),
    ) -> Result<(), IndexError> {
        let Some(values) = self.labels.values(name) else { return Ok(()) };
        let mut window = ReadAhead::new(self.file.clone(), WALK_BYTES_MAX);
        let mut wanted = wanted.iter().map(AsRef::as_ref).peekable();
        while let Some(value) = wanted.peek() {
            let after = values.groups_until(value);
            let Some(group) = after.checked_sub(1).and_then(|at| values.groups.get(at)) else {
                // The value sorts before the name's first one.
                wanted.next();
                continue;
            };
            let walk = self.walk_group(&mut window, group, |value, offset| {
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
            // Wanted values before the next group do not exist.
            match values.groups.get(after) {
                Some(next) => {
                    while wanted.next_if(|wanted| *wanted < values.first_value(next)).is_some() {}
                }
                None => break,
            }
        }
        Ok(())
    }

    /// Calls `visit` with each value of a name from `start` on, ascending, and its list's offset.
    pub(super) fn walk(
        &self,
        name: &str,
        start: &str,
        mut visit: impl FnMut(&str, u64) -> Result<ControlFlow<()>, IndexError>,
    ) -> Result<(), IndexError> {
        let Some(values) = self.labels.values(name) else { return Ok(()) };
        let mut window = ReadAhead::new(self.file.clone(), WALK_BYTES_MAX);
        for group in values.groups.iter().skip(values.group_of(start)) {
            let walk =
                self.walk_group(&mut window, group, |value, offset| match value < start {
                    true => Ok(ControlFlow::Continue(())),
                    false => visit(value, offset),
                })?;
            if walk.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn walk_group(
        &self,
        window: &mut ReadAhead,
        group: &Group,
        mut visit: impl FnMut(&str, u64) -> Result<ControlFlow<()>, IndexError>,
    ) -> Result<ControlFlow<()>, IndexError> {
        let (mut offset, end) =
            (self.start + u64::from(group.offset), self.start + u64::from(group.end));
        // At least one byte: the window returns all that it has; only a cut entry needs more.
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

/// Reads a table that does not ascend, and keeps all of its entries in memory.
fn sorted(file: &NamedFile, section: Section) -> Result<LabelSamples, IndexError> {
    let too_many = || {
        let what =
            "the labels in the postings offset table do not ascend, and are too many to sort";
        file.damage(section.start, what)
    };
    if section.end - section.start > UNSORTED_BYTES_MAX {
        return Err(too_many().into());
    }
    let mut entries: Vec<(Box<str>, Box<str>, u32, u32)> = Vec::new();
    file.scan_section(section, |offset, bytes| {
        let (entry, rest) = split_entry(bytes)?;
        let len = bytes.len() - rest.len();
        let text = |bytes| Some(Box::from(std::str::from_utf8(bytes).ok()?));
        entries.push((text(entry.name)?, text(entry.value)?, offset, offset + len as u32));
        Some(len)
    })?;
    sort::sort(&mut entries);
    let mut labels = LabelSamples::default();
    for (name, value, offset, end) in &entries {
        if labels.last().is_none_or(|(before, _)| before != &**name) {
            labels.add_name(name).map_err(|_| too_many())?;
        // Of two equal labels, only one list could ever be found.
        } else if labels.last_first_value() == Some(&**value) {
            let offset = section.start + u64::from(*offset);
            return Err(file.damage(offset, "the postings offset table has a label twice").into());
        }
        // One entry per group, since sorted neighbours are not adjacent in the file.
        labels.add_group(value, *offset, *end).map_err(|_| too_many())?;
        labels.add_values(1);
    }
    Ok(labels)
}
