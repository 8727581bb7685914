//! Blocks: committed as a whole, abandoned without a trace, deleted atomically.

use super::*;
use crate::fs::RealDisk;
use crate::testing::{CHANGES, Fault, FaultyDisk, Op};

const NOW_MS: i64 = 1_700_000_000_123;

struct Fixture {
    root: tempfile::TempDir,
    disk: FaultyDisk,
    blocks: BlockDirs,
}

fn fixture() -> Fixture {
    let root = tempfile::tempdir().expect("tempdir");
    let disk = FaultyDisk::default();
    let data = DataDir::open_on(Arc::new(disk.clone()), root.path()).expect("opens");
    Fixture { root, disk, blocks: BlockDirs::open(&data) }
}

impl Fixture {
    /// Names in the data directory, except those that are always there.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.root.path())
            .expect("list")
            .map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8"))
            .filter(|name| name != "lock" && name != "wal")
            .collect();
        names.sort();
        names
    }

    fn write(&self) -> Result<BlockWriter> {
        let mut writer = self.blocks.create(NOW_MS)?;
        writer.write_at("chunks/000001", 0, b"chunk")?;
        writer.write_at("chunks/000001", 5, b"s!")?;
        writer.write_at("index", 0, b"index")?;
        writer.write_at("index", 0, b"I")?;
        writer.write_at("meta.json", 0, b"{}")?;
        Ok(writer)
    }

    fn commit(&self) -> Result<String> {
        let writer = self.write()?;
        let id = writer.id().to_owned();
        writer.commit()?;
        Ok(id)
    }
}

#[test]
fn a_committed_block_is_listed_read_and_deleted() {
    let fixture = fixture();
    let mut ids = [fixture.commit().expect("commits"), fixture.commit().expect("commits")];
    ids.sort();
    assert_eq!(fixture.blocks.list().expect("lists"), ids);
    assert_eq!(fixture.names(), ids);
    let id = ids[0].as_str();
    assert_eq!(Ulid::from_string(id).expect("a ULID").timestamp_ms(), NOW_MS as u64);
    assert_eq!(fixture.blocks.size_bytes(id).expect("size"), 5 + 2 + 7);
    assert_eq!(fixture.blocks.size_bytes_total().expect("size"), 28);

    let chunks = fixture.blocks.open_file(id, "chunks/000001").expect("opens");
    let index = fixture.blocks.open_file(id, "index").expect("opens");
    assert!(fixture.blocks.open_file(id, "tombstones").err().expect("missing").is_not_found());
    assert_eq!(index.read_at(0, 5).expect("reads"), b"Index");
    fixture.blocks.delete(id).expect("deletes");
    assert_eq!(fixture.blocks.list().expect("lists"), [ids[1].clone()]);
    assert_eq!(fixture.names(), [format!("{id}{DELETION_SUFFIX}"), ids[1].clone()]);
    assert!(fixture.blocks.delete(id).expect_err("gone").is_not_found());
    assert!(fixture.blocks.size_bytes(id).expect_err("gone").is_not_found());

    // Open files outlive the block, in any thread.
    let reader = chunks.clone();
    let read = std::thread::spawn(move || reader.read_at(2, 5)).join().expect("joins");
    assert_eq!(read.expect("reads"), b"unks!");
    assert_eq!(chunks.size_bytes(), 7);
    for (offset, len) in [(0, 8), (7, 1), (8, 0), (u64::MAX, 1), (u64::MAX, u32::MAX)] {
        let error = chunks.read_at(offset, len).expect_err("past the end");
        assert!(matches!(error, DiskError::ReadPastEnd { size_bytes: 7, .. }), "{error}");
    }
    assert_eq!(chunks.read_at(7, 0).expect("nothing"), b"");
    drop((chunks, index));
    assert_eq!(fixture.names(), [ids[1].clone()]);
}

#[test]
fn an_abandoned_block_leaves_no_trace() {
    let fixture = fixture();
    let writer = fixture.write().expect("writes");
    let unfinished = [format!("{}{CREATION_SUFFIX}", writer.id())];
    assert_eq!(fixture.names(), unfinished);
    assert!(fixture.blocks.list().expect("lists").is_empty());
    drop(writer);
    assert!(fixture.names().is_empty());

    let mut writer = fixture.blocks.create(-1).expect("creates");
    writer.write_at("index", 0, b"x").expect("writes");
    assert!(matches!(writer.commit(), Err(DiskError::BlockWithoutMeta { .. })));
    assert!(fixture.names().is_empty());
}

#[test]
fn only_files_of_a_block_can_be_named() {
    let fixture = fixture();
    let id = fixture.commit().expect("commits");
    let mut writer = fixture.blocks.create(NOW_MS).expect("creates");
    for file in [
        "",
        ".",
        "..",
        "../lock",
        "/etc/passwd",
        "meta.json/",
        "chunks",
        "chunks/",
        "chunks/1",
        "chunks/00000a",
        "chunks/0000001",
        "chunks/../x",
        "chunks//00001",
        "Index",
        "index\0",
        "deletion-mark.json",
        "chunks/000001/x",
        "chunks/００",
    ] {
        let refused = |error| matches!(error, DiskError::BlockFileName { .. });
        assert!(fixture.blocks.open_file(&id, file).err().is_some_and(refused), "{file:?}");
        assert!(writer.write_at(file, 0, b"x").err().is_some_and(refused), "{file:?}");
    }
    for block in
        ["", "..", "wal", "../x", &id.to_lowercase(), &id[1..], "8ZZZZZZZZZZZZZZZZZZZZZZZZZ"]
    {
        let refused = |error| matches!(error, DiskError::BlockName { .. });
        assert!(fixture.blocks.open_file(block, "index").err().is_some_and(refused), "{block:?}");
        assert!(fixture.blocks.delete(block).err().is_some_and(refused), "{block:?}");
        assert!(fixture.blocks.size_bytes(block).err().is_some_and(refused), "{block:?}");
    }
}

#[test]
fn directories_that_are_no_blocks_are_not_listed() {
    let fixture = fixture();
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for name in ["chunks_head", id, "01ARZ3NDEKTSV4RRFFQ69G5FAW.tmp", "01arz3ndektsv4rrffq69g5fax"]
    {
        std::fs::create_dir(fixture.root.path().join(name)).expect("create");
    }
    std::fs::write(fixture.root.path().join("01ARZ3NDEKTSV4RRFFQ69G5FAY"), b"").expect("write");
    assert!(fixture.blocks.list().expect("lists").is_empty());
    std::fs::write(fixture.root.path().join(id).join(META_FILE), b"{}").expect("write");
    assert_eq!(fixture.blocks.list().expect("lists"), [id]);
}

#[test]
fn holes_are_refused_and_a_failed_write_can_be_repeated() {
    let fixture = fixture();
    let mut writer = fixture.blocks.create(NOW_MS).expect("creates");
    assert!(matches!(writer.write_at("index", 1, b"x"), Err(DiskError::Hole { .. })));
    writer.write_at("index", 0, b"ab").expect("writes");
    assert!(matches!(writer.write_at("index", 3, b"x"), Err(DiskError::Hole { .. })));
    let kind = io::ErrorKind::StorageFull;
    fixture.disk.set(Fault { torn_bytes: 2, kind, ..Fault::next(Op::Write) });
    assert!(writer.write_at("index", 2, b"cdef").expect_err("full").is_no_space());
    writer.write_at("meta.json", 0, b"{}").expect("writes");
    let id = writer.id().to_owned();
    writer.commit().expect("commits");
    let index = fixture.blocks.open_file(&id, "index").expect("opens");
    assert_eq!(index.read_at(0, index.size_bytes() as u32).expect("reads"), b"ab");
}

#[test]
fn a_commit_that_fails_anywhere_leaves_no_block() {
    for after in 0.. {
        let fixture = fixture();
        let writer = fixture.write().expect("writes");
        fixture.disk.take_log();
        fixture.disk.set(Fault { ops: CHANGES.to_vec(), after, ..Fault::next(Op::Sync) });
        let committed = writer.commit();
        let failed = committed.is_err();
        assert_eq!(fixture.names().is_empty(), failed, "after {after} calls");
        assert_eq!(fixture.blocks.list().expect("lists").is_empty(), failed, "after {after}");
        if !failed {
            let expected =
                [Op::Sync, Op::Sync, Op::Sync, Op::SyncDir, Op::SyncDir, Op::Rename, Op::SyncDir];
            assert_eq!(fixture.disk.take_log(), expected);
            return;
        }
    }
}

#[test]
fn a_crash_anywhere_leaves_whole_blocks_only() {
    for after in 0.. {
        let Fixture { root, disk, blocks } = fixture();
        disk.set(Fault::crash(after));
        let fixture = Fixture { root, disk, blocks };
        let committed = fixture.commit();
        let deleted = committed.as_ref().is_ok_and(|id| fixture.blocks.delete(id).is_ok());
        let survived = fixture.disk.clone();
        survived.take_log();

        let Fixture { root, blocks, .. } = fixture;
        drop(blocks);
        let data = DataDir::open_on(Arc::new(RealDisk), root.path()).expect("opens");
        let blocks = BlockDirs::open(&data);
        for id in blocks.list().expect("lists") {
            let chunks = blocks.open_file(&id, "chunks/000001").expect("opens");
            assert_eq!(chunks.read_at(0, 7).expect("reads"), b"chunks!", "after {after}");
        }
        let left = std::fs::read_dir(root.path()).expect("list").count();
        assert_eq!(left, 2 + blocks.list().expect("lists").len(), "after {after} calls");
        if deleted && left == 2 {
            return;
        }
    }
}

/// Makes a block with the chunks of another, which is then deleted.
fn merge_by_link(blocks: &BlockDirs, parent: &str) -> Result<String> {
    let mut writer = blocks.create(NOW_MS + 1)?;
    assert!(writer.link_file(parent, "chunks/000001", "chunks/000002")?);
    writer.write_at("chunks/000001", 0, b"new")?;
    writer.write_at("meta.json", 0, b"{}")?;
    let id = writer.id().to_owned();
    writer.commit()?;
    blocks.delete(parent)?;
    Ok(id)
}

fn content(blocks: &BlockDirs, block: &str, file: &str) -> Result<Vec<u8>> {
    let file = blocks.open_file(block, file)?;
    file.read_at(0, file.size_bytes() as u32)
}

#[test]
fn a_linked_file_outlives_the_block_that_wrote_it() -> Result<()> {
    let fixture = fixture();
    let parent = fixture.commit()?;
    let mut writer = fixture.blocks.create(NOW_MS)?;
    let chunks = "chunks/000001";
    assert!(writer.link_file(&parent, "chunks/000009", chunks).is_err_and(|e| e.is_not_found()));
    let none = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    assert!(writer.link_file(none, chunks, chunks).is_err_and(|e| e.is_not_found()));
    assert!(writer.link_file(&parent, chunks, "../x").is_err());
    assert!(writer.link_file("../x", chunks, chunks).is_err());
    assert!(writer.link_file(&parent, chunks, chunks)?);
    let is_taken = |error: DiskError| matches!(error, DiskError::LinkedFile { .. });
    assert!(writer.link_file(&parent, "index", chunks).is_err_and(is_taken));
    assert!(writer.write_at(chunks, 0, b"x").is_err_and(is_taken));
    assert_eq!(content(&fixture.blocks, &parent, chunks)?, b"chunks!");
    drop(writer);
    assert_eq!(fixture.names(), [parent.as_str()]);

    let child = merge_by_link(&fixture.blocks, &parent)?;
    assert_eq!(fixture.names(), [child.as_str()]);
    assert_eq!(content(&fixture.blocks, &child, "chunks/000002")?, b"chunks!");
    assert_eq!(content(&fixture.blocks, &child, chunks)?, b"new");
    assert_eq!(fixture.blocks.size_bytes(&child)?, 7 + 3 + 2);
    fixture.blocks.delete(&child)?;
    assert!(fixture.names().is_empty());
    Ok(())
}

#[test]
fn where_there_are_no_links_nothing_happens() -> Result<()> {
    let fixture = fixture();
    let parent = fixture.commit()?;
    for kind in [
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::Unsupported,
        io::ErrorKind::CrossesDevices,
        io::ErrorKind::TooManyLinks,
    ] {
        let mut writer = fixture.blocks.create(NOW_MS)?;
        fixture.disk.set(Fault { kind, ..Fault::next(Op::Link) });
        assert!(!writer.link_file(&parent, "chunks/000001", "chunks/000001")?, "{kind}");
        writer.write_at("chunks/000001", 0, b"its own")?;
    }
    let mut writer = fixture.blocks.create(NOW_MS)?;
    let kind = io::ErrorKind::StorageFull;
    fixture.disk.set(Fault { kind, ..Fault::next(Op::Link) });
    let full = writer.link_file(&parent, "chunks/000001", "chunks/000001");
    assert!(full.is_err_and(|error| error.is_no_space()));
    Ok(())
}

#[test]
fn a_crash_anywhere_leaves_the_linked_bytes_once() -> Result<()> {
    for after in 0.. {
        let fixture = fixture();
        let parent = fixture.commit()?;
        fixture.disk.take_log();
        fixture.disk.set(Fault::crash(after));
        let merged = merge_by_link(&fixture.blocks, &parent).is_ok();
        let log = fixture.disk.take_log();
        let Fixture { root, blocks, .. } = fixture;
        drop(blocks);
        let data = DataDir::open(root.path())?;
        let blocks = BlockDirs::open(&data);
        let left = blocks.list()?;
        for id in &left {
            let file = if *id == parent { "chunks/000001" } else { "chunks/000002" };
            assert_eq!(content(&blocks, id, file)?, b"chunks!", "after {after}");
        }
        let names = std::fs::read_dir(root.path()).map_err(Action::List.failed(root.path()))?;
        assert!(!left.is_empty() && names.count() == 2 + left.len(), "after {after}: {left:?}");
        if merged {
            assert_eq!(left.len(), 1);
            let committed = log.iter().position(|op| *op == Op::Rename);
            assert!(log.iter().position(|op| *op == Op::Link) < committed, "{log:?}");
            return Ok(());
        }
    }
    Ok(())
}

#[test]
fn a_crash_anywhere_leaves_the_old_or_the_new_tombstones() -> Result<()> {
    for after in 0.. {
        let fixture = fixture();
        let id = fixture.commit()?;
        fixture.blocks.replace_tombstones(&id, b"old", b"{old}")?;
        let open = fixture.blocks.open_file(&id, "tombstones")?;
        fixture.disk.take_log();
        fixture.disk.set(Fault::crash(after));
        let replaced = fixture.blocks.replace_tombstones(&id, b"newer", b"{newer}").is_ok();
        let log = fixture.disk.take_log();
        assert_eq!(open.read_at(0, 3)?, b"old", "an open file keeps what it held");

        // The next life.
        let Fixture { root, blocks, .. } = fixture;
        drop((blocks, open));
        let data = DataDir::open(root.path())?;
        let blocks = BlockDirs::open(&data);
        let read = |name: &str| -> Result<Vec<u8>> {
            let file = blocks.open_file(&id, name)?;
            file.read_at(0, file.size_bytes() as u32)
        };
        let (tombstones, meta) = (read("tombstones")?, read(META_FILE)?);
        assert!(tombstones == b"old" || tombstones == b"newer", "after {after}");
        assert!(meta == b"{old}" || meta == b"{newer}", "after {after}");
        // The count may lag behind, never lead.
        assert!(tombstones == b"newer" || meta == b"{old}", "after {after}");
        let left = RealDisk.list(&root.path().join(&id)).map_err(Action::List.failed(&*id))?;
        assert_eq!(left.len(), 4, "after {after}: {left:?}");
        if replaced {
            assert_eq!((tombstones, meta), (b"newer".to_vec(), b"{newer}".to_vec()));
            let one = [Op::Create, Op::Write, Op::Sync, Op::Rename, Op::SyncDir];
            assert_eq!(log, [one, one].concat());
            return Ok(());
        }
    }
    Ok(())
}

#[test]
fn replacing_the_tombstones_of_no_block_says_so() -> Result<()> {
    let fixture = fixture();
    let id = fixture.commit()?;
    let kind = io::ErrorKind::StorageFull;
    fixture.disk.set(Fault { torn_bytes: 2, kind, ..Fault::next(Op::Write) });
    let full = fixture.blocks.replace_tombstones(&id, b"new", b"{}");
    assert!(full.is_err_and(|error| error.is_no_space()));
    fixture.blocks.replace_tombstones(&id, b"new", b"{}")?;
    fixture.blocks.delete(&id)?;
    let gone = fixture.blocks.replace_tombstones(&id, b"new", b"{}");
    assert!(gone.is_err_and(|error| error.is_not_found()));
    Ok(())
}

/// One block exists at any time: each is committed before the one that it replaces is deleted.
#[test]
fn a_listing_beside_merges_finds_what_is_there() {
    const GENERATIONS: usize = 50;
    let fixture = fixture();
    let mut last = fixture.commit().expect("commits");
    let (blocks, done) = (fixture.blocks.clone(), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        let lister = scope.spawn(|| {
            let mut listings = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let listed = blocks.list().expect("lists");
                assert!((1..=2).contains(&listed.len()), "listing {listings}: {listed:?}");
                listings += 1;
            }
            listings
        });
        for _ in 0..GENERATIONS {
            let next = fixture.commit().expect("commits");
            fixture.blocks.delete(&last).expect("deletes");
            last = next;
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(lister.join().expect("it finds a block") > 0);
    });
}
