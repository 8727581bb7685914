//! Samples accepted under a memory limit are replayed under it, whatever they are and whenever the
//! node is killed; and a log that needs more memory than there is stays unchanged.
//!
//! The buffers of the replay used to take more than the head itself: 17,000 series under 96 MiB,
//! all of them answered 204, were quarantined after three starts, though the head had used 7 MiB.

use tidepool_tests::clock::now_ms;
use tidepool_tests::process::Server;
use tidepool_tests::proto::write_v2::{
    BucketSpan, Exemplar, Histogram, Metadata, Request, Sample, TimeSeries, histogram,
};
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::series::Random;
use tidepool_tests::soak;
use tidepool_tests::tidepool::{Config, Store};

/// Number of heads that are filled and killed.
const RUNS: (usize, usize) = (8, 200);
/// Maximum number of requests in a run, if none is refused before.
const REQUESTS_MAX: u64 = 260;
/// Interval of the samples of a run.
const STEP_MS: i64 = 1000;

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// New series with a sample each.
    ManySeries,
    /// New series whose labels differ from all others.
    Churn,
    /// New series with labels of a kilobyte.
    LongLabels,
    /// Samples of series that already exist.
    Samples,
    Histograms,
    Exemplars,
    OutOfOrder,
    Metadata,
}

const KINDS: [Kind; 8] = [
    Kind::ManySeries,
    Kind::Churn,
    Kind::LongLabels,
    Kind::Samples,
    Kind::Histograms,
    Kind::Exemplars,
    Kind::OutOfOrder,
    Kind::Metadata,
];

struct Message {
    symbols: Vec<String>,
    series: Vec<TimeSeries>,
}

impl Message {
    fn symbol(&mut self, text: String) -> u32 {
        self.symbols.push(text);
        self.symbols.len() as u32 - 1
    }

    fn add(&mut self, labels: &[(&str, String)], timestamp_ms: i64, value: f64) -> &mut TimeSeries {
        let mut refs = Vec::new();
        // A function over a range drops the name: another label makes them different series, too.
        let mut labels = labels.to_vec();
        labels.push(("kind", labels[0].1.clone()));
        labels.sort();
        for (name, value) in labels {
            refs.extend([self.symbol(name.to_owned()), self.symbol(value)]);
        }
        let sample = Sample { value, timestamp: timestamp_ms, start_timestamp: 0 };
        self.series.push(TimeSeries {
            labels_refs: refs,
            samples: vec![sample],
            ..TimeSeries::default()
        });
        self.series.last_mut().expect("the one that was added")
    }
}

/// Returns the request of this number, and its number of values.
fn message(kind: Kind, number: u64, start_ms: i64, random: &mut Random) -> (Request, u64) {
    let mut message = Message { symbols: vec![String::new()], series: Vec::new() };
    let now_ms = start_ms + number as i64 * STEP_MS;
    let name = |name: &str| ("__name__", name.to_owned());
    let mut values = 0;
    match kind {
        Kind::ManySeries => {
            for i in 0..1000 {
                let labels = [name("many"), ("i", format!("{number}-{i}")), ("job", "node".into())];
                message.add(&labels, now_ms, i as f64);
            }
        }
        Kind::Churn => {
            for i in 0..1000 {
                let own = format!("p{number}-{i}").repeat(6);
                let labels = [name("churn"), ("i", format!("{number}-{i}")), ("pad", own)];
                message.add(&labels, now_ms, 1.5);
            }
        }
        Kind::LongLabels => {
            for i in 0..100 {
                let labels = [name("long"), ("text", format!("{number}-{i}-").repeat(120))];
                message.add(&labels, now_ms, 1.5);
            }
        }
        Kind::Samples => {
            for i in 0..500 {
                let labels = [name("steady"), ("i", i.to_string())];
                let series = message.add(&labels, now_ms, random.below(1 << 60) as f64);
                for step in 1..20 {
                    let value = f64::from_bits(random.below(1 << 62));
                    let timestamp = now_ms + step * STEP_MS / 20;
                    series.samples.push(Sample { value, timestamp, start_timestamp: 0 });
                    values += 1;
                }
            }
        }
        Kind::Histograms => {
            for i in 0..200 {
                let labels = [name("histogram"), ("i", i.to_string())];
                let series = message.add(&labels, 0, 0.0);
                series.samples.clear();
                let deltas: Vec<i64> = (0..60)
                    .map(|at| if at % 2 == 0 { random.below(1 << 30) as i64 } else { 0 })
                    .collect();
                let count = deltas.iter().scan(0, |sum, delta| {
                    *sum += delta;
                    Some(*sum as u64)
                });
                series.histograms.push(Histogram {
                    count: Some(histogram::Count::CountInt(count.sum())),
                    zero_count: Some(histogram::ZeroCount::ZeroCountInt(0)),
                    sum: 1.5,
                    schema: 3,
                    zero_threshold: 1e-9,
                    positive_spans: vec![BucketSpan { offset: 0, length: 60 }],
                    positive_deltas: deltas,
                    timestamp: now_ms,
                    ..Histogram::default()
                });
            }
        }
        Kind::Exemplars => {
            let trace = message.symbol("trace_id".into());
            for i in 0..300 {
                let id = message.symbol(format!("{number:050}-{i:050}"));
                let labels = [name("exemplar"), ("i", i.to_string())];
                let exemplar =
                    Exemplar { labels_refs: vec![trace, id], value: 1.0, timestamp: now_ms };
                message.add(&labels, now_ms, 1.0).exemplars.push(exemplar);
            }
        }
        Kind::OutOfOrder => {
            for i in 0..500 {
                let labels = [name("late"), ("i", i.to_string())];
                // From the newest to the oldest: all but the first are out of order.
                let timestamp_ms = start_ms + STEP_MS * (REQUESTS_MAX - number) as i64;
                message.add(&labels, timestamp_ms, random.below(1 << 50) as f64);
            }
        }
        Kind::Metadata => {
            for i in 0..20 {
                let help_ref = message.symbol(format!("{number}-{i} helps. ").repeat(20));
                let labels = [name(&format!("family_{number}_{i}"))];
                let series = message.add(&labels, now_ms, 1.0);
                series.metadata = Some(Metadata { r#type: 1, help_ref, unit_ref: 0 });
            }
        }
    }
    values += message.series.len() as u64;
    (Request { symbols: message.symbols, timeseries: message.series }, values)
}

fn limited(config: Config, limit_mib: u64) -> Config {
    config.flag(&format!("--memory-limit={limit_mib}MiB"))
}

/// Returns the same directory with another limit.
fn with_limit(config: &Config, limit_mib: u64) -> Config {
    limited(Config::new(config.data_dir().parent().expect("a directory of the test's")), limit_mib)
}

/// Asserts that the log was replayed, and by the first attempt.
#[track_caller]
fn assert_replayed(store: &Store, what: &str) {
    for name in [
        "tidepool_wal_replay_skipped",
        "tidepool_failed_starts_total",
        "tidepool_logs_quarantined_total",
        "tidepool_instance_crashes_total{role=\"head\"}",
    ] {
        assert_eq!(store.metric(name), Some(0.0), "{what}: {name}; {}", store.server.log());
    }
}

/// Starts a server and checks that it has all acknowledged samples and no unsent ones.
#[track_caller]
fn assert_count(store: &Store, answered: u64, sent: u64, what: &str) {
    let query = "/api/v1/query?query=sum(count_over_time(%7B__name__!=%22%22%7D%5B6h%5D))";
    let url = format!("{}{query}&time={}", store.server.url(), (now_ms() + 3_600_000) / 1000);
    let answer = tidepool_tests::http::Client::default().get(&url).expect("an answer");
    let body: serde_json::Value = serde_json::from_str(&answer.text()).expect("JSON");
    let count = body["data"]["result"][0]["value"][1].as_str().unwrap_or("0");
    let count: f64 = count.parse().expect("a number");
    let is_all = count >= answered as f64 && count <= sent as f64;
    assert!(is_all, "{what}: {count} of {answered} to {sent}: {}", answer.text());
}

/// Fills a head and kills it, then starts with the same limit.
fn comes_back(run: u64) {
    let mut random = Random::new(run, 33);
    let limit_mib = [96, 112, 160, 192][random.below(4) as usize];
    let records = ["auto", "prometheus"][(run % 2) as usize];
    let count = 1 + random.below(3) as usize;
    let first = [KINDS[run as usize % KINDS.len()]];
    let others = (1..count).map(|_| KINDS[random.below(KINDS.len() as u64) as usize]);
    let kinds: Vec<Kind> = first.into_iter().chain(others.collect::<Vec<_>>()).collect();
    // Before the head is full, or after that.
    let requests = 20 + random.below(REQUESTS_MAX - 20);
    let what = format!("run {run}: {limit_mib} MiB, {records}, {kinds:?}, {requests} requests");

    let store = Store::start_with(|config| {
        let config = limited(config, limit_mib).flag(&format!("--wal-records={records}"));
        config.flag("--out-of-order-window=2h").flag("--max-series=0")
    });
    let store = store.expect("tidepool starts");
    let start_ms = now_ms() - 3_000_000;
    let (mut answered, mut sent, mut refused) = (0, 0, 0);
    let writer = Writer::new(&store.server.url());
    for number in 0..requests {
        let kind = kinds[random.below(kinds.len() as u64) as usize];
        let (request, values) = message(kind, number, start_ms, &mut random);
        let answer = writer.send_message(Version::V2, &request).expect("an answer");
        sent += values;
        match answer.status {
            204 => answered += values,
            429 | 503 => refused += 1,
            other => panic!("{what}: {other}: {}", answer.text()),
        }
        // Later requests change little.
        if refused > 20 {
            break;
        }
    }
    assert!(answered > 0, "{what}");
    let mut store = store.restart(Server::kill).expect("tidepool starts again");
    assert_replayed(&store, &what);
    // On the state left by the start, or in the middle of its changes; then with a head snapshot.
    for end in [Server::kill, Server::terminate, Server::kill] {
        store = store.restart(end).expect("tidepool starts again");
        assert_replayed(&store, &what);
    }
    let Store { server, config, directory } = store;
    server.kill().expect("a kill");
    // A query over everything may need more memory than a full head leaves.
    let server = with_limit(&config, 2048).start().expect("tidepool starts");
    assert_count(&Store { server, config, directory }, answered, sent, &what);
}

#[test]
fn what_was_accepted_under_a_limit_comes_back_under_it() {
    for run in 0..soak::count(RUNS.0, RUNS.1) as u64 {
        comes_back(run);
    }
}

/// The case in which the fault was first seen.
#[test]
fn a_head_of_many_series_with_few_samples_comes_back() {
    for records in ["auto", "prometheus"] {
        let store = Store::start_with(|config| {
            limited(config, 96).flag(&format!("--wal-records={records}"))
        });
        let store = store.expect("tidepool starts");
        let (mut random, start_ms) = (Random::new(1, 1), now_ms() - 600_000);
        let writer = Writer::new(&store.server.url());
        for number in 0..17 {
            let (request, _) = message(Kind::ManySeries, number, start_ms, &mut random);
            let answer = writer.send_message(Version::V2, &request).expect("an answer");
            assert_eq!(answer.status, 204, "{}", answer.text());
        }
        let store = store.restart(Server::kill).expect("tidepool starts again");
        assert_replayed(&store, records);
        assert_count(&store, 17_000, 17_000, records);
    }
}

/// Not one byte of a log that needs more memory is changed; with more memory, all is there.
#[test]
fn a_log_that_needs_more_memory_is_kept_and_says_how_much() {
    let store = Store::start_with(|config| config.flag("--memory-limit=1GiB"));
    let store = store.expect("tidepool starts");
    let (mut random, start_ms) = (Random::new(2, 2), now_ms() - 600_000);
    let writer = Writer::new(&store.server.url());
    let (mut sent, requests) = (0, 120);
    for number in 0..requests {
        let (request, values) = message(Kind::Churn, number, start_ms, &mut random);
        let answer = writer.send_message(Version::V2, &request).expect("an answer");
        assert_eq!(answer.status, 204, "{}", answer.text());
        sent += values;
    }
    let Store { server, config, directory } = store;
    server.kill().expect("a kill");
    let wal = || {
        let files = std::fs::read_dir(config.data_dir().join("wal")).expect("a log");
        let mut files: Vec<_> = files
            .map(|file| {
                let path = file.expect("an entry").path();
                let bytes = std::fs::read(&path).expect("a segment");
                (path, bytes)
            })
            .collect();
        files.sort();
        // An empty segment is not part of the log's content.
        files.retain(|(_, bytes)| !bytes.is_empty());
        files
    };
    let before = wal();

    let tight = with_limit(&config, 96).flag("--enable-admin-api");
    for end in [Server::kill, Server::terminate] {
        let server = tight.start().expect("tidepool starts with its blocks");
        let log = server.log();
        assert!(log.contains("Restart with --memory-limit="), "{log}");
        let client = tidepool_tests::http::Client::default();
        let get = |path: &str| client.get(&format!("{}{path}", server.url())).expect("an answer");
        let status = get("/api/v1/status/walreplay").text();
        assert!(status.contains("skipped") && status.contains("--memory-limit="), "{status}");
        assert_eq!(get("/-/ready").status, 200);
        assert_eq!(get("/api/v1/query?query=up").status, 200);
        assert_eq!(server.metric("tidepool_wal_replay_skipped"), Some(1.0));
        assert_eq!(server.metric("tidepool_logs_quarantined_total"), Some(0.0));
        let needed = server.metric("tidepool_memory_limit_needed_bytes").expect("a limit");
        assert!(needed > f64::from(96 << 20), "{needed}");
        let (request, _) = message(Kind::ManySeries, 1, start_ms, &mut random);
        let refused = Writer::new(&server.url()).send_message(Version::V2, &request);
        let refused = refused.expect("an answer");
        assert_eq!(refused.status, 503, "{}", refused.text());
        assert!(
            refused.header("Retry-After").is_some() && refused.text().contains("--memory-limit=")
        );
        let deleted = client.post(
            &format!("{}/api/v1/admin/tsdb/delete_series?match[]=churn", server.url()),
            &[],
            b"",
        );
        assert_ne!(deleted.expect("an answer").status, 204);
        end(server).expect("tidepool ends");
        assert!(!config.data_dir().join("set-aside").exists());
        assert!(!config.data_dir().join("head_snapshot").exists());
        assert_eq!(wal(), before, "the log is changed");
    }

    let server = config.clone().start().expect("tidepool starts");
    let store = Store { server, config, directory };
    assert_replayed(&store, "with more memory");
    assert_count(&store, sent, sent, "with more memory");
}

/// The limit that the error names is sufficient.
#[test]
fn the_limit_that_is_named_is_enough() {
    let store = Store::start_with(|config| config.flag("--memory-limit=1GiB"));
    let store = store.expect("tidepool starts");
    let (mut random, start_ms) = (Random::new(3, 3), now_ms() - 600_000);
    let (writer, mut sent) = (Writer::new(&store.server.url()), 0);
    for number in 0..150 {
        let kind = [Kind::Churn, Kind::LongLabels][(number % 2) as usize];
        let (request, values) = message(kind, number, start_ms, &mut random);
        let answer = writer.send_message(Version::V2, &request).expect("an answer");
        assert_eq!(answer.status, 204, "{}", answer.text());
        sent += values;
    }
    let Store { server, config, directory } = store;
    server.kill().expect("a kill");
    let mut limit_mib = 96;
    let server = loop {
        let server = with_limit(&config, limit_mib).start().expect("tidepool starts");
        if server.metric("tidepool_wal_replay_skipped") == Some(0.0) {
            break server;
        }
        let needed = server.metric("tidepool_memory_limit_needed_bytes").expect("a limit");
        let named_mib = needed as u64 >> 20;
        // The first limit may be too low, since tables double; each start gets much further.
        assert!(named_mib * 2 >= limit_mib * 2 + 2 && named_mib < 1024, "{limit_mib}, {named_mib}");
        server.kill().expect("a kill");
        limit_mib = named_mib;
    };
    assert!(limit_mib > 96, "that much is no shortage");
    server.kill().expect("a kill");
    let server = config.start().expect("tidepool starts");
    assert_count(&Store { server, config, directory }, sent, sent, "with the limit that is named");
}
