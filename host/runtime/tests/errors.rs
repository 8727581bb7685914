//! Errors of the compiled component that are no disk faults have variants of their own: a head that
//! does not answer, series that were dropped meanwhile, logs that are read-only.

mod image;

use std::sync::{Arc, Mutex};
use tidepool_disk::wal::{LogReader, Logs};
use tidepool_disk::{BlockDirs, DataDir, WalOptions};
use tidepool_runtime::{
    CallError, CardinalityList, Damage, Error, FrameFormat, HeadAccess, HeadDeletion, HeadLost,
    HeadOpened, HeadPage, Instance, InstanceLimits, InstanceLogs, InstanceStorage, Label, Limit,
    Lookup, Matcher, Options, RemoteWriteVersion, Role, Room, Runtime, Selection, StorageError,
    TimeRange,
};
use tidepool_tests::remote_write::{Version, message_bytes};
use tidepool_tests::series::Series;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const BLOCK_MS: i64 = 60_000;
const START_MS: i64 = 1_800_000_000_000;
const ALL: TimeRange = TimeRange { start_ms: i64::MIN, end_ms: i64::MAX };
const LIMITS: InstanceLimits = InstanceLimits { memory_bytes_max: 1 << 30, deadline: None };

/// A head that answers every call with the same error.
struct Failing(Error);

impl Failing {
    fn fail<T>(&self) -> Result<T, Error> {
        Err(self.0.clone())
    }
}

impl HeadAccess for Failing {
    fn open(
        &self,
        _: Vec<Vec<Matcher>>,
        _: TimeRange,
        _: Vec<Label>,
    ) -> Result<HeadOpened<u64>, Error> {
        self.fail()
    }
    fn label_names(&self, _: Lookup) -> Result<HeadOpened<u64>, Error> {
        self.fail()
    }
    fn label_values(&self, _: String, _: Lookup) -> Result<HeadOpened<u64>, Error> {
        self.fail()
    }
    fn next(&self, _: u64, _: u32) -> Result<HeadPage, Error> {
        self.fail()
    }
    fn labels(&self, _: u64, _: u32, _: bool) -> Result<HeadPage, Error> {
        self.fail()
    }
    fn keep(&self, _: u64, _: Vec<u32>) -> Result<(), Error> {
        self.fail()
    }
    fn rewind(&self, _: u64) -> Result<(), Error> {
        self.fail()
    }
    fn delete(&self, _: u64) -> Result<HeadDeletion, Error> {
        self.fail()
    }
    fn next_strings(&self, _: u64, _: u32) -> Result<Vec<String>, Error> {
        self.fail()
    }
    fn scan_exemplars(&self, _: TimeRange) -> Result<u64, Error> {
        self.fail()
    }
    fn next_exemplars(&self, _: u64, _: u32) -> Result<Option<Vec<u8>>, Error> {
        self.fail()
    }
    fn close(&self, _: u64) {}
    fn plan_cut(&self) -> Result<Option<TimeRange>, Error> {
        self.fail()
    }
    fn truncate(&self, _: i64) -> Result<bool, Error> {
        self.fail()
    }
    fn deletion_mark(&self) -> Result<u64, Error> {
        self.fail()
    }
}

fn instance(
    data: &DataDir,
    role: Role,
    logs: InstanceLogs,
    head: Option<Arc<dyn HeadAccess>>,
) -> TestResult<Instance> {
    image::install();
    let options = Options {
        future_limit_ms: i64::MAX / 4,
        hash_seed: 7,
        ..Options::without_limits(role, BLOCK_MS)
    };
    let storage = InstanceStorage { logs, blocks: BlockDirs::open(data), head, memory: None };
    Ok(Runtime::shared()?.instantiate(options, storage, LIMITS)?)
}

fn body(name: &str, time_ms: i64) -> Vec<u8> {
    let series = Series::new(&[("__name__", name)], &[(time_ms, 1.0)]);
    message_bytes(Version::V2, &[series.row()])
}

/// The call error that corresponds to an error of the head.
fn expected(error: Error) -> CallError {
    match error {
        Error::HeadLost(lost) => CallError::Head(lost),
        // To the instance that reads, what the head cannot decode is stored data.
        Error::Malformed(damage) => CallError::Refused(Error::Corrupt(damage)),
        error => CallError::Refused(error),
    }
}

#[test]
fn answers_of_a_head_keep_their_case() -> TestResult {
    let dir = tempfile::tempdir()?;
    let data = DataDir::open(dir.path())?;
    let damage = || Damage { where_: "a body".into(), offset: 7, reason: "it ends".into() };
    for error in [
        Error::HeadLost(HeadLost::Restarted),
        Error::HeadLost(HeadLost::NotReady),
        Error::HeadLost(HeadLost::Stopped),
        Error::HeadLost(HeadLost::Crashed("unreachable".into())),
        Error::HeadLost(HeadLost::Deadline),
        Error::HeadLost(HeadLost::OutOfMemory),
        Error::NotOpen,
        Error::WrongRole("read-head".into()),
        Error::Invalid("no".into()),
        Error::Malformed(damage()),
        Error::Corrupt(damage()),
        Error::LimitExceeded(Limit { what: "cursors".into(), max: 5 }),
        Error::ShortOfMemory(9),
        Error::Busy,
        Error::SeriesDropped,
        Error::Storage(StorageError::NotFound("a block".into())),
        Error::Storage(StorageError::NoSpace("a file".into())),
        Error::Storage(StorageError::ReadOnly("a log".into())),
        Error::Storage(StorageError::Io("a device".into())),
    ] {
        let head = Arc::new(Failing(error.clone()));
        let mut query = instance(&data, Role::Query, InstanceLogs::None, Some(head))?;
        let selected = query.select(&Selection {
            matchers: Vec::new(),
            range: ALL,
            format: FrameFormat::Samples,
            query_index: 0,
            frame_bytes_max: 0,
            samples_max: 0,
            external_labels: Vec::new(),
        });
        let found = selected.err().ok_or("the selection succeeded")?;
        assert_eq!(format!("{found:?}"), format!("{:?}", expected(error)));
        assert!(!found.is_end(), "the instance lives on");
    }
    Ok(())
}

#[test]
fn logs_that_are_only_read_refuse_writes_as_such() -> TestResult {
    let dir = tempfile::tempdir()?;
    let data = DataDir::open(dir.path())?;
    let logs = InstanceLogs::ReadOnly(Box::new(LogReader::open(&data)?));
    let mut reader = instance(&data, Role::Head, logs, None)?;
    while !reader.replay(1 << 20)?.done {}
    let body = body("m", START_MS);
    let refused = reader.append_remote_write(RemoteWriteVersion::V2, &body, START_MS).err();
    let is_read_only =
        matches!(refused, Some(CallError::Refused(Error::Storage(StorageError::ReadOnly(_)))));
    assert!(is_read_only, "{refused:?}");
    Ok(())
}

#[test]
fn a_count_of_series_that_were_dropped_says_so() -> TestResult {
    let dir = tempfile::tempdir()?;
    let data = DataDir::open(dir.path())?;
    let logs = Arc::new(Mutex::new(Logs::open(&data, WalOptions::default())?));
    let mut store = instance(&data, Role::All, InstanceLogs::Owned(logs), None)?;
    while !store.replay(1 << 20)?.done {}
    for (name, time_ms) in [("old", START_MS), ("new", START_MS + 10 * BLOCK_MS)] {
        let body = body(name, time_ms);
        let written = store.append_remote_write(RemoteWriteVersion::V2, &body, time_ms)?;
        assert_eq!((written.samples_written, written.refused), (1, 0));
    }
    let walk = store.cardinality(10)?;
    while store.walk(walk)?.is_none() {}
    let found = store.next_of_walk(walk, CardinalityList::MetricsBySeries, 1 << 20)?;
    let mut names: Vec<&str> = found.iter().map(|ranked| ranked.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["new", "old"]);

    let room = Room { free_bytes: u64::MAX, other_bytes: 0, memory_bytes: u64::MAX };
    while !store.compact(START_MS + 10 * BLOCK_MS, room)?.done {}
    assert_eq!(store.stats()?.head_series, 1, "the series `old` is in a block only");
    let after = store.next_of_walk(walk, CardinalityList::NamesBySeries, 1 << 20).err();
    assert!(matches!(after, Some(CallError::Refused(Error::SeriesDropped))), "{after:?}");
    Ok(())
}
