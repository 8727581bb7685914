//! Writes an index from front to back: symbols, series, postings, their table, table of contents.

use super::postings_builder::PostingsBuilder;
use super::series::{LabelNumbers, encode_entry};
use super::symbol_table::write_symbols;
use super::toc::Toc;
use super::{
    ChunkMeta, FileSink, INDEX_FILE, IndexError, MAGIC, SERIES_ALIGN_BYTES, SeriesRef, SymbolList,
    VERSION,
};
use crate::codec::{crc32c, put_uvarint};
use crate::model::Labels;
use crate::storage::BlockWriter;
use std::collections::BTreeMap;

/// Longest index in bytes: the reach of 32-bit references in steps of 16 bytes.
const INDEX_BYTES_MAX: u64 = 16 * (u32::MAX as u64);

/// Writes the file `index` of a new block, which each call gets as `out`.
///
/// Memory: the symbols, four bytes for each label of each series, and buffers of fixed size.
pub struct IndexWriter {
    sink: FileSink,
    symbols: SymbolList,
    postings: PostingsBuilder,
    symbols_at: u64,
    series_at: u64,
    last_series: Vec<LabelNumbers>,
    /// Offset of the last chunk of each file of chunks.
    last_chunks: BTreeMap<u32, u32>,
    /// `entry` and `numbers` are kept between series to reuse their memory.
    entry: Vec<u8>,
    numbers: Vec<LabelNumbers>,
}

impl IndexWriter {
    /// Returns the largest memory of symbols and postings until the index is finished.
    pub fn memory_bytes(&self) -> u64 {
        self.symbols.memory_bytes() + self.postings.memory_bytes()
    }

    /// Begins an index for series whose labels are made of these symbols.
    pub fn new(symbols: SymbolList, out: &mut dyn BlockWriter) -> Result<IndexWriter, IndexError> {
        let mut sink = FileSink::new(INDEX_FILE.to_owned());
        sink.put_u32(MAGIC);
        sink.put(&[VERSION]);
        let symbols_at = sink.position();
        write_symbols(&symbols, &mut sink, out)?;
        let series_at = sink.position();
        Ok(IndexWriter {
            sink,
            symbols,
            postings: PostingsBuilder::default(),
            symbols_at,
            series_at,
            last_series: Vec::new(),
            last_chunks: BTreeMap::new(),
            entry: Vec::new(),
            numbers: Vec::new(),
        })
    }

    /// Adds a series, which must follow the last one in label order, with chunks in time order.
    pub fn add_series(
        &mut self,
        labels: &Labels,
        chunks: &[ChunkMeta],
        out: &mut dyn BlockWriter,
    ) -> Result<SeriesRef, IndexError> {
        self.numbers.clear();
        for (name, value) in labels.iter() {
            let number_of = |text: &str| {
                let unknown = || IndexError::UnknownSymbol { text: text.to_owned() };
                self.symbols.number_of(text).ok_or_else(unknown)
            };
            self.numbers.push((number_of(name)?, number_of(value)?));
        }
        // Symbols ascend, so their numbers compare as the labels do.
        if self.numbers <= self.last_series {
            return Err(IndexError::UnsortedSeries { labels: labels.to_string() });
        }
        self.check_chunks(chunks)
            .ok_or_else(|| IndexError::UnsortedChunks { labels: labels.to_string() })?;
        self.sink.pad_to(SERIES_ALIGN_BYTES);
        // A multiple of 16 bytes, so the reference loses nothing of the offset.
        let series_ref = self.next_ref()?;
        self.entry.clear();
        encode_entry(&mut self.entry, &self.numbers, chunks);
        put_uvarint(self.sink.buffer(), self.entry.len() as u64);
        self.sink.put(&self.entry);
        self.sink.put_u32(crc32c(&self.entry));
        self.sink.flush_full(out)?;
        self.postings.add(series_ref, &self.numbers);
        // Swapped instead of copied: the next series reuses the memory.
        std::mem::swap(&mut self.last_series, &mut self.numbers);
        Ok(series_ref)
    }

    /// Leaves a hole, so that the next bytes lie far into the file.
    #[cfg(test)]
    pub(crate) fn skip(&mut self, bytes: u64, out: &mut dyn BlockWriter) -> Result<(), IndexError> {
        Ok(self.sink.skip(bytes, out)?)
    }

    /// Writes postings, their table, and the table of contents.
    pub fn finish(mut self, out: &mut dyn BlockWriter) -> Result<(), IndexError> {
        let postings = self.sink.position();
        let offsets = self.postings.write_lists(&mut self.sink, out)?;
        let postings_table = self.sink.position();
        self.postings.write_table(&offsets, &self.symbols, &mut self.sink, out)?;
        let toc =
            Toc { symbols: self.symbols_at, series: self.series_at, postings, postings_table };
        self.sink.put(&toc.encode());
        self.sink.flush(out)?;
        Ok(())
    }

    /// Returns `None` unless the chunks ascend in time without overlap, and in offset in each file.
    fn check_chunks(&mut self, chunks: &[ChunkMeta]) -> Option<()> {
        let mut last_time_ms = None;
        for chunk in chunks {
            let last_place = self.last_chunks.entry(chunk.chunk_ref.file()).or_default();
            let in_order = chunk.min_time_ms <= chunk.max_time_ms
                && last_time_ms.is_none_or(|last| last < chunk.min_time_ms)
                && *last_place <= chunk.chunk_ref.offset();
            if !in_order {
                return None;
            }
            (*last_place, last_time_ms) = (chunk.chunk_ref.offset(), Some(chunk.max_time_ms));
        }
        Some(())
    }

    fn next_ref(&self) -> Result<SeriesRef, IndexError> {
        let bytes = self.sink.position();
        u32::try_from(bytes / SERIES_ALIGN_BYTES).map(SeriesRef).map_err(|_| IndexError::TooLarge {
            what: "the index",
            bytes,
            bytes_max: INDEX_BYTES_MAX,
        })
    }
}
