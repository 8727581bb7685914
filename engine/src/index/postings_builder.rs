//! Collects the series of each label while an index is written, and writes the postings:
//!
//! ```text
//! ┌─────────┬───────────┬─────────────────┬───────┐
//! │ len u32 │ count u32 │ ref u32 × count │ CRC32 │   one list; begins at a multiple of 4
//! └─────────┴───────────┴─────────────────┴───────┘
//! ```
//!
//! The first list has all series. Memory has four bytes for each label of each series, in pages
//! that never move. The lists are built in passes over all series, each for some of the labels.

use super::postings_table::put_entry;
use super::series::LabelNumbers;
use super::{FileSink, IndexError, SeriesRef, SymbolList};
use crate::codec::hash_word;
use crate::storage::BlockWriter;
use hashbrown::HashTable;
use tidepool_model::sort;

/// Number of references that one pass collects, unless there are more series. Small in tests, so
/// that they need several passes.
const REFS_PER_PASS_MIN: usize = if cfg!(test) { 1000 } else { 256 * 1024 };

/// Largest number of passes for a large index; beyond it, passes grow.
const PASSES_MAX: usize = 32;

const PAGE_LABELS: usize = 16 * 1024;

/// Bytes of a list besides its references: length, count and checksum.
const LIST_OVERHEAD_BYTES: u64 = 12;

/// Lists begin at multiples of this.
const LIST_ALIGN_BYTES: u64 = 4;

/// Bit that marks the last label of a series.
const LAST: u32 = 1 << 31;

/// Cursor of a label that is not part of the current pass.
const NOT_NOW: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct PostingsBuilder {
    series: Vec<SeriesRef>,
    /// Labels of all series, one after the other, as positions in `labels`; the last label of a
    /// series is marked with [`LAST`]. All pages but the last are full.
    label_ids: Vec<Vec<u32>>,
    label_count: usize,
    /// Each label that occurs, once.
    labels: Vec<Label>,
    by_hash: HashTable<u32>,
}

struct Label {
    numbers: LabelNumbers,
    series_count: u32,
}

impl PostingsBuilder {
    /// Adds a series, whose reference must be above all earlier ones.
    pub(super) fn add(&mut self, series: SeriesRef, labels: &[LabelNumbers]) {
        // `fill` tells series apart by their last label, so a series without one has no list.
        let Some(last) = labels.len().checked_sub(1) else { return };
        for (place, numbers) in labels.iter().enumerate() {
            let id = self.label_id(*numbers);
            if let Some(label) = self.labels.get_mut(id as usize) {
                label.series_count += 1;
            }
            self.push(if place == last { id | LAST } else { id });
        }
        self.series.push(series);
    }

    /// Returns the memory of the collected labels, and of the passes that write them.
    pub(super) fn memory_bytes(&self) -> u64 {
        // Buffers that grow hold up to three times their content.
        let series = 3 * self.series.len() * size_of::<SeriesRef>();
        let label = 3 * (size_of::<Label>() + 6) + 2 * size_of::<u32>();
        let refs = self.label_count.min(self.refs_per_pass()) * size_of::<SeriesRef>();
        let pages = PAGE_LABELS * self.label_ids.len() * size_of::<u32>();
        (pages + series + self.labels.len() * label + refs) as u64
    }

    fn refs_per_pass(&self) -> usize {
        // A list is never split over passes, and the longest may have all series.
        REFS_PER_PASS_MIN.max(self.label_count / PASSES_MAX).max(self.series.len())
    }

    fn push(&mut self, marked: u32) {
        self.label_count += 1;
        match self.label_ids.last_mut() {
            Some(page) if page.len() < PAGE_LABELS => page.push(marked),
            _ => {
                let mut page = Vec::with_capacity(PAGE_LABELS);
                page.push(marked);
                self.label_ids.push(page);
            }
        }
    }

    #[inline]
    fn label_id(&mut self, numbers: LabelNumbers) -> u32 {
        let labels = &mut self.labels;
        let hash = hash(numbers);
        let is_it = |id: &u32| labels.get(*id as usize).is_some_and(|l| l.numbers == numbers);
        if let Some(id) = self.by_hash.find(hash, is_it) {
            return *id;
        }
        let id = labels.len() as u32;
        labels.push(Label { numbers, series_count: 0 });
        let hash_of =
            |id: &u32| labels.get(*id as usize).map_or(0, |label| self::hash(label.numbers));
        self.by_hash.insert_unique(hash, id, hash_of);
        id
    }

    pub(super) fn write_lists(
        &self,
        sink: &mut FileSink,
        out: &mut dyn BlockWriter,
    ) -> Result<PostingsOffsets, IndexError> {
        sink.pad_to(LIST_ALIGN_BYTES);
        let start = sink.position();
        write_list(sink, out, &self.series)?;
        let mut in_order: Vec<u32> = (0..self.labels.len() as u32).collect();
        // Symbols ascend, so sorting by their numbers gives the order of the table.
        sort::sort_by_key(&mut in_order, |id| self.label(*id).map(|label| label.numbers));
        let mut cursors = vec![NOT_NOW; self.labels.len()];
        // Enough for each pass: no pass collects more references.
        let mut refs = Vec::with_capacity(self.label_count.min(self.refs_per_pass()));
        let mut rest = in_order.as_slice();
        while !rest.is_empty() {
            let pass;
            (pass, rest) = rest.split_at(self.pass_len(rest));
            refs.clear();
            for id in pass {
                if let Some(cursor) = cursors.get_mut(*id as usize) {
                    *cursor = refs.len() as u32;
                }
                refs.resize(refs.len() + self.series_count(*id), SeriesRef(0));
            }
            self.fill(&mut refs, &mut cursors);
            let mut filled = refs.as_slice();
            for id in pass {
                let list;
                (list, filled) = filled.split_at(self.series_count(*id));
                write_list(sink, out, list)?;
                // The next passes must skip this list.
                if let Some(cursor) = cursors.get_mut(*id as usize) {
                    *cursor = NOT_NOW;
                }
            }
        }
        Ok(PostingsOffsets { start, in_order })
    }

    pub(super) fn write_table(
        &self,
        offsets: &PostingsOffsets,
        symbols: &SymbolList,
        sink: &mut FileSink,
        out: &mut dyn BlockWriter,
    ) -> Result<(), IndexError> {
        sink.begin_section();
        // The list of all series has an entry, too: one without name and value.
        sink.put_u32(self.labels.len() as u32 + 1);
        put_entry(sink.buffer(), "", "", offsets.start);
        // All lists are multiples of four bytes long, so none is padded and their lengths add up.
        let mut offset = offsets.start + list_bytes(self.series.len());
        for id in &offsets.in_order {
            let Some(Label { numbers: (name, value), .. }) = self.label(*id) else { continue };
            let (name, value) = (symbols.text(*name as usize), symbols.text(*value as usize));
            put_entry(sink.buffer(), name, value, offset);
            sink.flush_full(out)?;
            offset += list_bytes(self.series_count(*id));
        }
        sink.end_section(out, "the postings offset table")
    }

    fn label(&self, id: u32) -> Option<&Label> {
        self.labels.get(id as usize)
    }

    fn series_count(&self, id: u32) -> usize {
        self.label(id).map_or(0, |label| label.series_count as usize)
    }

    /// Returns the number of labels whose lists the next pass builds.
    fn pass_len(&self, labels: &[u32]) -> usize {
        let refs_max = self.refs_per_pass();
        let mut refs = 0;
        let fits = |id: &&u32| {
            refs += self.series_count(**id);
            refs <= refs_max
        };
        labels.iter().take_while(fits).count().max(1)
    }

    /// Writes each series into the lists whose cursors are set.
    fn fill(&self, refs: &mut [SeriesRef], cursors: &mut [u32]) {
        let mut all_series = self.series.iter();
        let mut series = all_series.next();
        for marked in self.label_ids.iter().flatten() {
            let Some(of) = series else { return };
            if marked & LAST != 0 {
                series = all_series.next();
            }
            let Some(cursor) = cursors.get_mut((marked & !LAST) as usize) else { continue };
            if *cursor == NOT_NOW {
                continue;
            }
            if let Some(place) = refs.get_mut(*cursor as usize) {
                *place = *of;
            }
            *cursor += 1;
        }
    }
}

/// Position of the lists: one after the other from `start`, the list of all series first.
pub(super) struct PostingsOffsets {
    start: u64,
    in_order: Vec<u32>,
}

fn hash((name, value): LabelNumbers) -> u64 {
    hash_word(u64::from(name), u64::from(value))
}

fn list_bytes(refs: usize) -> u64 {
    LIST_OVERHEAD_BYTES + 4 * refs as u64
}

fn write_list(
    sink: &mut FileSink,
    out: &mut dyn BlockWriter,
    refs: &[SeriesRef],
) -> Result<(), IndexError> {
    sink.begin_section();
    sink.put_u32(refs.len() as u32);
    // In pieces, since the list of all series may be larger than the buffer.
    for piece in refs.chunks(16 * 1024) {
        let buffer = sink.buffer();
        buffer.reserve(4 * piece.len());
        buffer.extend(piece.iter().flat_map(|series| series.0.to_be_bytes()));
        sink.flush_full(out)?;
    }
    sink.end_section(out, "a list of postings")
}
