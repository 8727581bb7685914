//! Reads that would take too much: each ends alone, with a reason, and writes continue beside them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock;
use tidepool_tests::latency::Latencies;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::proto::prometheus::read_request::ResponseType;
use tidepool_tests::proto::prometheus::{LabelMatcher, Query};
use tidepool_tests::remote_read::{matcher, query, request};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::send_all;
use tidepool_tests::series::{Dataset, Series, Shape, Texture};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const BLOCK: &str = "1m";
const BLOCK_MS: i64 = 60_000;
const INTERVAL_MS: i64 = 30_000;
const SCRAPES: usize = 12;
/// Name of a label that all series have.
const LABEL: &str = "instance";

/// Starts a store with many series, most of their samples in blocks.
fn store(flags: &[&str]) -> (Store, Dataset) {
    let store = Store::start_with(|config| {
        flags.iter().fold(config.block_duration(BLOCK), |config, flag| config.flag(flag))
    });
    let store = store.expect("tidepool starts");
    let data = Dataset::generate(Shape {
        seed: 91,
        series: 20_000,
        scrapes: SCRAPES,
        start_ms: clock::now_ms() - SCRAPES as i64 * INTERVAL_MS,
        interval_ms: INTERVAL_MS,
        texture: Texture::Regular,
    });
    send_all(&store, Version::V2, &data);
    let cut = || (store.metric("tidepool_blocks_cut_total")? >= 3.0).then_some(());
    wait::until("blocks", Duration::from_secs(60), cut)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", store.server.log()));
    (store, data)
}

/// Makes expressions that must be tried on every value of a label.
fn costly(label: &str, count: usize) -> Vec<LabelMatcher> {
    let expression = |number| format!(".*[a-z0-9:._/-]*[a-z0-9]+.*|x{number}");
    (0..count).map(|number| matcher(Type::Re, label, &expression(number))).collect()
}

fn answer_to(store: &Store, query: Query) -> (u16, String) {
    let response = store.reader().post(&request(&[query], ResponseType::StreamedXorChunks));
    let response = response.expect("an answer");
    (response.status, response.text())
}

/// Sends samples now and then until `stop` is set; all must be accepted. Returns the latencies.
fn write_beside(store: &Store, stop: &AtomicBool) -> Latencies {
    let writer = store.writer();
    let mut taken = Vec::new();
    while !stop.load(Relaxed) || taken.len() < 200 {
        let sample = [(clock::now_ms(), taken.len() as f64)];
        let series = Series::new(&[("__name__", "beside")], &sample);
        let begun = Instant::now();
        let response = writer.send(Version::V2, &[series.row()]).expect("an answer");
        taken.push(begun.elapsed());
        assert_eq!(response.status, 204, "{}", response.text());
        std::thread::sleep(Duration::from_millis(10));
    }
    Latencies::new(taken)
}

/// Stops the writer when it is dropped, also if an assertion fails.
struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Measures writes alone, for comparison.
fn quiet(store: &Store) -> Latencies {
    writes_beside(store, || std::thread::sleep(Duration::from_secs(3)))
}

/// Measures writes beside other work, which must not delay them.
#[track_caller]
fn beside(store: &Store, what: &str, quiet: &Latencies, work: impl FnOnce()) {
    writes_beside(store, work).assert_not_held_up(99, what, quiet);
}

fn writes_beside(store: &Store, work: impl FnOnce()) -> Latencies {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writes = scope.spawn(|| write_beside(store, &stop));
        let stop = StopWhenDropped(&stop);
        work();
        drop(stop);
        writes.join().expect("the writer")
    })
}

/// Asserts that the store has the data; other samples may have been written beside them.
fn assert_holds_beside(store: &Store, data: &Dataset) {
    let not_beside = matcher(Type::Nre, "__name__", "beside|unique");
    let all = query(i64::MIN / 2, i64::MAX / 2, vec![not_beside]);
    let read = store.reader().streamed(&[all]).expect("an answer");
    assert_same("all but what is written", &data.series, &read[0]);
}

#[test]
fn a_read_with_costly_matchers_is_answered_beside_writes() {
    let (store, data) = store(&[]);
    let (first_ms, last_ms) = data.time_range_ms().expect("samples");
    let newest = [(last_ms, 1.0)];
    let id = |number: usize| format!("{number:08}");
    let unique: Vec<Series> = (0..20_000)
        .map(|number| Series::new(&[("__name__", "unique"), ("id", &id(number))], &newest))
        .collect();
    for part in unique.chunks(2000) {
        let rows: Vec<_> = part.iter().map(Series::row).collect();
        let response = store.writer().send(Version::V2, &rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }
    let quiet = quiet(&store);
    beside(&store, "reads whose matchers cost much", &quiet, || {
        for _ in 0..5 {
            // The maximum number of expressions, all of which match every id.
            let mut matchers = costly("id", 199);
            matchers.push(matcher(Type::Eq, "__name__", "unique"));
            let all = query(last_ms, last_ms, matchers);
            let read = store.reader().streamed(&[all]).expect("an answer");
            assert_eq!(read[0].len(), unique.len());
        }
    });
    let (status, text) = answer_to(&store, query(first_ms, last_ms, costly(LABEL, 201)));
    assert!(status == 400 && text.contains("matchers"), "{status}: {text}");
    beside(&store, "reads of everything", &quiet, || {
        for _ in 0..3 {
            assert_holds_beside(&store, &data);
        }
    });
    let closed = || (store.metric("tidepool_head_open_cursors")? == 0.0).then_some(());
    wait::until("the head's cursors", Duration::from_secs(20), closed).expect("closed");
}

#[test]
fn a_read_that_passes_its_deadline_ends_alone() {
    let (store, data) = store(&["--read-timeout=1ms"]);
    let (first_ms, _) = data.time_range_ms().expect("samples");
    let quiet = quiet(&store);
    beside(&store, "reads that pass their deadline", &quiet, || {
        for _ in 0..5 {
            let in_blocks = query(first_ms, first_ms + BLOCK_MS, costly(LABEL, 200));
            let (status, text) = answer_to(&store, in_blocks);
            assert!(status == 503 && text.contains("--read-timeout"), "{status}: {text}");
        }
    });
    assert!(store.server.log().contains("read cancelled"), "{}", store.server.log());
}

#[test]
fn a_read_that_needs_too_much_memory_ends_alone() {
    let (store, data) = store(&["--query-memory-limit=3MiB"]);
    let (first_ms, _) = data.time_range_ms().expect("samples");
    let quiet = quiet(&store);
    beside(&store, "reads that pass their memory", &quiet, || {
        for _ in 0..5 {
            let in_blocks = query(first_ms, first_ms + BLOCK_MS, costly(LABEL, 200));
            let (status, text) = answer_to(&store, in_blocks);
            assert!(status == 422 && text.contains("--query-memory-limit"), "{status}: {text}");
        }
    });
    let freed = || (store.metric("tidepool_reads_memory_bytes")? == 0.0).then_some(());
    wait::until("the reads' memory", Duration::from_secs(20), freed).expect("given back");
    let one = query(first_ms, first_ms, vec![matcher(Type::Eq, "__name__", "beside")]);
    assert_eq!(answer_to(&store, one).0, 200);
}
