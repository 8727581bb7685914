//! Narrow questions among many series, asked of the component: a selection of a few series, and
//! lookups of labels, in the head and in a block.
//!
//! `cargo bench -p tidepool-runtime --bench lookup`; `LOOKUP_SERIES=500000` for other numbers than
//! 100000. It also prints the least linear memory with which a fresh instance answers each question
//! from the block.

#[path = "../tests/image/mod.rs"]
mod image;

use criterion::{Criterion, criterion_group, criterion_main};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tidepool_disk::wal::{Logs, SEGMENT_BYTES_DEFAULT};
use tidepool_disk::{BlockDirs, Compression, DataDir, SyncPolicy, WalOptions};
use tidepool_runtime::{
    CallError, Error, FrameFormat, HeadAccess, HeadDeletion, HeadOpened, HeadPage, Instance,
    InstanceLimits, InstanceLogs, InstanceStorage, Label, Lookup, MatchOp, Matcher, Options,
    RemoteWriteVersion, Role, Room, Runtime, Selection, TimeRange,
};
use tidepool_tests::remote_write::{Version, message_bytes};
use tidepool_tests::series::{Dataset, Shape, Texture};

const BLOCK_DURATION_MS: i64 = 60_000;
const START_MS: i64 = 1_800_000_000_000;
const ROWS_PER_REQUEST: usize = 2000;
const MEMORY_BYTES_MAX: usize = 1 << 31;
const ALL: TimeRange = TimeRange { start_ms: i64::MIN, end_ms: i64::MAX };

/// An empty head, for an instance that reads only blocks.
struct NoHead;

impl HeadAccess for NoHead {
    fn open(
        &self,
        _: Vec<Vec<Matcher>>,
        _: TimeRange,
        _: Vec<Label>,
    ) -> Result<HeadOpened<u64>, Error> {
        Ok(HeadOpened::Ready(0))
    }
    fn label_names(&self, _: Lookup) -> Result<HeadOpened<u64>, Error> {
        Ok(HeadOpened::Ready(0))
    }
    fn label_values(&self, _: String, _: Lookup) -> Result<HeadOpened<u64>, Error> {
        Ok(HeadOpened::Ready(0))
    }
    fn next(&self, _: u64, _: u32) -> Result<HeadPage, Error> {
        Ok(HeadPage { series: Vec::new(), is_last: true })
    }
    fn labels(&self, _: u64, _: u32, _: bool) -> Result<HeadPage, Error> {
        Ok(HeadPage { series: Vec::new(), is_last: true })
    }
    fn keep(&self, _: u64, _: Vec<u32>) -> Result<(), Error> {
        Ok(())
    }
    fn rewind(&self, _: u64) -> Result<(), Error> {
        Ok(())
    }
    fn delete(&self, _: u64) -> Result<HeadDeletion, Error> {
        Ok(HeadDeletion { series: 0, is_done: true })
    }
    fn next_strings(&self, _: u64, _: u32) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }
    fn scan_exemplars(&self, _: TimeRange) -> Result<u64, Error> {
        Ok(0)
    }
    fn next_exemplars(&self, _: u64, _: u32) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }
    fn close(&self, _: u64) {}
    fn plan_cut(&self) -> Result<Option<TimeRange>, Error> {
        Ok(None)
    }
    fn truncate(&self, _: i64) -> Result<bool, Error> {
        Ok(false)
    }

    fn deletion_mark(&self) -> Result<u64, Error> {
        Ok(0)
    }
}

struct Fixture {
    runtime: Runtime,
    data: DataDir,
    _dir: TempDir,
}

impl Fixture {
    fn new(runtime: &Runtime) -> Fixture {
        let dir = TempDir::new().expect("a temporary directory");
        let data = DataDir::open(dir.path()).expect("a fresh data directory");
        Fixture { runtime: runtime.clone(), data, _dir: dir }
    }

    fn instance(&self, role: Role, memory_bytes_max: usize) -> Result<Instance, CallError> {
        let options = Options {
            future_limit_ms: 600_000,
            hash_seed: 1,
            ..Options::without_limits(role, BLOCK_DURATION_MS)
        };
        let wal = WalOptions {
            sync: SyncPolicy::Off,
            segment_bytes_max: SEGMENT_BYTES_DEFAULT,
            compression: Compression::Snappy,
        };
        let is_query = role == Role::Query;
        let logs = match is_query {
            true => InstanceLogs::None,
            false => {
                let logs = Logs::open(&self.data, wal).expect("fresh logs");
                InstanceLogs::Owned(Arc::new(Mutex::new(logs)))
            }
        };
        let storage = InstanceStorage {
            logs,
            blocks: BlockDirs::open(&self.data),
            head: is_query.then(|| Arc::new(NoHead) as Arc<dyn HeadAccess>),
            memory: None,
        };
        let limits = InstanceLimits { memory_bytes_max, deadline: None };
        self.runtime.instantiate(options, storage, limits)
    }

    /// Makes an instance whose head holds the data.
    fn head(&self, data: &Dataset) -> Instance {
        let mut instance = self.instance(Role::All, MEMORY_BYTES_MAX).expect("a fresh instance");
        while !instance.replay(1).expect("a fresh log").done {}
        for rows in data.requests(ROWS_PER_REQUEST) {
            let body = message_bytes(Version::V2, &rows);
            let outcome =
                instance.append_remote_write(RemoteWriteVersion::V2, &body, START_MS + 600_000);
            assert_eq!(outcome.expect("a sound body").refused, 0);
        }
        instance
    }

    /// Cuts a block from everything in the head.
    fn cut(&self, head: &mut Instance) {
        let last = Dataset::generate(Shape { series: 1, start_ms: START_MS + 120_000, ..SHAPE });
        for rows in last.requests(1) {
            let body = message_bytes(Version::V2, &rows);
            let outcome =
                head.append_remote_write(RemoteWriteVersion::V2, &body, START_MS + 600_000);
            outcome.expect("a sound body");
        }
        let room = Room { free_bytes: u64::MAX, other_bytes: 0, memory_bytes: u64::MAX };
        while !head.compact(START_MS, room).expect("a compaction").done {}
    }
}

const SHAPE: Shape = Shape {
    seed: 1,
    series: 100_000,
    scrapes: 2,
    start_ms: START_MS,
    interval_ms: 15_000,
    texture: Texture::Regular,
};

fn matcher(name: &str, op: MatchOp, value: &str) -> Matcher {
    Matcher { name: name.into(), op, value: value.into() }
}

/// One metric on two nodes.
fn narrow() -> Vec<Matcher> {
    vec![
        matcher("__name__", MatchOp::Equal, "node_cpu_seconds_total"),
        matcher("instance", MatchOp::Regex, "node-0000[12].internal:9100"),
        matcher("mode", MatchOp::Equal, "idle"),
    ]
}

/// As `narrow`, but the nodes can only be found by looking at all values.
fn by_prefix() -> Vec<Matcher> {
    vec![
        matcher("__name__", MatchOp::Equal, "node_cpu_seconds_total"),
        matcher("instance", MatchOp::Regex, "node-0002.+"),
        matcher("mode", MatchOp::NotEqual, "idle"),
    ]
}

type Question = fn(&mut Instance) -> Result<usize, CallError>;

fn select(instance: &mut Instance, matchers: Vec<Matcher>) -> Result<usize, CallError> {
    let cursor = instance.select(&Selection {
        matchers,
        range: ALL,
        format: FrameFormat::StreamedChunks,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external_labels: Vec::new(),
    })?;
    let mut bytes = 0;
    loop {
        let frames = instance.next_frames(cursor, 256 * 1024)?;
        if frames.is_empty() {
            instance.close_cursor(cursor)?;
            return Ok(bytes);
        }
        bytes += frames.len();
    }
}

fn lookup(matchers: Vec<Matcher>) -> Lookup {
    Lookup { matcher_sets: vec![matchers], range: ALL, limit: 0 }
}

fn values(instance: &mut Instance, name: &str, matchers: Vec<Matcher>) -> Result<usize, CallError> {
    let strings = instance.label_values(name, &lookup(matchers))?;
    let mut count = 0;
    loop {
        let page = instance.next_strings(strings, 64 * 1024)?;
        if page.is_empty() {
            instance.close_strings(strings)?;
            return Ok(count);
        }
        count += page.len();
    }
}

fn series(instance: &mut Instance, matchers: Vec<Matcher>) -> Result<usize, CallError> {
    let cursor = instance.series(&lookup(matchers))?;
    let mut count = 0;
    loop {
        let page = instance.next_labels(cursor, 64 * 1024)?;
        if page.is_empty() {
            instance.close_cursor(cursor)?;
            return Ok(count);
        }
        count += page.len();
    }
}

const QUESTIONS: [(&str, Question); 7] = [
    ("select narrow", |i| select(i, narrow())),
    ("select by prefix", |i| select(i, by_prefix())),
    ("series narrow", |i| series(i, narrow())),
    ("series of a job", |i| series(i, vec![matcher("job", MatchOp::Equal, "monitoring/checkout")])),
    ("label values", |i| values(i, "id", Vec::new())),
    ("label values of a job", |i| {
        values(i, "pod", vec![matcher("job", MatchOp::Equal, "monitoring/kubelet")])
    }),
    ("label values of a node", |i| {
        values(i, "pod", vec![matcher("instance", MatchOp::Equal, "node-00002.internal:9100")])
    }),
];

/// The smallest memory with which a new instance answers, to a quarter of a megabyte.
fn least_memory_bytes(fixture: &Fixture, question: Question) -> usize {
    let (mut too_small, mut enough) = (0, MEMORY_BYTES_MAX);
    while enough - too_small > 256 * 1024 {
        let middle = (too_small + enough) / 2;
        let answered =
            fixture.instance(Role::Query, middle).and_then(|mut instance| question(&mut instance));
        match answered {
            Ok(_) => enough = middle,
            Err(_) => too_small = middle,
        }
    }
    enough
}

fn bench(criterion: &mut Criterion) {
    let series = std::env::var("LOOKUP_SERIES").ok().and_then(|text| text.parse().ok());
    let data = Dataset::generate(Shape { series: series.unwrap_or(SHAPE.series), ..SHAPE });
    image::install();
    let runtime = Runtime::shared().expect("the component");
    let fixture = Fixture::new(&runtime);
    let mut head = fixture.head(&data);
    let mut group = criterion.benchmark_group("lookup");
    group.sample_size(10);
    for (name, question) in QUESTIONS {
        let size = question(&mut head).expect("an answer");
        assert!(size > 0, "{name} finds nothing");
        group.bench_function(format!("head/{name}"), |bencher| {
            bencher.iter(|| question(&mut head).expect("an answer"));
        });
    }
    fixture.cut(&mut head);
    drop(head);
    for (name, question) in QUESTIONS {
        let mut query = fixture.instance(Role::Query, MEMORY_BYTES_MAX).expect("an instance");
        let size = question(&mut query).expect("an answer");
        let memory = least_memory_bytes(&fixture, question) / 1024;
        println!("{name}: {size} bytes or elements, {memory} KiB of memory for a block");
        group.bench_function(format!("block/{name}"), |bencher| {
            bencher.iter(|| question(&mut query).expect("an answer"));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
