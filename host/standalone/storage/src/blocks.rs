//! `blocks`: the block directories of the data directory.

use crate::Component;
use crate::bindings::exports::tidepool::tsdb::blocks::{
    ChunkBytes, File, Guest, GuestFile, GuestWriter, Writer,
};
use crate::bindings::tidepool::tsdb::types::StorageError;
use crate::state::{self, storage_error};
use std::cell::RefCell;
use tidepool_disk::{BlockFile, BlockWriter};

pub struct OpenWriter(RefCell<BlockWriter>);

impl Guest for Component {
    type File = BlockFile;
    type Writer = OpenWriter;

    fn list() -> Result<Vec<String>, StorageError> {
        state::with(|state| state.blocks.list())
    }

    fn open(block: String, name: String) -> Result<File, StorageError> {
        state::with(|state| state.blocks.open_file(&block, &name)).map(File::new)
    }

    fn create(now_ms: i64) -> Result<Writer, StorageError> {
        let writer = state::with(|state| state.blocks.create(now_ms))?;
        Ok(Writer::new(OpenWriter(RefCell::new(writer))))
    }

    fn delete(block: String) -> Result<(), StorageError> {
        state::with(|state| state.blocks.delete(&block))
    }

    fn replace_tombstones(
        block: String,
        tombstones: Vec<u8>,
        meta: Vec<u8>,
    ) -> Result<(), StorageError> {
        state::with(|state| state.blocks.replace_tombstones(&block, &tombstones, &meta))
    }
}

impl GuestFile for BlockFile {
    fn size(&self) -> u64 {
        self.size_bytes()
    }

    fn read_at(&self, offset: u64, len: u32) -> Result<Vec<u8>, StorageError> {
        BlockFile::read_at(self, offset, len).map_err(storage_error)
    }

    /// Does not check chunks: the engine is WebAssembly as well and would not be slower.
    fn read_chunks(&self, offset: u64, len: u32) -> Result<ChunkBytes, StorageError> {
        let bytes = BlockFile::read_at(self, offset, len).map_err(storage_error)?;
        Ok(ChunkBytes { bytes, ends: Vec::new() })
    }

    fn summary(&self) -> Option<Vec<u8>> {
        BlockFile::summary(self)
    }

    fn keep_summary(&self, summary: Vec<u8>) {
        BlockFile::keep_summary(self, summary);
    }
}

impl GuestWriter for OpenWriter {
    fn id(&self) -> String {
        self.0.borrow().id().to_owned()
    }

    fn write_at(&self, name: String, offset: u64, bytes: Vec<u8>) -> Result<(), StorageError> {
        self.0.borrow_mut().write_at(&name, offset, &bytes).map_err(storage_error)
    }

    fn link_file(
        &self,
        block: String,
        name: String,
        new_name: String,
    ) -> Result<bool, StorageError> {
        self.0.borrow_mut().link_file(&block, &name, &new_name).map_err(storage_error)
    }

    fn commit(this: Writer) -> Result<(), StorageError> {
        let OpenWriter(writer) = this.into_inner();
        writer.into_inner().commit().map_err(storage_error)
    }
}
