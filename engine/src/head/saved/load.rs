//! Builds a head from the pieces of a snapshot.

use super::{Bytes, SavedHeadError, damaged, kind};
use crate::head::exemplars::RingLoader;
use crate::head::metadata::MetadataTable;
use crate::head::series_table::TableLoader;
use crate::head::window::HeldTimes;
use crate::head::{Exemplars, Head, HeadOptions};

/// Takes pieces of a head in the order in which they were saved. The head is built at the end;
/// after an error the loader is of no further use.
pub struct HeadLoader {
    options: HeadOptions,
    /// Kind of the last piece.
    kind: u8,
    newest_ms: i64,
    floor_ms: i64,
    table: TableLoader,
    metadata: MetadataTable,
    exemplars: Exemplars,
    ring: RingLoader,
}

impl HeadLoader {
    /// Creates a loader for a head with these options.
    pub fn new(options: HeadOptions) -> HeadLoader {
        HeadLoader {
            options,
            kind: 0,
            newest_ms: i64::MIN,
            floor_ms: i64::MIN,
            table: TableLoader::new(options.hash_seed, options.block_duration_ms),
            metadata: MetadataTable::default(),
            exemplars: Exemplars::new(options.exemplars_max, options.hash_seed),
            ring: RingLoader::default(),
        }
    }

    /// Takes the next piece; returns whether it was the last.
    pub fn take(&mut self, piece: &[u8]) -> Result<bool, SavedHeadError> {
        let mut piece = Bytes(piece);
        let kind = piece.u8()?;
        // Pieces come in the order of their kinds, since later kinds refer to earlier ones.
        let is_next = match self.kind {
            0 => kind == kind::FIRST,
            before => before <= kind && before != kind::END && kind != kind::FIRST,
        };
        if !is_next {
            return Err(damaged("its pieces are out of order"));
        }
        self.kind = kind;
        while !piece.is_empty() {
            match kind {
                kind::TIMES => {
                    self.table.take_next_ref(&mut piece)?;
                    (self.newest_ms, self.floor_ms) = (piece.i64()?, piece.i64()?);
                }
                kind::SYMBOLS => self.table.take_symbol(&mut piece)?,
                kind::PAIRS => self.table.take_pair(&mut piece)?,
                kind::NAME_LISTS => self.table.take_name_list(&mut piece)?,
                kind::SERIES => self.table.take_series(&mut piece)?,
                kind::METADATA => self.metadata.take_state(&mut piece)?,
                kind::EXEMPLAR_SERIES => self.ring.take_series(&mut piece)?,
                kind::EXEMPLARS => self.ring.take_exemplar(&mut self.exemplars, &mut piece)?,
                kind::END => {
                    if piece.u32()? as usize != self.table.len() {
                        return Err(damaged("series are missing"));
                    }
                    return Ok(true);
                }
                _ => return Err(damaged("it has a piece of an unknown kind")),
            }
        }
        Ok(false)
    }

    /// Fills an empty head from the pieces; fails if the pieces contradict each other.
    pub fn finish(self, head: &mut Head) -> Result<(), SavedHeadError> {
        let (table, postings, oldest) = self.table.finish()?;
        head.counters.series_created += table.len() as u64;
        head.table = table;
        head.postings = postings;
        head.metadata = self.metadata;
        head.exemplars = self.exemplars;
        let valid_ms = head.window.min_valid_ms();
        head.window.set_held(HeldTimes { newest_ms: self.newest_ms, ..oldest });
        head.window.leave_to_blocks(self.floor_ms);
        // A block may have been committed before the head was truncated: drop its samples.
        let min_valid_ms = head.window.min_valid_ms();
        if oldest.oldest_ms < min_valid_ms
            && head.replay_floor(min_valid_ms).and_then(|()| head.end_replay()).is_err()
        {
            *head = Head::new(self.options, valid_ms);
            return Err(damaged("a chunk does not decode"));
        }
        Ok(())
    }
}
