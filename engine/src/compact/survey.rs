//! The list of blocks with their sizes, and the blocks that cannot be used.

use crate::block::{
    BlockError, BlockMeta, META_FILE, TOMBSTONES_FILE, Tombstones, chunk_file_name, read_meta,
};
use crate::index::{INDEX_FILE, IndexError};
use crate::storage::{Blocks, StorageError, StorageResult};

/// The blocks of a storage.
#[derive(Debug, Default)]
pub struct Survey {
    /// Blocks whose `meta.json` and `tombstones` read, by name. `stats.num_tombstones` is that of
    /// the tombstones file, since `meta.json` does not change when something is deleted.
    pub metas: Vec<BlockMeta>,
    /// The others.
    pub bad: Vec<BadBlock>,
}

/// A block that cannot be used, and why: for a message, and to leave the block out from now on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block {block} is excluded: {reason}")]
pub struct BadBlock {
    /// Its ULID.
    pub block: String,
    /// The file inside it, where one is to blame.
    pub file: Option<String>,
    /// Where in the file, if that is known.
    pub offset: Option<u64>,
    /// What is wrong; says file and offset again.
    pub reason: String,
}

/// Reads what blocks there are. Blocks that do not read are reported and left out.
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

/// Bytes that the files of a block take.
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
    // The directory's name is what storage knows the block by.
    ulid.clone_into(&mut meta.ulid);
    Ok(meta)
}

impl BadBlock {
    /// What reading a block ran into. A device that cannot give the bytes counts as damage too:
    /// one bad sector must not stop the work on other blocks.
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
            // The reason says which file it was, if there was one.
            _ => (None, None),
        };
        BadBlock { block: block.to_owned(), file, offset, reason: error.to_string() }
    }
}
