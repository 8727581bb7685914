//! Which series carry which label: for every name, for every value, the series' slots, ascending.

use super::label_names::SeriesLabels;
use super::series::Slot;
use super::symbols::{SymbolId, Symbols};
use crate::index::{difference, intersection, union};
use crate::model::Matcher;
use rustc_hash::FxHashMap;

type Values = FxHashMap<SymbolId, Vec<Slot>>;

/// The head's inverted index.
#[derive(Default)]
pub struct Postings {
    by_name: FxHashMap<SymbolId, Values>,
    all: Vec<Slot>,
}

impl Postings {
    /// Enters a series under all of its labels.
    pub fn insert(&mut self, slot: Slot, labels: &SeriesLabels) {
        insert_sorted(&mut self.all, slot);
        for (name, value) in labels.iter() {
            insert_sorted(self.by_name.entry(name).or_default().entry(value).or_default(), slot);
        }
    }

    /// Takes a series out again.
    pub fn remove(&mut self, slot: Slot, labels: &SeriesLabels) {
        remove_sorted(&mut self.all, slot);
        for (name, value) in labels.iter() {
            let Some(values) = self.by_name.get_mut(&name) else { continue };
            let Some(slots) = values.get_mut(&value) else { continue };
            remove_sorted(slots, slot);
            if slots.is_empty() {
                values.remove(&value);
            }
            if values.is_empty() {
                self.by_name.remove(&name);
            }
        }
    }

    /// A series that carries this label, if there is one.
    pub fn first_with(&self, symbols: &Symbols, name: &str, value: &str) -> Option<Slot> {
        let values = self.by_name.get(&find(symbols, name)?)?;
        values.get(&find(symbols, value)?)?.first().copied()
    }

    /// The slots of the series that all matchers select, ascending.
    pub fn select(&self, symbols: &Symbols, matchers: &[Matcher]) -> Vec<Slot> {
        let (requiring, excluding): (Vec<_>, Vec<_>) =
            matchers.iter().partition(|matcher| !matcher.matches_empty());
        let mut wanted: Vec<Vec<Slot>> =
            requiring.iter().map(|m| self.with_value(symbols, m, |v| m.matches(v))).collect();
        // The shortest list first: every further one can only shorten it.
        wanted.sort_by_key(Vec::len);
        let mut wanted = wanted.into_iter();
        let mut slots = wanted.next().unwrap_or_else(|| self.all.clone());
        for list in wanted {
            slots = intersection(&slots, &list);
        }
        for matcher in excluding {
            if slots.is_empty() {
                break;
            }
            slots = difference(&slots, &self.with_value(symbols, matcher, |v| !matcher.matches(v)));
        }
        slots
    }

    /// The slots of all series whose label of the matcher's name has a value that `wanted` holds
    /// for, ascending.
    fn with_value(
        &self,
        symbols: &Symbols,
        matcher: &Matcher,
        wanted: impl Fn(&str) -> bool,
    ) -> Vec<Slot> {
        let Some(values) = find(symbols, matcher.name()).and_then(|name| self.by_name.get(&name))
        else {
            return Vec::new();
        };
        // Few known values are looked up; otherwise every value of the name is asked.
        let looked_up = matcher.literals().filter(|literals| literals.iter().any(|l| wanted(l)));
        let lists: Vec<&Vec<Slot>> = match looked_up {
            Some(literals) => {
                literals.iter().filter_map(|literal| values.get(&find(symbols, literal)?)).collect()
            }
            None => {
                let holds = |(value, _): &(&SymbolId, _)| wanted(symbols.text(**value));
                values.iter().filter(holds).map(|(_, slots)| slots).collect()
            }
        };
        union(&lists)
    }
}

fn find(symbols: &Symbols, text: &str) -> Option<SymbolId> {
    symbols.find(text.as_bytes(), symbols.hash(text.as_bytes()))
}

fn insert_sorted(slots: &mut Vec<Slot>, slot: Slot) {
    match slots.last() {
        Some(last) if *last >= slot => {
            if let Err(at) = slots.binary_search(&slot) {
                slots.insert(at, slot);
            }
        }
        _ => slots.push(slot),
    }
}

fn remove_sorted(slots: &mut Vec<Slot>, slot: Slot) {
    if let Ok(at) = slots.binary_search(&slot) {
        slots.remove(at);
    }
}
