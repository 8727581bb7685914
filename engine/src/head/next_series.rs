//! Predicts the next series of a request from the series before it.
//!
//! Senders repeat their series in the same order, though not split into the same requests, and
//! slots were assigned in that order. So the labels of a series are first compared with the series
//! in the slot after the last one: if they match, no hash is computed and no table is searched. A
//! wrong guess costs only a comparison.

use super::series::Slot;
use super::series_table::{RequestSymbols, SeriesTable};
use super::symbols::SymbolId;
use crate::codec::bytes_equal;

/// Guesses the series that follows the last one of a request.
#[derive(Default)]
pub struct NextSeriesPredictor<'r> {
    last: Option<Slot>,
    /// By position in a label set, the label of this request last compared there, with its symbols.
    known: Vec<KnownLabel<'r>>,
}

#[derive(Clone, Copy)]
struct KnownLabel<'r> {
    pair: (&'r [u8], &'r [u8]),
    ids: (SymbolId, SymbolId),
}

impl<'r> NextSeriesPredictor<'r> {
    /// Returns the next series, if it has these labels in this order. Labels that are the same
    /// slices as in an earlier call are not compared again.
    #[inline]
    pub(super) fn guess_pairs(
        &mut self,
        table: &SeriesTable,
        pairs: &[(&'r [u8], &'r [u8])],
    ) -> Option<Slot> {
        self.guess().filter(|guess| self.has_pairs(table, *guess, pairs))
    }

    /// Returns the next series, if its labels are these references, alternating names and values.
    #[inline]
    pub(super) fn guess_refs(
        &self,
        table: &SeriesTable,
        request: &mut RequestSymbols<'_>,
        refs: &[u32],
    ) -> Option<Slot> {
        self.guess().filter(|guess| has_refs(table, *guess, request, refs))
    }

    /// Notes the current series, from which the next one is guessed.
    #[inline]
    pub(super) fn set_last(&mut self, slot: Slot) {
        self.last = Some(slot);
    }

    #[inline]
    fn guess(&self) -> Option<Slot> {
        self.last.and_then(Slot::next)
    }

    fn has_pairs(
        &mut self,
        table: &SeriesTable,
        slot: Slot,
        pairs: &[(&'r [u8], &'r [u8])],
    ) -> bool {
        let Some(series) = table.get(slot) else { return false };
        if series.labels.len() != pairs.len() {
            return false;
        }
        for (place, (ids, pair)) in series.labels.iter().zip(pairs).enumerate() {
            // All slices borrow from one request, so equal pointers mean equal texts.
            let known = self.known.get_mut(place);
            if let Some(known) = &known
                && std::ptr::eq(known.pair.0, pair.0)
                && std::ptr::eq(known.pair.1, pair.1)
            {
                // A text has one symbol, so different numbers mean different texts.
                if known.ids == ids {
                    continue;
                }
                return false;
            }
            let is = |id, text| bytes_equal(table.symbols().text(id).as_bytes(), text);
            if !is(ids.0, pair.0) || !is(ids.1, pair.1) {
                return false;
            }
            let now_known = KnownLabel { pair: *pair, ids };
            match known {
                Some(known) => *known = now_known,
                None => self.known.push(now_known),
            }
        }
        true
    }
}

fn has_refs(
    table: &SeriesTable,
    slot: Slot,
    request: &mut RequestSymbols<'_>,
    refs: &[u32],
) -> bool {
    let Some(series) = table.get(slot) else { return false };
    let (pairs, odd) = refs.as_chunks::<2>();
    let mut both = series.labels.iter().zip(pairs);
    let mut is = |id, symbol_ref: &u32| request.is(table.symbols(), *symbol_ref, id);
    odd.is_empty()
        && series.labels.len() == pairs.len()
        && both.all(|(ids, [name, value])| is(ids.0, name) && is(ids.1, value))
}
