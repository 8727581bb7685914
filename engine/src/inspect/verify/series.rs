//! Reads the series section, entry by entry.

use super::Report;
use super::index::{IndexFile, reported};
use crate::codec::{crc32c, split_uvarint};
use crate::index::{
    ChunkMeta, INDEX_FILE, LabelNumbers, SERIES_ALIGN_BYTES, SERIES_ENTRY_BYTES_MAX, SeriesRef,
    SymbolTable, decode_chunks, decode_labels,
};
use crate::storage::StorageResult;
use rustc_hash::FxHashMap;

const LEN_BYTES_MAX: usize = 10;

#[derive(Default)]
pub struct SeriesWalk {
    offset: u64,
    end: u64,
    refs: Vec<SeriesRef>,
    pairs: FxHashMap<LabelNumbers, RefSum>,
    last: Vec<LabelNumbers>,
    /// Whether an entry could not be read.
    is_damaged: bool,
}

/// Fingerprint of a set of series: their number, and a sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefSum {
    count: u64,
    sum: u64,
}

pub struct SeriesEntry {
    pub series: SeriesRef,
    pub offset: u64,
    pub labels: Vec<LabelNumbers>,
    pub chunks: Vec<ChunkMeta>,
}

impl RefSum {
    pub fn add(&mut self, series: SeriesRef) {
        // A bijection that mixes well, so that sums of different sets hardly ever agree.
        let mut mixed = u64::from(series.0).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.sum = self.sum.wrapping_add(mixed ^ (mixed >> 31));
        self.count += 1;
    }
}

impl SeriesWalk {
    pub fn new(index: &IndexFile) -> SeriesWalk {
        let layout = &index.layout;
        SeriesWalk { offset: layout.series, end: layout.label_indices, ..SeriesWalk::default() }
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn refs(&self) -> &[SeriesRef] {
        &self.refs
    }

    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    pub fn take_pairs(&mut self) -> FxHashMap<LabelNumbers, RefSum> {
        std::mem::take(&mut self.pairs)
    }

    /// Returns the next series that can be read. After damage, the search continues at the next
    /// offset where an entry may begin.
    pub fn next(
        &mut self,
        index: &mut IndexFile,
        report: &mut Report,
    ) -> StorageResult<Option<SeriesEntry>> {
        let mut is_lost = false;
        loop {
            let start = self.offset.next_multiple_of(SERIES_ALIGN_BYTES);
            if start >= self.end {
                if !is_lost {
                    index.check_padding(self.offset, self.end, report)?;
                }
                self.offset = self.end;
                return Ok(None);
            }
            if !is_lost {
                index.check_padding(self.offset, start, report)?;
            }
            let series = SeriesRef(u32::try_from(start / SERIES_ALIGN_BYTES).unwrap_or(u32::MAX));
            match read_entry(index, start, self.end)? {
                Ok((labels, chunks, end)) => {
                    self.offset = end;
                    self.refs.push(series);
                    return Ok(Some(SeriesEntry { series, offset: start, labels, chunks }));
                }
                Err(what) => {
                    // Damage is reported once, not for each offset that is searched.
                    if !is_lost {
                        report.error(INDEX_FILE, start, what);
                    }
                    (is_lost, self.is_damaged) = (true, true);
                    self.offset = start + 1;
                }
            }
        }
    }

    /// Checks a series' labels, and adds the series to the fingerprint of each label.
    pub fn check_labels(
        &mut self,
        entry: &SeriesEntry,
        symbols: Option<&mut SymbolTable>,
        report: &mut Report,
    ) {
        let SeriesEntry { series, offset, labels, .. } = entry;
        // Symbol numbers compare like labels. The first set may be empty, like the initial `last`.
        if *labels <= self.last && !(labels.is_empty() && self.last.is_empty()) {
            report.error(INDEX_FILE, *offset, "the series is not after the one before it");
        }
        for pair in labels {
            self.pairs.entry(*pair).or_default().add(*series);
        }
        if let Some(symbols) = symbols {
            // Trimmed before the loads, so that the symbols of one label stay loaded.
            symbols.trim();
            for (name, value) in labels {
                for (number, what) in [(*name, "name"), (*value, "value")] {
                    match symbols.load(number) {
                        Ok(()) if symbols.text(number).is_empty() => {
                            let what = format!("a label of the series has an empty {what}");
                            report.error(INDEX_FILE, *offset, what);
                        }
                        Ok(()) => {}
                        Err(_) => {
                            let what =
                                format!("the series uses symbol {number}, which does not exist");
                            report.error(INDEX_FILE, *offset, what);
                        }
                    }
                }
            }
        }
        self.last.clone_from(labels);
    }
}

type Parts = (Vec<LabelNumbers>, Vec<ChunkMeta>, u64);

/// Returns labels and chunks of the entry at an offset, and its end.
pub fn read_entry(
    index: &mut IndexFile,
    offset: u64,
    end: u64,
) -> StorageResult<Result<Parts, &'static str>> {
    let head = index.window.at_least(offset, LEN_BYTES_MAX)?;
    let Some((len, rest)) = split_uvarint(head) else {
        return Ok(Err("the length of a series entry does not decode"));
    };
    let start = head.len() - rest.len();
    // Checked before the entry is read: a wrong length must not allocate much memory.
    if len > SERIES_ENTRY_BYTES_MAX || offset + start as u64 + len + 4 > end {
        return Ok(Err("a series entry is longer than its section"));
    }
    let len = len as usize;
    let bytes = index.window.get(offset, start + len + 4)?.and_then(|bytes| bytes.get(start..));
    let (entry, crc) = bytes.and_then(|bytes| bytes.split_at_checked(len)).unwrap_or_default();
    if crc != crc32c(entry).to_be_bytes() {
        return Ok(Err("the checksum of a series entry does not match"));
    }
    let mut labels = Vec::new();
    let chunks = decode_labels(entry, &mut labels).and_then(decode_chunks);
    Ok(chunks.map(|chunks| (labels, chunks, offset + (start + len + 4) as u64)))
}

pub fn labels_of(
    index: &mut IndexFile,
    series: SeriesRef,
    report: &mut Report,
) -> StorageResult<Option<Vec<LabelNumbers>>> {
    let offset = u64::from(series.0) * SERIES_ALIGN_BYTES;
    let end = index.layout.label_indices;
    let entry = read_entry(index, offset, end)?;
    let damage = |what| index.file.damage(offset, what).into();
    Ok(reported(entry.map_err(damage), report)?.map(|(labels, ..)| labels))
}
