//! Applies a plugin's edit to a request. Unchanged parts are copied in their encoded form.

use super::columns::{Columns, InvalidBatch, check_refs, part};
use super::{Batch, View};
use crate::plugin::bindings::transform::exports::tidepool::plugin::transform_batches::Edit;
use tidepool_remote_write::{
    Fields, LABELS, SAMPLES, Value, put_label, put_label_refs, put_message_field, put_symbol, v1,
    v2,
};
use tidepool_runtime::RemoteWriteVersion;

/// Effect of an edit on a series.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped,
    /// The series gets the label set with this number in the edit.
    Relabeled(u32),
}

/// Symbols of a batch, followed by the symbols of its edit.
struct Symbols<'a> {
    own: Columns<'a>,
    edit: &'a Edit,
}

impl<'a> Symbols<'a> {
    fn text(&self, number: u32) -> &'a str {
        match (number as usize).checked_sub(self.own.symbol_count()) {
            None => self.own.symbol(number),
            Some(added) => part(&self.edit.symbol_ends, added)
                .and_then(|range| self.edit.symbols.get(range))
                .unwrap_or_default(),
        }
    }

    /// Collects a label set of the edit as (name, value), sorted by name, without empty values.
    fn labels(&self, number: u32, into: &mut Vec<(u32, u32)>) {
        let refs = part(&self.edit.series_ends, number as usize)
            .and_then(|range| self.edit.label_refs.get(range))
            .unwrap_or_default();
        let (pairs, _) = refs.as_chunks::<2>();
        into.clear();
        into.extend(pairs.iter().map(|[name, value]| (*name, *value)));
        into.retain(|(_, value)| !self.text(*value).is_empty());
        into.sort_by_key(|(name, _)| self.text(*name));
    }
}

pub struct Edited {
    pub body: Vec<u8>,
    /// Whether anything remains to be stored.
    pub has_content: bool,
    /// Number of samples and histograms of dropped series.
    pub dropped_rows: u64,
}

/// Applies an edit to a body. `view` has the columns of that body.
pub fn edited(
    version: RemoteWriteVersion,
    body: &[u8],
    view: &View,
    edit: &Edit,
) -> Result<Edited, InvalidBatch> {
    let fates = fates(&view.batch, edit)?;
    let symbols = Symbols { own: Columns::of(&view.batch), edit };
    // Room for the body and the additions. Most references need at most two bytes.
    let mut out = Vec::with_capacity(body.len() + edit.symbols.len() + edit.label_refs.len() * 2);
    let mut series = 0;
    let (mut has_content, mut dropped_rows) = (false, 0);
    let mut labels = Vec::new();
    let mut message = Vec::new();
    let series_field = match version {
        RemoteWriteVersion::V1 => v1::SERIES,
        RemoteWriteVersion::V2 => v2::SERIES,
    };
    let mut fields = Fields::new(body);
    let mut before = fields.rest();
    // The view has decoded the whole body, so no field is malformed.
    while let Some(Ok(field)) = fields.next() {
        let raw = before.get(..before.len() - fields.rest().len()).unwrap_or_default();
        before = fields.rest();
        match field {
            (number, Value::Bytes(old)) if number == series_field => {
                match fates.get(series).copied().unwrap_or(Fate::Kept) {
                    Fate::Kept => {
                        has_content = true;
                        out.extend_from_slice(raw);
                    }
                    Fate::Dropped => dropped_rows += rows(version, old),
                    Fate::Relabeled(number) => {
                        symbols.labels(number, &mut labels);
                        // A series without labels cannot be stored, so it is dropped.
                        if labels.is_empty() {
                            dropped_rows += rows(version, old);
                        } else {
                            has_content = true;
                            message.clear();
                            match version {
                                RemoteWriteVersion::V1 => {
                                    put_labels_v1(&symbols, &labels, &mut message);
                                }
                                RemoteWriteVersion::V2 => put_labels_v2(&labels, &mut message),
                            }
                            put_all_but_labels(old, &mut message);
                            put_message_field(&mut out, series_field, &message);
                        }
                    }
                }
                series += 1;
            }
            _ => {
                // Metadata of a 1.0 request must be stored, symbols alone (2.0) need not.
                has_content |= version == RemoteWriteVersion::V1;
                out.extend_from_slice(raw);
            }
        }
    }
    // Appended after the old symbols, so that references of unchanged series stay valid.
    if version == RemoteWriteVersion::V2 {
        for number in 0..edit.symbol_ends.len() {
            let text = part(&edit.symbol_ends, number).and_then(|range| edit.symbols.get(range));
            put_symbol(&mut out, text.unwrap_or_default());
        }
    }
    Ok(Edited { body: out, has_content, dropped_rows })
}

/// Counts the samples and histograms of an encoded series.
fn rows(version: RemoteWriteVersion, series: &[u8]) -> u64 {
    let histograms = match version {
        RemoteWriteVersion::V1 => v1::HISTOGRAMS,
        RemoteWriteVersion::V2 => v2::HISTOGRAMS,
    };
    let fields = Fields::new(series).map_while(Result::ok);
    fields.filter(|(number, _)| [SAMPLES, histograms].contains(number)).count() as u64
}

fn fates(batch: &Batch, edit: &Edit) -> Result<Vec<Fate>, InvalidBatch> {
    // All numbers are checked before any is used, since they come from the plugin.
    let count = batch.series_ends.len();
    Columns::check_symbols(&edit.symbols, &edit.symbol_ends)?;
    let symbols = batch.symbol_ends.len() + edit.symbol_ends.len();
    Columns::check_labels(&edit.label_refs, &edit.series_ends, symbols)?;
    check_refs("dropped", &edit.dropped, count)?;
    check_refs("relabeled", &edit.relabeled, count)?;
    if edit.relabeled.len() != edit.series_ends.len() {
        return Err(InvalidBatch::Lengths("relabeled"));
    }
    let mut fates = vec![Fate::Kept; count];
    for (number, series) in edit.relabeled.iter().enumerate() {
        match fates.get_mut(*series as usize) {
            Some(fate) if *fate == Fate::Kept => *fate = Fate::Relabeled(number as u32),
            // The edit has two label sets for a series.
            _ => return Err(InvalidBatch::Twice(*series)),
        }
    }
    // A series that is both dropped and relabeled is dropped.
    for series in &edit.dropped {
        if let Some(fate) = fates.get_mut(*series as usize) {
            *fate = Fate::Dropped;
        }
    }
    Ok(fates)
}

fn put_labels_v2(labels: &[(u32, u32)], message: &mut Vec<u8>) {
    let refs: Vec<u32> = labels.iter().flat_map(|(name, value)| [*name, *value]).collect();
    put_label_refs(message, &refs, &mut Vec::new());
}

fn put_labels_v1(symbols: &Symbols<'_>, labels: &[(u32, u32)], message: &mut Vec<u8>) {
    let mut label = Vec::new();
    for (name, value) in labels {
        put_label(message, symbols.text(*name), symbols.text(*value), &mut label);
    }
}

/// Copies all fields of a series except its labels.
fn put_all_but_labels(old: &[u8], message: &mut Vec<u8>) {
    let mut fields = Fields::new(old);
    let mut before = fields.rest();
    while let Some(Ok((number, _))) = fields.next() {
        let raw = before.get(..before.len() - fields.rest().len()).unwrap_or_default();
        before = fields.rest();
        if number != LABELS {
            message.extend_from_slice(raw);
        }
    }
}
