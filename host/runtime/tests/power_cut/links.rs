//! Blocks that share a file: after a power cut at any moment, listed blocks have their bytes.

use crate::TestResult;
use crate::sim_disk::SimDisk;
use std::path::Path;
use std::sync::Arc;
use tidepool_disk::{BlockDirs, DataDir};

const NOW_MS: i64 = 1_700_000_000_000;
const DIR: &str = "/data";
/// Number of outcomes that are tried for each cut point.
const SEEDS: u64 = 20;

fn open(disk: &SimDisk) -> TestResult<BlockDirs> {
    Ok(BlockDirs::open(&DataDir::open_on(Arc::new(disk.clone()), Path::new(DIR))?))
}

fn content(blocks: &BlockDirs, block: &str, file: &str) -> TestResult<Vec<u8>> {
    let file = blocks.open_file(block, file)?;
    Ok(file.read_at(0, file.size_bytes() as u32)?)
}

#[test]
fn a_merge_that_links_survives_a_cut_at_any_change() -> TestResult {
    let chunks: Vec<u8> = (0..9999u32).flat_map(u32::to_be_bytes).collect();
    let disk = SimDisk::new(1);
    let blocks = open(&disk)?;
    let mut parent = blocks.create(NOW_MS)?;
    parent.write_at("chunks/000001", 0, &chunks)?;
    parent.write_at("meta.json", 0, b"{}")?;
    let parent_id = parent.id().to_owned();
    parent.commit()?;

    disk.record();
    let mut child = blocks.create(NOW_MS + 1)?;
    assert!(child.link_file(&parent_id, "chunks/000001", "chunks/000001")?);
    child.write_at("index", 0, b"an index")?;
    child.write_at("meta.json", 0, b"{}")?;
    child.commit()?;
    blocks.delete(&parent_id)?;

    let (mut parents, mut children) = (0, 0);
    for point in disk.take_cut_points() {
        for seed in 0..SEEDS {
            let blocks = open(&point.disk.after_power_cut(seed))?;
            let listed = blocks.list()?;
            for block in &listed {
                let found = content(&blocks, block, "chunks/000001");
                let is_whole = found.as_ref().is_ok_and(|found| *found == chunks);
                assert!(is_whole, "{block} after a cut ({seed})");
                let is_child = *block != parent_id;
                if is_child {
                    assert_eq!(content(&blocks, block, "index")?, b"an index");
                }
                parents += usize::from(!is_child);
                children += usize::from(is_child);
            }
            assert!(!listed.is_empty(), "after a cut ({seed})");
        }
    }
    assert!(parents > 0 && children > 0, "{parents} and {children}");
    Ok(())
}
