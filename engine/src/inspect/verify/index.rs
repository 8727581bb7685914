//! Checks the index file: its header, its sections, and the bytes between sections.

use super::Report;
use crate::codec::crc32c;
use crate::index::{
    HEADER_BYTES, INDEX_FILE, IndexError, MAGIC, NamedFile, ReadAhead, SymbolTable, TOC_BYTES,
    VERSION, VERSION_1, read_offsets,
};
use crate::storage::{BlockFile, StorageResult};
use std::rc::Rc;

const AHEAD_BYTES_MAX: usize = 256 * 1024;

/// Bytes of length and checksum around a section or an entry.
const FRAME_BYTES: u64 = 8;

pub const ALIGN_BYTES: u64 = 4;

/// Offsets of the sections, in the order of the file.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub symbols: u64,
    pub series: u64,
    pub label_indices: u64,
    pub postings: u64,
    pub label_table: u64,
    pub postings_table: u64,
    pub toc: u64,
}

pub struct IndexFile {
    pub file: NamedFile,
    pub window: ReadAhead,
    pub layout: Layout,
}

/// Reports errors as findings; only failures of storage end the check.
pub fn reported<T>(result: Result<T, IndexError>, report: &mut Report) -> StorageResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(IndexError::Storage(error)) => Err(error),
        Err(error) => {
            report.index_error(error);
            Ok(None)
        }
    }
}

impl IndexFile {
    /// Reads header and table of contents; `None` if the rest cannot be checked.
    pub fn open(
        file: Rc<dyn BlockFile>,
        block: &str,
        report: &mut Report,
    ) -> StorageResult<Option<IndexFile>> {
        let file = NamedFile::new(file, block, INDEX_FILE);
        let header = file.read(0, HEADER_BYTES as usize)?.unwrap_or_default();
        let mut expected = MAGIC.to_be_bytes().to_vec();
        expected.push(VERSION);
        if header.last() == Some(&VERSION_1) && header.starts_with(&MAGIC.to_be_bytes()) {
            let what =
                "the contents of an index of version 1 are not checked; compaction rewrites it";
            report.warning(INDEX_FILE, 4, what);
            return Ok(None);
        }
        // The check continues, because a damaged header does not move the sections.
        if header != expected {
            report.error(INDEX_FILE, 0, "this is not an index file of version 2");
        }
        let Some(offsets) = reported(read_offsets(&file), report)? else { return Ok(None) };
        let [symbols, series, label_indices, label_table, postings, postings_table] = offsets;
        let toc = file.size() - TOC_BYTES as u64;
        let layout =
            Layout { symbols, series, label_indices, postings, label_table, postings_table, toc };
        let ends =
            [HEADER_BYTES, symbols, series, label_indices, postings, label_table, postings_table];
        // Without label indices, writers may set any offset for these sections.
        let layout = match (ends.is_sorted() && postings_table <= toc, label_indices, label_table) {
            (true, ..) => layout,
            (false, 0, 0) => {
                Layout { label_indices: postings, label_table: postings_table, ..layout }
            }
            (false, ..) => {
                let what = "the table of contents points outside of the file or backwards";
                report.error(INDEX_FILE, toc, what);
                return Ok(None);
            }
        };
        let window = ReadAhead::new(file.clone(), AHEAD_BYTES_MAX);
        Ok(Some(IndexFile { file, window, layout }))
    }

    pub fn size(&self) -> u64 {
        self.file.size()
    }

    /// Checks the symbol table, and returns it if it can be used.
    pub fn check_symbols(&self, report: &mut Report) -> StorageResult<Option<SymbolTable>> {
        let layout = &self.layout;
        if layout.symbols != HEADER_BYTES {
            report.error(INDEX_FILE, HEADER_BYTES, "bytes before the symbol table");
        }
        let read = SymbolTable::read(self.file.clone(), layout.symbols, false);
        let Some(mut table) = reported(read, report)? else { return Ok(None) };
        if table.end() + 4 > layout.series {
            report.error(INDEX_FILE, layout.symbols, "the symbol table is longer than its section");
        }
        // Unused bytes between sections would hide a damaged offset.
        self.check_padding(table.end() + 4, layout.series, report)?;
        let mut before = String::new();
        for number in 0..table.count() {
            // Trimmed, because a table may be larger than the cache of decoded symbols.
            table.trim();
            if reported(table.load(number), report)?.is_none() {
                return Ok(None);
            }
            let symbol = table.text(number);
            if number > 0 && symbol <= before.as_str() {
                let what = format!("symbol {number} ({symbol:?}) is not after {before:?}");
                report.error(INDEX_FILE, layout.symbols, what);
            }
            symbol.clone_into(&mut before);
        }
        Ok(Some(table))
    }

    /// Checks the label indices and their table, which older versions of Prometheus write.
    pub fn check_label_indices(&mut self, report: &mut Report) -> StorageResult<()> {
        let Layout { label_indices, postings, label_table, postings_table, .. } = self.layout;
        let mut offset = label_indices;
        while offset < postings {
            let start = offset.next_multiple_of(ALIGN_BYTES).min(postings);
            self.check_padding(offset, start, report)?;
            offset = start;
            if offset >= postings {
                break;
            }
            match self.framed(offset, postings)? {
                Ok(content) => offset += content.len() as u64 + FRAME_BYTES,
                Err(what) => {
                    // Without the length of this index, the start of the next one is unknown.
                    report.error(INDEX_FILE, offset, format!("label index: {what}"));
                    break;
                }
            }
        }
        if label_table < postings_table {
            match self.framed(label_table, postings_table)? {
                Ok(content) => {
                    let end = label_table + content.len() as u64 + FRAME_BYTES;
                    self.check_padding(end, postings_table, report)?;
                }
                Err(what) => {
                    let what = format!("the label offset table: {what}");
                    report.error(INDEX_FILE, label_table, what);
                }
            }
        }
        Ok(())
    }

    /// Returns the content of `length u32 │ content │ checksum u32`, which must end before `limit`.
    pub fn framed(
        &mut self,
        offset: u64,
        limit: u64,
    ) -> StorageResult<Result<Vec<u8>, &'static str>> {
        let head = self.window.get(offset, 4)?.and_then(|bytes| bytes.first_chunk::<4>());
        let Some(len) = head.map(|len| u64::from(u32::from_be_bytes(*len))) else {
            return Ok(Err("the file ends within it"));
        };
        // Checked before the read, so that a wrong length does not allocate much memory.
        if offset + len + FRAME_BYTES > limit {
            return Ok(Err("it is longer than its section"));
        }
        let Some(bytes) = self.window.get(offset + 4, len as usize + 4)? else {
            return Ok(Err("the file ends within it"));
        };
        let (content, crc) = bytes.split_at(len as usize);
        Ok(match crc == crc32c(content).to_be_bytes() {
            true => Ok(content.to_vec()),
            false => Err("its checksum does not match"),
        })
    }

    pub fn check_padding(&self, start: u64, end: u64, report: &mut Report) -> StorageResult<()> {
        let len = usize::try_from(end.saturating_sub(start)).unwrap_or(0).min(AHEAD_BYTES_MAX);
        let bytes = self.file.read(start, len)?.unwrap_or_default();
        if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
            report.error(INDEX_FILE, start + at as u64, "bytes between two parts are not zero");
        // Padding to a multiple of 16 has at most 16 bytes, so longer zeros are a gap.
        } else if end.saturating_sub(start) > 16 {
            report.error(INDEX_FILE, start, "a gap between two parts");
        }
        Ok(())
    }
}
