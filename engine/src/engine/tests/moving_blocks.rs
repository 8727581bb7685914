//! Blocks that are merged while a read takes its list of them.

use super::*;
use crate::storage::{BlockFile, BlockWriter, Blocks, StorageError, StorageResult};
use std::cell::Cell;
use std::rc::Rc;

/// After each of this many listings, all blocks are replaced by copies under other names.
struct MovingBlocks {
    blocks: MemoryBlocks,
    moves_left: Cell<u32>,
}

impl MovingBlocks {
    fn move_all(&self) -> StorageResult<()> {
        for from in self.blocks.list()? {
            let mut to = self.blocks.create(1)?;
            for file in ["meta.json", "index", "tombstones", "chunks/000001"] {
                let content = match self.blocks.open(&from, file) {
                    Err(StorageError::NotFound { .. }) => continue,
                    content => content?,
                };
                let bytes = content.read_at(0, content.size() as u32)?;
                to.write_at(file, 0, &bytes)?;
            }
            to.commit()?;
            self.blocks.delete(&from)?;
        }
        Ok(())
    }
}

impl Blocks for MovingBlocks {
    fn list(&self) -> StorageResult<Vec<String>> {
        let listed = self.blocks.list()?;
        if let Some(left) = self.moves_left.get().checked_sub(1) {
            self.moves_left.set(left);
            self.move_all()?;
        }
        Ok(listed)
    }

    fn open(&self, block: &str, file: &str) -> StorageResult<Rc<dyn BlockFile>> {
        self.blocks.open(block, file)
    }

    fn create(&self, now_ms: i64) -> StorageResult<Box<dyn BlockWriter>> {
        self.blocks.create(now_ms)
    }

    fn delete(&self, block: &str) -> StorageResult<()> {
        self.blocks.delete(block)
    }

    fn replace_tombstones(&self, block: &str, tombstones: &[u8], meta: &[u8]) -> StorageResult<()> {
        self.blocks.replace_tombstones(block, tombstones, meta)
    }
}

fn read(node: &Node, moves: u32) -> Result<usize> {
    let blocks = MovingBlocks { blocks: node.blocks.clone(), moves_left: Cell::new(moves) };
    let storage = Storage {
        wal: Box::new(MemoryWal::default()),
        blocks: Rc::new(blocks),
        head: Some(Rc::clone(&node.engine.head)),
    };
    let reader = Engine::open(Role::Query, node.options, storage)?;
    let blocks = reader.blocks_in(TimeRange::ALL)?.open;
    Ok(blocks.iter().map(|block| block.meta().stats.num_samples as usize).sum())
}

/// A node with some blocks.
fn with_blocks() -> Node {
    let mut node = Node::new();
    for time_ms in (0..5000).step_by(100) {
        node.append("m", time_ms, 1);
    }
    node.compact();
    node
}

#[test]
fn a_read_finds_what_blocks_were_merged_into_or_fails() {
    let node = with_blocks();
    let whole = read(&node, 0).expect("sound blocks");
    assert!(whole >= 30, "{whole}");
    for moves in [1, 2, 3, 50] {
        assert_eq!(read(&node, moves).expect("blocks in the end"), whole, "{moves} moves");
    }
    // Never part of it.
    let failed = read(&node, 10_000).expect_err("it never comes to rest");
    assert!(matches!(failed, Error::Storage(StorageError::NotFound { .. })), "{failed}");
}

/// A listed block that lacks files is damaged, and costs only itself.
#[test]
fn a_block_without_its_index_is_left_out() {
    let node = with_blocks();
    let whole = read(&node, 0).expect("sound blocks");
    let mut bad = node.blocks.create(1).expect("a block");
    let first = node.blocks.list().expect("a list").remove(0);
    let meta = node.blocks.open(&first, "meta.json").expect("a file");
    let meta = meta.read_at(0, meta.size() as u32).expect("its bytes");
    bad.write_at("meta.json", 0, &meta).expect("memory");
    bad.commit().expect("memory");
    assert_eq!(read(&node, 0).expect("sound blocks"), whole);
}
