//! `list`, `dump`, `export`, `analyze` print the same as promtool, and change nothing.

use rustix::process::Signal;
use tidepool_tests::busy::{WAIT, assert_unchanged, busy_store, busy_store_with, copy, files};
use tidepool_tests::checksum::assert_same;
use tidepool_tests::cli::tsdb;
use tidepool_tests::peers::Release;
use tidepool_tests::promtool::{self, clear_nan_bits, parse_dump};
use tidepool_tests::tidepool::Config;
use tidepool_tests::{arguments, data_dir};

#[test]
fn what_is_printed_is_what_promtool_prints() {
    let (mut store, data) = busy_store_with(91, Config::prometheus_records);
    let data_dir = store.config.data_dir().to_owned();
    let sent = clear_nan_bits(&data.series);

    // Runs beside the server, without taking its lock.
    let dump = tsdb(arguments!["dump", &data_dir]);
    assert_same("beside a server", &sent, &parse_dump(&dump).expect("a dump"));

    store.server.signal(Signal::KILL).expect("it can be killed");
    store.server.wait_end(WAIT).expect("tidepool ends");
    let before = files(&data_dir);
    // promtool 2.42 writes chunks of the head into the directory it reads, if the head has samples
    // on both sides of a full two hours.
    let theirs = copy(&data_dir);
    let dump = tsdb(arguments!["dump", &data_dir]);
    assert_same("without a server", &sent, &parse_dump(&dump).expect("a dump"));
    for release in Release::ALL {
        assert!(dump == promtool::tsdb(release, "dump", theirs.path(), &[]), "{release:?}");
        for human in [&[][..], &["-r"]] {
            let mut list = arguments!["list", &data_dir].to_vec();
            list.extend(human.iter().map(std::ffi::OsStr::new));
            let expected = promtool::tsdb(release, "list", theirs.path(), human);
            assert_eq!(tsdb(&list), expected, "{release:?}");
        }
    }
    let up = "{__name__=\"up\"}";
    for matcher in [up, "up", "{job=~\"n.*\"}"] {
        let ours = tsdb(arguments!["dump", &data_dir, "--match", matcher]);
        let matching = ["--match", matcher];
        assert!(ours == promtool::tsdb(Release::V3, "dump", theirs.path(), &matching), "{matcher}");
    }
    let (first_ms, last_ms) = data.time_range_ms().expect("samples");
    let (from, to) = (first_ms + 1_000_000, last_ms - 1_000_000);
    let (min, max) = (format!("--min-time={from}"), format!("--max-time={to}"));
    let some = tsdb(arguments!["dump", &data_dir, &min, &max]);
    let expected: Vec<_> = sent.iter().map(|series| series.between(from, to)).collect();
    assert_same("a range", &expected, &parse_dump(&some).expect("a dump"));

    let open_metrics = tsdb(arguments!["export", &data_dir]);
    assert!(open_metrics.ends_with("# EOF\n"));
    assert_eq!(open_metrics, tsdb(arguments!["dump", "--format=openmetrics", &data_dir]));
    let file = tempfile::NamedTempFile::new().expect("a file");
    assert_eq!(tsdb(arguments!["export", &data_dir, "-o", file.path()]), "");
    assert!(std::fs::read_to_string(file.path()).expect("text") == open_metrics);
    tsdb(arguments!["analyze", &data_dir]);
    tsdb(arguments!["verify", &data_dir]);
    assert_unchanged(&data_dir, &before, "commands that only look");
}

/// The selection and order of entries with equal numbers is random in promtool.
#[test]
fn analyses_agree_with_promtool_but_for_ties() {
    let (store, _) = busy_store(92);
    let data_dir = store.config.data_dir().to_owned();
    store.server.terminate().expect("tidepool ends");
    let blocks = data_dir::blocks(&data_dir).expect("blocks");
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for block in [&blocks[0], &blocks[blocks.len() / 2]] {
        for flags in [&["--limit=100000", "--extended"][..], &["--limit=100000", "--match=up"]] {
            let mut more = vec![block.ulid.as_str()];
            more.extend(flags);
            let expected = promtool::tsdb(Release::V3, "analyze", &data_dir, &more);
            let mut ours = arguments!["analyze", &data_dir].to_vec();
            ours.extend(more.iter().map(std::ffi::OsStr::new));
            // The matcher is shown as it was given, there only.
            let expected: String = expected
                .lines()
                .filter(|line| !line.starts_with("Matcher: "))
                .map(|line| format!("{line}\n"))
                .collect();
            assert_eq!(sorted(&tsdb(&ours)), sorted(&expected), "{more:?}");
        }
    }
}
