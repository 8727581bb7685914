//! Lists blocks and their sizes, and the blocks that cannot be used.

use crate::block::{
    BlockError, BlockMeta, META_FILE, TOMBSTONES_FILE, Tombstones, chunk_file_name, read_meta,
};
use crate::index::{INDEX_FILE, IndexError};
use crate::storage::{Blocks, StorageError, StorageResult};

/// Readable and unreadable blocks of a storage.
#[derive(Debug, Default)]
pub struct Survey {
    /// Metas of blocks with readable `meta.json` and `tombstones`, by ULID. `num_tombstones` is
    /// that of the tombstones file, since a crash may leave an old count in `meta.json`.
    pub metas: Vec<BlockMeta>,
    /// Blocks that could not be read, with reasons.
    pub bad: Vec<BadBlock>,
}

/// A block that cannot be used, with the reason: for messages, and to exclude the block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block {block} is excluded: {reason}")]
pub struct BadBlock {
    /// ULID of the block to exclude.
    pub block: String,
    /// Name of the damaged file in the block, if known.
    pub file: Option<String>,
    /// Offset of the damage in the file, if known.
    pub offset: Option<u64>,
    /// Description of the fault, with file and offset.
    pub reason: String,
}

/// Reads the metas of all blocks. Unreadable blocks are reported and excluded.
pub fn survey(blocks: &dyn Blocks) -> StorageResult<Survey> {
    let mut survey = Survey::default();
    for ulid in blocks.list()? {
        match read_block(blocks, &ulid) {
            Ok(meta) => survey.metas.push(meta),
            Err(error) => survey.bad.push(BadBlock::of(&ulid, &error)),
        }
    }
    Ok(survey)
}

/// Returns the size of all files of a block, in bytes.
pub fn block_bytes(blocks: &dyn Blocks, block: &str) -> StorageResult<u64> {
    let size = |file: &str| match blocks.open(block, file) {
        Ok(file) => Ok(Some(file.size())),
        Err(StorageError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    };
    let mut bytes = 0u64;
    for file in [META_FILE, INDEX_FILE, TOMBSTONES_FILE] {
        bytes = bytes.saturating_add(size(file)?.unwrap_or(0));
    }
    let mut number = 0;
    while let Some(more) = size(&chunk_file_name(number))? {
        bytes = bytes.saturating_add(more);
        number += 1;
    }
    Ok(bytes)
}

fn read_block(blocks: &dyn Blocks, ulid: &str) -> Result<BlockMeta, BlockError> {
    let mut meta = read_meta(blocks, ulid)?;
    meta.stats.num_tombstones = Tombstones::read(blocks, ulid)?.count();
    // Storage knows a block by the name of its directory, whatever `meta.json` says.
    ulid.clone_into(&mut meta.ulid);
    Ok(meta)
}

impl BadBlock {
    /// Converts a read error of a block. A device that cannot return the bytes counts as damage
    /// too: one bad sector must not stop the work on other blocks.
    pub fn of(block: &str, error: &BlockError) -> BadBlock {
        let (file, offset) = match error {
            BlockError::Damaged(damage) | BlockError::Index(IndexError::Damaged(damage)) => {
                (Some(damage.file.to_string()), Some(damage.offset))
            }
            BlockError::Chunk { file, offset, .. } => (Some(file.clone()), Some(*offset)),
            BlockError::UnsupportedVersion { file, .. } => (Some(file.clone()), None),
            BlockError::Meta { .. } => (Some(META_FILE.to_owned()), None),
            BlockError::Index(IndexError::UnsupportedVersion { .. }) => {
                (Some(INDEX_FILE.to_owned()), None)
            }
            // `reason` names the file, if there is one.
            _ => (None, None),
        };
        BadBlock { block: block.to_owned(), file, offset, reason: error.to_string() }
    }
}
