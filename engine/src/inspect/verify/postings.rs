//! Checks the postings offset table and the lists that it points to.
//!
//! Each series must be in the lists of its labels and in no other list. For every label pair, the
//! number of series and the sum of their hashes are taken once from the series section and once
//! from the list, and compared.

use super::Report;
use super::index::{ALIGN_BYTES, IndexFile, reported};
use super::series::{RefSum, SeriesWalk, labels_of};
use crate::codec::crc32c;
use crate::index::{Entry, INDEX_FILE, LabelNumbers, SeriesRef, SymbolTable, split_entry};
use crate::storage::StorageResult;
use rustc_hash::FxHashMap;
use tidepool_model::sort;

const TABLE_HEAD_BYTES: u64 = 8;

/// Bytes of the first read of an entry; doubled until the whole entry is read.
const ENTRY_BYTES: usize = 1024;

const ENTRY_BYTES_MAX: usize = 16 * 1024 * 1024;

pub struct PostingsWalk {
    series: SeriesWalk,
    pairs: FxHashMap<LabelNumbers, RefSum>,
    pairs_total: usize,
    pairs_listed: usize,
    lists: Vec<(u64, u64)>,
    offset: u64,
    end: u64,
    left: u32,
    crc: u32,
    last: Option<(Vec<u8>, Vec<u8>)>,
    is_damaged: bool,
}

impl PostingsWalk {
    /// Begins the walk; `None` if the table cannot be read.
    pub fn new(
        index: &mut IndexFile,
        mut series: SeriesWalk,
        report: &mut Report,
    ) -> StorageResult<Option<PostingsWalk>> {
        let table = index.layout.postings_table;
        let Some(section) = reported(index.file.section(table), report)? else { return Ok(None) };
        let head = index.window.get(section.start, 4)?.and_then(|bytes| bytes.first_chunk::<4>());
        let Some(head) = head.copied().filter(|_| section.end + 4 == index.layout.toc) else {
            report.error(INDEX_FILE, table, "the postings offset table is not as long as it says");
            return Ok(None);
        };
        let pairs = series.take_pairs();
        Ok(Some(PostingsWalk {
            pairs_total: pairs.len(),
            pairs,
            series,
            pairs_listed: 0,
            lists: Vec::new(),
            offset: table + TABLE_HEAD_BYTES,
            end: section.end,
            left: u32::from_be_bytes(head),
            crc: crc32c(&head),
            last: None,
            is_damaged: false,
        }))
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Checks the next entry and its list; returns false if no entry is left.
    pub fn next(
        &mut self,
        index: &mut IndexFile,
        symbols: Option<&mut SymbolTable>,
        report: &mut Report,
    ) -> StorageResult<bool> {
        if self.left == 0 || self.is_damaged {
            return Ok(false);
        }
        let offset = self.offset;
        let Some(bytes) = self.entry_bytes(index)? else {
            report.error(
                INDEX_FILE,
                offset,
                "an entry of the postings offset table does not decode",
            );
            self.is_damaged = true;
            return Ok(false);
        };
        self.crc = ::crc32c::crc32c_append(self.crc, &bytes);
        self.offset += bytes.len() as u64;
        self.left -= 1;
        let Some((Entry { name, value, postings_offset }, _)) = split_entry(&bytes) else {
            return Ok(false);
        };
        let key = (name.to_vec(), value.to_vec());
        if self.last.as_ref().is_some_and(|last| key <= *last) {
            report.error(INDEX_FILE, offset, "the postings offset table does not ascend");
        }
        self.check_list(index, symbols, (&key, offset), postings_offset, report)?;
        self.last = Some(key);
        Ok(true)
    }

    fn entry_bytes(&self, index: &mut IndexFile) -> StorageResult<Option<Vec<u8>>> {
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let mut wanted = ENTRY_BYTES;
        loop {
            let bytes = index.window.at_least(self.offset, wanted.min(left))?;
            let bytes = bytes.get(..left).unwrap_or(bytes);
            if let Some((_, rest)) = split_entry(bytes) {
                return Ok(Some(bytes[..bytes.len() - rest.len()].to_vec()));
            }
            if wanted >= left || wanted >= ENTRY_BYTES_MAX {
                return Ok(None);
            }
            wanted *= 2;
        }
    }

    fn check_list(
        &mut self,
        index: &mut IndexFile,
        symbols: Option<&mut SymbolTable>,
        ((name, value), entry_offset): (&(Vec<u8>, Vec<u8>), u64),
        offset: u64,
        report: &mut Report,
    ) -> StorageResult<()> {
        let layout = index.layout;
        if !(layout.postings..layout.label_table).contains(&offset)
            || !offset.is_multiple_of(ALIGN_BYTES)
        {
            report.error(INDEX_FILE, entry_offset, "the table points outside of the postings");
            return Ok(());
        }
        let content = match index.framed(offset, layout.label_table)? {
            Ok(content) => content,
            Err(what) => {
                report.error(INDEX_FILE, offset, format!("a list of postings: {what}"));
                // A wrong length makes all other lists doubtful, so the walk ends.
                self.is_damaged |= what.contains("longer");
                return Ok(());
            }
        };
        // Kept for `finish`, which looks for gaps and overlaps.
        self.lists.push((offset, content.len() as u64 + 8));
        let (numbers, rest) = content.as_chunks::<4>();
        let numbers: Vec<u32> = numbers.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect();
        let refs: Vec<SeriesRef> = numbers.iter().skip(1).copied().map(SeriesRef).collect();
        let count = numbers.first().copied();
        let mut wrong = |what: String| report.error(INDEX_FILE, offset, what);
        if count.map(|count| count as usize) != Some(refs.len()) || !rest.is_empty() {
            wrong("a list of postings is not as long as its count says".to_owned());
        }
        if !refs.is_sorted_by(|a, b| a < b) {
            wrong("a list of postings does not ascend".to_owned());
        }
        if self.series.is_damaged() {
            // If series are missing, the content of lists cannot be checked.
            return Ok(());
        }
        if name.is_empty() {
            if !value.is_empty() || refs != self.series.refs() {
                wrong("the list of all series does not match the series of the index".to_owned());
            }
            return Ok(());
        }
        let known = self.series.refs();
        if let Some(stranger) = refs.iter().find(|series| known.binary_search(series).is_err()) {
            wrong(format!("a list of postings refers to {}, which is not a series", stranger.0));
            return Ok(());
        }
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        let Some(first) = refs.first() else {
            wrong(format!("the list of {name}={value:?} is empty"));
            return Ok(());
        };
        let Some(symbols) = symbols else { return Ok(()) };
        let labels = labels_of(index, *first, report)?.unwrap_or_default();
        let pair = labels.into_iter().find(|(n, v)| {
            let mut is =
                |number, text: &str| symbols.load(number).is_ok() && symbols.text(number) == text;
            is(*n, &name) && is(*v, &value)
        });
        let mut sum = RefSum::default();
        refs.iter().for_each(|series| sum.add(*series));
        match pair {
            // Removed, so that a second list of the pair does not match.
            Some(pair) if self.pairs.remove(&pair) == Some(sum) => self.pairs_listed += 1,
            _ => {
                let what = format!(
                    "the list of {name}={value:?} does not match the series with this label"
                );
                report.error(INDEX_FILE, offset, what);
            }
        }
        Ok(())
    }

    pub fn finish(mut self, index: &mut IndexFile, report: &mut Report) -> StorageResult<()> {
        let layout = index.layout;
        if self.is_damaged {
            return Ok(());
        }
        // The checksum was computed along the way, entry by entry.
        let stored = index.window.get(self.end, 4)?.and_then(|bytes| bytes.first_chunk::<4>());
        let is_whole = self.offset == self.end;
        if !is_whole || stored.map(|crc| u32::from_be_bytes(*crc)) != Some(self.crc) {
            let what = "the checksum of the postings offset table does not match";
            report.error(INDEX_FILE, layout.postings_table, what);
            return Ok(());
        }
        // After other errors, missing lists are their consequence.
        if self.pairs_listed < self.pairs_total && !self.series.is_damaged() && report.errors == 0 {
            let missing = self.pairs_total - self.pairs_listed;
            let what = format!("{missing} labels of series have no list of postings");
            report.error(INDEX_FILE, layout.postings_table, what);
        }
        // Sorted by offset, so that gaps and overlaps are between neighbours.
        sort::sort(&mut self.lists);
        let mut end = layout.postings;
        for (offset, len) in self.lists {
            if offset < end {
                report.error(INDEX_FILE, offset, "two lists of postings overlap");
            } else if offset - end < ALIGN_BYTES {
                index.check_padding(end, offset, report)?;
            } else if report.errors == 0 {
                report.error(INDEX_FILE, end, "a list of postings that belongs to no label");
            }
            end = end.max(offset + len);
        }
        if layout.label_table.saturating_sub(end) < ALIGN_BYTES {
            index.check_padding(end, layout.label_table, report)
        } else {
            if report.errors == 0 {
                report.error(INDEX_FILE, end, "a list of postings that belongs to no label");
            }
            Ok(())
        }
    }
}
