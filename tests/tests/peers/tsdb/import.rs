//! `import` makes blocks of text, whole or not at all, and exported samples are restored.

use tidepool_tests::arguments;
use tidepool_tests::busy::busy_store;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::cli::{self, tsdb};
use tidepool_tests::peers::Release;
use tidepool_tests::promtool::{self, clear_nan_bits, parse_dump};
use tidepool_tests::series::{STALE_MARKER_BITS, Series};

/// Removes stale markers, which OpenMetrics cannot express.
fn without_stale_markers(series: &[Series]) -> Vec<Series> {
    let mut series = series.to_vec();
    for one in &mut series {
        one.samples.retain(|sample| sample.value.to_bits() != STALE_MARKER_BITS);
    }
    series
}

#[test]
fn what_is_exported_comes_back_through_either_import() {
    let (store, data) = busy_store(97);
    let source = store.config.data_dir().to_owned();
    store.server.terminate().expect("tidepool ends");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text = directory.path().join("text");
    tsdb(arguments!["export", &source, "-o", &text]);
    let expected = clear_nan_bits(&without_stale_markers(&data.series));

    let ours = directory.path().join("ours");
    let list = tsdb(arguments!["import", &text, &ours]);
    assert_eq!(list, tsdb(arguments!["list", &ours]));
    let dump = tsdb(arguments!["dump", &ours]);
    assert_same("imported", &expected, &parse_dump(&dump).expect("a dump"));
    for release in Release::ALL {
        assert!(dump == promtool::tsdb(release, "dump", &ours, &[]), "{release:?}");
    }
    assert!(tsdb(arguments!["export", &ours]) == std::fs::read_to_string(&text).expect("text"));
    tsdb(arguments!["verify", &ours]);

    // With little memory the import takes more passes, with the same result; also through a pipe.
    let piped = directory.path().join("piped");
    let content = std::fs::read_to_string(&text).expect("text");
    let output = cli::run(arguments!["import", "--memory-limit=64KB", "-q", "-", &piped], &content);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), ""), "{}", output.stderr);
    assert!(tsdb(arguments!["dump", &piped]) == dump);
    tsdb(arguments!["verify", &piped]);
    tsdb(arguments!["compact", &piped]);
    assert!(tsdb(arguments!["dump", &piped]) == dump, "after compaction");

    for release in Release::ALL {
        let theirs = directory.path().join(format!("{release:?}"));
        let arguments = ["tsdb".as_ref(), "create-blocks-from".as_ref(), "openmetrics".as_ref()];
        let arguments = arguments.into_iter().chain([text.as_os_str(), theirs.as_os_str()]);
        let made = promtool::run(release, arguments, std::process::Stdio::null());
        assert!(made.expect("promtool runs").success);
        assert!(tsdb(arguments!["dump", &theirs]) == dump, "{release:?}");
    }
}
