//! The head snapshot: the head and the state of its log as bytes, which a start can load instead of
//! replaying the log. The layout is in `engine/docs/format/head.md`.

use super::log::LogState;
use super::{Engine, Owned, newest_block_end_ms};
use crate::error::{Error, Result};
use crate::head::{Bytes, Head, HeadLoader, HeadOptions, HeadSaver, SavedHeadError};
use std::cell::RefCell;
use std::rc::Rc;

/// First bytes of the first piece of a snapshot.
const MAGIC: &[u8; 4] = b"tide";
const VERSION: u32 = 2;

/// A head snapshot, returned piece by piece.
pub struct SavedHead {
    head: Rc<RefCell<Head>>,
    saver: HeadSaver,
    /// The first piece, until it was returned.
    first: Option<Vec<u8>>,
}

impl SavedHead {
    /// Returns the next piece, about `bytes_max` long; empty at the end.
    pub fn next(&mut self, bytes_max: u32) -> Vec<u8> {
        match self.first.take() {
            Some(first) => first,
            None => self.saver.next(&self.head.borrow(), bytes_max as usize),
        }
    }
}

impl Engine {
    /// Closes the store, even if this call fails, and returns the head that [`Engine::replay`]
    /// would build from the log as it is now.
    pub fn save_head(self) -> Result<SavedHead> {
        let owned = self.owned.ok_or(Error::WrongRole { call: "save-head" })?;
        if !owned.replayed {
            return Err(Error::NotOpen);
        }
        let newest_block_end_ms = newest_block_end_ms(&*self.blocks)?;
        let head = owned.head.borrow();
        // Written first, because a start loads no snapshot while the log lacks deletions of blocks.
        owned.log.borrow_mut().log_block_deletions(&head)?;
        let mut first = Vec::from(MAGIC);
        first.extend_from_slice(&VERSION.to_le_bytes());
        let HeadOptions { block_duration_ms, exemplars_max, .. } = *head.options();
        first.extend_from_slice(&block_duration_ms.to_le_bytes());
        first.extend_from_slice(&exemplars_max.to_le_bytes());
        first.extend_from_slice(&newest_block_end_ms.to_le_bytes());
        owned.log.borrow_mut().put_state(&mut first);
        let saver = HeadSaver::new(&head);
        drop(head);
        Ok(SavedHead { head: owned.head, saver, first: Some(first) })
    }

    /// Loads a piece of a head snapshot, in place of [`Engine::replay`]; returns whether the piece
    /// was the last. After an error the head is unchanged, and earlier pieces are dropped.
    pub fn load_head(&mut self, piece: &[u8]) -> Result<bool> {
        let owned = self.owned.as_mut().ok_or(Error::WrongRole { call: "load-head" })?;
        if owned.replayed {
            return Err(Error::Invalid("the head is not empty".into()));
        }
        // Moved out, so that an error drops the earlier pieces.
        let loaded = match owned.loading.take() {
            None => {
                let newest_block_end_ms = newest_block_end_ms(&*self.blocks)?;
                owned.begin_to_load(newest_block_end_ms, piece)
            }
            Some(loader) => owned.go_on_loading(loader, piece),
        };
        Ok(loaded?)
    }
}

impl Owned {
    fn begin_to_load(
        &mut self,
        newest_block_end_ms: i64,
        piece: &[u8],
    ) -> std::result::Result<bool, SavedHeadError> {
        let mut piece = Bytes(piece);
        if piece.array()? != MAGIC {
            return Err(SavedHeadError::Damaged { what: "its magic number is wrong" });
        }
        let version = piece.u32()?;
        if version != VERSION {
            return Err(SavedHeadError::Version { version });
        }
        // With other options or blocks, a replay would build another head.
        let options = *self.head.borrow().options();
        if piece.i64()? != options.block_duration_ms {
            return Err(SavedHeadError::Outdated { what: "the block duration has changed" });
        }
        if piece.u64()? != options.exemplars_max {
            return Err(SavedHeadError::Outdated { what: "the limit of exemplars has changed" });
        }
        if piece.i64()? != newest_block_end_ms {
            return Err(SavedHeadError::Outdated { what: "the blocks have changed" });
        }
        if self.log.borrow().has_block_deletions() {
            return Err(SavedHeadError::Outdated { what: "samples were deleted from blocks" });
        }
        let log = LogState::take(&mut piece)?;
        self.loading = Some(Loading { loader: HeadLoader::new(options), log });
        Ok(false)
    }

    fn go_on_loading(
        &mut self,
        mut loading: Loading,
        piece: &[u8],
    ) -> std::result::Result<bool, SavedHeadError> {
        if !loading.loader.take(piece)? {
            self.loading = Some(loading);
            return Ok(false);
        }
        // The head changes only here, when all pieces are known to be good.
        loading.loader.finish(&mut self.head.borrow_mut())?;
        self.log.borrow_mut().restore(loading.log);
        self.replayed = true;
        Ok(true)
    }
}

/// A head snapshot that is being loaded.
pub(super) struct Loading {
    loader: HeadLoader,
    log: LogState,
}
