//! The table of contents, the last 52 bytes of an index:
//!
//! ```text
//! ┌─────────┬────────┬───────────────┬────────────────────┬──────────┬────────────────┬───────┐
//! │ symbols │ series │ label indices │ label offset table │ postings │ postings table │ CRC32 │
//! └─────────┴────────┴───────────────┴────────────────────┴──────────┴────────────────┴───────┘
//!   six offsets of 8 bytes                                                              4 bytes
//! ```
//!
//! Label indices and their table are no longer used: both are written empty, with the offset of
//! another section, and ignored when read.

use super::{HEADER_BYTES, IndexError, NamedFile};
use crate::codec::crc32c;

pub(crate) const TOC_BYTES: usize = 6 * 8 + 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Toc {
    pub(super) symbols: u64,
    pub(super) series: u64,
    pub(super) postings: u64,
    pub(super) postings_table: u64,
}

impl Toc {
    pub(super) fn encode(&self) -> Vec<u8> {
        let Toc { symbols, series, postings, postings_table } = *self;
        let offsets = [symbols, series, postings, postings_table, postings, postings_table];
        let mut bytes: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_be_bytes()).collect();
        bytes.extend_from_slice(&crc32c(&bytes).to_be_bytes());
        bytes
    }

    /// Reads the table and checks that the sections are in order inside the file.
    pub(super) fn read(file: &NamedFile) -> Result<Toc, IndexError> {
        let damage = |offset, what| IndexError::from(file.damage(offset, what));
        let offset = file.size().saturating_sub(TOC_BYTES as u64);
        let [symbols, series, _, _, postings, postings_table] = read_offsets(file)?;
        let toc = Toc { symbols, series, postings, postings_table };
        let in_order =
            [HEADER_BYTES, toc.symbols, toc.series, toc.postings, toc.postings_table, offset];
        if in_order.is_sorted() {
            Ok(toc)
        } else {
            Err(damage(offset, "the table of contents points outside of the file or backwards"))
        }
    }
}

/// Reads the six offsets in the table's order, and checks their checksum.
pub(crate) fn read_offsets(file: &NamedFile) -> Result<[u64; 6], IndexError> {
    let damage = |offset, what| IndexError::from(file.damage(offset, what));
    let offset = file.size().saturating_sub(TOC_BYTES as u64);
    let bytes = file.read(offset, TOC_BYTES)?.filter(|_| offset >= HEADER_BYTES);
    let bytes = bytes.ok_or_else(|| damage(0, "the file is too short for an index"))?;
    let (offsets, crc) = bytes.split_at(TOC_BYTES - 4);
    if crc != crc32c(offsets).to_be_bytes() {
        return Err(damage(offset, "the checksum of the table of contents does not match"));
    }
    let (offsets, _) = offsets.as_chunks::<8>();
    let offset_of = |i: usize| offsets.get(i).map_or(0, |bytes| u64::from_be_bytes(*bytes));
    Ok(std::array::from_fn(offset_of))
}
