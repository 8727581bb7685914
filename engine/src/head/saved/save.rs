//! Splits a head into the pieces of a snapshot.

use super::{kind, put_text, put_u32};
use crate::head::exemplars::RingSaver;
use crate::head::label_names::NameList;
use crate::head::symbols::SymbolId;
use crate::head::{Head, Slot};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Returns a head piece by piece. The head must not change meanwhile. Needs memory for one piece
/// and a few bytes for each series, each distinct label and each metric family.
pub struct HeadSaver {
    /// Kind of the next piece.
    kind: u8,
    /// Number of items of this kind that were returned.
    next: usize,
    symbols: Vec<SymbolId>,
    /// Number in the snapshot of each symbol, by the symbol's own number.
    symbol_numbers: Vec<u32>,
    pairs: Vec<(SymbolId, SymbolId)>,
    pair_numbers: FxHashMap<(SymbolId, SymbolId), u32>,
    name_lists: Vec<NameList>,
    /// Number in the snapshot of each name list, by the address of the list.
    list_numbers: FxHashMap<*const Box<[SymbolId]>, u32>,
    /// Series that have samples; a replay drops all others.
    slots: Vec<Slot>,
    families: Vec<Box<str>>,
    ring: RingSaver,
}

impl HeadSaver {
    /// Assigns numbers to everything that later pieces refer to.
    pub fn new(head: &Head) -> HeadSaver {
        let has_samples = |slot: &Slot| head.table.at(*slot).has_samples();
        let slots: Vec<Slot> = head.slots().filter(has_samples).collect();
        // Labels of series without samples are left out, since the loader refuses unused labels.
        let lists = head.postings.lists();
        let of_series = lists.filter(|(_, slots)| slots.iter().any(has_samples));
        let mut pairs: Vec<(SymbolId, SymbolId)> = of_series.map(|(pair, _)| pair).collect();
        // The order of hash tables must not show in the snapshot.
        pairs.sort_unstable();
        let mut symbols: Vec<SymbolId> = pairs.iter().flat_map(|(n, v)| [*n, *v]).collect();
        symbols.sort_unstable();
        symbols.dedup();
        let mut symbol_numbers = vec![u32::MAX; symbols.last().map_or(0, |id| id.0 as usize + 1)];
        for (id, number) in symbols.iter().zip(0..) {
            symbol_numbers[id.0 as usize] = number;
        }
        let pair_numbers = pairs.iter().copied().zip(0..).collect();
        let mut name_lists: Vec<NameList> = Vec::new();
        let mut list_numbers = FxHashMap::default();
        for slot in &slots {
            let names = head.table.at(*slot).labels.names();
            // Lists are shared, so their address identifies them without comparing names.
            list_numbers.entry(Rc::as_ptr(names)).or_insert_with(|| {
                name_lists.push(Rc::clone(names));
                name_lists.len() as u32 - 1
            });
        }
        HeadSaver {
            kind: kind::FIRST,
            next: 0,
            symbols,
            symbol_numbers,
            pairs,
            pair_numbers,
            name_lists,
            list_numbers,
            slots,
            families: head.metadata.from("").map(|(family, _)| family.into()).collect(),
            ring: RingSaver::new(&head.exemplars),
        }
    }

    /// Returns the next piece, about `bytes_max` long, with one item at least; empty at the end.
    pub fn next(&mut self, head: &Head, bytes_max: usize) -> Vec<u8> {
        while self.kind <= kind::END {
            let len = self.len(head);
            if self.next == len {
                (self.kind, self.next) = (self.kind + 1, 0);
                continue;
            }
            let mut piece = vec![self.kind];
            while self.next < len && (piece.len() < bytes_max || piece.len() == 1) {
                self.put(head, self.next, &mut piece);
                self.next += 1;
            }
            return piece;
        }
        Vec::new()
    }

    /// Number of items of the current kind.
    fn len(&self, head: &Head) -> usize {
        match self.kind {
            kind::SYMBOLS => self.symbols.len(),
            kind::PAIRS => self.pairs.len(),
            kind::NAME_LISTS => self.name_lists.len(),
            kind::SERIES => self.slots.len(),
            kind::METADATA => self.families.len(),
            kind::EXEMPLAR_SERIES => self.ring.series_len(),
            kind::EXEMPLARS => head.exemplars.len(),
            _ => 1,
        }
    }

    /// Adds one item of the current kind.
    fn put(&self, head: &Head, number: usize, out: &mut Vec<u8>) {
        match self.kind {
            kind::TIMES => {
                out.extend_from_slice(&head.table.next_ref().to_le_bytes());
                out.extend_from_slice(&head.window.held().newest_ms.to_le_bytes());
                out.extend_from_slice(&head.floor_ms().to_le_bytes());
            }
            kind::SYMBOLS => {
                put_text(out, head.table.symbols().text(self.symbols[number]).as_bytes())
            }
            kind::PAIRS => {
                let (name, value) = self.pairs[number];
                self.put_symbol(out, name);
                self.put_symbol(out, value);
            }
            kind::NAME_LISTS => {
                let names = &self.name_lists[number];
                put_u32(out, names.len());
                names.iter().for_each(|name| self.put_symbol(out, *name));
            }
            kind::SERIES => self.put_series(head, self.slots[number], out),
            kind::METADATA => head.metadata.put_state(&self.families[number], out),
            kind::EXEMPLAR_SERIES => self.ring.put_series(number, out),
            kind::EXEMPLARS => self.ring.put_exemplar(&head.exemplars, number, out),
            _ => put_u32(out, self.slots.len()),
        }
    }

    fn put_symbol(&self, out: &mut Vec<u8>, id: SymbolId) {
        put_u32(out, self.symbol_numbers[id.0 as usize] as usize);
    }

    fn put_series(&self, head: &Head, slot: Slot, out: &mut Vec<u8>) {
        let series = head.table.at(slot);
        let list = self.list_numbers.get(&Rc::as_ptr(series.labels.names()));
        // The labels of all these series were numbered, so the defaults are never written.
        put_u32(out, list.copied().unwrap_or(u32::MAX) as usize);
        for pair in series.labels.iter() {
            put_u32(out, self.pair_numbers.get(&pair).copied().unwrap_or(u32::MAX) as usize);
        }
        series.put_state(out);
    }
}
