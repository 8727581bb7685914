//! The series of the logs as they are sent: external labels are added and rules applied once per
//! series, and every string is stored once.

use super::ForwardError;
use crate::codec::{hash_bytes, hash_word};
use crate::model::{Labels, RefTable};
use crate::relabel::{Rule, relabel};
use hashbrown::HashTable;
use std::collections::BTreeMap;

/// Seed of the hashes of labels. Saved gaps contain these hashes, so the value must never change.
const HASH_SEED: u64 = 0x7469_6465_706f_6f6c;

/// Hash of a series' stored labels, which selects its shard and identifies it in gaps. Series whose
/// hashes collide share an entry in a gap, which can cause duplicates but no loss.
pub fn labels_hash(labels: &Labels) -> u64 {
    hash_bytes(HASH_SEED, labels.packed())
}

/// Returns the index, below `count`, of the shard of a series. Saved positions are per shard, so a
/// change of this function requires a new version of the position file.
///
/// The last bytes of the labels do not reach the low bits of the hash, so the hash is mixed once
/// more and its high bits choose.
pub fn shard_of(hash: u64, count: usize) -> usize {
    let mixed = hash_word(0, hash) >> 32;
    ((mixed * count as u64) >> 32) as usize
}

/// The metadata of a metric family; `help` and `unit` are symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Type of the metric, as in metadata records of the log.
    pub kind: u8,
    pub help: u32,
    pub unit: u32,
}

/// A series as it is sent.
#[derive(Debug)]
pub struct Series {
    /// Hash of the labels as they are stored.
    pub hash: u64,
    /// Symbols of names and values, alternating; empty if the rules drop the series.
    pub labels: Box<[u32]>,
    pub metadata: Option<Metadata>,
    /// Number of the newest queued row among all rows of its shard.
    pub newest_ordinal: u64,
    /// Number of queued rows of the series.
    pub queued: u32,
    /// Last segment with a record of the series. `None` for a series of the store, which is dropped
    /// with its last queued row.
    segment: Option<u32>,
}

#[derive(Default)]
pub struct SeriesTable {
    refs: RefTable,
    ref_list: Vec<(u64, u32)>,
    series: Vec<Option<Series>>,
    free: Vec<u32>,
    pub symbols: Symbols,
    external: Labels,
    rules: Vec<Rule>,
}

/// Interned strings; a symbol is an index of `strings`.
#[derive(Default)]
pub struct Symbols {
    strings: Vec<Box<str>>,
    places: HashTable<u32>,
}

impl Symbols {
    pub fn intern(&mut self, text: &str) -> u32 {
        if let Some(at) = self.find(text) {
            return at;
        }
        let strings = &self.strings;
        let text_of = |at: u32| strings.get(at as usize).map_or("", |text| text);
        let hash = hash_bytes(HASH_SEED, text.as_bytes());
        let at = self.strings.len() as u32;
        self.places.insert_unique(hash, at, |at| hash_bytes(HASH_SEED, text_of(*at).as_bytes()));
        self.strings.push(text.into());
        at
    }

    pub fn find(&self, text: &str) -> Option<u32> {
        let hash = hash_bytes(HASH_SEED, text.as_bytes());
        self.places.find(hash, |at| self.text(*at) == text).copied()
    }

    pub fn text(&self, symbol: u32) -> &str {
        self.strings.get(symbol as usize).map_or("", |text| text)
    }

    pub fn len(&self) -> usize {
        self.strings.len()
    }
}

impl SeriesTable {
    pub fn new(external: Labels, rules: Vec<Rule>) -> SeriesTable {
        SeriesTable { external, rules, ..SeriesTable::default() }
    }

    #[inline]
    pub fn by_ref(&self, series_ref: u64) -> Option<u32> {
        self.refs.get(series_ref)
    }

    #[inline]
    pub fn get(&self, at: u32) -> Option<&Series> {
        self.series.get(at as usize)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, at: u32) -> Option<&mut Series> {
        self.series.get_mut(at as usize)?.as_mut()
    }

    pub fn note(
        &mut self,
        segment: u32,
        series_ref: u64,
        labels: &[(&str, &str)],
    ) -> Result<(), ForwardError> {
        let labels = Labels::from_pairs(labels.iter().copied())
            .map_err(|error| ForwardError::Invalid(error.to_string()))?;
        let hash = labels_hash(&labels);
        // Logs repeat series records; other labels mean that the reference was reused.
        if let Some(known) = self.refs.get(series_ref).and_then(|at| self.get_mut(at))
            && known.hash == hash
        {
            known.segment = known.segment.max(Some(segment));
            return Ok(());
        }
        let at = self.add(&labels, hash, Some(segment));
        self.refs.insert(series_ref, at);
        self.ref_list.push((series_ref, at));
        Ok(())
    }

    /// Adds a series of the store, which stays as long as it has queued rows.
    pub fn note_stored(&mut self, labels: &Labels, hash: u64) -> u32 {
        self.add(labels, hash, None)
    }

    fn add(&mut self, labels: &Labels, hash: u64, segment: Option<u32>) -> u32 {
        let symbols = self.sent_labels(labels);
        let series =
            Series { hash, labels: symbols, metadata: None, newest_ordinal: 0, queued: 0, segment };
        match self.free.pop() {
            Some(at) => {
                if let Some(place) = self.series.get_mut(at as usize) {
                    *place = Some(series);
                }
                at
            }
            None => {
                self.series.push(Some(series));
                self.series.len() as u32 - 1
            }
        }
    }

    fn sent_labels(&mut self, labels: &Labels) -> Box<[u32]> {
        // As in Prometheus, external labels are added before relabelling, so rules see them.
        let all = labels.with_others(&self.external);
        let mut sent = Vec::with_capacity(32);
        let mut put = |symbols: &mut Symbols, name: &str, value: &str| {
            sent.extend([symbols.intern(name), symbols.intern(value)]);
        };
        if self.rules.is_empty() {
            all.iter().for_each(|(name, value)| put(&mut self.symbols, name, value));
            return sent.into();
        }
        let mut pairs: BTreeMap<String, String> =
            all.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        if relabel(&mut self.rules, &mut pairs) {
            pairs.iter().for_each(|(name, value)| put(&mut self.symbols, name, value));
        }
        sent.into()
    }

    #[inline]
    pub fn release(&mut self, at: u32) {
        let Some(series) = self.get_mut(at) else { return };
        series.queued = series.queued.saturating_sub(1);
        if series.queued == 0 && series.segment.is_none() {
            self.drop_series(at);
        }
    }

    pub fn drop_if_unused(&mut self, at: u32) {
        if self.get(at).is_some_and(|series| series.queued == 0 && series.segment.is_none()) {
            self.drop_series(at);
        }
    }

    fn drop_series(&mut self, at: u32) {
        if let Some(place) = self.series.get_mut(at as usize) {
            *place = None;
            self.free.push(at);
        }
    }

    /// Drops series that have no queued rows, and no series record in this segment or a later one.
    /// Also drops the strings that only these series use.
    pub fn drop_before(&mut self, before_segment: u32) {
        let mut refs = RefTable::default();
        let series = &mut self.series;
        let mut is_kept = vec![false; series.len()];
        // References are inserted in log order, so a reused reference finds its newest series.
        self.ref_list.retain(|(series_ref, at)| {
            let found = series.get(*at as usize).and_then(Option::as_ref);
            let keeps = found.is_some_and(|series| {
                series.queued > 0 || series.segment.is_none_or(|segment| segment >= before_segment)
            });
            if keeps {
                refs.insert(*series_ref, *at);
                if let Some(kept) = is_kept.get_mut(*at as usize) {
                    *kept = true;
                }
            }
            keeps
        });
        self.refs = refs;
        // Series of the store have no reference, so they are unmarked; queued rows keep them.
        for (at, is_kept) in is_kept.into_iter().enumerate() {
            let found = series.get(at).and_then(Option::as_ref);
            if !is_kept && found.is_some_and(|series| series.queued == 0) {
                self.free.push(at as u32);
                series[at] = None;
            }
        }
        self.repack_symbols();
    }

    fn repack_symbols(&mut self) {
        // Interning again in an empty table leaves out the strings of dropped series.
        let before = std::mem::take(&mut self.symbols);
        for series in self.series.iter_mut().flatten() {
            let again = |symbols: &mut Symbols, symbol: u32| symbols.intern(before.text(symbol));
            for symbol in &mut series.labels {
                *symbol = again(&mut self.symbols, *symbol);
            }
            if let Some(metadata) = &mut series.metadata {
                metadata.help = again(&mut self.symbols, metadata.help);
                metadata.unit = again(&mut self.symbols, metadata.unit);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.series.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All shards get series, whichever bytes of their labels differ.
    #[test]
    fn series_spread_over_shards_whatever_tells_them_apart() {
        const SERIES: usize = 1024;
        for rest in ["", "x", "xy", "xyz", "zone=north", "zone=north-north-west"] {
            for shards in [1, 2, 3, 4, 8, 50] {
                let mut counts = vec![0; shards];
                for number in 0..SERIES {
                    let value = format!("{number:04}{rest}");
                    let labels = [("__name__", "m"), ("instance", value.as_str())];
                    let labels = Labels::from_pairs(labels).expect("labels");
                    counts[shard_of(labels_hash(&labels), shards)] += 1;
                }
                let mean = SERIES / shards;
                let is_even = |count: &usize| (mean / 3..=mean * 2).contains(count);
                assert!(counts.iter().all(is_even), "{rest:?}: {counts:?}");
            }
        }
    }
}
