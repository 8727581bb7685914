//! The summary of an index: positions of the sampled entries of its tables, in few bytes, for the
//! next instance that opens the index.
//!
//! Opening an index reads and checks its symbols and its postings offset table, and keeps one entry
//! in 32: for a read of few series that is most of the work. A summary has the positions of these
//! entries, so that the tables need not be read again. The storage keeps a summary as long as it
//! likes, outside of the block and never on disk.
//!
//! ```text
//! ┌───────────────────────┬───────────────────────────────┬─────────┬────────────────┐
//! │ size of index uvarint │ table of contents, as in file │ symbols │ postings table │
//! └───────────────────────┴───────────────────────────────┴─────────┴────────────────┘
//! ```

use super::NamedFile;
use super::postings_table::PostingsTable;
use super::symbol_table::SymbolTable;
use super::toc::Toc;
use crate::codec::{put_uvarint, split_uvarint};

/// Longest summary that is kept, in bytes.
const SUMMARY_BYTES_MAX: usize = 2 * 1024 * 1024;

pub(super) fn keep(file: &NamedFile, toc: &Toc, symbols: &SymbolTable, postings: &PostingsTable) {
    let mut summary = head(file, toc);
    symbols.put_summary(&mut summary);
    postings.put_summary(&mut summary);
    if summary.len() <= SUMMARY_BYTES_MAX {
        file.keep_summary(&summary);
    }
}

/// Returns both tables, if the storage has a summary of this very file.
pub(super) fn recall(file: &NamedFile, toc: &Toc) -> Option<(SymbolTable, PostingsTable)> {
    let summary = file.summary()?;
    let rest = summary.strip_prefix(head(file, toc).as_slice())?;
    let (symbols, rest) = SymbolTable::split_summary(file.clone(), rest)?;
    let (postings, rest) = PostingsTable::split_summary(file.clone(), rest)?;
    rest.is_empty().then_some((symbols, postings))
}

/// Identifies a file by its size and its table of contents.
fn head(file: &NamedFile, toc: &Toc) -> Vec<u8> {
    let mut head = Vec::new();
    put_uvarint(&mut head, file.size());
    head.extend_from_slice(&toc.encode());
    head
}

/// Decodes a number that must be less than 2^32.
pub(super) fn split_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = split_uvarint(bytes)?;
    Some((u32::try_from(number).ok()?, rest))
}
