//! Faults in the interface `blocks`.

use crate::{Findings, replace};
use embed_rust::State;
use embed_rust::bindings::tidepool::tsdb::blocks::{
    ChunkBytes, Host as Blocks, HostFile, HostWriter,
};
use embed_rust::bindings::tidepool::tsdb::types::StorageError;
use embed_rust::storage::{File, Writer};
use std::sync::{Arc, Mutex};
use wasmtime::Result;
use wasmtime::component::{ComponentNamedList, ComponentType, Lift, Lower, Resource};

type Answer<T> = Result<Result<T, StorageError>>;
type Names = Answer<Vec<String>>;
type ReadAt = (Resource<File>, u64, u32);
type WriteAt = (Resource<Writer>, String, u64, Vec<u8>);
type Tombstones = (String, Vec<u8>, Vec<u8>);

fn faulty<P, R>(
    function: &str,
    faulty: impl Fn(&mut State, P) -> Result<R> + Send + Sync + 'static,
) -> Findings
where
    P: ComponentNamedList + Lift + 'static,
    R: ComponentType + Lower + 'static,
{
    Findings::with("blocks", |imports| replace(imports, function, faulty))
}

/// Returns the ULID of a block that is being written.
fn id(state: &mut State, writer: &Resource<Writer>) -> Result<String> {
    HostWriter::id(state, Resource::new_borrow(writer.rep()))
}

#[test]
fn a_list_with_what_is_being_written() {
    let created = Arc::new(Mutex::new(vec![]));
    let seen = Arc::clone(&created);
    Findings::with("blocks", |imports| {
        replace(imports, "create", move |state, (now_ms,): (i64,)| {
            let writer = state.create(now_ms)?;
            if let Ok(writer) = &writer {
                created.lock().expect("a lock").push(id(state, writer)?);
            }
            Ok(writer)
        })?;
        replace(imports, "list", move |_, (): ()| -> Names {
            Ok(Ok(seen.lock().expect("a lock").clone()))
        })
    })
    .says("a block that is being written is not listed");
}

#[test]
fn a_list_in_no_order() {
    faulty("list", |state, (): ()| -> Names {
        Ok(state.list()?.map(|names| names.into_iter().rev().collect()))
    })
    .says("names ascend with time");
}

#[test]
fn a_list_that_fails_without_blocks() {
    faulty("list", |state, (): ()| -> Names {
        Ok(match state.list()? {
            Ok(names) if names.is_empty() => Err(StorageError::NotFound("no block".into())),
            names => names,
        })
    })
    .says("list: failed");
}

#[test]
fn a_commit_that_is_dropped() {
    faulty("[static]writer.commit", |state, (this,): (Resource<Writer>,)| -> Answer<()> {
        HostWriter::drop(state, this)?;
        Ok(Ok(()))
    })
    .says("a committed block is listed");
}

/// Acts like a storage that makes a folder visible before all its files are written.
#[test]
fn a_commit_without_one_of_the_files() {
    faulty("[method]writer.write-at", |state, (this, name, offset, bytes): WriteAt| match &*name {
        "index" => Ok(Ok(())),
        _ => state.write_at(this, name, offset, bytes),
    })
    .says("open: failed with");
}

#[test]
fn a_dropped_writer_that_commits() {
    Findings::with("blocks", |imports| {
        let drop_it = |mut store: wasmtime::StoreContextMut<State>, number| {
            // Writers without files only gave their names; those with files are committed.
            let writer = Resource::<Writer>::new_own(number);
            HostWriter::commit(store.data_mut(), writer)?.expect("memory");
            Ok(())
        };
        imports.resource("writer", wasmtime::component::ResourceType::host::<Writer>(), drop_it)
    })
    .says("a block that is being written is not listed");
}

#[test]
fn names_that_repeat() {
    faulty("[method]writer.id", |state, (this,): (Resource<Writer>,)| {
        Ok(id(state, &this)?[..10].to_owned() + "0000000000000000")
    })
    .says("each block has a ULID of its own");
}

#[test]
fn names_without_their_time() {
    faulty("create", |state, (_,): (i64,)| state.create(1)).says("a ULID begins with its time");
}

#[test]
fn names_of_a_time_before_the_epoch() {
    faulty("create", |state, (now_ms,): (i64,)| state.create(now_ms & i64::MAX))
        .says("a ULID from before the epoch has the time zero");
}

#[test]
fn a_file_with_a_hole() {
    faulty("[method]writer.write-at", |state, (this, name, offset, bytes): WriteAt| {
        let this = || Resource::<Writer>::new_borrow(this.rep());
        match state.write_at(this(), name.clone(), offset, bytes.clone())? {
            Err(_) => state.write_at(this(), name, 0, bytes),
            written => Ok(written),
        }
    })
    .says("a hole is an error");
}

#[test]
fn a_file_that_is_never_written_over() {
    faulty("[method]writer.write-at", |state, (this, name, offset, bytes): WriteAt| {
        match (&*name, offset) {
            ("index", 10) => Ok(Ok(())),
            _ => state.write_at(this, name, offset, bytes),
        }
    })
    .says("index is as it was left");
}

#[test]
fn a_size_that_is_wrong() {
    faulty("[method]file.size", |state, (this,): (Resource<File>,)| Ok(state.size(this)? + 1))
        .says("size: 100001 instead of 100000");
}

#[test]
fn a_read_that_is_short() {
    faulty("[method]file.read-at", |state, (this, offset, len): ReadAt| {
        state.read_at(this, offset, len.saturating_sub(1))
    })
    .says("bytes in the middle");
}

#[test]
fn a_read_at_another_place() {
    faulty("[method]file.read-at", |state, (this, offset, len): ReadAt| {
        state.read_at(this, offset.saturating_sub(1), len)
    })
    .says("bytes in the middle");
}

#[test]
fn a_read_past_the_end_that_gives_what_there_is() {
    faulty("[method]file.read-at", |state, (this, offset, len): ReadAt| -> Answer<Vec<u8>> {
        let size = state.size(Resource::new_borrow(this.rep()))?;
        let left = size.saturating_sub(offset).min(u64::from(len));
        state.read_at(this, offset.min(size), left as u32)
    })
    .says("a read past the end is an error");
}

#[test]
fn a_read_of_nothing_that_fails() {
    faulty("[method]file.read-at", |state, (this, offset, len): ReadAt| match len {
        0 => Ok(Err(StorageError::Io("nothing to read".into()))),
        _ => state.read_at(this, offset, len),
    })
    .says("no bytes");
}

#[test]
fn an_open_of_what_is_missing_with_another_error() {
    faulty("open", |state, (block, name): (String, String)| {
        Ok(state.open(block, name)?.map_err(|_| StorageError::Io("no such file".into())))
    })
    .says("open of a missing file is not-found");
}

#[test]
fn an_open_that_makes_what_is_missing() {
    faulty("open", |state, (block, name): (String, String)| {
        let tombstones = "tombstones".to_owned();
        match state.open(block.clone(), name)? {
            Err(_) => state.open(block, tombstones),
            file => Ok(file),
        }
    })
    .says("open of a missing file is not-found");
}

type LinkFile = (Resource<Writer>, String, String, String);

#[test]
fn a_link_to_nothing() {
    faulty("[method]writer.link-file", |_, (_, _, _, _): LinkFile| -> Answer<bool> {
        Ok(Ok(true))
    })
    .says("link-file of a missing file is not-found");
}

#[test]
fn a_link_that_is_not_there() {
    faulty("[method]writer.link-file", |state, (this, block, name, _): LinkFile| {
        state.link_file(this, block, name, "chunks/000008".into())
    })
    .says("a linked file cannot be written");
}

#[test]
fn a_linked_file_that_is_written() {
    faulty(
        "[method]writer.write-at",
        |state, (this, name, offset, bytes): WriteAt| -> Answer<()> {
            Ok(state.write_at(this, name, offset, bytes)?.or(Ok(())))
        },
    )
    .says("a linked file cannot be written");
}

/// A storage that cannot link files answers `false`, which is no fault.
#[test]
fn no_links_are_no_fault() {
    let found = faulty("[method]writer.link-file", |_, (_, _, _, _): LinkFile| -> Answer<bool> {
        Ok(Ok(false))
    });
    assert_eq!(found.0, Vec::<String>::new());
}

#[test]
fn a_delete_that_leaves_the_block() {
    faulty("delete", |state, (block,): (String,)| -> Answer<()> {
        Ok(match state.open(block, "index".into())? {
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        })
    })
    .says("a deleted block is not listed");
}

#[test]
fn a_delete_of_no_block_that_succeeds() {
    faulty("delete", |state, (block,): (String,)| -> Answer<()> {
        Ok(state.delete(block)?.or(Ok(())))
    })
    .says("delete of no block is not-found");
}

#[test]
fn a_delete_that_takes_open_files_along() {
    faulty("[method]file.read-at", |state, (this, offset, len): ReadAt| -> Answer<Vec<u8>> {
        match state.list()? {
            Ok(names) if names.len() < 2 && len == 1 => {
                Ok(Err(StorageError::NotFound("the block is gone".into())))
            }
            _ => state.read_at(this, offset, len),
        }
    })
    .says("read-at of a deleted block: failed");
}

#[test]
fn tombstones_that_are_not_replaced() {
    faulty("replace-tombstones", |_, (_, _, _): Tombstones| -> Answer<()> { Ok(Ok(())) })
        .says("new tombstones");
}

#[test]
fn tombstones_whose_count_is_not_replaced() {
    faulty("replace-tombstones", |state, (block, tombstones, _): Tombstones| {
        state.replace_tombstones(block, tombstones, b"{}".into())
    })
    .says("meta.json is as it was left");
}

#[test]
fn tombstones_that_change_under_a_reader() {
    faulty("[method]file.read-at", |state, (this, offset, len): ReadAt| -> Answer<Vec<u8>> {
        let bytes = state.read_at(this, offset, len)?;
        Ok(bytes.map(|bytes| if bytes == b"none" { b"one ".into() } else { bytes }))
    })
    .says("a file that was open keeps what it held");
}

/// Runs the checks on chunks for which a storage reports these ends.
fn with_ends(ends: fn(&[u8]) -> Vec<u32>) -> Findings {
    faulty("[method]file.read-chunks", move |state, read: ReadAt| -> Answer<ChunkBytes> {
        let (this, offset, len) = read;
        let bytes = state.read_at(this, offset, len)?;
        Ok(bytes.map(|bytes| ChunkBytes { ends: ends(&bytes), bytes }))
    })
}

#[test]
fn a_chunk_that_does_not_match_and_is_listed() {
    with_ends(|_| vec![9, 18, 27]).says("chunks that match are listed");
}

#[test]
fn a_chunk_that_is_left_out_before_one_that_is_listed() {
    with_ends(|_| vec![18]).says("chunks that match are listed");
}

#[test]
fn a_chunk_that_is_not_whole_and_is_listed() {
    with_ends(|_| vec![9, 18]).says("a chunk that is not whole is not listed");
}

#[test]
fn chunks_at_another_place() {
    faulty("[method]file.read-chunks", |state, read: ReadAt| -> Answer<ChunkBytes> {
        let (this, offset, len) = read;
        state.read_chunks(this, offset.saturating_sub(1), len)
    })
    .says("bytes of chunks");
}

#[test]
fn a_summary_of_another_file() {
    let kept = Arc::new(Mutex::new(None));
    let shared = Arc::clone(&kept);
    Findings::with("blocks", |imports| {
        imports.func_wrap(
            "[method]file.keep-summary",
            move |_, (_, summary): (Resource<File>, Vec<u8>)| {
                *kept.lock().expect("a lock") = Some(summary);
                Ok(())
            },
        )?;
        replace(imports, "[method]file.summary", move |_, (_,): (Resource<File>,)| {
            Ok(shared.lock().expect("a lock").clone())
        })
    })
    .says("a summary of a file for which none was kept");
}
