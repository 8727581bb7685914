//! A remote-write body of any bytes, through a whole engine: it is stored or refused, and what was
//! stored before is still there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::rc::Rc;
use tidepool_engine::engine::{Engine, RemoteWriteVersion, Role, Storage};
use tidepool_engine::head::HeadOptions;
use tidepool_engine::memory::MemoryBudget;
use tidepool_engine::model::LabelLimits;
use tidepool_engine::storage::memory::{MemoryBlocks, MemoryWal};

const OPTIONS: HeadOptions = HeadOptions {
    block_duration_ms: 1000,
    future_limit_ms: 600_000,
    out_of_order_window_ms: 2000,
    series_max: 100,
    exemplars_max: 100,
    memory: MemoryBudget::UNBOUNDED,
    label_limits: LabelLimits::NONE,
    hash_seed: 1,
};

fuzz_target!(|input: (bool, &[u8])| {
    let (is_v2, body) = input;
    let version = if is_v2 { RemoteWriteVersion::V2 } else { RemoteWriteVersion::V1 };
    let (wal, blocks) = (MemoryWal::default(), MemoryBlocks::default());
    let open = || {
        let storage =
            Storage { wal: Box::new(wal.reopened()), blocks: Rc::new(blocks.clone()), head: None };
        let mut engine = Engine::open(Role::All, OPTIONS, storage).expect("sound options");
        while !engine.replay(u32::MAX).expect("a sound log").done {}
        engine
    };
    let mut engine = open();
    let first = engine.append_remote_write(version, body, 1000);
    // Sent again it changes nothing, whatever it is.
    let figures = engine.figures().expect("memory");
    let again = engine.append_remote_write(version, body, 1000);
    assert_eq!(first.is_ok(), again.is_ok());
    let later = engine.figures().expect("memory");
    assert_eq!(figures.head_chunks, later.head_chunks);
    assert_eq!(figures.counters.samples_appended, later.counters.samples_appended);
    drop(engine);
    assert_eq!(open().figures().expect("memory").head_chunks, figures.head_chunks);
});
