//! The inverted index: for every label name and value, the slots of the series that have it.
//!
//! Slots are reused, so a new series may belong in the middle of long lists. Its slot is appended
//! to each list, and the next read sorts the lists: with churn, new series are far more frequent
//! than reads. Two orders, of series by their labels and of values by their text, are maintained
//! from the first read on that needs them.

use super::label_names::SeriesLabels;
use super::series::{Series, Slot};
use super::slab::{Slab, SlabIndex, shrink_above};
use super::sorted::Sorted;
use super::symbols::{SymbolId, Symbols};
use super::work::{NotNow, WorkLeft};
use crate::index::LabelIndex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::rc::Rc;
use tidepool_model::sort;

#[derive(Default)]
pub struct Postings {
    by_name: FxHashMap<SymbolId, Values>,
    all: Vec<Slot>,
    /// Labels whose lists do not ascend; `all_is_unsorted` is the same for the list `all`.
    unsorted: FxHashSet<(SymbolId, SymbolId)>,
    all_is_unsorted: bool,
    /// All series in the order of their labels, from the first large selection on.
    by_labels: RefCell<Option<Sorted<Slot>>>,
}

/// A selection is sorted on its own if it has at most `SORTED_ALONE_MAX` series, and less than one
/// in `SORTED_ALONE_PART` of all; a larger one is filtered from the order of all series.
const SORTED_ALONE_MAX: usize = if cfg!(test) { 8 } else { 2048 };
const SORTED_ALONE_PART: usize = 16;

#[derive(Default)]
struct Values {
    slots: FxHashMap<SymbolId, Vec<Slot>>,
    /// Values in the order of their text, from the first read that needs it until one is dropped.
    order: RefCell<Option<Sorted<SymbolId>>>,
}

/// The inverted index, with the tables that its symbols and slots refer to.
pub struct HeadIndex<'h> {
    pub postings: &'h Postings,
    pub symbols: &'h Symbols,
    pub series: &'h Slab<Slot, Series>,
    /// Work that the current call may still do.
    pub work: &'h WorkLeft,
}

impl Postings {
    /// Adds a series under all of its labels.
    pub fn insert(&mut self, slot: Slot, labels: &SeriesLabels) {
        self.all_is_unsorted |= push(&mut self.all, slot);
        if let Some(order) = self.by_labels.get_mut() {
            order.insert(slot);
        }
        for (name, value) in labels.iter() {
            let Values { slots, order } = self.by_name.entry(name).or_default();
            let slots = slots.entry(value).or_default();
            // A value enters the order with its first series.
            if slots.is_empty()
                && let Some(order) = order.get_mut()
            {
                order.insert(value);
            }
            if push(slots, slot) {
                self.unsorted.insert((name, value));
            }
        }
    }

    /// Builds the index from ascending lists by label and of all; `None` if a label occurs twice.
    pub fn from_lists(
        lists: impl Iterator<Item = ((SymbolId, SymbolId), Vec<Slot>)>,
        all: Vec<Slot>,
    ) -> Option<Postings> {
        let mut postings = Postings { all, ..Postings::default() };
        for ((name, value), slots) in lists {
            let values = postings.by_name.entry(name).or_default();
            if values.slots.insert(value, slots).is_some() {
                return None;
            }
        }
        Some(postings)
    }

    /// Returns all labels with their series, in no order.
    pub fn lists(&self) -> impl Iterator<Item = ((SymbolId, SymbolId), &[Slot])> {
        let by_name = self.by_name.iter();
        by_name.flat_map(|(name, values)| {
            values.slots.iter().map(|(value, slots)| ((*name, *value), slots.as_slice()))
        })
    }

    /// Sorts the lists that do not ascend; must precede every read. After [`NotNow::Again`] the
    /// next call continues with the remaining lists.
    pub fn sort(&mut self, work: &WorkLeft) -> Result<(), NotNow> {
        // The stable sort finds runs that are sorted already.
        if std::mem::take(&mut self.all_is_unsorted) {
            self.all.sort();
            work.read_elements(self.all.len()).map_err(|_| NotNow::Again)?;
        }
        while let Some((name, value)) = self.unsorted.iter().next().copied() {
            // The label is removed first, since its list is sorted even if the slice ends here.
            self.unsorted.remove(&(name, value));
            let values = self.by_name.get_mut(&name);
            if let Some(slots) = values.and_then(|values| values.slots.get_mut(&value)) {
                slots.sort();
                work.read_elements(slots.len()).map_err(|_| NotNow::Again)?;
            }
        }
        Ok(())
    }

    /// Removes series, which must still be in the series table. Visits each list at most once.
    pub fn remove(&mut self, removed: &[Slot], series: &Slab<Slot, Series>) {
        let gone = SlotSet::of(removed);
        let count_before = self.all.len();
        self.all.retain(|slot| !gone.contains(*slot));
        shrink(&mut self.all);
        if let Some(order) = self.by_labels.get_mut() {
            order.retain(|slot| !gone.contains(*slot));
        }
        if removed.len() > count_before / 8 {
            // Visiting all lists allocates nothing; memory may be the reason for the removal.
            self.by_name.retain(|_, values| {
                values.remove_from_all(&gone);
                !values.slots.is_empty()
            });
            return;
        }
        let removed = removed.iter().filter_map(|slot| series.get(*slot));
        // Series that end together share most labels, whose lists are visited once.
        let labels: FxHashSet<_> = removed.flat_map(|series| series.labels.iter()).collect();
        for (name, value) in labels {
            let Some(values) = self.by_name.get_mut(&name) else { continue };
            values.remove_from(value, &gone);
            if values.slots.is_empty() {
                self.by_name.remove(&name);
            }
        }
    }

    /// Returns a series that has this label, if any.
    pub fn first_with(&self, symbols: &Symbols, name: &str, value: &str) -> Option<Slot> {
        let values = self.by_name.get(&find(symbols, name)?)?;
        values.slots.get(&find(symbols, value)?)?.first().copied()
    }

    /// Number of values of a label name; 0 if unknown.
    pub fn value_count_of(&self, name: SymbolId) -> usize {
        self.by_name.get(&name).map_or(0, |values| values.slots.len())
    }

    /// Returns the values of a label name, each with its number of series, in no order.
    pub fn values_of(&self, name: SymbolId) -> impl Iterator<Item = (SymbolId, usize)> {
        let values = self.by_name.get(&name).into_iter();
        values.flat_map(|values| values.slots.iter().map(|(value, slots)| (*value, slots.len())))
    }

    /// Returns the number of series of each given value of a label name, unless it has none.
    pub fn series_with(
        &self,
        name: SymbolId,
        values: impl Iterator<Item = SymbolId>,
    ) -> impl Iterator<Item = (SymbolId, usize)> {
        let held = self.by_name.get(&name);
        values.filter_map(move |value| Some((value, held?.slots.get(&value)?.len())))
    }

    /// Drops the orders of series and values, which only make reads faster.
    pub fn drop_caches(&mut self) {
        for values in self.by_name.values_mut() {
            values.order.take();
        }
        self.by_labels.take();
    }

    pub fn name_count(&self) -> usize {
        self.by_name.len()
    }

    pub fn names(&self) -> impl Iterator<Item = SymbolId> {
        self.by_name.keys().copied()
    }
}

pub struct SlotSet(Vec<u64>);

impl SlotSet {
    pub fn of(slots: &[Slot]) -> SlotSet {
        let last = slots.iter().map(|slot| slot.number()).max();
        let mut words = vec![0; last.map_or(0, |last| last as usize / 64 + 1)];
        for slot in slots {
            words[slot.number() as usize / 64] |= 1u64 << (slot.number() % 64);
        }
        SlotSet(words)
    }

    pub fn contains(&self, slot: Slot) -> bool {
        let word = self.0.get(slot.number() as usize / 64).copied().unwrap_or(0);
        word >> (slot.number() % 64) & 1 == 1
    }
}

impl Values {
    fn remove_from(&mut self, value: SymbolId, gone: &SlotSet) {
        let Some(slots) = self.slots.get_mut(&value) else { return };
        slots.retain(|slot| !gone.contains(*slot));
        if slots.is_empty() {
            self.slots.remove(&value);
            // The number of the dropped symbol may be reused for another text.
            self.order.take();
        }
    }

    fn remove_from_all(&mut self, gone: &SlotSet) {
        let count_before = self.slots.len();
        self.slots.retain(|_, slots| {
            slots.retain(|slot| !gone.contains(*slot));
            shrink(slots);
            !slots.is_empty()
        });
        if self.slots.len() < count_before {
            self.order.take();
        }
        if self.slots.capacity() > shrink_above(self.slots.len()) {
            self.slots.shrink_to(2 * self.slots.len());
        }
    }
}

impl<'h> HeadIndex<'h> {
    fn values(&self, name: &str) -> Option<&'h Values> {
        self.postings.by_name.get(&find(self.symbols, name)?)
    }

    /// Returns the values of a name, ascending by their text.
    pub fn sorted_values(&self, name: &str) -> Result<Rc<Vec<SymbolId>>, NotNow> {
        self.values(name).map_or(Ok(Rc::default()), |values| self.sorted(values))
    }

    fn sorted(&self, values: &Values) -> Result<Rc<Vec<SymbolId>>, NotNow> {
        let mut order = values.order.borrow_mut();
        let order = order.get_or_insert_with(|| Sorted::of(values.slots.keys().copied().collect()));
        let compare = |a, b| self.symbols.text(a).cmp(self.symbols.text(b));
        order.all(self.work.sorted_max(), compare).ok_or(NotNow::Again)
    }

    /// Returns the series that have a label, ascending.
    pub fn slots(&self, name: &str, value: SymbolId) -> &'h [Slot] {
        let slots = self.values(name).and_then(|values| values.slots.get(&value));
        slots.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns all series in the order of their labels.
    pub fn by_labels(&self) -> Result<Rc<Vec<Slot>>, NotNow> {
        let Postings { all, by_labels, .. } = self.postings;
        let mut order = by_labels.borrow_mut();
        let order = order.get_or_insert_with(|| Sorted::of(all.clone()));
        let compare = |a, b| self.compare_labels(a, b);
        order.all(self.work.sorted_max(), compare).ok_or(NotNow::Again)
    }

    /// Sorts series in the order of their labels.
    pub fn sort_by_labels(&self, slots: &mut Vec<Slot>) -> Result<(), NotNow> {
        // A bounded slice must not sort many series. For a large part of all, a filter is cheaper.
        let is_few = !self.work.is_bounded() || slots.len() <= SORTED_ALONE_MAX;
        if is_few && slots.len() * SORTED_ALONE_PART < self.postings.all.len() {
            sort::sort_by(slots, |a, b| self.compare_labels(*a, *b));
            return Ok(());
        }
        let all = self.by_labels()?;
        // `all` is in label order, so filtering it yields the selection in label order.
        let wanted = SlotSet::of(slots);
        slots.clear();
        slots.extend(all.iter().filter(|slot| wanted.contains(**slot)));
        Ok(())
    }

    /// Compares series by their labels. Reads texts only where symbols differ.
    fn compare_labels(&self, a: Slot, b: Slot) -> Ordering {
        let text = |id| self.symbols.text(id);
        let (mut a, mut b) = (self.labels(a), self.labels(b));
        loop {
            match (a.next(), b.next()) {
                (None, None) => return Ordering::Equal,
                (None, Some(_)) => return Ordering::Less,
                (Some(_), None) => return Ordering::Greater,
                // Each text has one symbol, so equal numbers need no comparison of texts.
                (Some((name_a, _)), Some((name_b, _))) if name_a != name_b => {
                    return text(name_a).cmp(text(name_b));
                }
                (Some((_, value_a)), Some((_, value_b))) if value_a != value_b => {
                    return text(value_a).cmp(text(value_b));
                }
                _ => {}
            }
        }
    }

    /// Returns a series' labels, ascending by name.
    pub fn labels(&self, slot: Slot) -> impl Iterator<Item = (SymbolId, SymbolId)> + use<'h> {
        self.series.get(slot).into_iter().flat_map(|series| series.labels.iter())
    }

    pub fn sort_by_text(&self, ids: &mut [SymbolId]) {
        sort_by_text(ids, self.symbols);
    }

    /// Returns the sorted values from the first bound to the last, both included, and the values
    /// that begin with the last.
    pub fn between<'v>(
        &self,
        sorted: &'v [SymbolId],
        (first, last): (&str, Option<&str>),
    ) -> &'v [SymbolId] {
        let text = |value: &SymbolId| self.symbols.text(*value);
        let from = sorted.partition_point(|value| text(value) < first);
        let rest = sorted.get(from..).unwrap_or_default();
        let is_inside = |value: &SymbolId| {
            last.is_none_or(|last| text(value) <= last || text(value).starts_with(last))
        };
        rest.get(..rest.partition_point(is_inside)).unwrap_or_default()
    }

    /// Returns the value of a label name in a series.
    pub fn value_of(&self, slot: Slot, name: SymbolId) -> Option<SymbolId> {
        self.labels(slot).find(|(other, _)| *other == name).map(|(_, value)| value)
    }
}

impl<'h> LabelIndex for HeadIndex<'h> {
    type Series = Slot;
    type List = &'h [Slot];
    type Error = NotNow;

    /// Unlimited, since searching a list for a series costs less than comparing its labels.
    const REFS_PER_SERIES: usize = usize::MAX;
    const REFS_PER_TEST: usize = 64;

    fn value_count(&self, name: &str, prefix: &str) -> usize {
        let Some(values) = self.values(name) else { return 0 };
        if prefix.is_empty() {
            return values.slots.len();
        }
        // The number of all values is an upper bound, which suffices while the order is incomplete.
        let Ok(sorted) = self.sorted(values) else { return values.slots.len() };
        self.between(&sorted, (prefix, Some(prefix))).len()
    }

    fn find_lists(&self, name: &str, values: &[String]) -> Result<Vec<&'h [Slot]>, NotNow> {
        let Some(held) = self.values(name) else { return Ok(Vec::new()) };
        for value in values {
            self.work.test_value(value.len())?;
        }
        let slots = |value: &String| held.slots.get(&find(self.symbols, value)?);
        Ok(values.iter().filter_map(slots).map(Vec::as_slice).collect())
    }

    fn walk_values(
        &self,
        name: &str,
        prefix: &str,
        mut visit: impl FnMut(&str, &'h [Slot]) -> Result<ControlFlow<()>, NotNow>,
    ) -> Result<(), NotNow> {
        let Some(values) = self.values(name) else { return Ok(()) };
        // All values are visited, so sorting them first would be of no use.
        if prefix.is_empty() {
            for (value, slots) in &values.slots {
                let text = self.symbols.text(*value);
                self.work.test_value(text.len())?;
                if visit(text, slots)?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let sorted = self.sorted(values)?;
        for value in self.between(&sorted, (prefix, Some(prefix))) {
            let Some(slots) = values.slots.get(value) else { continue };
            let text = self.symbols.text(*value);
            self.work.test_value(text.len())?;
            if visit(text, slots)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn spend(&self, series_count: usize) -> Result<(), NotNow> {
        self.work.read_elements(series_count)
    }

    fn list_len(&self, list: &'h [Slot]) -> Result<usize, NotNow> {
        Ok(list.len())
    }

    fn list(&self, list: &'h [Slot]) -> Result<Cow<'_, [Slot]>, NotNow> {
        Ok(Cow::Borrowed(list))
    }

    fn all(&self) -> Result<Cow<'_, [Slot]>, NotNow> {
        Ok(Cow::Borrowed(&self.postings.all))
    }

    fn has_value(
        &self,
        series: Slot,
        name: &str,
        test: impl Fn(&str) -> bool,
    ) -> Result<bool, NotNow> {
        let value = find(self.symbols, name).and_then(|name| self.value_of(series, name));
        // Matchers see a missing label as the empty value.
        let text = value.map_or("", |value| self.symbols.text(value));
        self.work.test_value(text.len())?;
        Ok(test(text))
    }
}

fn shrink(slots: &mut Vec<Slot>) {
    if slots.capacity() > shrink_above(slots.len()) {
        slots.shrink_to(2 * slots.len());
    }
}

fn sort_by_text(ids: &mut [SymbolId], symbols: &Symbols) {
    // The stable sort finds runs that are sorted already.
    sort::sort_by(ids, |a, b| symbols.text(*a).cmp(symbols.text(*b)));
}

/// Returns the number of a text, if some series uses it.
pub fn find(symbols: &Symbols, text: &str) -> Option<SymbolId> {
    symbols.find(text.as_bytes(), symbols.hash(text.as_bytes()))
}

/// Appends a slot; returns whether the list no longer ascends.
fn push(slots: &mut Vec<Slot>, slot: Slot) -> bool {
    let is_unsorted = slots.last().is_some_and(|last| *last > slot);
    slots.push(slot);
    is_unsorted
}
