//! Edits: applying one to a batch, and combining two.

use super::batch::{extend, joined};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use tidepool_plugin::transform::Edit;
use tidepool_plugin::types::{Batch, Histograms, Samples};

/// Applies an edit to a batch, including the series it adds.
pub fn applied(batch: &Batch, mut edit: Edit) -> Batch {
    let added = edit.added.take();
    joined(edited(batch, &mut edit).0, added)
}

/// Applies an edit to the series of a batch; returns them with their places in the original batch.
/// A series without labels is dropped, and added to the edit's dropped series.
///
/// The symbols are the batch's followed by the edit's, so that an edit of the result numbers its
/// own symbols after both.
pub fn edited(batch: &Batch, edit: &mut Edit) -> (Batch, Vec<u32>) {
    let mut symbols = batch.symbols.clone();
    let mut symbol_ends = batch.symbol_ends.clone();
    extend(&mut symbol_ends, &edit.symbol_ends, symbols.len() as u32);
    symbols.push_str(&edit.symbols);
    let is_empty = |symbol: u32| part(&symbol_ends, symbol as usize).is_empty();
    let relabeled = by_place(edit);
    let dropped: HashSet<u32> = edit.dropped.iter().copied().collect();
    let (mut label_refs, mut series_ends, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for place in 0..batch.series_ends.len() {
        if dropped.contains(&(place as u32)) {
            continue;
        }
        let begin = label_refs.len();
        match relabeled.get(&(place as u32)) {
            None => {
                let refs = batch.label_refs.get(part(&batch.series_ends, place));
                label_refs.extend_from_slice(refs.unwrap_or_default());
            }
            Some(refs) => {
                let (pairs, _) =
                    edit.label_refs.get(refs.clone()).unwrap_or_default().as_chunks::<2>();
                let pairs = pairs.iter().filter(|[_, value]| !is_empty(*value));
                label_refs.extend(pairs.flatten());
            }
        }
        if label_refs.len() == begin {
            edit.dropped.push(place as u32);
            continue;
        }
        series_ends.push(label_refs.len() as u32);
        places.push(place as u32);
    }
    let new_places: HashMap<u32, u32> = places.iter().copied().zip(0..).collect();
    let samples = samples(&batch.samples, &new_places);
    let histograms = histograms(&batch.histograms, &new_places);
    (Batch { symbols, symbol_ends, label_refs, series_ends, samples, histograms }, places)
}

/// Combines two edits into one. The second was made for the result of the first, whose series have
/// these places in the original batch.
pub fn both(first: Edit, second: Edit, places: &[u32]) -> Edit {
    let old = |place: &u32| places.get(*place as usize).copied();
    let mut dropped = first.dropped.clone();
    dropped.extend(second.dropped.iter().filter_map(old));
    let mut relabeled: HashMap<u32, &[u32]> = HashMap::new();
    for (place, refs) in by_place(&first) {
        relabeled.insert(place, first.label_refs.get(refs).unwrap_or_default());
    }
    for (place, refs) in by_place(&second) {
        if let Some(place) = old(&place) {
            relabeled.insert(place, second.label_refs.get(refs).unwrap_or_default());
        }
    }
    for place in &dropped {
        relabeled.remove(place);
    }
    let mut relabeled: Vec<(u32, &[u32])> = relabeled.into_iter().collect();
    relabeled.sort_unstable_by_key(|(place, _)| *place);
    let (mut label_refs, mut series_ends) = (Vec::new(), Vec::new());
    for (_, refs) in &relabeled {
        label_refs.extend_from_slice(refs);
        series_ends.push(label_refs.len() as u32);
    }
    let relabeled = relabeled.into_iter().map(|(place, _)| place).collect();
    let (mut symbols, mut symbol_ends) = (first.symbols, first.symbol_ends);
    extend(&mut symbol_ends, &second.symbol_ends, symbols.len() as u32);
    symbols.push_str(&second.symbols);
    let added = second.added;
    Edit { symbols, symbol_ends, dropped, relabeled, label_refs, series_ends, added }
}

/// Maps the place of each relabeled series to the range of its references.
fn by_place(edit: &Edit) -> HashMap<u32, Range<usize>> {
    let places = edit.relabeled.iter().copied().enumerate();
    places.map(|(number, place)| (place, part(&edit.series_ends, number))).collect()
}

fn samples(samples: &Samples, new_places: &HashMap<u32, u32>) -> Samples {
    let mut kept = Samples { series: Vec::new(), timestamps_ms: Vec::new(), values: Vec::new() };
    let rows = samples.series.iter().zip(&samples.timestamps_ms).zip(&samples.values);
    for ((series, timestamp_ms), value) in rows {
        if let Some(place) = new_places.get(series) {
            kept.series.push(*place);
            kept.timestamps_ms.push(*timestamp_ms);
            kept.values.push(*value);
        }
    }
    kept
}

fn histograms(histograms: &Histograms, new_places: &HashMap<u32, u32>) -> Histograms {
    let mut kept = Histograms { series: Vec::new(), messages: Vec::new(), ends: Vec::new() };
    for (number, series) in histograms.series.iter().enumerate() {
        if let Some(place) = new_places.get(series) {
            let message = histograms.messages.get(part(&histograms.ends, number));
            kept.series.push(*place);
            kept.messages.extend_from_slice(message.unwrap_or_default());
            kept.ends.push(kept.messages.len() as u32);
        }
    }
    kept
}

/// Returns the range of the item with this number, given where each item ends.
fn part(ends: &[u32], number: usize) -> Range<usize> {
    let end = ends.get(number).copied().unwrap_or_default();
    let start = number.checked_sub(1).and_then(|before| ends.get(before)).copied();
    start.unwrap_or_default() as usize..end as usize
}
