//! Label names and samples of their values, with the offsets of both in the postings offset table.
//! Packed into few allocations, since an index may have as many names as series.

use super::SAMPLING;

/// Ascending label names, and the groups of table entries of each name.
#[derive(Default)]
pub(super) struct LabelSamples {
    /// All names and first values of groups, one after the other.
    strings: String,
    names: Vec<Name>,
    groups: Vec<Group>,
}

struct Name {
    text: Text,
    value_count: u32,
    /// Index of the name's first group; the groups end where those of the next name begin.
    first_group: u32,
}

/// Consecutive entries of a table: 32 if the table ascends, otherwise one.
pub(super) struct Group {
    first_value: Text,
    pub(super) offset: u32,
    pub(super) end: u32,
}

#[derive(Clone, Copy)]
struct Text {
    start: u32,
    end: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    strings: &'a str,
    pub(super) groups: &'a [Group],
    pub(super) count: u32,
}

/// The strings take more than four gigabytes.
#[derive(Debug)]
pub(super) struct TooManyStrings;

impl LabelSamples {
    pub(super) fn add_name(&mut self, name: &str) -> Result<(), TooManyStrings> {
        let text = self.add_text(name)?;
        let first_group = self.groups.len() as u32;
        self.names.push(Name { text, value_count: 0, first_group });
        Ok(())
    }

    pub(super) fn add_group(
        &mut self,
        first_value: &str,
        offset: u32,
        end: u32,
    ) -> Result<(), TooManyStrings> {
        let first_value = self.add_text(first_value)?;
        self.groups.push(Group { first_value, offset, end });
        Ok(())
    }

    pub(super) fn add_values(&mut self, count: u32) {
        if let Some(name) = self.names.last_mut() {
            name.value_count += count;
        }
    }

    pub(super) fn end_group(&mut self, end: u32) {
        if let Some(group) = self.groups.last_mut() {
            group.end = end;
        }
    }

    pub(super) fn shrink(mut self) -> LabelSamples {
        self.strings.shrink_to_fit();
        self.names.shrink_to_fit();
        self.groups.shrink_to_fit();
        self
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.strings.capacity()
            + self.names.capacity() * size_of::<Name>()
            + self.groups.capacity() * size_of::<Group>()
    }

    /// Returns the name that was added last, and the number of its values so far.
    pub(super) fn last(&self) -> Option<(&str, u32)> {
        let name = self.names.last()?;
        Some((name.text.of(&self.strings), name.value_count))
    }

    /// Returns the first value in the last group of the last name.
    pub(super) fn last_first_value(&self) -> Option<&str> {
        let Name { first_group, .. } = self.names.last()?;
        let group = self.groups.get(*first_group as usize..)?.last()?;
        Some(group.first_value.of(&self.strings))
    }

    pub(super) fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|name| name.text.of(&self.strings))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Values<'_>)> {
        (0..self.names.len()).filter_map(|at| Some((self.name(at)?, self.values_at(at)?)))
    }

    pub(super) fn values(&self, name: &str) -> Option<Values<'_>> {
        // Names ascend: `PostingsTable::read` refuses or sorts a table in which they do not.
        let at = self.names.binary_search_by(|n| n.text.of(&self.strings).cmp(name)).ok()?;
        self.values_at(at)
    }

    fn name(&self, at: usize) -> Option<&str> {
        Some(self.names.get(at)?.text.of(&self.strings))
    }

    fn values_at(&self, at: usize) -> Option<Values<'_>> {
        let name = self.names.get(at)?;
        let end = self.names.get(at + 1).map_or(self.groups.len(), |n| n.first_group as usize);
        let groups = self.groups.get(name.first_group as usize..end)?;
        Some(Values { strings: &self.strings, groups, count: name.value_count })
    }

    fn add_text(&mut self, text: &str) -> Result<Text, TooManyStrings> {
        let start = self.strings.len();
        // Offsets have 32 bits, which halves the memory of names and values.
        let end = u32::try_from(start + text.len()).map_err(|_| TooManyStrings)?;
        self.strings.push_str(text);
        Ok(Text { start: start as u32, end })
    }
}

impl<'a> Values<'a> {
    pub(super) fn first_value(&self, group: &Group) -> &'a str {
        group.first_value.of(self.strings)
    }

    /// Returns the number of groups whose first value is not above `value`.
    pub(super) fn groups_until(&self, value: &str) -> usize {
        self.groups.partition_point(|group| self.first_value(group) <= value)
    }

    /// Returns the index of a group from which on all values from `start` on are found.
    pub(super) fn group_of(&self, start: &str) -> usize {
        self.groups_until(start).saturating_sub(1)
    }

    /// Returns an upper bound of the number of values that begin with a prefix.
    pub(super) fn count_about(&self, prefix: &str) -> usize {
        // Each group that may have such a value counts as full, so the bound is never too small.
        let is_below = |group: &Group| {
            let first = self.first_value(group);
            first < prefix || first.starts_with(prefix)
        };
        let groups = self.groups.partition_point(is_below) - self.group_of(prefix);
        groups.saturating_mul(SAMPLING).min(self.count as usize)
    }
}

impl Text {
    fn of(self, strings: &str) -> &str {
        strings.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}
