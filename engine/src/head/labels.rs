//! Label names and values of the head, and its series without their samples.

use super::cursor::OpenCursor;
use super::observers::Observers;
use super::postings::{HeadIndex, find};
use super::symbols::{SymbolId, Symbols};
use super::work::NotNow;
use crate::index::{intersects, select_any};
use crate::model::{MatcherSets, Verdict};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Largest number of names or values that one slice of work sorts for a single read.
const NAMES_SORTED_MAX: usize = if cfg!(test) { 4 } else { 4096 };

/// Cost of looking up the value of a label in a series, as a number of list elements read.
const LOOKUP_ELEMENTS: usize = 16;

/// A test of a shorter value costs as much as that of a value of this many bytes.
const TEST_BYTES: usize = 16;

/// Position in a list of label names or values, ascending by text. While the list exists, the head
/// drops nothing, so its symbols stay valid.
pub struct HeadStrings {
    symbols: Rc<Vec<SymbolId>>,
    next: usize,
    _open: OpenCursor,
}

impl HeadStrings {
    pub(super) fn new(symbols: Rc<Vec<SymbolId>>, observers: &Observers) -> HeadStrings {
        let bytes = size_of_val(symbols.as_slice()) as u64;
        HeadStrings { symbols, next: 0, _open: observers.open(bytes) }
    }

    pub(super) fn next<'h>(&mut self, symbols: &'h Symbols) -> Option<&'h str> {
        let symbol = self.symbols.get(self.next)?;
        self.next += 1;
        Some(symbols.text(*symbol))
    }
}

impl HeadIndex<'_> {
    /// Returns the label names of the series that any of the sets selects, ascending by text.
    pub fn names_where(&self, sets: &MatcherSets) -> Result<Vec<SymbolId>, NotNow> {
        let mut names = FxHashSet::default();
        if sets.select_all() {
            self.work.read_elements(self.postings.name_count())?;
            names.extend(self.postings.names());
        } else {
            for slot in select_any(self, sets.sets())? {
                for (name, _) in self.labels(slot) {
                    self.work.read_elements(1)?;
                    names.insert(name);
                }
            }
        }
        // A sort cannot be interrupted, so a bounded slice does only small sorts.
        if self.work.is_bounded() && names.len() > NAMES_SORTED_MAX {
            return Err(NotNow::TooMuch);
        }
        let mut names: Vec<SymbolId> = names.into_iter().collect();
        self.sort_by_text(&mut names);
        Ok(names)
    }

    /// Returns the values of a label name in the selected series, ascending by text.
    pub fn values_where(
        &self,
        name: &str,
        sets: &MatcherSets,
    ) -> Result<Rc<Vec<SymbolId>>, NotNow> {
        let Some(id) = find(self.symbols, name) else { return Ok(Rc::default()) };
        match sets.select_all() {
            true => self.sorted_values(name),
            false => values_where(self, (name, id), sets).map(Rc::new),
        }
    }
}

/// Returns the values that a label name has in the selected series, ascending by text.
fn values_where(
    index: &HeadIndex<'_>,
    (name, id): (&str, SymbolId),
    sets: &MatcherSets,
) -> Result<Vec<SymbolId>, NotNow> {
    let beyond = sets.beyond(name);
    let series = select_any(index, &beyond)?;
    let sorted = index.sorted_values(name)?;
    if beyond.len() == sets.sets().len() && series.len() <= sorted.len() {
        // With fewer series than values, the values of the series are looked up instead of tested.
        let mut values = FxHashSet::default();
        for slot in &series {
            index.work.read_elements(LOOKUP_ELEMENTS)?;
            values.extend(index.value_of(*slot, id));
        }
        let mut values: Vec<SymbolId> = values.into_iter().collect();
        if index.work.is_bounded() && values.len() > NAMES_SORTED_MAX {
            return Err(NotNow::TooMuch);
        }
        index.sort_by_text(&mut values);
        return Ok(values);
    }
    let matcher_count: usize = sets.sets().iter().map(Vec::len).sum();
    let mut selected = Vec::new();
    for value in index.between(&sorted, sets.value_bounds(name)) {
        let text = index.symbols.text(*value);
        index.work.test_value(matcher_count * text.len().max(TEST_BYTES))?;
        let is_selected = match sets.verdict(name, text) {
            Verdict::Selected => true,
            Verdict::Open => {
                // Matchers of other labels decide: the value is selected if one of `series` has it.
                let slots = index.slots(name, *value);
                index.work.read_elements(slots.len())?;
                intersects(slots, &series)
            }
            Verdict::Refused => false,
        };
        if is_selected {
            selected.push(*value);
        }
    }
    Ok(selected)
}
