//! Checks of the interface `blocks`.

use super::bindings::tidepool::tsdb::blocks::{self, Writer};
use super::bindings::tidepool::tsdb::types::StorageError;
use super::broken::Broken;

const TIME_MS: i64 = 1_700_000_000_000;
const INDEX: &[u8] = b"an index, overwritten here";

/// Bytes of a file in a committed block.
fn content(broken: &mut Broken, block: &str, name: &str) -> Option<Vec<u8>> {
    let file = broken.done("open", blocks::open(block, name))?;
    broken.done("read-at", file.read_at(0, file.size() as u32))
}

/// Begins a block and writes all of its files.
fn filled(broken: &mut Broken, time_ms: i64) -> Option<Writer> {
    let writer = broken.done("create", blocks::create(time_ms))?;
    let mut write = |name: &str, offset: u64, bytes: &[u8]| {
        broken.done(&format!("write-at of {name}"), writer.write_at(name, offset, bytes));
    };
    write("chunks/000001", 0, &[1; 70_000]);
    write("chunks/000001", 70_000, &[2; 30_000]);
    write("index", 0, b"an index, first written ");
    write("index", 10, b"overwritten here");
    write("tombstones", 0, b"none");
    write("meta.json", 0, b"{}");
    write("chunks/000002", 0, b"");
    Some(writer)
}

fn listed(broken: &mut Broken) -> Vec<String> {
    broken.done("list", blocks::list()).unwrap_or_default()
}

pub fn write(broken: &mut Broken) {
    let found = listed(broken);
    broken.same("list of no blocks", found, vec![]);
    let missing = "01HF7YAT00EHFH9QTP1ZESPAGM";
    let not_found =
        |result: Result<(), StorageError>| matches!(result, Err(StorageError::NotFound(_)));
    broken.holds("delete of no block is not-found", not_found(blocks::delete(missing)));
    let opened = blocks::open(missing, "index").map(drop);
    broken.holds("open in no block is not-found", not_found(opened));

    broken.holds(
        "open of what can be no block is not-found",
        not_found(blocks::open("../secrets", "index").map(drop)),
    );

    names(broken);
    let Some(writer) = filled(broken, TIME_MS + 1) else { return };
    let later = writer.id();
    broken.holds("a hole is an error", writer.write_at("index", 1000, b"x").is_err());
    let found = listed(broken);
    broken.same("a block that is being written is not listed", found, vec![]);
    broken.done("commit", Writer::commit(writer));
    let found = listed(broken);
    broken.same("a committed block is listed", found, vec![later.clone()]);

    drop(filled(broken, TIME_MS));
    let found = listed(broken);
    broken.same("a dropped block leaves no trace", found, vec![later.clone()]);
    let Some(writer) = filled(broken, TIME_MS) else { return };
    let earlier = writer.id();
    broken.done("commit", Writer::commit(writer));
    let found = listed(broken);
    broken.same("names ascend with time", found, vec![earlier.clone(), later.clone()]);

    let opened = blocks::open(&later, "chunks/000003").map(drop);
    broken.holds("open of a missing file is not-found", not_found(opened));
    let Some(file) = broken.done("open", blocks::open(&earlier, "chunks/000001")) else { return };
    broken.same("size", file.size(), 100_000);
    let middle = broken.done("read-at", file.read_at(69_999, 2));
    broken.same("bytes in the middle", middle, Some(vec![1, 2]));
    broken.same("no bytes", file.read_at(100_000, 0).ok(), Some(vec![]));
    broken.holds("a read past the end is an error", file.read_at(99_999, 2).is_err());
    broken.holds("a read far beyond is an error", file.read_at(u64::MAX, u32::MAX).is_err());

    let Some(old) = broken.done("open", blocks::open(&later, "tombstones")) else { return };
    let replaced = blocks::replace_tombstones(&later, b"one more", b"{\"n\":1}");
    broken.done("replace-tombstones", replaced);
    let new = content(broken, &later, "tombstones");
    broken.same("new tombstones", new, Some(b"one more".to_vec()));
    let kept = broken.done("read-at", old.read_at(0, old.size() as u32));
    broken.same("a file that was open keeps what it held", kept, Some(b"none".to_vec()));
    let none = blocks::replace_tombstones(missing, b"", b"");
    broken.holds("tombstones of no block are not-found", not_found(none));

    summaries(broken, &later);
    checked(broken);
    linked(broken, &earlier);
    broken.done("delete", blocks::delete(&earlier));
    let found = listed(broken);
    broken.same("a deleted block is not listed", found, vec![later]);
    let gone = blocks::open(&earlier, "index").map(drop);
    broken.holds("open in a deleted block is not-found", not_found(gone));
    broken.holds("delete of a deleted block is not-found", not_found(blocks::delete(&earlier)));
    let still = broken.done("read-at of a deleted block", file.read_at(0, 1));
    broken.same("an open file outlives its block", still, Some(vec![1]));

    // Left uncommitted when the instance ends.
    if let Some(writer) = filled(broken, TIME_MS + 2) {
        Box::leak(Box::new(writer));
    }
}

/// The first ten characters of a ULID are its time, the others make it unique.
fn names(broken: &mut Broken) {
    let mut id = |time_ms| {
        let writer = broken.done("create", blocks::create(time_ms));
        writer.map(|writer| writer.id()).unwrap_or_default()
    };
    let [one, other, early] = [id(TIME_MS), id(TIME_MS), id(-1)];
    broken.same("the length of a ULID", one.len(), 26);
    broken.holds("a ULID begins with its time", one.starts_with("01HF7YAT00"));
    broken.holds("a ULID from before the epoch has the time zero", early.starts_with("0000000000"));
    broken.holds("each block has a ULID of its own", one != other);
}

/// A storage that cannot share files says so; one that can lets a block keep a file of another.
fn linked(broken: &mut Broken, block: &str) {
    let chunks = "chunks/000001";
    let Some(writer) = broken.done("create", blocks::create(TIME_MS + 3)) else { return };
    let (id, not_there) = (writer.id(), "chunks/000009");
    let missing = writer.link_file(block, not_there, "chunks/000004");
    let is_right = matches!(missing, Ok(false) | Err(StorageError::NotFound(_)));
    broken.holds("link-file of a missing file is not-found", is_right);
    let linked = broken.done("link-file", writer.link_file(block, chunks, "chunks/000003"));
    if linked == Some(false) {
        return;
    }
    let again = writer.link_file(block, chunks, "chunks/000003");
    broken.holds("a name that is taken cannot be linked", again.is_err());
    let written = writer.write_at("chunks/000003", 0, b"x");
    broken.holds("a linked file cannot be written", written.is_err());
    broken.done("write-at of chunks/000001", writer.write_at(chunks, 0, b"its own"));
    broken.done("write-at of meta.json", writer.write_at("meta.json", 0, b"{}"));
    broken.done("commit", Writer::commit(writer));
    let all = Some([vec![1; 70_000], vec![2; 30_000]].concat());
    let is_all = content(broken, &id, "chunks/000003") == all;
    broken.holds("a linked file has the bytes of the other block's", is_all);
    let own = content(broken, &id, chunks);
    broken.same("a file of its own", own, Some(b"its own".to_vec()));
    broken.done("delete", blocks::delete(&id));
    let is_left = content(broken, block, chunks) == all;
    broken.holds("a linked file stays when a block that has it is deleted", is_left);
}

/// Three chunks, the last of which does not match its checksum. The checksums of the first two were
/// computed by hand.
const CHUNKS: [&[u8]; 3] = [
    &[3, 1, 7, 8, 9, 4, 116, 157, 98],
    &[3, 1, 7, 8, 9, 4, 116, 157, 98],
    &[3, 1, 7, 8, 8, 4, 116, 157, 98],
];

/// A storage that checks chunks lists those that match and no other; any other storage lists none.
fn checked(broken: &mut Broken) {
    let name = "chunks/000001";
    let bytes = CHUNKS.concat();
    let Some(writer) = broken.done("create", blocks::create(TIME_MS + 4)) else { return };
    let id = writer.id();
    broken.done("write-at of chunks", writer.write_at(name, 0, b"12345678"));
    broken.done("write-at of chunks", writer.write_at(name, 8, &bytes));
    broken.done("write-at of meta.json", writer.write_at("meta.json", 0, b"{}"));
    broken.done("commit", Writer::commit(writer));
    let Some(file) = broken.done("open", blocks::open(&id, name)) else { return };
    let len = bytes.len() as u32;
    let read = broken.done("read-chunks", file.read_chunks(8, len));
    let Some(blocks::ChunkBytes { bytes: found, ends }) = read else { return };
    broken.same("bytes of chunks", found, bytes);
    let (may_be_none, all) = (Vec::new(), vec![9, 18]);
    broken.holds("chunks that match are listed", ends == may_be_none || ends == all);
    let read = broken.done("read-chunks", file.read_chunks(8, 17));
    let ends = read.map(|read| read.ends).unwrap_or_default();
    broken.holds("a chunk that is not whole is not listed", ends.is_empty() || ends == [9]);
    let past_end = file.read_chunks(9, len).is_err();
    broken.holds("a read of chunks past the end is an error", past_end);
    broken.done("delete", blocks::delete(&id));
}

/// A storage may keep summaries or not, but must not return those of another file.
fn summaries(broken: &mut Broken, block: &str) {
    let open = |name| blocks::open(block, name);
    let (Some(index), Some(chunks)) =
        (broken.done("open", open("index")), broken.done("open", open("chunks/000001")))
    else {
        return;
    };
    broken.same("a summary before any was kept", index.summary(), None);
    index.keep_summary(b"old");
    index.keep_summary(b"of the index");
    let found = broken.done("open", open("index")).and_then(|again| again.summary());
    let is_right = found.is_none_or(|found| found == b"of the index");
    broken.holds("a summary is the one that was kept last", is_right);
    broken.same("a summary of a file for which none was kept", chunks.summary(), None);
}

pub fn read_back(broken: &mut Broken) {
    let blocks = listed(broken);
    broken.same("blocks that were left", blocks.len(), 1);
    let Some(block) = blocks.first() else { return };
    let expected: [(&str, Vec<u8>); 5] = [
        ("chunks/000001", [vec![1; 70_000], vec![2; 30_000]].concat()),
        ("index", INDEX.to_vec()),
        ("tombstones", b"one more".to_vec()),
        ("meta.json", b"{\"n\":1}".to_vec()),
        ("chunks/000002", vec![]),
    ];
    for (name, bytes) in expected {
        let read = content(broken, block, name);
        broken.holds(&format!("{name} is as it was left"), read == Some(bytes));
    }
}
