//! Reads names, values, postings and series of an index.

use super::postings_table::{EntryOrder, PostingsTable};
use super::series::{
    LabelNumbers, SERIES_ENTRY_BYTES_MAX, decode_chunks, decode_labels, each_chunk,
};
use super::symbol_table::SymbolTable;
use super::toc::Toc;
use super::{
    ChunkMeta, HEADER_BYTES, INDEX_FILE, IndexError, MAGIC, NamedFile, ReadAhead,
    SERIES_ALIGN_BYTES, SeriesRef, VERSION, VERSION_1, summary,
};
use crate::codec::{crc32c, split_uvarint};
use crate::model::{Labels, TimeRange};
use crate::storage::Blocks;
use std::cell::RefCell;
use std::ops::ControlFlow;

/// Number of bytes read ahead of series and of lists of postings, at most.
const AHEAD_BYTES_MAX: usize = 128 * 1024;

/// Longest list of postings that is accepted, in bytes: 67 million series.
const LIST_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Longest encoding of a 64-bit number.
const UVARINT_BYTES_MAX: usize = 10;

/// An open index. Has in memory one string in 32, a bounded cache of symbols, and two bounded
/// pieces of the file. Lists and series are verified by their checksums on each read, tables when
/// they are first read.
pub struct IndexReader {
    file: NamedFile,
    toc: Toc,
    /// Factor between a reference to a series and its byte offset.
    series_align_bytes: u64,
    pub(super) postings_table: PostingsTable,
    symbols: RefCell<SymbolTable>,
    postings: RefCell<ReadAhead>,
    series: RefCell<SeriesWindow>,
}

struct SeriesWindow {
    window: ReadAhead,
    /// Kept between series to reuse its memory.
    numbers: Vec<LabelNumbers>,
}

struct Ends {
    file: NamedFile,
    version: u8,
    toc: Toc,
}

impl Ends {
    fn read(blocks: &dyn Blocks, block: &str) -> Result<Ends, IndexError> {
        let file = NamedFile::new(blocks.open(block, INDEX_FILE)?, block, INDEX_FILE);
        let header = file.read(0, HEADER_BYTES as usize)?.unwrap_or_default();
        let version = match header.split_first_chunk::<4>() {
            Some((magic, [version])) if *magic == MAGIC.to_be_bytes() => *version,
            _ => return Err(file.damage(0, "this is not an index file").into()),
        };
        if version != VERSION && version != VERSION_1 {
            let block = file.block().clone();
            return Err(IndexError::UnsupportedVersion { block, version });
        }
        let toc = Toc::read(&file)?;
        Ok(Ends { file, version, toc })
    }
}

impl IndexReader {
    /// Opens the index of a block, reading its symbols and its postings table once.
    pub fn open(blocks: &dyn Blocks, block: &str) -> Result<IndexReader, IndexError> {
        IndexReader::open_with(blocks, block, false)
    }

    /// Opens the index of a block with the summary that an earlier call kept. If the storage still
    /// has the summary, the tables are neither read nor checked again.
    pub fn reopen(blocks: &dyn Blocks, block: &str) -> Result<IndexReader, IndexError> {
        IndexReader::open_with(blocks, block, true)
    }

    /// Reads and checks only the header and the table of contents of a block's index.
    pub fn check_ends(blocks: &dyn Blocks, block: &str) -> Result<(), IndexError> {
        Ends::read(blocks, block).map(drop)
    }

    fn open_with(
        blocks: &dyn Blocks,
        block: &str,
        uses_summary: bool,
    ) -> Result<IndexReader, IndexError> {
        let Ends { file, version, toc } = Ends::read(blocks, block)?;
        let (series_align_bytes, order) = match version {
            VERSION_1 => (1, EntryOrder::Any),
            _ => (SERIES_ALIGN_BYTES, EntryOrder::Ascending),
        };
        // An index of version 1 is rare, and its table may have to be kept whole.
        let uses_summary = uses_summary && version == VERSION;
        let summary = if uses_summary { summary::recall(&file, &toc) } else { None };
        let (symbols, postings_table) = match summary {
            Some(tables) => tables,
            None => {
                let table = PostingsTable::read(file.clone(), toc.postings_table, order)?;
                let symbols = SymbolTable::read(file.clone(), toc.symbols, version == VERSION_1)?;
                if uses_summary {
                    summary::keep(&file, &toc, &symbols, &table);
                }
                (symbols, table)
            }
        };
        let window = ReadAhead::new(file.clone(), AHEAD_BYTES_MAX);
        Ok(IndexReader {
            postings_table,
            symbols: RefCell::new(symbols),
            postings: RefCell::new(ReadAhead::new(file.clone(), AHEAD_BYTES_MAX)),
            series: RefCell::new(SeriesWindow { window, numbers: Vec::new() }),
            file,
            toc,
            series_align_bytes,
        })
    }

    /// Estimates the memory of the tables after long use, in bytes.
    pub fn memory_bytes_max(&self) -> u64 {
        self.symbols.borrow().memory_bytes_max() + self.postings_table.memory_bytes() as u64
    }

    /// Drops the bytes that were read ahead; for when no read will continue the last one.
    pub fn rest(&self) {
        self.postings.borrow_mut().rest();
        self.series.borrow_mut().window.rest();
        self.symbols.borrow_mut().rest();
    }

    /// Estimates the memory that is in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let windows =
            self.postings.borrow().memory_bytes() + self.series.borrow().window.memory_bytes();
        windows + self.symbols.borrow().memory_bytes() + self.postings_table.memory_bytes()
    }

    /// Returns all label names in ascending order.
    pub fn label_names(&self) -> impl Iterator<Item = &str> {
        self.postings_table.names()
    }

    pub(super) fn series_ascend(&self) -> bool {
        self.series_align_bytes == SERIES_ALIGN_BYTES
    }

    /// Returns the number of values of a label name.
    pub fn label_value_count(&self, name: &str) -> usize {
        self.postings_table.value_count(name)
    }

    /// Returns all values of a label name, ascending.
    pub fn label_values(&self, name: &str) -> Result<Vec<String>, IndexError> {
        let mut values = Vec::new();
        self.each_label_value(name, |value| {
            values.push(value.to_owned());
            ControlFlow::Continue(())
        })?;
        Ok(values)
    }

    /// Calls `visit` with each value of a label name, ascending, until `visit` breaks.
    pub fn each_label_value(
        &self,
        name: &str,
        mut visit: impl FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        self.postings_table.walk(name, "", |value, _| Ok(visit(value)))
    }

    /// Calls `visit` with each value of a label name, ascending, and the series that have it.
    pub fn each_postings(
        &self,
        name: &str,
        mut visit: impl FnMut(&str, &[SeriesRef]),
    ) -> Result<(), IndexError> {
        let mut listed = Vec::new();
        self.postings_table.walk(name, "", |value, offset| {
            listed.clear();
            self.append_list(offset, &mut listed)?;
            visit(value, &listed);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Returns the series that have a label, ascending; empty if there are none.
    pub fn postings_for(&self, name: &str, value: &str) -> Result<Vec<SeriesRef>, IndexError> {
        let mut all = Vec::new();
        let mut offsets = Vec::new();
        self.postings_table.find(name, &[value], |offset| offsets.push(offset))?;
        for offset in offsets {
            self.append_list(offset, &mut all)?;
        }
        Ok(all)
    }

    /// Returns all series of the block, ascending.
    pub fn all_postings(&self) -> Result<Vec<SeriesRef>, IndexError> {
        self.postings_for("", "")
    }

    /// Returns the labels of a series, and its chunks in time order.
    pub fn series(&self, series: SeriesRef) -> Result<(Labels, Vec<ChunkMeta>), IndexError> {
        self.entry(series, |numbers, chunks, symbols| {
            let chunks = decode_chunks(chunks).map_err(|what| self.damaged_series(series, what))?;
            Ok((labels(numbers, symbols, None)?, chunks))
        })
    }

    /// Returns the labels of a series, and in `chunks` its chunks that overlap a range, in time
    /// order. Without such chunks, returns `None` and does not look up the labels. Labels that
    /// equal `likely` are cloned from `likely`, which costs less.
    pub fn series_in(
        &self,
        series: SeriesRef,
        range: TimeRange,
        likely: &Labels,
        chunks: &mut Vec<ChunkMeta>,
    ) -> Result<Option<Labels>, IndexError> {
        chunks.clear();
        self.entry(series, |numbers, entry, symbols| {
            let found = each_chunk(entry, |chunk| {
                if chunk.min_time_ms <= range.end_ms && chunk.max_time_ms >= range.start_ms {
                    chunks.push(chunk);
                }
            });
            found.map_err(|what| self.damaged_series(series, what))?;
            match chunks.is_empty() {
                true => Ok(None),
                false => labels(numbers, symbols, Some(likely)).map(Some),
            }
        })
    }

    /// Returns the labels of a series without its chunks.
    pub fn series_labels(&self, series: SeriesRef) -> Result<Labels, IndexError> {
        self.entry(series, |numbers, _, symbols| labels(numbers, symbols, None))
    }

    /// Returns the number of labels of a series.
    pub fn label_count(&self, series: SeriesRef) -> Result<usize, IndexError> {
        self.entry(series, |numbers, _, _| Ok(numbers.len()))
    }

    /// Returns the label name or value of a symbol number.
    pub fn symbol_text(&self, number: u32) -> Result<String, IndexError> {
        let mut symbols = self.symbols.borrow_mut();
        // Trimmed before the load, since the symbol must stay until it is copied.
        symbols.trim();
        symbols.load(number)?;
        Ok(symbols.text(number).to_owned())
    }

    pub(super) fn list_len(&self, offset: u64) -> Result<usize, IndexError> {
        let mut window = self.postings.borrow_mut();
        // Used to estimate costs only; the checksum is verified when the list is read.
        let header = window.get(offset, 8)?.and_then(|bytes| bytes.last_chunk::<4>());
        let damage = || self.file.damage(offset, "the file ends within this list of postings");
        Ok(u32::from_be_bytes(*header.ok_or_else(damage)?) as usize)
    }

    pub(super) fn append_list(
        &self,
        offset: u64,
        all: &mut Vec<SeriesRef>,
    ) -> Result<(), IndexError> {
        let damage = |what| IndexError::from(self.file.damage(offset, what));
        if !(self.toc.postings..self.toc.postings_table).contains(&offset) {
            return Err(damage("the postings offset table points outside of the postings"));
        }
        let mut window = self.postings.borrow_mut();
        let header = window.get(offset, 4)?.and_then(|bytes| bytes.first_chunk::<4>());
        let len = header.map(|len| u32::from_be_bytes(*len) as usize);
        let left = self.toc.postings_table - offset;
        let in_section = |len: &usize| *len <= LIST_BYTES_MAX && *len as u64 + 8 <= left;
        let len =
            len.filter(in_section).ok_or_else(|| damage("the list of postings is too long"))?;
        let bytes = window.get(offset + 4, len + 4)?.unwrap_or_default();
        let (content, crc) = bytes.split_at_checked(len).unwrap_or_default();
        if crc != crc32c(content).to_be_bytes() {
            return Err(damage("the checksum of a list of postings does not match"));
        }
        let (numbers, _) = content.as_chunks::<4>();
        let Some((count, refs)) = numbers.split_first() else {
            return Err(damage("a list of postings has no count"));
        };
        if u32::from_be_bytes(*count) as usize != refs.len() || content.len() % 4 != 0 {
            return Err(damage("a list of postings is not as long as its count says"));
        }
        all.extend(refs.iter().map(|series| SeriesRef(u32::from_be_bytes(*series))));
        Ok(())
    }

    /// Reads a series entry, and calls `read` with its labels as symbol numbers, ascending by name,
    /// and the bytes of its chunks.
    pub(super) fn entry<T>(
        &self,
        series: SeriesRef,
        read: impl FnOnce(&[LabelNumbers], &[u8], &mut SymbolTable) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let offset = u64::from(series.0) * self.series_align_bytes;
        let damage = |what| self.damaged_series(series, what);
        if !(self.toc.series..self.toc.postings).contains(&offset) {
            return Err(damage("a reference to a series points outside of the series"));
        }
        let SeriesWindow { window, numbers } = &mut *self.series.borrow_mut();
        // A length has up to ten bytes, but the last entry may end before that.
        let head = window.at_least(offset, UVARINT_BYTES_MAX)?;
        let (len, rest) =
            split_uvarint(head).ok_or_else(|| damage("the length of a series does not decode"))?;
        let start = head.len() - rest.len();
        let left = self.toc.postings - offset;
        let fits = |len: &u64| *len <= SERIES_ENTRY_BYTES_MAX && start as u64 + len + 4 <= left;
        let len = Some(len).filter(fits).and_then(|len| usize::try_from(len).ok());
        let len = len.ok_or_else(|| damage("a series entry is too long"))?;
        let bytes = window.get(offset, start + len + 4)?.and_then(|bytes| bytes.get(start..));
        let (entry, crc) = bytes.and_then(|bytes| bytes.split_at_checked(len)).unwrap_or_default();
        if crc != crc32c(entry).to_be_bytes() {
            return Err(damage("the checksum of a series entry does not match"));
        }
        let chunks = decode_labels(entry, numbers).map_err(damage)?;
        let symbols = &mut *self.symbols.borrow_mut();
        // Trimmed before `read` loads symbols, which must stay until it returns.
        symbols.trim();
        for (name, value) in numbers.iter_mut() {
            // Version 1 has byte offsets here; `read` always gets numbers.
            *name = symbols.number(*name)?;
            *value = symbols.number(*value)?;
        }
        read(numbers, chunks, symbols)
    }

    fn damaged_series(&self, series: SeriesRef, what: &'static str) -> IndexError {
        self.file.damage(u64::from(series.0) * self.series_align_bytes, what).into()
    }
}

fn labels(
    numbers: &[LabelNumbers],
    symbols: &mut SymbolTable,
    likely: Option<&Labels>,
) -> Result<Labels, IndexError> {
    for (name, value) in numbers {
        symbols.load(*name)?;
        symbols.load(*value)?;
    }
    let symbols = &*symbols;
    let pairs = numbers.iter().map(|(name, value)| (symbols.text(*name), symbols.text(*value)));
    // An empty value is the same as no label; neither tidepool nor Prometheus writes one.
    let pairs = pairs.filter(|(_, value)| !value.is_empty());
    match likely.filter(|likely| likely.is_of(pairs.clone())) {
        Some(same) => Ok(same.clone()),
        None => Ok(Labels::from_sorted(pairs)),
    }
}
