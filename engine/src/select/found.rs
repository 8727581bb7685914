//! Chunks that a selection found. Chunks of blocks are read when their bytes are needed.

use super::SeriesSource;
use super::merge::Mergeable;
use crate::block::{BlockReader, ChunkMeta};
use crate::chunk::{Chunk, plain};
use crate::error::{Error, Result};
use crate::model::{Labels, TimeRange};
use crate::wire::ChunkedSeries;
use std::rc::Rc;

/// A chunk that a selection found.
#[derive(Clone)]
pub enum FoundChunk {
    /// A chunk whose bytes were read.
    Read(Chunk),
    /// A chunk in a block that can be returned as it is, and is not read yet.
    InBlock(Rc<BlockReader>, ChunkMeta),
}

impl FoundChunk {
    /// Returns the chunk, read if need be, in an encoding that all clients know.
    pub fn into_plain(self, labels: &Labels) -> Result<Chunk> {
        let chunk = self.into_chunk()?;
        plain(chunk).map_err(|source| Error::Chunk { series: labels.to_string(), source })
    }
}

impl From<Chunk> for FoundChunk {
    fn from(chunk: Chunk) -> FoundChunk {
        FoundChunk::Read(chunk)
    }
}

impl Mergeable for FoundChunk {
    #[inline]
    fn span(&self) -> TimeRange {
        let (start_ms, end_ms) = match self {
            FoundChunk::Read(chunk) => (chunk.min_time_ms, chunk.max_time_ms),
            FoundChunk::InBlock(_, meta) => (meta.min_time_ms, meta.max_time_ms),
        };
        TimeRange { start_ms, end_ms }
    }

    fn into_chunk(self) -> Result<Chunk> {
        match self {
            FoundChunk::Read(chunk) => Ok(chunk),
            FoundChunk::InBlock(block, meta) => Ok(block.chunk(&meta)?),
        }
    }
}

/// A source of chunks that are all read.
pub struct AllRead(pub Box<dyn SeriesSource>);

impl SeriesSource<FoundChunk> for AllRead {
    fn next_series(&mut self) -> Result<Option<ChunkedSeries<FoundChunk>>> {
        let next = self.0.next_series()?;
        Ok(next.map(|ChunkedSeries { labels, chunks }| ChunkedSeries {
            labels,
            chunks: chunks.into_iter().map(FoundChunk::Read).collect(),
        }))
    }

    fn rewind(&mut self) -> Result<()> {
        self.0.rewind()
    }

    fn estimate(&mut self) -> Result<usize> {
        self.0.estimate()
    }
}
