//! Every exported interface distinguishes a deadline, exhausted memory and a trap.

use super::bindings::exports::tidepool::tsdb::store::RemoteWriteVersion;
use super::{
    CallError, CallLimit, Destination, ForwardSettings, Instance, InstanceLimits, MemoryBound,
};
use super::{InstanceLogs, InstanceStorage, Place, Runtime, ShardPosition};
use std::error::Error;
use std::time::Duration;
use tidepool_disk::{BlockDirs, DataDir};

const MEMORY_BYTES_MAX: usize = 16 << 20;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn instance(data: &DataDir) -> Result<Instance> {
    let blocks = BlockDirs::open(data);
    let storage = InstanceStorage { logs: InstanceLogs::None, blocks, head: None, memory: None };
    let limits = InstanceLimits { memory_bytes_max: MEMORY_BYTES_MAX, deadline: None };
    Ok(Runtime::shared()?.instantiate_closed(storage, limits)?)
}

fn settings() -> ForwardSettings {
    let (external_labels, rules) = (Vec::new(), Vec::new());
    ForwardSettings { external_labels, rules, exemplars: false, histograms: false, shards: 1 }
}

#[test]
fn a_deadline_is_told_by_all_interfaces() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = DataDir::open(dir.path())?;
    let out_of_order = || -> Result<Instance> {
        let mut instance = instance(&data)?;
        instance.set_limit(Some(CallLimit { what: "nothing", time: Duration::ZERO }));
        Ok(instance)
    };
    let is_deadline = |error: Option<CallError>| matches!(error, Some(CallError::Deadline));
    assert!(is_deadline(out_of_order()?.import(7_200_000, 1 << 20, 1).err()), "import");
    assert!(is_deadline(out_of_order()?.blocks().err()), "inspect");
    assert!(is_deadline(Destination::new(out_of_order()?, &settings()).err()), "forward");
    Ok(())
}

/// Resumes with more positions than fit into the instance's memory.
#[test]
fn memory_that_runs_out_is_told_by_forwarding() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = DataDir::open(dir.path())?;
    let mut destination = Destination::new(instance(&data)?, &settings())?;
    let place = Place { segment: 0, record: 0, row: 0 };
    let position = ShardPosition {
        in_order: place,
        out_of_order: place,
        store_window_ms: 0,
        store_labels: vec![b'a'; 4096],
        store_time_ms: 0,
    };
    let ended = destination.resume(&vec![position; 10_000], &[]).err();
    assert!(matches!(ended, Some(CallError::Memory(MemoryBound::Own))), "{ended:?}");
    let after = destination.take(0, RemoteWriteVersion::V1, 1, 0).err();
    assert!(after.is_some_and(|error| error.is_end()), "it is of no further use");
    Ok(())
}
