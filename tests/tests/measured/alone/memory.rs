//! Behaviour when memory runs short: the process stays within `--memory-limit`, known series are
//! still written, new ones are refused, reads are refused or ended, and the node recovers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_tests::cgroup::MemoryGroup;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::remote_read::{ReadError, everything, matcher, query};
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::series::{Labels, Row, Sample, Series};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const LIMIT_BYTES: u64 = 256 << 20;
const KNOWN_SERIES: usize = 2_000;
const NEW_SERIES_PER_REQUEST: usize = 2_000;
/// Long enough for a million series a minute, from two senders.
const EXPLOSION: Duration = Duration::from_secs(40);
const REQUEST_EVERY: Duration = Duration::from_millis(240);

fn labels(name: &str, number: usize) -> Labels {
    Labels::from_pairs([
        ("__name__", name.to_owned()),
        ("instance", format!("node-{:04}.example:9100", number % 1000)),
        ("job", "node".to_owned()),
        ("request_id", format!("{number:016x}-{number:08}")),
    ])
}

/// Writes new series as a runaway label makes them; only 2xx, 429 and 503 are right answers.
fn explode(
    writer: &Writer,
    first: usize,
    stop: &AtomicBool,
    sent: &AtomicU64,
    refused: &AtomicU64,
) {
    let mut number = first;
    while !stop.load(Relaxed) {
        let begun = Instant::now();
        let all: Vec<Labels> =
            (number..number + NEW_SERIES_PER_REQUEST).map(|n| labels("explosion", n)).collect();
        let sample = [Sample { timestamp_ms: clock::now_ms(), value: 1.0 }];
        let rows: Vec<Row<'_>> =
            all.iter().map(|labels| Row { labels, samples: &sample }).collect();
        let response = writer.send(Version::V2, &rows).expect("an answer");
        match response.status {
            204 => {}
            429 | 503 => {
                refused.fetch_add(1, Relaxed);
                assert!(response.header("Retry-After").is_some(), "{}", response.text());
                assert!(response.text().contains("memory is short"), "{}", response.text());
            }
            other => panic!("{other}: {}", response.text()),
        }
        sent.fetch_add(NEW_SERIES_PER_REQUEST as u64, Relaxed);
        number += NEW_SERIES_PER_REQUEST;
        std::thread::sleep(REQUEST_EVERY.saturating_sub(begun.elapsed()));
    }
}

/// Writes one sample of each known series every second, each until it is accepted; sets `are_known`
/// after the first.
fn scrape(writer: &Writer, stop: &AtomicBool, are_known: &AtomicBool) -> Vec<Series> {
    let mut known: Vec<Series> = (0..KNOWN_SERIES)
        .map(|number| Series { labels: labels("known", number), samples: Vec::new() })
        .collect();
    let mut value = 0.0;
    while !stop.load(Relaxed) {
        let (timestamp_ms, begun) = (clock::now_ms(), Instant::now());
        value += 1.0;
        for series in &mut known {
            series.samples.push(Sample { timestamp_ms, value });
        }
        let newest = |series: &'_ Series| series.samples.len() - 1;
        let rows: Vec<Row<'_>> = known
            .iter()
            .map(|series| Row {
                labels: &series.labels,
                samples: &series.samples[newest(series)..],
            })
            .collect();
        for attempt in 0.. {
            let response = writer.send(Version::V2, &rows).expect("an answer");
            match response.status {
                204 => break,
                503 => assert!(attempt < 100, "never taken: {}", response.text()),
                other => panic!("a known series got {other}: {}", response.text()),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        are_known.store(true, Relaxed);
        std::thread::sleep(Duration::from_secs(1).saturating_sub(begun.elapsed()));
    }
    known
}

/// Finds the metric that exploded: the one with the most series in the head.
fn explosion_seen(store: &Store) -> Option<()> {
    let url = format!("{}/api/v1/status/tsdb?limit=3", store.server.url());
    let status = tidepool_tests::http::Client::default().get(&url).ok()?.text();
    status.contains(r#""seriesCountByMetricName":[{"name":"explosion""#).then_some(())
}

#[test]
fn a_cardinality_explosion_beside_reads_of_everything_is_survived() {
    // Not every user may make control groups; the kernel's peak is checked in any case.
    let group = MemoryGroup::new(LIMIT_BYTES);
    let store = Store::start_with(|config| {
        config.flag(&format!("--memory-limit={LIMIT_BYTES}")).flag("--wal-sync=off")
    })
    .expect("tidepool starts");
    match &group {
        Ok(group) => group.add(store.server.process_id()).expect("the process is in the group"),
        Err(error) => println!("not in a control group: {error}"),
    }
    let (stop, are_known) = (AtomicBool::new(false), AtomicBool::new(false));
    let (sent, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let (reads, reads_refused) = (AtomicU64::new(0), AtomicU64::new(0));
    // Counts reads that end inside their answers.
    let reads_broken = AtomicU64::new(0);
    let known = std::thread::scope(|scope| {
        // The known series are written first.
        let explode_then = |first: usize| {
            let is_first = || are_known.load(Relaxed).then_some(());
            wait::until("the known series", Duration::from_secs(60), is_first).expect("a scrape");
            explode(&store.writer(), first, &stop, &sent, &refused);
        };
        scope.spawn(move || explode_then(0));
        scope.spawn(move || explode_then(1 << 40));
        let scraped = scope.spawn(|| scrape(&store.writer(), &stop, &are_known));
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    let all = everything(i64::MIN / 2, i64::MAX / 2);
                    match store.reader().streamed(&[all]) {
                        Ok(_) => reads.fetch_add(1, Relaxed),
                        Err(ReadError::Status { status: 422 | 429 | 503, body })
                            if body.contains("memory") =>
                        {
                            reads_refused.fetch_add(1, Relaxed)
                        }
                        Err(ReadError::Connection(_)) => reads_broken.fetch_add(1, Relaxed),
                        Err(error) => panic!("{}", wait::chain(&error)),
                    };
                    std::thread::sleep(Duration::from_millis(200));
                }
            });
        }
        let begun = Instant::now();
        // Read during the explosion: a cut afterwards may leave no series in the head.
        let seen =
            wait::until("the explosion in the head's status", EXPLOSION, || explosion_seen(&store));
        std::thread::sleep(EXPLOSION.saturating_sub(begun.elapsed()));
        stop.store(true, Relaxed);
        seen.unwrap_or_else(|error| panic!("{error}; the log says:\n{}", store.server.log()));
        scraped.join().expect("the scraper")
    });
    let usage = store.server.usage().expect("it runs");
    println!(
        "{} new series offered, {} requests refused in part, {} reads answered, {} refused, {} broken \
         off; peak {} MB",
        sent.load(Relaxed),
        refused.load(Relaxed),
        reads.load(Relaxed),
        reads_refused.load(Relaxed),
        reads_broken.load(Relaxed),
        usage.peak_memory_bytes >> 20,
    );
    let log = store.server.log();
    assert!(usage.peak_memory_bytes <= LIMIT_BYTES, "{} bytes:\n{log}", usage.peak_memory_bytes);
    assert!(refused.load(Relaxed) > 0, "the explosion was no explosion");
    // Reads break off for want of memory, and the log contains the number of them each time.
    let ended = log.lines().filter_map(|line| {
        let reads = line.split_once("reads were cancelled because memory is short reads=")?.1;
        reads.trim().parse::<u64>().ok()
    });
    let (ended, broken) = (ended.sum::<u64>(), reads_broken.load(Relaxed));
    assert!(broken <= ended, "{broken} answers broke off, {ended} reads were ended:\n{log}");
    assert!(reads.load(Relaxed) > 0, "no read of everything was answered");
    let crashes = |log: &str| log.matches("crashed").count();
    assert_eq!(crashes(&log), 0, "{log}");

    // The shortage ends.
    let takes_new = || {
        let labels = labels("after", 1);
        let samples = [Sample { timestamp_ms: clock::now_ms(), value: 1.0 }];
        let row = Row { labels: &labels, samples: &samples };
        let response = store.writer().send(Version::V2, &[row]).expect("an answer");
        (response.status == 204).then_some(())
    };
    wait::until("new series to be taken again", Duration::from_secs(60), takes_new)
        .unwrap_or_else(|error| panic!("{error}; the log says:\n{}", store.server.log()));
    let only_known =
        query(i64::MIN / 2, i64::MAX / 2, vec![matcher(Type::Eq, "__name__", "known")]);
    let read = || store.reader().streamed(std::slice::from_ref(&only_known)).ok();
    let read = wait::until("a read", Duration::from_secs(60), read).expect("an answer");
    assert_same("the known series", &known, &read[0]);
}

/// The default limit: three quarters of the group's limit, at whatever level of groups it is set.
#[test]
fn the_limit_of_a_control_group_is_the_default() {
    let outer =
        MemoryGroup::new(512 << 20).expect("a control group; tests/run leaves this out without");
    let inner = outer.inner().expect("a group in it");
    for group in [&outer, &inner] {
        let store = Store::start_with(|config| config.started_by(group.starter()));
        let store = store.expect("tidepool starts");
        let limit_bytes = store.metric("tidepool_memory_limit_bytes{part=\"all\"}");
        let limit_mib = limit_bytes.expect("the metric") / (1 << 20) as f64;
        assert!((380.0..=384.0).contains(&limit_mib), "{limit_mib} MiB");
    }
}

/// Shape of the labels of an explosion.
#[derive(Clone, Copy, Debug)]
struct LabelShape {
    /// Number of labels of a series besides its name and its number.
    labels: usize,
    value_bytes: usize,
    /// Number of values of a label; `None` if each series has its own.
    values: Option<usize>,
    /// Whether each series has label names of its own.
    has_own_names: bool,
}

const PLAIN: LabelShape =
    LabelShape { labels: 1, value_bytes: 16, values: None, has_own_names: false };

const SHAPES: [LabelShape; 6] = [
    LabelShape { value_bytes: 72, ..PLAIN },
    LabelShape { value_bytes: 2000, ..PLAIN },
    LabelShape { labels: 25, value_bytes: 4, ..PLAIN },
    LabelShape { labels: 25, values: Some(3), ..PLAIN },
    // Many pairs of few strings.
    LabelShape { labels: 20, value_bytes: 6, values: Some(300), ..PLAIN },
    LabelShape { labels: 3, has_own_names: true, ..PLAIN },
];

impl LabelShape {
    fn labels(&self, number: usize) -> Labels {
        let own = [("__name__", "explosion".to_owned()), ("number", format!("{number:08}"))];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let others = (0..self.labels).map(|label| {
            let name = match self.has_own_names {
                true => format!("l{label:02}_{number}"),
                false => format!("l{label:02}"),
            };
            let owner = match self.values {
                Some(values) => number.wrapping_mul(label + 7) % values,
                None => number * self.labels + label,
            };
            (name, format!("{owner:0>0$}", self.value_bytes))
        });
        Labels::from_pairs(own.into_iter().chain(others))
    }
}

/// Sends new series until no more are accepted; returns the number of the next.
fn fill(store: &Store, shape: LabelShape, mut number: usize) -> usize {
    let writer = store.writer();
    loop {
        let all: Vec<Labels> = (number..number + 500).map(|n| shape.labels(n)).collect();
        let sample = [Sample { timestamp_ms: clock::now_ms(), value: 1.0 }];
        let rows: Vec<Row<'_>> =
            all.iter().map(|labels| Row { labels, samples: &sample }).collect();
        let response = writer.send(Version::V2, &rows).expect("an answer");
        number += rows.len();
        match response.status {
            204 => {}
            429 | 503 => return number,
            other => panic!("{other}: {}", response.text()),
        }
        assert!(number < 10_000_000, "{shape:?} takes no memory");
    }
}

#[test]
fn whatever_the_labels_of_an_explosion_it_passes() {
    let small = SHAPES.map(|shape| (96, shape));
    for (limit_mib, shape) in small.into_iter().chain([(256, SHAPES[0])]) {
        let limit = format!("--memory-limit={limit_mib}MiB");
        let store = Store::start_with(|config| config.flag(&limit).flag("--wal-sync=off"));
        let mut store = store.expect("tidepool starts");
        let mut number = 0;
        for round in 0..2 {
            number = fill(&store, shape, number);
            let takes_new = || {
                number += 1;
                let labels = shape.labels(number);
                let samples = [Sample { timestamp_ms: clock::now_ms(), value: 1.0 }];
                let row = Row { labels: &labels, samples: &samples };
                let response = store.writer().send(Version::V2, &[row]).expect("an answer");
                let has_cut = store.metric("tidepool_blocks_cut_total")? >= 1.0;
                (response.status == 204 && has_cut).then_some(())
            };
            let log = || store.server.log();
            wait::until("new series", Duration::from_secs(60), takes_new)
                .unwrap_or_else(|error| panic!("{shape:?}: {error}; the log says:\n{}", log()));
            let figure = |name: &str| store.metric(name).expect("a figure");
            println!(
                "{limit_mib} MiB, {shape:?}: {} series, {} blocks cut",
                figure("prometheus_tsdb_head_series_created_total"),
                figure("tidepool_blocks_cut_total"),
            );
            assert_eq!(
                figure("prometheus_tsdb_compactions_failed_total"),
                0.0,
                "{shape:?}:\n{}",
                log()
            );
            let created = figure("prometheus_tsdb_head_series_created_total");
            // Reads have 14 MiB here: too little for the longest labels, and for tables of names.
            if round == 0 && shape.value_bytes < 1000 && !shape.has_own_names {
                let all = everything(i64::MIN / 2, i64::MAX / 2);
                let read = || store.reader().streamed(std::slice::from_ref(&all)).ok();
                let read = wait::until("a read", Duration::from_secs(60), read);
                let found = read.expect("an answer")[0].len() as f64;
                assert_eq!(found, created, "{shape:?}:\n{}", log());
            }
            if round == 0 {
                // The shortage also ends after a start.
                store = store.restart(|server| server.kill()).expect("tidepool starts again");
            }
        }
    }
}
