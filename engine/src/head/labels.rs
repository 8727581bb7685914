//! Label names and values of the head, and its series without their samples.

use super::Head;
use super::cursor::OpenCursor;
use super::postings::{HeadIndex, find};
use super::symbols::SymbolId;
use super::work::{NotNow, WorkLeft};
use crate::index::{intersects, select_any};
use crate::model::{MatcherSets, TimeRange, Verdict};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Most names or values that are put in order for one read alone, within one slice.
const NAMES_SORTED_MAX: usize = if cfg!(test) { 4 } else { 4096 };

/// What looking up a series' value costs, in elements of lists.
const LOOKUP_ELEMENTS: usize = 16;

/// A test of a short value costs as much as one of so many bytes.
const TEST_BYTES: usize = 16;

/// A position in a list of label names or values, ascending by text. While it lives, the head
/// drops nothing, so that the symbols it holds stay valid.
pub struct HeadStrings {
    symbols: Rc<Vec<SymbolId>>,
    next: usize,
    _open: OpenCursor,
}

impl Head {
    /// The label names of the series that one of the sets selects, if the head holds some of the
    /// range.
    pub fn label_names(
        &mut self,
        sets: &MatcherSets,
        range: TimeRange,
        work: &WorkLeft,
    ) -> Result<HeadStrings, NotNow> {
        self.postings.sort(work)?;
        let index = self.index(work);
        let mut names = FxHashSet::default();
        if !self.touches(range) {
            return Ok(self.strings(Rc::default()));
        }
        if sets.select_all() {
            work.read_elements(self.postings.name_count())?;
            names.extend(self.postings.names());
        } else {
            for slot in select_any(&index, sets.sets())? {
                for (name, _) in index.labels(slot) {
                    work.read_elements(1)?;
                    names.insert(name);
                }
            }
        }
        if work.is_bounded() && names.len() > NAMES_SORTED_MAX {
            return Err(NotNow::TooMuch);
        }
        let mut names: Vec<SymbolId> = names.into_iter().collect();
        index.sort_by_text(&mut names);
        Ok(self.strings(Rc::new(names)))
    }

    /// The values of a label name that the series have which one of the sets selects, if the head
    /// holds some of the range.
    pub fn label_values(
        &mut self,
        name: &str,
        sets: &MatcherSets,
        range: TimeRange,
        work: &WorkLeft,
    ) -> Result<HeadStrings, NotNow> {
        self.postings.sort(work)?;
        let index = self.index(work);
        let values = match find(&self.symbols, name) {
            Some(id) if self.touches(range) => match sets.select_all() {
                true => index.sorted_values(name)?,
                false => Rc::new(values_where(&index, (name, id), sets)?),
            },
            _ => Rc::default(),
        };
        Ok(self.strings(values))
    }

    /// The next name or value.
    pub fn next_string(&self, strings: &mut HeadStrings) -> Option<&str> {
        let symbol = strings.symbols.get(strings.next)?;
        strings.next += 1;
        Some(self.symbols.text(*symbol))
    }

    fn strings(&self, symbols: Rc<Vec<SymbolId>>) -> HeadStrings {
        let bytes = size_of_val(symbols.as_slice()) as u64;
        HeadStrings { symbols, next: 0, _open: OpenCursor::new(self, bytes) }
    }
}

/// The values of a name that selected series have, ascending by text.
fn values_where(
    index: &HeadIndex<'_>,
    (name, id): (&str, SymbolId),
    sets: &MatcherSets,
) -> Result<Vec<SymbolId>, NotNow> {
    let beyond = sets.beyond(name);
    let series = select_any(index, &beyond)?;
    let sorted = index.sorted_values(name)?;
    if beyond.len() == sets.sets().len() && series.len() <= sorted.len() {
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
