//! The postings offset table: where the list of each label's series begins.
//!
//! ```text
//! ┌─────────┬───────────┬─────────────────────────────────────────────────────────────┬───────┐
//! │ len u32 │ count u32 │ (2 │ name string │ value string │ offset uvarint) × count   │ CRC32 │
//! └─────────┴───────────┴─────────────────────────────────────────────────────────────┴───────┘
//!                          string: len uvarint, UTF-8
//! ```
//!
//! Entries ascend by name, then value (not always in version 1). The one with an empty name and
//! value is that of all series.
//! [`PostingsTable`] keeps every 32nd value of each name in memory and reads what is between.

use super::named_file::{ENTRY_BYTES_MAX, Section};
use super::notes::split_u32;
use super::{IndexError, NamedFile, ReadAhead, SAMPLING};
use crate::codec::{put_uvarint, split_uvarint};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// How much is read ahead when the values of a name are walked.
const WALK_BYTES_MAX: usize = 64 * 1024;

/// Longest table that is kept whole because its entries do not ascend.
const UNSORTED_BYTES_MAX: u64 = 64 * 1024 * 1024;

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

/// One entry.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) postings_offset: u64,
}

/// Takes an entry off the front.
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

/// The table of an index, sampled.
pub(super) struct PostingsTable {
    file: NamedFile,
    /// Where the section's content begins; the groups' offsets count from there.
    start: u64,
    names: BTreeMap<Box<str>, Values>,
}

/// The values of one name.
#[derive(Default)]
struct Values {
    count: u32,
    groups: Vec<Group>,
}

/// Entries that follow one another: 32 in a table that ascends, one in a table that does not.
struct Group {
    first_value: Box<str>,
    offset: u32,
    end: u32,
}

/// In which order a table's entries are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryOrder {
    /// Ascending, as version 2 demands.
    Ascending,
    /// Perhaps in no order: some of version 1 are not sorted.
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
        let mut names: BTreeMap<Box<str>, Values> = BTreeMap::new();
        let mut current: Option<(Box<str>, Values)> = None;
        let mut unsorted_at = None;
        let mut value_before = Vec::new();
        file.scan_section(section, |offset, bytes| {
            let (entry, rest) = split_entry(bytes)?;
            let end = offset + (bytes.len() - rest.len()) as u32;
            let is_new_name =
                current.as_ref().is_none_or(|(name, _)| name.as_bytes() != entry.name);
            if is_new_name {
                let name = std::str::from_utf8(entry.name).ok()?.into();
                let before = current.replace((name, Values::default()));
                let ascends = before.as_ref().is_none_or(|(name, _)| name.as_bytes() < entry.name);
                if !ascends {
                    unsorted_at.get_or_insert(offset);
                }
                names.extend(before);
            }
            let (_, values) = current.as_mut()?;
            let begins_group = (values.count as usize).is_multiple_of(SAMPLING);
            if order == EntryOrder::Any {
                // Every entry is looked at, not just the first of each group.
                if !is_new_name && value_before.as_slice() >= entry.value {
                    unsorted_at.get_or_insert(offset);
                }
                value_before.clear();
                value_before.extend_from_slice(entry.value);
            } else if begins_group
                && let Some(before) = values.groups.last()
                && before.first_value.as_bytes() >= entry.value
            {
                unsorted_at.get_or_insert(offset);
            }
            if begins_group {
                let first_value = std::str::from_utf8(entry.value).ok()?.into();
                values.groups.push(Group { first_value, offset, end });
            }
            values.count += 1;
            values.groups.last_mut()?.end = end;
            Some((end - offset) as usize)
        })?;
        names.extend(current);
        match (unsorted_at, order) {
            (None, _) => {}
            (Some(_), EntryOrder::Any) => names = sorted(&file, section)?,
            (Some(offset), EntryOrder::Ascending) => {
                let offset = section.start + u64::from(offset);
                let what = "the labels in the postings offset table do not ascend";
                return Err(file.damage(offset, what).into());
            }
        }
        Ok(PostingsTable { file, start: section.start, names })
    }

    /// Appends what [`PostingsTable::read`] found out of a table that ascends.
    pub(super) fn put_notes(&self, notes: &mut Vec<u8>) {
        put_uvarint(notes, self.start);
        put_uvarint(notes, self.names.len() as u64);
        for (name, values) in &self.names {
            put_string(notes, name.as_bytes());
            put_uvarint(notes, u64::from(values.count));
            for Group { first_value, offset, end } in &values.groups {
                put_string(notes, first_value.as_bytes());
                put_uvarint(notes, u64::from(*offset));
                put_uvarint(notes, u64::from(*end));
            }
        }
    }

    /// Takes what [`PostingsTable::put_notes`] appended off the front.
    pub(super) fn split_notes(file: NamedFile, notes: &[u8]) -> Option<(PostingsTable, &[u8])> {
        let (start, notes) = split_uvarint(notes)?;
        let (name_count, mut notes) = split_uvarint(notes)?;
        let text = |bytes: &[u8]| Some(Box::from(std::str::from_utf8(bytes).ok()?));
        let mut names: BTreeMap<Box<str>, Values> = BTreeMap::new();
        for _ in 0..name_count {
            let (name, rest) = split_string(notes)?;
            let (count, mut rest) = split_u32(rest)?;
            let group_count = (count as usize).div_ceil(SAMPLING);
            let mut groups = Vec::with_capacity(group_count.min(rest.len()));
            for _ in 0..group_count {
                let (first_value, after) = split_string(rest)?;
                let (offset, after) = split_u32(after)?;
                let (end, after) = split_u32(after)?;
                groups.push(Group { first_value: text(first_value)?, offset, end });
                rest = after;
            }
            names.insert(text(name)?, Values { count, groups });
            notes = rest;
        }
        Some((PostingsTable { file, start, names }, notes))
    }

    /// All label names, ascending.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(|name| &**name).filter(|name| !name.is_empty())
    }

    /// How many values a name has.
    pub(super) fn value_count(&self, name: &str) -> usize {
        self.names.get(name).map_or(0, |values| values.count as usize)
    }

    /// About how many values a name has that begin with a prefix: never less than there are.
    pub(super) fn value_count_about(&self, name: &str, prefix: &str) -> usize {
        let Some(values) = self.names.get(name) else { return 0 };
        let is_below =
            |group: &Group| &*group.first_value < prefix || group.first_value.starts_with(prefix);
        let groups = values.groups.partition_point(is_below) - values.group_of(prefix);
        groups.saturating_mul(SAMPLING).min(values.count as usize)
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
            let after = values.groups.partition_point(|group| &*group.first_value <= *value);
            let Some(group) = after.checked_sub(1).and_then(|at| values.groups.get(at)) else {
                // It sorts before the name's first value.
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
            // What is still wanted before the next group does not exist.
            match values.groups.get(after) {
                Some(next) => {
                    while wanted.next_if(|wanted| *wanted < &*next.first_value).is_some() {}
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
        let Some(values) = self.names.get(name) else { return Ok(()) };
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

/// Reads a table that does not ascend, keeping each of its entries.
fn sorted(file: &NamedFile, section: Section) -> Result<BTreeMap<Box<str>, Values>, IndexError> {
    if section.end - section.start > UNSORTED_BYTES_MAX {
        let what =
            "the labels in the postings offset table do not ascend, and are too many to sort";
        return Err(file.damage(section.start, what).into());
    }
    let mut names: BTreeMap<Box<str>, Values> = BTreeMap::new();
    file.scan_section(section, |offset, bytes| {
        let (entry, rest) = split_entry(bytes)?;
        let len = bytes.len() - rest.len();
        let values = names.entry(std::str::from_utf8(entry.name).ok()?.into()).or_default();
        let first_value = std::str::from_utf8(entry.value).ok()?.into();
        values.groups.push(Group { first_value, offset, end: offset + len as u32 });
        values.count += 1;
        Some(len)
    })?;
    for values in names.values_mut() {
        values.groups.sort_by(|a, b| a.first_value.cmp(&b.first_value));
        let mut neighbours = values.groups.windows(2);
        if let Some(twice) = neighbours.find(|two| two[0].first_value == two[1].first_value) {
            let offset = section.start + u64::from(twice[1].offset);
            return Err(file.damage(offset, "the postings offset table has a label twice").into());
        }
    }
    Ok(names)
}

impl Values {
    /// The group in which the first value from `start` on is, or ends before it.
    fn group_of(&self, start: &str) -> usize {
        self.groups.partition_point(|group| &*group.first_value <= start).saturating_sub(1)
    }
}
