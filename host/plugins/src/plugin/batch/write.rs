//! Encoding of a batch as a remote-write 2.0 body.

use super::columns::{Columns, InvalidBatch, part};
use super::{Batch, Samples};
use tidepool_remote_write::{put_float, put_label_refs, put_message_field, put_symbol, v2};

/// Checks a batch and encodes it as a body. Labels are sorted. Labels without a value are left out,
/// and so are series without labels or without rows.
pub fn write(batch: &Batch) -> Result<Vec<u8>, InvalidBatch> {
    batch.check()?;
    let columns = Columns::of(batch);
    let mut out = Vec::with_capacity(batch.symbols.len() + batch.samples.series.len() * 48);
    // A 2.0 body begins with the empty symbol, which shifts all references by one.
    put_symbol(&mut out, "");
    for number in 0..columns.symbol_count() {
        put_symbol(&mut out, columns.symbol(number as u32));
    }
    let samples = by_series(&batch.samples.series, columns.series_count());
    let histograms = by_series(&batch.histograms.series, columns.series_count());
    let mut labels: Vec<(u32, u32)> = Vec::new();
    let (mut refs, mut message, mut packed) = (Vec::new(), Vec::new(), Vec::new());
    for series in 0..columns.series_count() {
        let (pairs, _) = columns.refs(series).as_chunks::<2>();
        labels.clear();
        labels.extend(pairs.iter().map(|[name, value]| (*name, *value)));
        // An empty value means that the label does not exist, as in Prometheus.
        labels.retain(|(_, value)| !columns.symbol(*value).is_empty());
        labels.sort_by_key(|(name, _)| columns.symbol(*name));
        let (samples, histograms) = (samples.of(series), histograms.of(series));
        if labels.is_empty() || samples.len() + histograms.len() == 0 {
            continue;
        }
        message.clear();
        refs.clear();
        // Cannot overflow: a list of 4-byte ends from a 32-bit memory has fewer than 2³⁰ entries.
        refs.extend(labels.iter().flat_map(|(name, value)| [name + 1, value + 1]));
        put_label_refs(&mut message, &refs, &mut packed);
        for row in samples {
            put_sample(&mut message, &batch.samples, *row as usize);
        }
        for row in histograms {
            let range = part(&batch.histograms.ends, *row as usize);
            let encoded = range.and_then(|range| batch.histograms.messages.get(range));
            put_message_field(&mut message, v2::HISTOGRAMS, encoded.unwrap_or_default());
        }
        put_message_field(&mut out, v2::SERIES, &message);
    }
    Ok(out)
}

fn put_sample(out: &mut Vec<u8>, samples: &Samples, row: usize) {
    let value = samples.values.get(row).copied().unwrap_or_default();
    let timestamp_ms = samples.timestamps_ms.get(row).copied().unwrap_or_default();
    put_float(out, timestamp_ms, value);
}

/// Rows of a column, grouped by series. The order in each group is that of the column.
struct BySeries {
    rows: Vec<u32>,
    ends: Vec<u32>,
}

impl BySeries {
    fn of(&self, series: usize) -> &[u32] {
        part(&self.ends, series).and_then(|range| self.rows.get(range)).unwrap_or_default()
    }
}

/// Groups rows by a counting sort, in linear time. Every element of `series` is below `count`.
fn by_series(series: &[u32], count: usize) -> BySeries {
    let mut ends = vec![0u32; count];
    for one in series {
        if let Some(rows) = ends.get_mut(*one as usize) {
            *rows += 1;
        }
    }
    let mut total = 0;
    for end in &mut ends {
        // Now the start of the group; after the loop below it is the end of the group.
        total += std::mem::replace(end, total);
    }
    let mut rows = vec![0u32; series.len()];
    for (row, one) in series.iter().enumerate() {
        let Some(next) = ends.get_mut(*one as usize) else { continue };
        if let Some(place) = rows.get_mut(*next as usize) {
            *place = row as u32;
        }
        *next += 1;
    }
    BySeries { rows, ends }
}
