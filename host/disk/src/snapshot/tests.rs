//! Snapshots: complete or absent, and independent of the blocks that they were taken from.

use super::*;
use crate::BlockDirs;
use crate::testing::{CHANGES, Fault, FaultyDisk, Op};
use std::fs;

const NOW_MS: i64 = 1_700_000_000_123;

struct Fixture {
    root: tempfile::TempDir,
    disk: FaultyDisk,
    data: DataDir,
    block: String,
}

fn add_block(blocks: &BlockDirs) -> Result<String> {
    let mut writer = blocks.create(NOW_MS)?;
    for (file, bytes) in [("chunks/000001", "c"), ("index", "i"), ("tombstones", "t")] {
        writer.write_at(file, 0, bytes.as_bytes())?;
    }
    writer.write_at("meta.json", 0, b"{}")?;
    let id = writer.id().to_owned();
    writer.commit()?;
    Ok(id)
}

fn fixture() -> Result<Fixture> {
    let root = tempfile::tempdir().map_err(Action::Create.failed("a temporary directory"))?;
    let disk = FaultyDisk::default();
    let data = DataDir::open_on(Arc::new(disk.clone()), root.path())?;
    let block = add_block(&BlockDirs::open(&data))?;
    Ok(Fixture { root, disk, data, block })
}

impl Fixture {
    fn snapshot(&self) -> Result<()> {
        let snapshot = SnapshotWriter::begin(&self.data, "s", 0)?;
        snapshot.add_block(&self.block)?;
        add_block(&snapshot.blocks())?;
        snapshot.commit().map(drop)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.path().join("snapshots")).into_iter().flatten();
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

#[test]
fn files_of_alerts_are_copied() -> Result<()> {
    let fixture = fixture()?;
    let folder = fixture.root.path().join("alerts");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    fs::create_dir_all(folder.join("journal")).expect("a folder");
    write("journal/00000001", "begun");
    write("silences.json.tmp", "unfinished");
    fixture.snapshot()?;
    write("journal/00000001", "begun and ended");
    let copied = fixture.root.path().join("snapshots/s/alerts");
    let text = fs::read_to_string(copied.join("journal/00000001")).expect("a copy");
    assert_eq!(text, "begun");
    assert!(!copied.join("silences.json.tmp").exists());
    Ok(())
}

#[test]
fn a_snapshot_keeps_what_its_blocks_lose() -> Result<()> {
    let fixture = fixture()?;
    let bytes_before = fixture.data.size_bytes()?;
    fixture.snapshot()?;
    assert_eq!(fixture.names(), ["s"]);
    // What a snapshot takes is not the blocks'.
    assert_eq!(fixture.data.size_bytes()?, bytes_before);
    let blocks = BlockDirs::open(&fixture.data);
    assert_eq!(blocks.list()?, [fixture.block.as_str()]);
    blocks.replace_tombstones(&fixture.block, b"deleted", b"{1}")?;
    blocks.delete(&fixture.block)?;
    let copy = BlockDirs::in_dir(&fixture.data, fixture.root.path().join("snapshots/s"));
    assert_eq!(copy.list()?.len(), 2);
    for (file, bytes) in
        [("chunks/000001", "c"), ("index", "i"), ("tombstones", "t"), ("meta.json", "{}")]
    {
        let file = copy.open_file(&fixture.block, file)?;
        assert_eq!(file.read_at(0, file.size_bytes() as u32)?, bytes.as_bytes());
    }
    Ok(())
}

#[test]
fn a_snapshot_that_fails_anywhere_leaves_none() -> Result<()> {
    for after in 0.. {
        let fixture = fixture()?;
        fixture.disk.set(Fault { ops: CHANGES.to_vec(), after, ..Fault::next(Op::Sync) });
        let made = fixture.snapshot();
        match made {
            // But for the last sync, after which it may have lasted or not.
            Err(_) => assert!(fixture.names().len() <= 1, "after {after}: {:?}", fixture.names()),
            Ok(()) => {
                assert_eq!(fixture.names(), ["s"]);
                assert!(after > 15, "{after} calls");
                return Ok(());
            }
        }
        assert!(!fixture.names().contains(&"s.tmp".to_owned()), "after {after}");
    }
    Ok(())
}

#[test]
fn a_crash_anywhere_leaves_a_whole_snapshot_or_none() -> Result<()> {
    for after in 0.. {
        let Fixture { root, disk, data, block } = fixture()?;
        disk.set(Fault::crash(after));
        let fixture = Fixture { root, disk, data, block };
        let made = fixture.snapshot().is_ok();
        let Fixture { root, data, .. } = fixture;
        drop(data);
        DataDir::open(root.path())?;
        let snapshot = root.path().join("snapshots/s");
        assert!(!root.path().join("snapshots/s.tmp").exists(), "after {after}");
        if snapshot.exists() {
            let entries = fs::read_dir(&snapshot).map_err(Action::List.failed(&snapshot))?;
            assert_eq!(entries.count(), 2, "after {after}");
        }
        if made {
            assert!(snapshot.exists());
            return Ok(());
        }
    }
    Ok(())
}

/// exFAT has no hard links, and some file systems in user space do not implement them: snapshots
/// failed there.
#[test]
fn without_hard_links_it_is_a_copy() -> Result<()> {
    for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::Unsupported] {
        let fixture = fixture()?;
        fixture.disk.set(Fault { kind, times: usize::MAX, ..Fault::next(Op::Link) });
        fixture.snapshot()?;
        let copy = BlockDirs::in_dir(&fixture.data, fixture.root.path().join("snapshots/s"));
        let file = copy.open_file(&fixture.block, "chunks/000001")?;
        assert_eq!(file.read_at(0, 1)?, b"c");

        let full = SnapshotWriter::begin(&fixture.data, "full", u64::MAX)?;
        let refused = full.add_block(&fixture.block).expect_err("nothing may be copied");
        assert!(refused.is_no_space(), "{refused}");
        assert!(refused.to_string().contains("no hard links"), "{refused}");
        drop(full);
        assert_eq!(fixture.names(), ["s"]);
    }
    Ok(())
}
