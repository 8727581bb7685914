//! A block whose files are any bytes opens or says what is wrong, and so do its series and chunks.
//! The input is split into the index and one chunk file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidepool_engine::block::BlockReader;
use tidepool_engine::model::{MatchOp, Matcher, MatcherSpec};
use tidepool_engine::storage::Blocks;
use tidepool_engine::storage::memory::MemoryBlocks;

fuzz_target!(|input: (u16, &[u8])| {
    let (at, bytes) = input;
    let (index, chunks) = bytes.split_at(usize::from(at).min(bytes.len()));
    let blocks = MemoryBlocks::default();
    let mut writer = blocks.create(0).expect("memory");
    let id = writer.id().to_owned();
    let meta = format!(
        r#"{{"version":1,"ulid":"{id}","minTime":0,"maxTime":1000,"compaction":{{"level":1}}}}"#
    );
    let files = [("meta.json", meta.as_bytes()), ("index", index), ("chunks/000001", chunks)];
    for (name, content) in files {
        writer.write_at(name, 0, content).expect("memory");
    }
    writer.commit().expect("memory");
    let Ok(block) = BlockReader::open(&blocks, &id) else { return };
    for op in [MatchOp::NotEqual, MatchOp::Regex] {
        let spec = MatcherSpec { name: "__name__".into(), op, value: "a.*".into() };
        let matcher = Matcher::new(&spec).expect("a valid matcher");
        for series in block.select(&[matcher]).unwrap_or_default() {
            let Ok((_, metas)) = block.series(series) else { continue };
            for meta in metas {
                let _ = block.chunk(&meta);
            }
        }
    }
});
