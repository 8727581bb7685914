//! Drops and relabels series by rules in the format of Prometheus' `write_relabel_configs`.

mod rules;

use hashbrown::HashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tidepool_plugin::transform::{Batch, Guest, Interest, Verdict};
use tidepool_plugin::{Edits, Series};
use tidepool_relabel::{Rule, relabel};

/// Maximum size of cached strings and label sets in bytes; above it, the cache is emptied.
const KNOWN_BYTES_MAX: usize = 16 << 20;

/// Stands for a string that is no symbol of the batch.
const NOWHERE: u32 = u32::MAX;

/// Result of the rules for a series.
#[derive(Clone)]
enum Fate {
    Kept,
    Dropped,
    /// Numbers of names and values in turn.
    Relabeled(Box<[u32]>),
}

/// Cache of strings and results: the same label sets come with every batch, and most strings with
/// every series.
#[derive(Default)]
struct Known {
    numbers: HashMap<Rc<str>, u32>,
    strings: Vec<Rc<str>>,
    /// Results by the numbers of names and values in turn.
    fates: HashMap<Box<[u32]>, Fate>,
    bytes: usize,
}

#[derive(Default)]
struct Plugin {
    rules: Vec<Rule>,
    known: Known,
}

thread_local! {
    static PLUGIN: RefCell<Plugin> = RefCell::default();
}

pub struct DropAndRelabel;

impl Guest for DropAndRelabel {
    fn configure(config: String) -> Result<Interest, String> {
        let rules = rules::read(&config)?;
        PLUGIN.with_borrow_mut(|plugin| plugin.rules = rules);
        Ok(Interest::empty())
    }

    fn transform(batch: Batch) -> Result<Verdict, String> {
        Ok(PLUGIN.with_borrow_mut(|plugin| plugin.judge(&batch)))
    }
}

impl Plugin {
    fn judge(&mut self, batch: &Batch) -> Verdict {
        if self.known.bytes > KNOWN_BYTES_MAX {
            self.known = Known::default();
        }
        let series = Series::of(batch);
        let mut edits = Edits::of(batch);
        let symbols = 0..series.symbol_count() as u32;
        let numbers: Vec<u32> =
            symbols.map(|symbol| self.known.number(series.symbol(symbol))).collect();
        // Symbol of each string, filled when the first series is relabeled.
        let mut places: Vec<u32> = Vec::new();
        let (mut key, mut refs) = (Vec::new(), Vec::new());
        for place in 0..series.count() {
            key.clear();
            key.extend(
                series.refs(place).iter().filter_map(|symbol| numbers.get(*symbol as usize)),
            );
            if !self.known.fates.contains_key(key.as_slice()) {
                let fate = self.fate(labels(&series, place));
                self.known.bytes += 8 * key.len() + 64;
                self.known.fates.insert(key.clone().into_boxed_slice(), fate);
            }
            match self.known.fates.get(key.as_slice()) {
                None | Some(Fate::Kept) => {}
                Some(Fate::Dropped) => edits.drop(place),
                Some(Fate::Relabeled(labels)) => {
                    if places.is_empty() {
                        places = self.known.places(&numbers);
                    }
                    refs.clear();
                    for number in labels {
                        let found = places.get(*number as usize).filter(|p| **p != NOWHERE);
                        refs.push(match found {
                            Some(symbol) => *symbol,
                            None => edits.symbol(self.known.text(*number)),
                        });
                    }
                    edits.relabel_by_refs(place, &refs);
                }
            }
        }
        edits.verdict()
    }

    fn fate(&mut self, before: BTreeMap<String, String>) -> Fate {
        let mut labels = before.clone();
        match relabel(&mut self.rules, &mut labels) {
            false => Fate::Dropped,
            true if labels == before => Fate::Kept,
            true => {
                let pairs = labels.iter().flat_map(|(name, value)| [name, value]);
                Fate::Relabeled(pairs.map(|text| self.known.number(text)).collect())
            }
        }
    }
}

/// Returns the labels of a series without those that have an empty value.
fn labels(series: &Series<'_>, place: usize) -> BTreeMap<String, String> {
    let pairs = series.labels(place).filter(|(_, value)| !value.is_empty());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl Known {
    /// Returns the number of a string; a new string gets the next number.
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.strings.len() as u32;
        let text: Rc<str> = text.into();
        self.bytes += text.len() + 64;
        self.strings.push(Rc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    fn text(&self, number: u32) -> &str {
        self.strings.get(number as usize).map_or("", |text| text)
    }

    /// Returns the symbol of each string in a batch.
    fn places(&self, numbers: &[u32]) -> Vec<u32> {
        let mut places = vec![NOWHERE; self.strings.len()];
        for (symbol, number) in numbers.iter().enumerate() {
            if let Some(place) = places.get_mut(*number as usize) {
                *place = symbol as u32;
            }
        }
        places
    }
}

tidepool_plugin::export_transform!(DropAndRelabel);
