//! Guessing the series of a request from the one before.
//!
//! Senders name their series in the same order again and again, if not in the same requests, and
//! slots were given to them in that order. So the next slot's series is held against the labels that
//! come: no hash is computed and no table is searched. A wrong guess costs a comparison and changes
//! nothing.

use super::lookup::{LookupError, RequestSymbols};
use super::series::Slot;
use super::symbols::SymbolId;
use super::{Batch, Head};
use crate::codec::bytes_equal;

/// Guesses the series that follows the last one of a request.
#[derive(Default)]
pub struct NextSeriesPredictor<'r> {
    /// The series that was found last.
    last: Option<Slot>,
    /// By place in the label set, a label of this request that is known to be these symbols.
    known: Vec<KnownLabel<'r>>,
}

#[derive(Clone, Copy)]
struct KnownLabel<'r> {
    pair: (&'r [u8], &'r [u8]),
    ids: (SymbolId, SymbolId),
}

impl NextSeriesPredictor<'_> {
    #[inline]
    fn guess(&self) -> Option<Slot> {
        self.last.and_then(Slot::next)
    }
}

impl Head {
    /// The series with these labels, given in any order. Labels that are the very slices of an
    /// earlier call are not compared again.
    #[inline]
    pub fn next_by_pairs<'r>(
        &mut self,
        batch: &mut Batch,
        predictor: &mut NextSeriesPredictor<'r>,
        pairs: &[(&'r [u8], &'r [u8])],
    ) -> Result<Slot, LookupError> {
        let guess = predictor.guess().filter(|guess| self.has_pairs(*guess, predictor, pairs));
        let slot = match guess {
            Some(slot) => slot,
            None => self.series_by_pairs(batch, pairs)?,
        };
        predictor.last = Some(slot);
        Ok(slot)
    }

    /// The series whose labels are these references, name and value in turn.
    #[inline]
    pub fn next_by_refs<'r>(
        &mut self,
        batch: &mut Batch,
        predictor: &mut NextSeriesPredictor<'r>,
        request: &mut RequestSymbols<'r>,
        refs: &[u32],
    ) -> Result<Slot, LookupError> {
        let guess = predictor.guess().filter(|guess| self.has_refs(*guess, request, refs));
        let slot = match guess {
            Some(slot) => slot,
            None => self.series_by_refs(batch, request, refs)?,
        };
        predictor.last = Some(slot);
        Ok(slot)
    }

    fn has_pairs<'r>(
        &self,
        slot: Slot,
        predictor: &mut NextSeriesPredictor<'r>,
        pairs: &[(&'r [u8], &'r [u8])],
    ) -> bool {
        let Some(series) = self.series.get(slot) else { return false };
        if series.labels.len() != pairs.len() {
            return false;
        }
        for (place, (ids, pair)) in series.labels.iter().zip(pairs).enumerate() {
            let known = predictor.known.get_mut(place);
            if let Some(known) = &known
                && std::ptr::eq(known.pair.0, pair.0)
                && std::ptr::eq(known.pair.1, pair.1)
            {
                // A text has one symbol.
                if known.ids == ids {
                    continue;
                }
                return false;
            }
            let is = |id, text| bytes_equal(self.symbols.text(id).as_bytes(), text);
            if !is(ids.0, pair.0) || !is(ids.1, pair.1) {
                return false;
            }
            let now_known = KnownLabel { pair: *pair, ids };
            match known {
                Some(known) => *known = now_known,
                None => predictor.known.push(now_known),
            }
        }
        true
    }

    fn has_refs(&self, slot: Slot, request: &mut RequestSymbols<'_>, refs: &[u32]) -> bool {
        let Some(series) = self.series.get(slot) else { return false };
        let (pairs, odd) = refs.as_chunks::<2>();
        let mut both = series.labels.iter().zip(pairs);
        let mut is = |id, symbol_ref: &u32| request.is(&self.symbols, *symbol_ref, id);
        odd.is_empty()
            && series.labels.len() == pairs.len()
            && both.all(|(ids, [name, value])| is(ids.0, name) && is(ids.1, value))
    }
}
