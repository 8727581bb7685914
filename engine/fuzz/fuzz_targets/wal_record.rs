//! Log records of any bytes are understood or skipped: an engine starts with them, reads all that
//! it took from them, and starts again with the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::rc::Rc;
use tidepool_engine::engine::{Engine, Role, Storage};
use tidepool_engine::head::HeadOptions;
use tidepool_engine::memory::MemoryBudget;
use tidepool_engine::model::{LabelLimits, Labels, TimeRange};
use tidepool_engine::select::{FrameFormat, Selection};
use tidepool_engine::storage::memory::{MemoryBlocks, MemoryWal};
use tidepool_engine::storage::{LogKind, Wal};

const OPTIONS: HeadOptions = HeadOptions {
    block_duration_ms: 7_200_000,
    future_limit_ms: 600_000,
    out_of_order_window_ms: 7_200_000,
    series_max: 1000,
    exemplars_max: 100,
    memory: MemoryBudget::UNBOUNDED,
    label_limits: LabelLimits::NONE,
    hash_seed: 1,
};

fn start(wal: &MemoryWal) -> (Engine, Vec<u8>) {
    let blocks = Rc::new(MemoryBlocks::default());
    let storage = Storage { wal: Box::new(wal.reopened()), blocks, head: None };
    let mut engine = Engine::open(Role::All, OPTIONS, storage).expect("sound options");
    while !engine.replay(u32::MAX).expect("memory").done {}
    let selection = Selection {
        matchers: Vec::new(),
        range: TimeRange::ALL,
        format: FrameFormat::Samples,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external: Labels::default(),
    };
    let mut cursor = engine.select(&selection).expect("a valid selection");
    let mut all = Vec::new();
    loop {
        let frames = cursor.next_frames(u32::MAX).expect("what was taken is sound");
        if frames.is_empty() {
            break;
        }
        all.extend(frames);
    }
    drop(cursor);
    (engine, all)
}

fuzz_target!(|input: (Vec<Vec<u8>>, Vec<Vec<u8>>)| {
    let (in_order, out_of_order) = input;
    let mut wal = MemoryWal::default();
    // No log holds an empty record.
    for (log, mut records) in [(LogKind::InOrder, in_order), (LogKind::OutOfOrder, out_of_order)] {
        records.retain(|record| !record.is_empty());
        if !records.is_empty() {
            wal.append(log, &records).expect("memory");
        }
    }
    let (engine, first) = start(&wal);
    drop(engine);
    let (_engine, second) = start(&wal);
    assert_eq!(first, second);
});
