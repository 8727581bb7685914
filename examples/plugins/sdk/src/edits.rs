//! Collector of changes to a batch.

use crate::transform::{Edit, Verdict};
use crate::types::Batch;
use std::collections::HashMap;

/// Changes to a batch; series without a change stay as they are.
pub struct Edits {
    edit: Edit,
    /// Number of symbols in the batch; new symbols are numbered after them.
    own_symbols: u32,
    symbols: HashMap<String, u32>,
}

impl Edits {
    /// Begins without changes to a batch.
    pub fn of(batch: &Batch) -> Edits {
        let edit = Edit {
            symbols: String::new(),
            symbol_ends: Vec::new(),
            dropped: Vec::new(),
            relabeled: Vec::new(),
            label_refs: Vec::new(),
            series_ends: Vec::new(),
            added: None,
        };
        let own_symbols = batch.symbol_ends.len() as u32;
        Edits { edit, own_symbols, symbols: HashMap::new() }
    }

    /// Drops a series from the batch.
    pub fn drop(&mut self, series: usize) {
        self.edit.dropped.push(series as u32);
    }

    pub fn relabel<'a>(
        &mut self,
        series: usize,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) {
        for (name, value) in labels {
            let pair = [self.symbol(name), self.symbol(value)];
            self.edit.label_refs.extend(pair);
        }
        self.end(series);
    }

    /// Replaces the labels of a series by references to symbols: the batch's own and those that
    /// [`Edits::symbol`] returned.
    pub fn relabel_by_refs(&mut self, series: usize, refs: &[u32]) {
        self.edit.label_refs.extend_from_slice(refs);
        self.end(series);
    }

    /// Adds series and samples to be stored with the batch.
    pub fn add(&mut self, batch: Batch) {
        self.edit.added = Some(batch);
    }

    /// Returns a reference to a text, which is added to the symbols if it is new.
    pub fn symbol(&mut self, text: &str) -> u32 {
        if let Some(symbol) = self.symbols.get(text) {
            return *symbol;
        }
        let symbol = self.own_symbols + self.edit.symbol_ends.len() as u32;
        self.edit.symbols.push_str(text);
        self.edit.symbol_ends.push(self.edit.symbols.len() as u32);
        self.symbols.insert(text.to_owned(), symbol);
        symbol
    }

    /// Returns the verdict, which is `Unchanged` if there are no changes.
    pub fn verdict(self) -> Verdict {
        let Edit { dropped, relabeled, added, .. } = &self.edit;
        match dropped.is_empty() && relabeled.is_empty() && added.is_none() {
            true => Verdict::Unchanged,
            false => Verdict::Edited(self.edit),
        }
    }

    fn end(&mut self, series: usize) {
        self.edit.relabeled.push(series as u32);
        self.edit.series_ends.push(self.edit.label_refs.len() as u32);
    }
}
