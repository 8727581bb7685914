//! Runs the checks of `tests/contract` on the program's own imports.

use super::state::{InstanceLogs, InstanceState, InstanceStorage};
use super::{deadline, runtime, tuning};
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidepool_contract::{Checks, Phase};
use tidepool_disk::wal::{Compression, Logs, SyncPolicy, WalOptions};
use tidepool_disk::{BlockDirs, DataDir};
use wasmtime::{Engine, Store};

const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Small, because a log of one page more than a segment shows every fault of a longer one.
const SEGMENT_BYTES_MAX: u64 = 64 * 1024;

/// Runs a phase of the checks on the directory, from opening to a clean end.
fn broken(
    checks: &Checks,
    engine: &Engine,
    phase: Phase,
    dir: &Path,
    options: WalOptions,
) -> Result<Vec<String>, Box<dyn Error>> {
    let data = DataDir::open(dir)?;
    let logs = Arc::new(Mutex::new(Logs::open(&data, options)?));
    let storage = InstanceStorage {
        logs: InstanceLogs::Owned(Arc::clone(&logs)),
        blocks: BlockDirs::open(&data),
        head: None,
        memory: None,
    };
    let mut store = Store::new(engine, InstanceState::new(storage, MEMORY_BYTES_MAX));
    store.set_epoch_deadline(deadline::epoch_ticks(None));
    let broken = checks.broken(phase, &runtime::linker(engine)?, &mut store)?;
    logs.lock().map_err(|_| "the logs' lock is poisoned")?.sync()?;
    Ok(broken)
}

#[test]
fn the_imports_keep_the_contract() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new(&tuning::config(tuning::Code::Interruptible))?;
    let checks = Checks::load(&engine)?;
    let interval = Duration::from_secs(3600);
    let policies = [
        SyncPolicy::Off,
        SyncPolicy::Interval(interval),
        SyncPolicy::Always,
        SyncPolicy::Batch { interval, bytes_max: 1 << 20 },
    ];
    for sync in policies {
        for compression in [Compression::None, Compression::Snappy, Compression::Zstd] {
            let options = WalOptions { segment_bytes_max: SEGMENT_BYTES_MAX, compression, sync };
            let dir = tempfile::tempdir()?;
            for phase in Phase::ALL {
                let broken = broken(&checks, &engine, phase, dir.path(), options)?;
                assert_eq!(broken, Vec::<String>::new(), "{phase:?} with {options:?}");
            }
        }
    }
    Ok(())
}
