//! A head loads or refuses pieces of a saved head with any bytes. A head that loaded them can be
//! read, written to and saved again. A head that refused them is as empty as before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::rc::Rc;
use tidepool_engine::engine::{Engine, Role, Storage};
use tidepool_engine::head::HeadOptions;
use tidepool_engine::memory::MemoryBudget;
use tidepool_engine::model::{LabelLimits, Labels, Sample, TimeRange};
use tidepool_engine::select::{FrameFormat, Selection};
use tidepool_engine::storage::memory::{MemoryBlocks, MemoryWal};

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

/// A first piece that is understood: without it nothing behind it would be reached.
fn first_piece() -> Vec<u8> {
    let mut piece = Vec::from(b"tide");
    piece.extend(1u32.to_le_bytes());
    piece.extend(OPTIONS.block_duration_ms.to_le_bytes());
    piece.extend(OPTIONS.exemplars_max.to_le_bytes());
    piece.extend(i64::MIN.to_le_bytes());
    piece.extend([0; 10]);
    piece
}

fuzz_target!(|pieces: Vec<Vec<u8>>| {
    let blocks = Rc::new(MemoryBlocks::default());
    let storage = Storage { wal: Box::new(MemoryWal::default()), blocks, head: None };
    let mut engine = Engine::open(Role::All, OPTIONS, storage).expect("sound options");
    let taken = std::iter::once(first_piece())
        .chain(pieces)
        .try_fold(false, |_, piece| engine.load_head(&piece));
    if !matches!(taken, Ok(true)) {
        assert!(engine.replay(u32::MAX).expect("memory").done);
        assert_eq!(engine.figures().expect("memory").head_series, 0);
    }
    let selection = Selection {
        matchers: Vec::new(),
        range: TimeRange::ALL,
        format: FrameFormat::Samples,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external: Labels::default(),
    };
    if let Ok(mut cursor) = engine.select(&selection) {
        while cursor.next_frames(1 << 16).is_ok_and(|frames| !frames.is_empty()) {}
    }
    let labels = Labels::from_pairs([("__name__", "up")]).expect("a label set");
    if let Ok(series) = engine.series_ref(&labels) {
        let row = (series, Sample { timestamp_ms: 1, value: 1.0 });
        let _ = engine.append(std::iter::once(row), 1000);
    }
    let _ = engine.delete(&[Vec::new()], TimeRange { start_ms: 0, end_ms: 1 << 40 });
    let mut saved = engine.save_head().expect("a head");
    while !saved.next(1000).is_empty() {}
});
