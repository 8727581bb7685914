//! Appends one batch to another.

use tidepool_plugin::types::Batch;

/// Returns series and samples of both. A symbol may then occur twice, which is allowed.
pub fn joined(mut one: Batch, other: Option<Batch>) -> Batch {
    let Some(other) = other else { return one };
    let bytes = one.symbols.len() as u32;
    let symbols = one.symbol_ends.len() as u32;
    let refs = one.label_refs.len() as u32;
    let series = one.series_ends.len() as u32;
    one.symbols.push_str(&other.symbols);
    extend(&mut one.symbol_ends, &other.symbol_ends, bytes);
    extend(&mut one.label_refs, &other.label_refs, symbols);
    extend(&mut one.series_ends, &other.series_ends, refs);
    extend(&mut one.samples.series, &other.samples.series, series);
    one.samples.timestamps_ms.extend(other.samples.timestamps_ms);
    one.samples.values.extend(other.samples.values);
    let bytes = one.histograms.messages.len() as u32;
    extend(&mut one.histograms.series, &other.histograms.series, series);
    one.histograms.messages.extend(other.histograms.messages);
    extend(&mut one.histograms.ends, &other.histograms.ends, bytes);
    one
}

/// Appends numbers, each increased by `by`: positions in another batch become positions in the
/// joint one.
pub fn extend(to: &mut Vec<u32>, numbers: &[u32], by: u32) {
    to.extend(numbers.iter().map(|number| number.saturating_add(by)));
}
