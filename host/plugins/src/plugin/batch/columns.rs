//! Texts and label sets packed into columns, checked before use.

use super::Batch;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// The ends do not ascend, or the last one is not the length of the data.
    #[error("`{0}` is invalid: ends must ascend, and the last end must be the length")]
    Ends(&'static str),
    #[error("the columns of `{0}` differ in length")]
    Lengths(&'static str),
    #[error("`{column}` refers to entry {reference}, but there are only {count}")]
    Reference {
        column: &'static str,
        reference: u32,
        /// Number of entries to which a reference may point.
        count: usize,
    },
    /// A label name has no value; contains the number of the series.
    #[error("series {0} has a label name without a value")]
    Pairs(usize),
    /// A series is named twice.
    #[error("series {0} occurs twice")]
    Twice(u32),
}

/// Symbol table, and label sets that refer to its symbols.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    symbols: &'a str,
    symbol_ends: &'a [u32],
    label_refs: &'a [u32],
    series_ends: &'a [u32],
}

impl<'a> Columns<'a> {
    /// Borrows the columns of a batch that has passed [`Batch::check`].
    pub fn of(batch: &'a Batch) -> Columns<'a> {
        Columns {
            symbols: &batch.symbols,
            symbol_ends: &batch.symbol_ends,
            label_refs: &batch.label_refs,
            series_ends: &batch.series_ends,
        }
    }

    pub fn check_symbols(symbols: &str, ends: &[u32]) -> Result<(), InvalidBatch> {
        check_ends("symbol-ends", ends, symbols.len())?;
        // A boundary inside a character would make slices of the text invalid.
        let is_whole = |end: &u32| symbols.is_char_boundary(*end as usize);
        if ends.iter().all(is_whole) { Ok(()) } else { Err(InvalidBatch::Ends("symbol-ends")) }
    }

    /// Checks label sets that refer to a table of `symbols` symbols.
    pub fn check_labels(refs: &[u32], ends: &[u32], symbols: usize) -> Result<(), InvalidBatch> {
        check_ends("series-ends", ends, refs.len())?;
        check_refs("label-refs", refs, symbols)?;
        // A label set has an even number of references, so all ends must be even.
        match ends.iter().position(|end| end % 2 != 0) {
            Some(series) => Err(InvalidBatch::Pairs(series)),
            None => Ok(()),
        }
    }

    pub fn series_count(&self) -> usize {
        self.series_ends.len()
    }

    pub fn symbol_count(&self) -> usize {
        self.symbol_ends.len()
    }

    /// Returns a symbol; empty if there is no symbol of that number.
    pub fn symbol(&self, number: u32) -> &'a str {
        part(self.symbol_ends, number as usize)
            .and_then(|range| self.symbols.get(range))
            .unwrap_or_default()
    }

    /// Returns the label references of a series; empty if there is no series of that number.
    pub fn refs(&self, series: usize) -> &'a [u32] {
        part(self.series_ends, series)
            .and_then(|range| self.label_refs.get(range))
            .unwrap_or_default()
    }
}

impl Batch {
    pub fn check(&self) -> Result<(), InvalidBatch> {
        Columns::check_symbols(&self.symbols, &self.symbol_ends)?;
        Columns::check_labels(&self.label_refs, &self.series_ends, self.symbol_ends.len())?;
        let count = self.series_ends.len();
        let samples = &self.samples;
        if samples.timestamps_ms.len() != samples.series.len()
            || samples.values.len() != samples.series.len()
        {
            return Err(InvalidBatch::Lengths("samples"));
        }
        check_refs("samples.series", &samples.series, count)?;
        let histograms = &self.histograms;
        if histograms.ends.len() != histograms.series.len() {
            return Err(InvalidBatch::Lengths("histograms"));
        }
        check_ends("histograms.ends", &histograms.ends, histograms.messages.len())?;
        check_refs("histograms.series", &histograms.series, count)
    }
}

/// Returns the range of an entry, computed from the ends of all entries.
pub(super) fn part(ends: &[u32], number: usize) -> Option<std::ops::Range<usize>> {
    let end = *ends.get(number)? as usize;
    let start = match number.checked_sub(1) {
        Some(before) => *ends.get(before)? as usize,
        None => 0,
    };
    Some(start..end)
}

fn check_ends(column: &'static str, ends: &[u32], length: usize) -> Result<(), InvalidBatch> {
    let reaches = ends.last().map_or(0, |end| *end as usize) == length;
    if reaches && ends.is_sorted() { Ok(()) } else { Err(InvalidBatch::Ends(column)) }
}

pub(super) fn check_refs(
    column: &'static str,
    refs: &[u32],
    count: usize,
) -> Result<(), InvalidBatch> {
    // If the largest reference is valid, so are all others.
    match refs.iter().max() {
        Some(reference) if *reference as usize >= count => {
            Err(InvalidBatch::Reference { column, reference: *reference, count })
        }
        _ => Ok(()),
    }
}
