//! Reader for the columns of a batch.

use crate::types::Batch;
use std::ops::Range;

/// The label sets of a batch.
#[derive(Clone, Copy)]
pub struct Series<'a> {
    batch: &'a Batch,
}

impl<'a> Series<'a> {
    pub fn of(batch: &'a Batch) -> Series<'a> {
        Series { batch }
    }

    /// Returns the number of series in the batch.
    pub fn count(&self) -> usize {
        self.batch.series_ends.len()
    }

    /// Returns the number of symbols in the batch.
    pub fn symbol_count(&self) -> usize {
        self.batch.symbol_ends.len()
    }

    pub fn symbol(&self, number: u32) -> &'a str {
        let range = part(&self.batch.symbol_ends, number as usize);
        self.batch.symbols.get(range).unwrap_or_default()
    }

    /// Returns references to the symbols of one series: name and value in turn.
    pub fn refs(&self, series: usize) -> &'a [u32] {
        self.batch.label_refs.get(part(&self.batch.series_ends, series)).unwrap_or_default()
    }

    /// Returns names and values of one series.
    pub fn labels(&self, series: usize) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let this = *self;
        let (pairs, _) = this.refs(series).as_chunks::<2>();
        pairs.iter().map(move |[name, value]| (this.symbol(*name), this.symbol(*value)))
    }

    /// Returns the value of a label of one series; empty if the series lacks the label.
    pub fn label(&self, series: usize, name: &str) -> &'a str {
        self.labels(series).find(|(other, _)| *other == name).map_or("", |(_, value)| value)
    }
}

/// Returns the native histograms of a batch: the number of their series, and an encoded
/// `io.prometheus.write.v2.Histogram`.
pub fn histograms(batch: &Batch) -> impl Iterator<Item = (u32, &[u8])> {
    let columns = &batch.histograms;
    let message = |number| columns.messages.get(part(&columns.ends, number)).unwrap_or_default();
    columns.series.iter().enumerate().map(move |(number, series)| (*series, message(number)))
}

/// Returns the range of the item with this number, given where each item ends.
fn part(ends: &[u32], number: usize) -> Range<usize> {
    let end = ends.get(number).copied().unwrap_or_default();
    let start = match number.checked_sub(1) {
        Some(before) => ends.get(before).copied().unwrap_or_default(),
        None => 0,
    };
    start as usize..end as usize
}
