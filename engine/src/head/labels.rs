//! Label names and values of the head, and its series without their samples.

use super::Head;
use super::cursor::OpenCursor;
use super::postings::{HeadIndex, find};
use super::symbols::SymbolId;
use super::work::TooMuchWork;
use crate::index::{intersects, select_any};
use crate::model::{MatcherSets, TimeRange, Verdict};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// A position in a list of label names or values, ascending by text. While it lives, the head
/// forgets nothing, so that the symbols it holds stay valid.
pub struct HeadTexts {
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
    ) -> Result<HeadTexts, TooMuchWork> {
        self.postings.sort();
        let index = self.index();
        let names: FxHashSet<SymbolId> = match self.touches(range) {
            false => FxHashSet::default(),
            true if sets.select_all() => self.postings.names().collect(),
            true => {
                let slots = select_any(&index, sets.sets())?;
                let labels = slots.iter().flat_map(|slot| index.labels(*slot));
                labels.map(|(name, _)| name).collect()
            }
        };
        Ok(self.texts(names.into_iter().collect()))
    }

    /// The values of a label name that the series have which one of the sets selects, if the head
    /// holds some of the range.
    pub fn label_values(
        &mut self,
        name: &str,
        sets: &MatcherSets,
        range: TimeRange,
    ) -> Result<HeadTexts, TooMuchWork> {
        self.postings.sort();
        let index = self.index();
        let values = match find(&self.symbols, name) {
            Some(id) if self.touches(range) => match sets.select_all() {
                true => index.sorted_values(name),
                false => Rc::new(values_where(&index, (name, id), sets)?),
            },
            _ => Rc::default(),
        };
        // The list of all values is the head's own.
        Ok(HeadTexts { symbols: values, next: 0, _open: OpenCursor::new(self, 0) })
    }

    /// The next name or value.
    pub fn next_text(&self, texts: &mut HeadTexts) -> Option<&str> {
        let symbol = texts.symbols.get(texts.next)?;
        texts.next += 1;
        Some(self.symbols.text(*symbol))
    }

    fn texts(&self, mut symbols: Vec<SymbolId>) -> HeadTexts {
        self.index().sort_by_text(&mut symbols);
        let bytes = size_of_val(symbols.as_slice()) as u64;
        HeadTexts { symbols: Rc::new(symbols), next: 0, _open: OpenCursor::new(self, bytes) }
    }
}

/// The values of a name that selected series have, ascending by text.
fn values_where(
    index: &HeadIndex<'_>,
    (name, id): (&str, SymbolId),
    sets: &MatcherSets,
) -> Result<Vec<SymbolId>, TooMuchWork> {
    let beyond = sets.beyond(name);
    let series = select_any(index, &beyond)?;
    let sorted = index.sorted_values(name);
    if beyond.len() == sets.sets().len() && series.len() <= sorted.len() {
        let values = series.iter().filter_map(|slot| index.value_of(*slot, id));
        let values: FxHashSet<SymbolId> = values.collect();
        let mut values: Vec<SymbolId> = values.into_iter().collect();
        index.sort_by_text(&mut values);
        return Ok(values);
    }
    let is_selected = |value: &&SymbolId| match sets.verdict(name, index.symbols.text(**value)) {
        Verdict::Selected => true,
        Verdict::Open => intersects(index.slots(name, **value), &series),
        Verdict::Refused => false,
    };
    let mut selected = Vec::new();
    for value in index.between(&sorted, sets.value_bounds(name)) {
        index.work.test_value()?;
        if is_selected(&value) {
            selected.push(*value);
        }
    }
    Ok(selected)
}
