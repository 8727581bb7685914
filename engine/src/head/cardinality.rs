//! Cardinality statistics: the metrics and labels with the most series, values or bytes.
//!
//! A walk visits the index in slices; the head accepts writes between two slices. A hash table that
//! grows between slices cannot be iterated in parts, but a symbol keeps its number. So the walk
//! visits label names by symbol number, and also the values of a name with too many for one slice.

use super::postings::Postings;
use super::symbols::{SymbolId, Symbols};
use crate::model::LABEL_NAME;
use std::cmp::Ordering;
use tidepool_model::sort;

/// Approximate number of symbol numbers and values that one slice visits.
const SLICE_STEPS: usize = 8 * 1024;

/// Approximate size of a list's item in bytes, besides its name.
const ITEM_BYTES: usize = 16;

/// A ranking by number of series, of values or of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardinalityList {
    /// Metric names and how many series they have.
    MetricsBySeries,
    /// Label names and how many series have them.
    NamesBySeries,
    /// Label names and how many values they have.
    NamesByValues,
    /// Label names and the total bytes of their distinct values.
    NamesByValueBytes,
    /// Labels, as `name=value`, and how many series have them.
    PairsBySeries,
}

/// A walk over the index. The head may change meanwhile: if series are dropped, symbol numbers may
/// be reused for other texts, so the walk starts over.
pub struct CardinalityWalk {
    /// Number of the next symbol that may be a name.
    next_name: u32,
    /// The name whose values are visited in pieces.
    name: Option<PartlyWalked>,
    label_pairs: u64,
    metrics_by_series: Top<SymbolId>,
    names_by_series: Top<SymbolId>,
    names_by_values: Top<SymbolId>,
    names_by_value_bytes: Top<SymbolId>,
    pairs_by_series: Top<(SymbolId, SymbolId)>,
    is_done: bool,
    /// Series that the head had dropped when it began.
    series_removed: u64,
}

/// A name, and the counts of its values visited so far.
struct PartlyWalked {
    name: SymbolId,
    met: Met,
    /// Number of the next symbol that may be a value of the name.
    next_value: u32,
}

/// Counts of the values of a name.
#[derive(Clone, Copy, Default)]
struct Met {
    series: u64,
    values: u64,
    value_bytes: u64,
}

/// Items with the largest numbers; among equal numbers the lower symbol comes first.
struct Top<N> {
    /// Up to twice `items_max` items, so that they are sorted only now and then.
    items: Vec<(u64, N)>,
    items_max: usize,
    /// Items with a smaller number are not among the largest.
    least: u64,
    /// Number of items already returned; `None` until the items are finally sorted.
    given: Option<usize>,
}

impl<N: Ord + Copy> Top<N> {
    fn new(items_max: usize) -> Top<N> {
        Top { items: Vec::new(), items_max, least: 0, given: None }
    }

    fn add(&mut self, number: u64, of: N) {
        // An item with an equal number is still added, since its symbol may be lower.
        if number < self.least || self.items_max == 0 {
            return;
        }
        self.items.push((number, of));
        if self.items.len() >= self.items_max.saturating_mul(2) {
            self.keep_largest();
            self.least = self.items.last().map_or(0, |(number, _)| *number);
        }
    }

    /// Keeps the `items_max` largest items, in descending order.
    fn keep_largest(&mut self) {
        // One sort for every `items_max` new items costs less than keeping the items in order.
        sort::sort_by(&mut self.items, larger_first);
        self.items.truncate(self.items_max);
    }

    fn next(&mut self, bytes_max: usize, name: impl Fn(N) -> String) -> Vec<(String, u64)> {
        let mut given = self.given.unwrap_or_else(|| {
            self.keep_largest();
            0
        });
        let (mut page, mut bytes) = (Vec::new(), 0);
        while let Some((number, of)) = self.items.get(given)
            && (page.is_empty() || bytes < bytes_max)
        {
            let name = name(*of);
            bytes += name.len() + ITEM_BYTES;
            page.push((name, *number));
            given += 1;
        }
        self.given = Some(given);
        page
    }
}

fn larger_first<N: Ord>(a: &(u64, N), b: &(u64, N)) -> Ordering {
    b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1))
}

impl CardinalityWalk {
    fn add(&mut self, name: SymbolId, is_metric: bool, value: SymbolId, series: u64) {
        self.label_pairs += 1;
        self.pairs_by_series.add(series, (name, value));
        if is_metric {
            self.metrics_by_series.add(series, value);
        }
    }

    fn end_name(&mut self, name: SymbolId, met: Met) {
        self.names_by_series.add(met.series, name);
        self.names_by_values.add(met.values, name);
        self.names_by_value_bytes.add(met.value_bytes, name);
    }
}

#[derive(Clone, Copy)]
pub(super) struct WalkedIndex<'h> {
    pub postings: &'h Postings,
    pub symbols: &'h Symbols,
    /// Number of series that the head has dropped.
    pub series_removed: u64,
}

impl WalkedIndex<'_> {
    /// Begins a walk whose lists have at most `items_max` items.
    pub fn begin(&self, items_max: usize) -> CardinalityWalk {
        CardinalityWalk {
            next_name: 0,
            name: None,
            label_pairs: 0,
            metrics_by_series: Top::new(items_max),
            names_by_series: Top::new(items_max),
            names_by_values: Top::new(items_max),
            names_by_value_bytes: Top::new(items_max),
            pairs_by_series: Top::new(items_max),
            is_done: false,
            series_removed: self.series_removed,
        }
    }

    /// Does the next slice of a walk; returns the number of distinct labels once it is done.
    pub fn walk(&self, walk: &mut CardinalityWalk) -> Option<u64> {
        // After a drop, a symbol number may mean another text, so the counts so far are void.
        if self.has_dropped_since(walk) {
            *walk = self.begin(walk.pairs_by_series.items_max);
        }
        let mut steps = 0;
        while steps < SLICE_STEPS && !walk.is_done {
            steps += match walk.name.take() {
                Some(partly) => self.walk_on(walk, partly, SLICE_STEPS - steps),
                None => self.walk_next_name(walk),
            };
        }
        walk.is_done.then_some(walk.label_pairs)
    }

    fn has_dropped_since(&self, walk: &CardinalityWalk) -> bool {
        walk.series_removed != self.series_removed
    }

    /// Visits the next symbol, and its values if it is a name with few. Returns the steps done.
    fn walk_next_name(&self, walk: &mut CardinalityWalk) -> usize {
        if walk.next_name >= self.symbols.end() {
            walk.is_done = true;
            return 0;
        }
        let name = SymbolId(walk.next_name);
        walk.next_name += 1;
        let count = self.postings.value_count_of(name);
        if count > SLICE_STEPS {
            walk.name = Some(PartlyWalked { name, met: Met::default(), next_value: 0 });
        } else if count > 0 {
            let met = self.meet(walk, name, Met::default(), self.postings.values_of(name));
            walk.end_name(name, met);
            return 1 + count;
        }
        1
    }

    /// Continues with a name's values, for at most `steps` steps. Returns the steps done.
    fn walk_on(&self, walk: &mut CardinalityWalk, partly: PartlyWalked, steps: usize) -> usize {
        let PartlyWalked { name, met, next_value } = partly;
        let end = self.symbols.end().min(next_value.saturating_add(steps as u32));
        // Values are looked up one by one, since their table may have grown after the last slice.
        let values = (next_value..end).map(SymbolId);
        let met = self.meet(walk, name, met, self.postings.series_with(name, values));
        if end >= self.symbols.end() {
            walk.end_name(name, met);
        } else {
            walk.name = Some(PartlyWalked { name, met, next_value: end });
        }
        // At least one step, so that the loop over the slice ends.
        ((end - next_value) as usize).max(1)
    }

    fn meet(
        &self,
        walk: &mut CardinalityWalk,
        name: SymbolId,
        mut met: Met,
        values: impl Iterator<Item = (SymbolId, usize)>,
    ) -> Met {
        let is_metric = self.symbols.text(name) == LABEL_NAME;
        for (value, series) in values {
            let series = series as u64;
            walk.add(name, is_metric, value, series);
            met.series += series;
            met.values += 1;
            met.value_bytes += self.symbols.text(value).len() as u64;
        }
        met
    }

    /// Returns the next items of a list of a finished walk, about `bytes_max` bytes; `None` if
    /// series were dropped since the walk began.
    pub fn next_items(
        &self,
        walk: &mut CardinalityWalk,
        list: CardinalityList,
        bytes_max: usize,
    ) -> Option<Vec<(String, u64)>> {
        if self.has_dropped_since(walk) {
            return None;
        }
        let text = |id| self.symbols.text(id);
        let name = |id| text(id).to_owned();
        let pair = |(name, value)| format!("{}={}", text(name), text(value));
        Some(match list {
            CardinalityList::MetricsBySeries => walk.metrics_by_series.next(bytes_max, name),
            CardinalityList::NamesBySeries => walk.names_by_series.next(bytes_max, name),
            CardinalityList::NamesByValues => walk.names_by_values.next(bytes_max, name),
            CardinalityList::NamesByValueBytes => walk.names_by_value_bytes.next(bytes_max, name),
            CardinalityList::PairsBySeries => walk.pairs_by_series.next(bytes_max, pair),
        })
    }
}
