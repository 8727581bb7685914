//! Input and actions of each world.

use super::{TIMEOUT, lines, post, push, stored};
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::now_ms;
use tidepool_tests::histogram::Value;
use tidepool_tests::histogram::stored::{data_until_now, rows, send};
use tidepool_tests::plugins::{figure, start};
use tidepool_tests::remote_write::{Version, Written};
use tidepool_tests::sender::read_all;
use tidepool_tests::series::{Dataset, Series, Shape, Texture};
use tidepool_tests::wait;

#[test]
fn transforms_run_in_order_over_every_door() {
    let rules = "order: 1\nconfig: |\n  - {source_labels: [__name__], regex: 'secret_.*', action: drop}\n  \
                 - {regex: pod_uid, action: labeldrop}";
    let second = "order: 2\nconfig: '[{target_label: zone, replacement: north}]'";
    let (store, _plugins) = start(
        |plugins| {
            let plugins = plugins.with("b-rules", "drop-and-relabel", rules);
            plugins.with("a-zone", "drop-and-relabel", second)
        },
        |config| config,
    )
    .expect("tidepool starts");
    let now = now_ms();
    push(&store.server, &format!("a{{pod_uid=\"1\"}} 1 {now}\nsecret_b 2 {now}\n"));
    let samples = [(now, 3.0)];
    let kept = Series::new(&[("__name__", "c"), ("pod_uid", "2")], &samples);
    let dropped = Series::new(&[("__name__", "secret_d")], &samples);
    for version in [Version::V1, Version::V2] {
        let response = store.writer().send(version, &[kept.row(), dropped.row()]).expect("sent");
        assert_eq!(response.status, 204, "{}", response.text());
        if version == Version::V2 {
            // Samples dropped on purpose are no failure of the sender.
            let written = Written::from_response(&response).expect("the headers");
            assert_eq!(written.samples, 2);
        }
    }
    let expected =
        [format!("__name__=a,zone=north 1 {now}"), format!("__name__=c,zone=north 3 {now}")];
    assert_eq!(lines(&store.server), expected);
    for plugin in ["b-rules", "a-zone"] {
        assert_eq!(figure(&store.server, "calls_total", plugin, "outcome=\"ok\""), 3.0);
    }
    assert_eq!(figure(&store.server, "rows_in_total", "b-rules", ""), 6.0);
    assert_eq!(figure(&store.server, "rows_out_total", "b-rules", ""), 3.0);
    assert_eq!(figure(&store.server, "rows_in_total", "a-zone", ""), 3.0);
}

#[test]
fn what_passes_is_stored_bit_by_bit() {
    let data = Dataset::generate(Shape {
        seed: 8,
        series: 300,
        scrapes: 20,
        start_ms: now_ms() - 400_000,
        interval_ms: 15_000,
        texture: Texture::Rough,
    });
    for version in [Version::V1, Version::V2] {
        let (store, _plugins) =
            start(|plugins| plugins.with("pass", "pass-all", "on-fault: reject"), |config| config)
                .expect("tidepool starts");
        for rows in data.requests(1000) {
            let response = store.writer().send(version, &rows).expect("sent");
            assert_eq!(response.status, 204, "{}", response.text());
        }
        assert_same("what passed", &data.series, &stored(&store.server));
        let calls = figure(&store.server, "calls_total", "pass", "outcome=\"ok\"");
        assert_eq!(calls, data.requests(1000).len() as f64);
    }
}

#[test]
fn a_transform_may_change_values_and_add_series() {
    let (store, _plugins) = start(
        |plugins| {
            let plugins = plugins.with("double", "hostile-transform", "config: double");
            plugins.with("see", "hostile-transform", "order: 1\nconfig: read-files")
        },
        |config| config,
    )
    .expect("tidepool starts");
    let now = now_ms();
    push(&store.server, &format!("a 1.5 {now}\nb -2 {now}\n"));
    // The second plugin found no files, no network and no environment.
    let expected = [
        format!("__name__=a 3 {now}"),
        format!("__name__=b -4 {now}"),
        format!("__name__=nothing_seen 1 {now}"),
    ];
    assert_eq!(lines(&store.server), expected, "{}", store.server.log());
}

#[test]
fn observers_see_what_was_stored_and_hold_nobody_up() {
    let (store, _plugins) = start(
        |plugins| {
            let all_wait = "world: observer\nlimits: {queue: 20, time: 60s}";
            let plugins = plugins.with("watch", "hostile-observer", all_wait);
            plugins.with(
                "slow",
                "hostile-observer",
                "config: '60000'\nlimits: {queue: 2, time: 5m}",
            )
        },
        |config| config,
    )
    .expect("tidepool starts");
    let now = now_ms();
    for number in 0..20 {
        push(&store.server, &format!("seen_{number} 1 {now}\n"));
    }
    let calls = || figure(&store.server, "calls_total", "watch", "outcome=\"ok\"");
    let has_said = || store.server.log().contains("saw 1 samples, first of seen_19");
    let seen = || (calls() == 20.0 && has_said()).then_some(());
    wait::until("the observer to see all", TIMEOUT, seen)
        .unwrap_or_else(|e| panic!("{e} after {} calls:\n{}", calls(), store.server.log()));
    let left_out = figure(&store.server, "batches_left_out_total", "slow", "");
    // The observer is busy with the first batch all the time, and two wait.
    assert!(left_out >= 17.0, "{left_out} of 20 were left out");
    assert_eq!(lines(&store.server).len(), 20);
}

#[test]
fn a_job_reads_and_appends_on_its_schedule() {
    let (store, _plugins) = start(
        |plugins| plugins.with("tell", "hostile-job", "world: job\nschedule: 1s\nconfig: webhook"),
        |config| config,
    )
    .expect("tidepool starts");
    // The webhook was not granted: the job got an error, which it reports by a sample.
    let told = || lines(&store.server).into_iter().find(|line| line.contains("job_said"));
    let told = wait::until("the job to run", TIMEOUT, told).expect("it runs");
    assert!(told.starts_with("__name__=job_said,value=403 403 "), "{told}");
    assert!(told.ends_with("000"), "a multiple of its schedule: {told}");
}

/// Native histograms recorded by a rule equal the sent ones, with everything that JSON leaves out.
#[test]
fn a_job_records_histograms_and_tells_what_was_remarked() {
    let (store, _plugins) = start(
        |plugins| {
            let rule = "schedule: 1s\nconfig: copy = {__name__=~\"latency_.+_fractions\"}";
            let plugins = plugins.with("rule", "recording-rule", rule);
            plugins.with("range", "hostile-job", "schedule: 1s\nconfig: range")
        },
        |config| config,
    )
    .expect("tidepool starts");
    // Nine series, one of each kind.
    let sent = data_until_now(5, 9, 4, 15_000);
    send(&store.server, Version::V2, &rows(&sent));
    let now = now_ms();
    push(&store.server, &format!("seen 1 {}\nseen 2 {now}\n", now - 15_000));
    let read = || {
        let read = store.reader().sampled_values(&read_all()).expect("what is stored");
        let copies = read.into_iter().filter(|it| it.labels.value("__name__") == "copy");
        copies.collect::<Vec<_>>()
    };
    // Counters, gauges and custom bounds; a resolution finer than stored becomes a counter.
    let copies = || Some(read()).filter(|copies| copies.len() == 4);
    let copies = wait::until("copies", TIMEOUT, copies)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    for copy in copies {
        let instance = copy.labels.value("instance");
        let original = sent.iter().find(|it| it.labels.value("instance") == instance);
        let (_, newest) = original.and_then(|it| it.values.last()).expect("an original");
        let Value::Histogram(newest) = newest.canonical() else { panic!("{newest:?}") };
        for point in &copy.points {
            assert_eq!(point.timestamp_ms % 1000, 0, "{point:?}");
            assert_eq!(point.value, Value::Histogram(newest.clone()), "{instance}");
        }
    }
    let told = ["a range of ", " histograms", "info: PromQL info: metric might not be a counter"];
    let is_told = || told.iter().all(|text| store.server.log().contains(text)).then_some(());
    wait::until("the range", TIMEOUT, is_told)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    let log = store.server.log();
    let counts = |line: &str| -> Option<(u32, u32)> {
        let (samples, rest) = line.split_once("a range of ")?.1.split_once(" samples and ")?;
        Some((samples.parse().ok()?, rest.split_once(' ')?.0.parse().ok()?))
    };
    let most = log.lines().filter_map(counts).max().unwrap_or_default();
    assert!(most.0 >= 1 && most.1 >= 1, "{most:?}\n{log}");
}

#[test]
fn a_push_without_a_decoder_is_not_found() {
    let (store, _plugins) =
        start(|plugins| plugins.with("influx", "influx-line", ""), |config| config)
            .expect("tidepool starts");
    let response = post(&store.server, "/api/v1/push/other", b"x");
    assert_eq!(response.status, 404);
    assert!(response.text().contains("decoders: influx"), "{}", response.text());
    let response = post(&store.server, "/api/v1/push/influx/query", b"x");
    assert_eq!(response.status, 404);
    let now = now_ms();
    let response =
        post(&store.server, "/api/v1/push/influx?precision=ms", format!("m v=1 {now}").as_bytes());
    assert_eq!(response.status, 204, "{}", response.text());
    assert_eq!(lines(&store.server), [format!("__name__=m_v 1 {now}")]);
}

#[test]
fn a_decoder_has_the_paths_that_the_configuration_gives_it() {
    let settings = "world: decoder\npaths: [/write]";
    let (store, plugins) = start(
        |plugins| {
            // The second plugin is not a decoder.
            let plugins = plugins.with("influx", "influx-line", settings);
            plugins.with("other", "pass-all", "paths: [/other]")
        },
        |config| config,
    )
    .expect("tidepool starts");
    let log = store.server.log();
    assert!(log.contains("made for the world transform, but only decoders have paths"), "{log}");
    let now = now_ms();
    let body = format!("m value=1 {now}\n");
    let pushed = |path: &str| post(&store.server, path, body.as_bytes()).status;
    assert_eq!(pushed("/write?precision=ms"), 204);
    assert_eq!(lines(&store.server), [format!("__name__=m 1 {now}")]);
    let got = tidepool_tests::http::Client::default().get(&format!("{}/write", store.server.url()));
    let got = got.expect("an answer");
    assert_eq!((got.status, got.header("allow")), (405, Some("POST")));
    // Senders to this path keep their data until the plugin is a decoder.
    assert_eq!(pushed("/other"), 503);
    assert_eq!(pushed("/write/more"), 404);
    drop(plugins);
}

/// Host metrics are scraped, and pass the plugins as every write does.
#[test]
fn scraped_samples_pass_transforms_and_observers() {
    let rules = "config: |\n  - {source_labels: [__name__], regex: 'node_load1|up', action: keep}\n  \
                 - {target_label: site, replacement: quay}";
    let (store, _plugins) = start(
        |plugins| {
            let plugins = plugins.with("relabel", "drop-and-relabel", rules);
            plugins.with("watch", "hostile-observer", "world: observer")
        },
        |config| {
            let config = config.with_builtin_metrics().flag("--no-own-metrics");
            config.flag("--host-metrics-interval=1s")
        },
    )
    .expect("tidepool starts");
    let rows = || -> Vec<String> {
        // The metric's name comes first.
        let all = lines(&store.server);
        all.iter().filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect()
    };
    let of = |name: &str, rows: &[String]| -> usize {
        let begin = format!("__name__={name},");
        rows.iter().filter(|row| row.starts_with(&begin)).count()
    };
    let enough = || {
        let rows = rows();
        (of("node_load1", &rows) >= 3 && of("up", &rows) >= 3).then_some(rows)
    };
    let rows = wait::until("scrapes", TIMEOUT, enough)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
    assert_eq!(of("node_load1", &rows) + of("up", &rows), rows.len(), "{rows:?}");
    assert!(rows.iter().all(|row| row.contains(",site=quay ")), "{rows:?}");
    let seen = || store.server.log().contains("saw ").then_some(());
    wait::until("the observer", TIMEOUT, seen).expect("it sees scrapes");
}
