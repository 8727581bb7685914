//! Plugins that misbehave: each ends alone, and samples sent meanwhile are stored, bit by bit, and
//! as soon as in a store without plugins.

use super::{TIMEOUT, lines, post, stored};
use std::time::{Duration, Instant};
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::now_ms;
use tidepool_tests::latency::Latencies;
use tidepool_tests::plugins::{Plugins, figure, start};
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::series::{Dataset, Row, Shape, Texture};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

/// Makes a thousand requests of some hundred samples.
fn data() -> Dataset {
    Dataset::generate(Shape {
        seed: 88,
        series: 100,
        scrapes: 1000,
        start_ms: now_ms() - 1_100_000,
        interval_ms: 1000,
        texture: Texture::Regular,
    })
}

/// Sends rows and returns the elapsed time.
fn send(writer: &Writer, rows: &[Row]) -> Duration {
    let begun = Instant::now();
    let response = writer.send(Version::V2, rows).expect("sent");
    let taken = begun.elapsed();
    assert_eq!(response.status, 204, "{}", response.text());
    taken
}

/// Ingests beside a plugin, and asserts that nothing is lost or delayed.
fn beside(what: &str, plugins: impl FnOnce(Plugins) -> Plugins) -> Store {
    let (quiet, _) = start(|plugins| plugins, |config| config).expect("tidepool starts");
    let (store, _plugins) = start(plugins, |config| config).expect("tidepool starts");
    let (data, to_quiet, to_store) = (data(), quiet.writer(), store.writer());
    // Alternately, since other tests run meanwhile: a delay affects both.
    let taken = data.scrapes().map(|rows| (send(&to_quiet, &rows), send(&to_store, &rows)));
    let (quiet, beside): (Vec<_>, Vec<_>) = taken.unzip();
    Latencies::new(beside).assert_not_held_up(90, what, &Latencies::new(quiet));
    let mut got = stored(&store.server);
    got.retain(|series| series.labels.value("__name__") != "job_said");
    assert_same(what, &data.series, &got);
    store
}

/// Tests a transform with `on-fault: pass` that fails each time: after three calls it is disabled.
fn failing(word: &str, outcome: &str) {
    // A plugin that computes or waits for ever exceeds any timeout; the others fail before that.
    let time = if outcome == "timeout" { "100ms" } else { "30s" };
    let store = beside(word, |plugins| {
        let settings = format!("config: {word}\nlimits: {{time: {time}}}");
        plugins.with("bad", "hostile-transform", &settings)
    });
    let faults = figure(&store.server, "calls_total", "bad", &format!("outcome=\"{outcome}\""));
    let skipped = figure(&store.server, "calls_total", "bad", "outcome=\"skipped\"");
    assert!(faults >= 3.0, "{faults} faults; {}", store.server.log());
    assert!(skipped >= 900.0, "{skipped} calls were not made");
    assert!(figure(&store.server, "disabled_total", "bad", "") >= 1.0);
}

#[test]
fn files_that_are_opened_without_end() {
    let granted = tempfile::tempdir().expect("a directory");
    let directory = granted.path().display();
    let (store, _plugins) = start(
        |plugins| {
            let grants = format!("grants: {{directory: {directory}, writable: true}}");
            let settings = format!("config: open-files\nlimits: {{time: 30s}}\n{grants}");
            plugins.with("opening", "hostile-transform", &settings)
        },
        |config| config,
    )
    .expect("tidepool starts");
    let response = post(&store.server, "/api/v1/import/prometheus", b"a 1\n");
    assert_eq!(response.status, 204, "{}", response.text());
    let ended = figure(&store.server, "calls_total", "opening", "outcome=\"trap\"");
    assert_eq!(ended, 1.0, "{}", store.server.log());
    let descriptors = format!("/proc/{}/fd", store.server.process_id());
    let open = std::fs::read_dir(descriptors).expect("its descriptors").count();
    assert!(open < 400, "{open} descriptors");
}

#[test]
fn an_endless_loop() {
    failing("loop", "timeout");
}

#[test]
fn an_endless_sleep() {
    failing("sleep", "timeout");
}

#[test]
fn a_memory_bomb() {
    failing("memory", "memory");
}

#[test]
fn a_trap() {
    failing("trap", "trap");
}

#[test]
fn an_output_flood() {
    failing("flood", "output");
}

#[test]
fn references_to_nothing() {
    failing("bad-refs", "output");
}

#[test]
fn columns_that_contradict_each_other() {
    failing("bad-ends", "output");
}

#[test]
fn an_error_of_its_own() {
    failing("error", "error");
}

#[test]
fn a_leak_is_no_fault() {
    let store = beside("leak", |plugins| {
        plugins.with(
            "leaky",
            "hostile-transform",
            "config: leak\nlimits: {memory: 16MiB, time: 30s}",
        )
    });
    let good = figure(&store.server, "calls_total", "leaky", "outcome=\"ok\"");
    assert_eq!(good, 1000.0, "{}", store.server.log());
    assert!(figure(&store.server, "memory_bytes", "leaky", "") <= 32.0 * 1048576.0);
}

#[test]
fn a_flood_of_words_is_cut() {
    let store = beside("words", |plugins| {
        plugins.with("wordy", "hostile-transform", "config: words\nlimits: {time: 20s}")
    });
    let log = store.server.log();
    assert!(log.contains("the rest is dropped"), "{log}");
    assert!(log.len() < 10 << 20, "{} bytes of log", log.len());
}

#[test]
fn a_job_that_reads_what_it_appends_for_ever() {
    let store = beside("append", |plugins| {
        plugins.with("greedy", "hostile-job", "config: append\nschedule: 1s\nlimits: {time: 2s}")
    });
    let ended = || {
        let calls = figure(&store.server, "calls_total", "greedy", "outcome=\"timeout\"");
        (calls > 0.0).then_some(())
    };
    wait::until("the job to pass its time", TIMEOUT, ended).expect("it ends");
    // On a busy machine the first run may have failed.
    let has_said = || {
        let lines = lines(&store.server);
        lines.iter().any(|line| line.contains("job_said")).then_some(())
    };
    wait::until("what the job appended", TIMEOUT, has_said)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
}

#[test]
fn a_job_that_leaks_cursors_keeps_no_reader_waiting() {
    let (store, _plugins) = start(
        |plugins| plugins.with("leaky", "hostile-job", "config: leak\nschedule: 1s"),
        |config| config.flag("--read-concurrency=2"),
    )
    .expect("tidepool starts");
    let data = data();
    let writer = store.writer();
    data.scrapes().for_each(|rows| _ = send(&writer, &rows));
    let good = || figure(&store.server, "calls_total", "leaky", "outcome=\"ok\"");
    let runs = || (good() >= 3.0).then_some(());
    wait::until("some runs", TIMEOUT, runs).expect("it runs");
    let begun = Instant::now();
    let mut got = stored(&store.server);
    // A cursor that stays open holds its slot for two minutes (--read-timeout).
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    got.retain(|series| series.labels.value("__name__") != "job_said");
    assert_same("beside leaks", &data.series, &got);
    assert!(store.server.log().contains("left cursors open"), "{}", store.server.log());
}

/// A query bomb ends by the limits of queries: the job gets an error and continues.
#[test]
fn a_job_whose_queries_are_bombs_goes_on() {
    let (store, _plugins) = start(
        |plugins| plugins.with("bombs", "hostile-job", "config: bombs\nschedule: 1s"),
        |config| config.flag("--query-timeout=1s").flag("--query-memory-limit=64MiB"),
    )
    .expect("tidepool starts");
    let outcome = |outcome: &str| {
        figure(&store.server, "calls_total", "bombs", &format!("outcome=\"{outcome}\""))
    };
    let runs = || (outcome("ok") >= 2.0).then_some(());
    wait::until("two runs", TIMEOUT, runs)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    for fault in ["timeout", "error", "trap", "memory", "output"] {
        assert_eq!(outcome(fault), 0.0, "{fault}: {}", store.server.log());
    }
    let log = store.server.log();
    for reason in ["timed out", "a label's value would have more than"] {
        let line = log.lines().find(|it| it.contains("the query ended") && it.contains(reason));
        assert!(line.is_some(), "no query ended with {reason:?}:\n{log}");
    }
    let said = lines(&store.server);
    assert!(said.iter().any(|line| line.contains("value=7 7 ")), "{said:?}");
}

/// A query that still runs at the job's timeout ends with the job, and its turn is free again.
#[test]
fn a_job_that_ends_within_a_query_gives_its_turn_back() {
    let (store, _plugins) = start(
        |plugins| {
            plugins.with("bombs", "hostile-job", "config: bombs\nschedule: 1s\nlimits: {time: 1s}")
        },
        |config| config.flag("--query-max-concurrency=1"),
    )
    .expect("tidepool starts");
    let ended = || {
        let calls = figure(&store.server, "calls_total", "bombs", "outcome=\"timeout\"");
        (calls >= 2.0).then_some(())
    };
    wait::until("two runs to pass their time", TIMEOUT, ended)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    let url = format!("{}/api/v1/query?query=1", store.server.url());
    let response = tidepool_tests::http::Client::default().get(&url).expect("an answer");
    assert_eq!(response.status, 200, "{}", response.text());
}

#[test]
fn long_texts_of_plugins_are_cut() {
    let (store, _plugins) = start(
        |plugins| {
            let settings = "config: long-error\non-fault: reject\nlimits: {time: 30s}";
            let plugins = plugins.with("long", "hostile-transform", settings);
            plugins.with("decode", "hostile-decoder", "limits: {time: 30s}")
        },
        |config| config,
    )
    .expect("tidepool starts");
    let response = post(&store.server, "/api/v1/import/prometheus", b"a 1\n");
    assert_eq!(response.status, 503);
    for (body, status) in [(&b"long"[..], 400), (b"long-reasons", 400)] {
        let response = post(&store.server, "/api/v1/push/decode", body);
        assert_eq!(response.status, status);
        let text = response.text();
        assert!(text.len() < 2000 && text.contains("one line and another"), "{}", text.len());
    }
    assert!(response.text().len() < 2000, "{} bytes", response.text().len());
    assert!(store.server.log().len() < 100_000, "{} bytes of log", store.server.log().len());
}

#[test]
fn a_body_on_which_a_decoder_always_fails_is_refused_in_the_end() {
    let (store, _plugins) = start(
        |plugins| plugins.with("decode", "hostile-decoder", "limits: {time: 100ms}"),
        |config| config,
    )
    .expect("tidepool starts");
    let push = |body: &[u8]| post(&store.server, "/api/v1/push/decode", body);
    // A sender retries as long as the answer tells it to.
    let sent_until_refused = |body: &'static [u8]| {
        let mut statuses = Vec::new();
        let refused = || {
            let response = push(body);
            let is_later = response.header("retry-after") == Some("5");
            assert_eq!(response.status == 503, is_later, "{}", response.text());
            statuses.push(response.status);
            (response.status != 503).then(|| response.text())
        };
        let text = wait::until("an end", TIMEOUT, refused).expect("it is refused");
        (statuses, text)
    };
    let (statuses, text) = sent_until_refused(b"trap");
    assert_eq!(statuses.last(), Some(&400), "{statuses:?}");
    assert!(statuses.len() >= 3 && text.contains("failed 3 times on this body"), "{text}");
    // Other bodies are accepted as soon as the decoder is tried again.
    let (statuses, _) = sent_until_refused(b"good");
    assert_eq!(statuses.last(), Some(&204), "{statuses:?}");
    // A body that takes too long may take less another time.
    for _ in 0..5 {
        let response = push(b"sleep");
        assert_eq!((response.status, response.header("retry-after")), (503, Some("5")));
    }
}

#[test]
fn a_batch_that_one_transform_grows_beyond_the_next_is_stored() {
    let (store, _plugins) = start(
        |plugins| {
            let plugins = plugins.with("grow", "hostile-transform", "order: 1\nconfig: grow");
            let settings = "order: 2\nlimits: {memory: 1280KiB, time: 30s}";
            plugins.with("small", "pass-all", settings)
        },
        |config| config,
    )
    .expect("tidepool starts");
    let response = post(&store.server, "/api/v1/import/prometheus", b"a 1\n");
    assert_eq!(response.status, 204, "{}", response.text());
    let stored = stored(&store.server);
    assert_eq!(stored.len(), 2001);
    assert_eq!(figure(&store.server, "calls_total", "grow", "outcome=\"ok\""), 1.0);
    assert!(figure(&store.server, "calls_total", "small", "outcome=\"skipped\"") >= 1.0);
}

#[test]
fn a_failing_transform_without_which_nothing_is_stored() {
    let settings = "config: trap 2\non-fault: reject";
    let (store, _plugins) =
        start(|plugins| plugins.with("needed", "hostile-transform", settings), |config| config)
            .expect("tidepool starts");
    let data = data();
    let mut statuses = Vec::new();
    for rows in data.scrapes().take(4) {
        let response = store.writer().send(Version::V2, &rows).expect("sent");
        if response.status == 503 {
            assert_eq!(response.header("retry-after"), Some("5"));
            assert!(response.text().contains("the plugin needed failed"), "{}", response.text());
        }
        statuses.push(response.status);
    }
    // A fresh instance behaves for two calls again.
    assert_eq!(statuses, [204, 204, 503, 204]);
}
