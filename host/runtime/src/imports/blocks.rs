//! The import `blocks`: the block directories.

use super::storage_error;
use crate::StorageError;
use crate::bindings::tidepool::tsdb::blocks::{ChunkBytes, Host, HostFile, HostWriter};
use crate::state::InstanceState;
use tidepool_disk::{BlockFile, BlockWriter, WrittenFor};
use tidepool_remote_write::checked_ends;
use wasmtime::Result;
use wasmtime::component::Resource;

impl Host for InstanceState {
    fn list(&mut self) -> Result<Result<Vec<String>, StorageError>> {
        Ok(self.storage.blocks.list().map_err(storage_error))
    }

    fn open(
        &mut self,
        block: String,
        name: String,
    ) -> Result<Result<Resource<BlockFile>, StorageError>> {
        match self.storage.blocks.open_file(&block, &name) {
            Ok(file) => {
                // For streamed answers, the host copies chunks out of files that the instance has
                // open.
                self.note_opened(&file);
                Ok(Ok(self.table.push(file)?))
            }
            Err(error) => Ok(Err(storage_error(error))),
        }
    }

    fn create(&mut self, now_ms: i64) -> Result<Result<Resource<BlockWriter>, StorageError>> {
        // Only a cut has a resource of another instance's head open while it creates a block.
        let account = if self.reads_head() { WrittenFor::Cut } else { WrittenFor::Merge };
        match self.storage.blocks.create_for(now_ms, account) {
            Ok(writer) => Ok(Ok(self.table.push(writer)?)),
            Err(error) => Ok(Err(storage_error(error))),
        }
    }

    fn delete(&mut self, block: String) -> Result<Result<(), StorageError>> {
        Ok(self.storage.blocks.delete(&block).map_err(storage_error))
    }

    fn replace_tombstones(
        &mut self,
        block: String,
        tombstones: Vec<u8>,
        meta: Vec<u8>,
    ) -> Result<Result<(), StorageError>> {
        let replaced = self.storage.blocks.replace_tombstones(&block, &tombstones, &meta);
        Ok(replaced.map_err(storage_error))
    }
}

impl HostFile for InstanceState {
    fn size(&mut self, file: Resource<BlockFile>) -> Result<u64> {
        Ok(self.table.get(&file)?.size_bytes())
    }

    fn read_at(
        &mut self,
        file: Resource<BlockFile>,
        offset: u64,
        len: u32,
    ) -> Result<Result<Vec<u8>, StorageError>> {
        Ok(self.table.get(&file)?.read_at(offset, len).map_err(storage_error))
    }

    fn read_chunks(
        &mut self,
        file: Resource<BlockFile>,
        offset: u64,
        len: u32,
    ) -> Result<Result<ChunkBytes, StorageError>> {
        let bytes = self.table.get(&file)?.read_at(offset, len);
        let checked =
            // Checked by the host, which has an instruction for CRC-32C; WebAssembly has none.
            bytes.map(|bytes| ChunkBytes { ends: checked_ends(&bytes, crc32c::crc32c), bytes });
        Ok(checked.map_err(storage_error))
    }

    fn summary(&mut self, file: Resource<BlockFile>) -> Result<Option<Vec<u8>>> {
        Ok(self.table.get(&file)?.summary())
    }

    fn keep_summary(&mut self, file: Resource<BlockFile>, summary: Vec<u8>) -> Result<()> {
        self.table.get(&file)?.keep_summary(summary);
        Ok(())
    }

    fn drop(&mut self, file: Resource<BlockFile>) -> Result<()> {
        let file = self.table.delete(file)?;
        self.note_closed(&file);
        Ok(())
    }
}

impl HostWriter for InstanceState {
    fn id(&mut self, writer: Resource<BlockWriter>) -> Result<String> {
        Ok(self.table.get(&writer)?.id().to_owned())
    }

    fn write_at(
        &mut self,
        writer: Resource<BlockWriter>,
        name: String,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<Result<(), StorageError>> {
        let writer = self.table.get_mut(&writer)?;
        Ok(writer.write_at(&name, offset, &bytes).map_err(storage_error))
    }

    fn link_file(
        &mut self,
        writer: Resource<BlockWriter>,
        block: String,
        name: String,
        new_name: String,
    ) -> Result<Result<bool, StorageError>> {
        let writer = self.table.get_mut(&writer)?;
        Ok(writer.link_file(&block, &name, &new_name).map_err(storage_error))
    }

    fn commit(&mut self, writer: Resource<BlockWriter>) -> Result<Result<(), StorageError>> {
        // Removed before the commit: the call consumes the resource, whether it succeeds or not.
        Ok(self.table.delete(writer)?.commit().map_err(storage_error))
    }

    fn drop(&mut self, writer: Resource<BlockWriter>) -> Result<()> {
        self.table.delete(writer)?;
        Ok(())
    }
}
