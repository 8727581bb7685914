//! Type, help and unit of metric families, as senders declare them.
//!
//! Remote write 1.0 has metadata of families, 2.0 of series; the family of a series is its metric
//! name without the suffixes of histograms and summaries. In the log, metadata belongs to a series,
//! as in Prometheus' records. Metadata of a family without series is kept in memory only.

mod state;

use super::Slot;
use super::postings::Postings;
use super::symbols::Symbols;
use crate::model::LABEL_NAME;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Largest number of metric families with metadata; further ones are ignored.
pub const METADATA_FAMILIES_MAX: usize = 100_000;

/// Longest help or unit text in bytes; the rest is truncated. Longer family names are ignored.
const TEXT_BYTES_MAX: usize = 1024;

/// Numbers of types in `prometheus.MetricMetadata.MetricType`, used also by Prometheus' log.
const HISTOGRAM: u32 = 3;
const GAUGE_HISTOGRAM: u32 = 4;
const SUMMARY: u32 = 5;
const STATE_SET: u32 = 7;

/// Suffixes that the series of a family have after its name.
const SUFFIXES: [&str; 9] =
    ["", "_total", "_bucket", "_count", "_sum", "_info", "_gcount", "_gsum", "_created"];

/// Length in bytes of the longest suffix in [`SUFFIXES`].
const SUFFIX_BYTES_MAX: usize = 8;

/// Longest UTF-8 character in bytes.
const CHAR_BYTES_MAX: usize = 4;

/// Metadata of a metric family, as its sender declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Number of the type as in `prometheus.MetricMetadata.MetricType`; 0 is unknown.
    pub metric_type: u32,
    /// Help text of the family; may be empty.
    pub help: Box<str>,
    /// Unit of the family; may be empty.
    pub unit: Box<str>,
}

struct Entry {
    metadata: Metadata,
    is_logged: Cell<bool>,
}

/// Metadata of metric families by name.
#[derive(Default)]
pub struct MetadataTable {
    families: BTreeMap<Box<str>, Entry>,
    /// Families to log with the next batch.
    unlogged: Vec<Box<str>>,
}

impl MetadataTable {
    /// Stores the metadata of a family, of which the latest is kept. Invalid UTF-8 is replaced.
    /// Empty metadata, which some 2.0 senders send with every series, is ignored, as are families
    /// with a name that is too long.
    pub fn set(&mut self, family: &[u8], metric_type: u32, help: &[u8], unit: &[u8]) {
        if family.len() > TEXT_BYTES_MAX {
            return;
        }
        let family = String::from_utf8_lossy(family);
        let metadata = Metadata::new(metric_type, help, unit);
        if metadata == Metadata::default() {
            return;
        }
        let must_log = self.take(&family, metadata);
        // The list could outgrow the table only while nothing can be logged.
        if must_log && self.unlogged.len() < METADATA_FAMILIES_MAX {
            self.unlogged.push(family.into());
        }
    }

    /// Stores the metadata that was sent for a series, under the family of its metric name.
    pub fn set_of_series(&mut self, name: &[u8], metric_type: u32, help: &[u8], unit: &[u8]) {
        // Even without its suffix such a name is too long.
        if name.len() > TEXT_BYTES_MAX + SUFFIX_BYTES_MAX {
            return;
        }
        let name = String::from_utf8_lossy(name);
        self.set(family_of(&name, metric_type).as_bytes(), metric_type, help, unit);
    }

    /// Stores metadata; returns whether the log must get it.
    fn take(&mut self, family: &str, metadata: Metadata) -> bool {
        if let Some(known) = self.families.get_mut(family) {
            if known.metadata == metadata {
                // Unchanged metadata is not logged yet if the family had no series before.
                return !known.is_logged.get();
            }
            *known = Entry { metadata, is_logged: Cell::new(false) };
            return true;
        }
        let has_room = self.families.len() < METADATA_FAMILIES_MAX;
        if has_room {
            self.families.insert(family.into(), Entry { metadata, is_logged: Cell::new(false) });
        }
        has_room
    }

    /// Returns the families by name, from `first` on.
    pub fn from(&self, first: &str) -> impl Iterator<Item = (&str, &Metadata)> {
        let families = self.families.range::<str, _>((Bound::Included(first), Bound::Unbounded));
        families.map(|(family, entry)| (&**family, &entry.metadata))
    }
}

impl Metadata {
    fn new(metric_type: u32, help: &[u8], unit: &[u8]) -> Metadata {
        let metric_type = if metric_type <= STATE_SET { metric_type } else { 0 };
        Metadata { metric_type, help: text(help), unit: text(unit) }
    }
}

/// Index in which the series of a family are looked up.
#[derive(Clone, Copy)]
pub(super) struct Families<'h> {
    pub postings: &'h Postings,
    pub symbols: &'h Symbols,
}

impl Families<'_> {
    fn series_of(&self, family: &str) -> Option<Slot> {
        let mut name = String::with_capacity(family.len() + 8);
        SUFFIXES.iter().find_map(|suffix| {
            name.clear();
            name.push_str(family);
            name.push_str(suffix);
            self.postings.first_with(self.symbols, LABEL_NAME, &name)
        })
    }
}

impl MetadataTable {
    /// Returns the metadata that is not logged yet, each with a series of its family.
    pub(super) fn unlogged(&self, living: Families<'_>) -> Vec<(Slot, &str, &Metadata)> {
        self.of_living(living, self.unlogged.iter().map(|family| &**family))
    }

    /// Notes that the result of [`MetadataTable::unlogged`] is logged, except for families without
    /// a series; these are returned again after a sender has repeated their metadata.
    pub(super) fn note_logged(&mut self, living: Families<'_>) {
        for family in std::mem::take(&mut self.unlogged) {
            let has_series = living.series_of(&family).is_some();
            if let Some(entry) = self.families.get(&family) {
                entry.is_logged.set(has_series);
            }
        }
    }

    /// Returns metadata of all families with a series, for a checkpoint; other metadata is not
    /// logged.
    pub(super) fn checkpoint(&self, living: Families<'_>) -> Vec<(Slot, &str, &Metadata)> {
        let of_living = self.of_living(living, self.families.keys().map(|family| &**family));
        // A checkpoint replaces the log, so other families are not logged any more.
        self.families.values().for_each(|entry| entry.is_logged.set(false));
        for (_, family, _) in &of_living {
            if let Some(entry) = self.families.get(*family) {
                entry.is_logged.set(true);
            }
        }
        of_living
    }

    fn of_living<'a>(
        &'a self,
        living: Families<'_>,
        families: impl Iterator<Item = &'a str>,
    ) -> Vec<(Slot, &'a str, &'a Metadata)> {
        let with_series = families.filter_map(|family| {
            let slot = living.series_of(family)?;
            let (family, entry) = self.families.get_key_value(family)?;
            Some((slot, &**family, &entry.metadata))
        });
        with_series.collect()
    }

    /// Restores metadata from the log. If `family` is empty, as in upstream's records, the family
    /// is derived from the metric name.
    pub(super) fn replay<'a>(
        &mut self,
        family: &str,
        metadata: Metadata,
        metric_name: impl FnOnce() -> &'a str,
    ) {
        let Metadata { metric_type, help, unit } = metadata;
        let metadata = Metadata::new(metric_type, help.as_bytes(), unit.as_bytes());
        let family = match family {
            "" => family_of(metric_name(), metric_type),
            family => family,
        };
        let family = family.to_owned();
        self.take(&family, metadata);
        if let Some(entry) = self.families.get(&*family) {
            entry.is_logged.set(true);
        }
    }
}

/// Returns the family of a series with this metric name.
fn family_of(name: &str, metric_type: u32) -> &str {
    let suffixes: &[&str] = match metric_type {
        HISTOGRAM => &["_bucket", "_count", "_sum"],
        GAUGE_HISTOGRAM => &["_bucket", "_gcount", "_gsum"],
        SUMMARY => &["_count", "_sum"],
        _ => &[],
    };
    let family = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
    family.filter(|family| !family.is_empty()).unwrap_or(name)
}

fn text(bytes: &[u8]) -> Box<str> {
    // Bytes beyond the limit matter only if they complete the last character.
    let start = bytes.get(..TEXT_BYTES_MAX + CHAR_BYTES_MAX).unwrap_or(bytes);
    let mut text = String::from_utf8_lossy(start).into_owned();
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A help text of a megabyte that 2,000 series referred to was once converted 2,000 times.
    #[test]
    fn the_start_of_a_long_text_is_that_of_the_whole_mended_text() {
        for unit in
            [&b"x"[..], "ß".as_bytes(), "€".as_bytes(), "𝄞".as_bytes(), b"\xf0\x9f", b"\xff"]
        {
            for shift in 0..4 {
                let bytes = [&b"abc"[..shift], &unit.repeat(2 * TEXT_BYTES_MAX)].concat();
                let whole = String::from_utf8_lossy(&bytes);
                let start = &whole[..whole.floor_char_boundary(TEXT_BYTES_MAX)];
                assert_eq!(&*text(&bytes), start, "{unit:?} {shift}");
            }
        }
    }
}
