//! Reading the columns of a batch.

use crate::types::Batch;
use std::ops::Range;

/// The label sets of a batch.
#[derive(Clone, Copy)]
pub struct Series<'a> {
    batch: &'a Batch,
}

impl<'a> Series<'a> {
    /// Of a batch.
    pub fn of(batch: &'a Batch) -> Series<'a> {
        Series { batch }
    }

    /// How many series there are.
    pub fn count(&self) -> usize {
        self.batch.series_ends.len()
    }

    /// How many symbols there are.
    pub fn symbol_count(&self) -> usize {
        self.batch.symbol_ends.len()
    }

    /// The text of a symbol.
    pub fn symbol(&self, number: u32) -> &'a str {
        let range = part(&self.batch.symbol_ends, number as usize);
        self.batch.symbols.get(range).unwrap_or_default()
    }

    /// References to the symbols of name and value in turn, of one series.
    pub fn refs(&self, series: usize) -> &'a [u32] {
        self.batch.label_refs.get(part(&self.batch.series_ends, series)).unwrap_or_default()
    }

    /// Names and values of one series.
    pub fn labels(&self, series: usize) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let this = *self;
        let (pairs, _) = this.refs(series).as_chunks::<2>();
        pairs.iter().map(move |[name, value]| (this.symbol(*name), this.symbol(*value)))
    }

    /// The value of a label of one series; empty if it has none of that name.
    pub fn label(&self, series: usize, name: &str) -> &'a str {
        self.labels(series).find(|(other, _)| *other == name).map_or("", |(_, value)| value)
    }
}

/// Native histograms of a batch: the number of their series, and a message
/// `io.prometheus.write.v2.Histogram`.
pub fn histograms(batch: &Batch) -> impl Iterator<Item = (u32, &[u8])> {
    let columns = &batch.histograms;
    let message = |number| columns.messages.get(part(&columns.ends, number)).unwrap_or_default();
    columns.series.iter().enumerate().map(move |(number, series)| (*series, message(number)))
}

/// The part of something that a number stands for.
fn part(ends: &[u32], number: usize) -> Range<usize> {
    let end = ends.get(number).copied().unwrap_or_default();
    let start = match number.checked_sub(1) {
        Some(before) => ends.get(before).copied().unwrap_or_default(),
        None => 0,
    };
    start as usize..end as usize
}
