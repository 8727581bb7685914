//! Real Prometheus writes to tidepool, real Prometheus reads from it, in every relevant version:
//! 2.x and 3.x as writer and as reader, remote write 1.0 and 2.0.
//!
//! A reading Prometheus always requests a stream first (its configuration offers no choice), so
//! these tests cover STREAMED_XOR_CHUNKS; the tests' own client compares SAMPLES.

use std::time::Duration;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::now_ms;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::{self, Vector};
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::remote_read::{Reader, matcher, query};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Sample;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;

/// Number of scrapes, one each second.
const SCRAPES: usize = 10;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Queries whose results depend on every sample of the last seconds.
const QUESTIONS: [&str; 7] = [
    "count by (__name__, job) ({job=~\".+\"})",
    "count_over_time(prometheus_http_requests_total[7500ms])",
    "sum by (job) (sum_over_time(up[7500ms]))",
    "max_over_time(process_resident_memory_bytes[7500ms])",
    "sum(rate(prometheus_tsdb_head_samples_appended_total[7500ms]))",
    "topk(5, go_memstats_alloc_bytes offset 2s)",
    "sum by (job) (count_over_time(scrape_samples_scraped[7500ms]))",
];

fn ask(server: &Server, question: &str, time_ms: i64) -> Vector {
    prometheus::query(server, question, time_ms)
        .unwrap_or_else(|e| panic!("{question}: {}\n{}", wait::chain(&e), server.log()))
}

/// Returns a time at which everything was scraped and written, and that is far from every scrape,
/// as is the start of a range of 7.5 s: 2.x includes the start of a range, 3.x does not.
fn quiet_time_ms(last_scrapes_ms: &[i64]) -> i64 {
    let earliest_ms = last_scrapes_ms.iter().min().expect("there are scrapes");
    let is_quiet = |time_ms: &i64| {
        last_scrapes_ms.iter().all(|scrape_ms| {
            let phase_ms = (time_ms - scrape_ms).rem_euclid(500);
            (30..470).contains(&phase_ms)
        })
    };
    (earliest_ms - 2_000..earliest_ms - 1_000).find(is_quiet).expect("two targets leave room")
}

/// Starts a writer that scrapes itself and tidepool and writes to tidepool, and a reader without
/// samples of its own; both get the same queries.
fn write_and_read_back(writer: Release, version: Version, reader: Release) {
    let store = Store::start().expect("tidepool starts");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = prometheus::Config::new(writer, &directory.path().join("writer"))
        .expect("the directory can be used");
    let own_address = config.address();
    let writer = config
        .scrape("prometheus", own_address)
        .scrape("tidepool", store.server.address())
        .remote_write(&store.server.url(), version)
        .start()
        .expect("the writer starts");
    let reader = prometheus::Config::new(reader, &directory.path().join("reader"))
        .expect("the directory can be used")
        .remote_read(&store.server.url())
        .start()
        .expect("the reader starts");

    // Ten scrapes of both targets have arrived.
    let arrived = || {
        let up = query(0, i64::MAX, vec![matcher(Type::Eq, "__name__", "up")]);
        let series = store.reader().streamed(&[up]).ok()?.remove(0);
        let enough = series.len() == 2 && series.iter().all(|s| s.samples.len() > SCRAPES);
        let last_ms = series.iter().filter_map(|s| s.samples.last()).map(|s| s.timestamp_ms);
        enough.then(|| last_ms.collect::<Vec<i64>>())
    };
    let last_scrapes_ms = wait::until("ten scrapes", TIMEOUT, arrived)
        .unwrap_or_else(|e| panic!("{e}\n{}\n{}", writer.log(), store.server.log()));

    let time_ms = quiet_time_ms(&last_scrapes_ms);
    // Later scrapes have arrived, so all rows of the earlier ones have.
    let later = || {
        let times_ms = arrived()?;
        times_ms
            .iter()
            .zip(&last_scrapes_ms)
            .all(|(time_ms, last_ms)| time_ms > last_ms)
            .then_some(())
    };
    wait::until("another scrape", TIMEOUT, later)
        .unwrap_or_else(|e| panic!("{e}\n{}\n{}", writer.log(), store.server.log()));
    for question in QUESTIONS {
        let expected = ask(&writer, question, time_ms);
        let found = ask(&reader, question, time_ms);
        assert!(!expected.is_empty(), "{question} has no answer");
        assert_eq!(found, expected, "{question}");
    }

    // No sample was lost or refused on the way.
    for counter in ["failed", "dropped"] {
        // In 3.x the counter of dropped samples only exists after the first one.
        let question =
            format!("sum(prometheus_remote_storage_samples_{counter}_total) or vector(0)");
        let values: Vec<String> = ask(&writer, &question, now_ms()).into_values().collect();
        assert_eq!(values, ["0"], "{question}\n{}", writer.log());
    }

    // SAMPLES has the same samples, and the targets' own label sets.
    let range = query(time_ms - 8_000, time_ms, vec![matcher(Type::Re, "job", ".+")]);
    let streamed = store.reader().streamed(std::slice::from_ref(&range)).expect("a stream");
    let samples = store.reader().samples(&[range]).expect("samples");
    assert_same("both kinds", &streamed[0], &samples[0]);
    assert!(samples[0].len() > 100, "{} series", samples[0].len());

    reader.terminate().expect("the reader ends");
    writer.terminate().expect("the writer ends");
    let ending = store.server.terminate().expect("tidepool ends");
    assert!(ending.status.success(), "{ending:?}");
}

#[test]
fn prometheus_2_writes_1_0_and_prometheus_3_reads() {
    write_and_read_back(Release::V2, Version::V1, Release::V3);
}

#[test]
fn prometheus_3_writes_1_0_and_prometheus_2_reads() {
    write_and_read_back(Release::V3, Version::V1, Release::V2);
}

#[test]
fn prometheus_3_writes_2_0_and_prometheus_3_reads() {
    write_and_read_back(Release::V3, Version::V2, Release::V3);
}

/// While tidepool is down, a writer keeps its samples and sends them afterwards: tidepool's answers
/// never make it drop samples.
#[test]
fn a_writer_catches_up_after_an_outage() {
    let store = Store::start_with(Config::keeps_address).expect("tidepool starts");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config =
        prometheus::Config::new(Release::V3, directory.path()).expect("the directory can be used");
    let own_address = config.address();
    let writer = config
        .scrape("prometheus", own_address)
        .remote_write(&store.server.url(), Version::V2)
        .start()
        .expect("the writer starts");
    let up = || query(0, i64::MAX, vec![matcher(Type::Eq, "__name__", "up")]);
    let count = |store: &Store| {
        let series = store.reader().streamed(&[up()]).ok()?.remove(0);
        series.first().map(|s| s.samples.len())
    };
    let some = || count(&store).filter(|count| *count >= 3);
    wait::until("three scrapes", TIMEOUT, some).expect("the writer writes");

    let killed_ms = now_ms();
    // The outage lasts some scrapes, as the writer's own samples show.
    let scraped = || {
        let series = Reader::new(&writer.url()).samples(&[up()]).ok()?.remove(0);
        let is_missed = |sample: &&Sample| sample.timestamp_ms > killed_ms;
        let samples = series.iter().flat_map(|series| &series.samples);
        (samples.filter(is_missed).count() >= 4).then_some(())
    };
    let pause = || wait::until("scrapes meanwhile", TIMEOUT, scraped).expect("the writer scrapes");
    let (store, ()) = store.outage(pause).expect("tidepool starts again");

    let time_ms = now_ms();
    let caught_up = || {
        let series = store.reader().streamed(&[up()]).ok()?.remove(0);
        let samples = series.into_iter().next()?.samples;
        samples.last().is_some_and(|s| s.timestamp_ms > time_ms).then_some(samples)
    };
    let samples = wait::until("the writer to catch up", TIMEOUT, caught_up)
        .unwrap_or_else(|e| panic!("{e}\n{}", writer.log()));
    // Compared with the writer's own samples over the whole outage, however late its scrapes were.
    let own = Reader::new(&writer.url()).samples(&[up()]).expect("the writer's own").remove(0);
    let last_ms = samples.last().map_or(0, |sample| sample.timestamp_ms);
    let own: Vec<Sample> = own.into_iter().flat_map(|series| series.samples).collect();
    let until_then = own.iter().filter(|sample| sample.timestamp_ms <= last_ms).copied();
    assert_eq!(samples, until_then.collect::<Vec<_>>());
    let missed = own.iter().filter(|s| (killed_ms..time_ms).contains(&s.timestamp_ms)).count();
    assert!(missed > 0, "it scraped nothing during the outage: {own:?}");
}
