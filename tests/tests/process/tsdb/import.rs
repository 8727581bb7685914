//! `import` makes blocks of text, whole or not at all.

use std::fs;
use tidepool_tests::busy::{assert_unchanged, files};
use tidepool_tests::cli::{self, tsdb};
use tidepool_tests::{arguments, data_dir};

#[test]
fn both_formats_in_any_order_and_the_last_line_counts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ours = directory.path().join("data");
    let open_metrics = concat!(
        "# TYPE a counter\n# HELP a what\\n it is\n# UNIT b_s s\n",
        "a_total{x=\"2\"} 3 7300.5 # {trace=\"1\"} 1 7300\n",
        "a_total{x=\"1\"} 1 1700000000.001\n",
        "a_total{x=\"1\"} 2 -0.5\n",
        "{\"a.b\",\"c d\"=\"é\"} NaN 1\n",
        "a_total{x=\"1\"} 5 1700000000.001\n",
        "# EOF\n",
    );
    let list = cli::run(arguments!["import", "-", &ours], open_metrics);
    assert_eq!((list.code, list.stdout.lines().count()), (Some(0), 5), "{list:?}");
    let expected = concat!(
        "{__name__=\"a.b\", \"c d\"=\"é\"} NaN 1000\n",
        "{__name__=\"a_total\", x=\"1\"} 2 -500\n",
        "{__name__=\"a_total\", x=\"1\"} 5 1700000000001\n",
        "{__name__=\"a_total\", x=\"2\"} 3 7300500\n",
    );
    assert_eq!(tsdb(arguments!["dump", &ours]), expected);

    // Imported again, with another value: the newer block takes precedence.
    let classic = "# a remark\n\na_total { x = \"2\" }";
    let refused = cli::run(arguments!["import", "--format=prometheus", "-", &ours], classic);
    assert_eq!(refused.code, Some(1));
    let classic = "# a remark\n\na_total{ x = \"2\" }\t9  7300500";
    let more = cli::run(arguments!["import", "--format=prometheus", "-q", "-", &ours], classic);
    assert_eq!(more.code, Some(0), "{}", more.stderr);
    let expected = expected.replace("} 3 7300500", "} 9 7300500");
    assert_eq!(tsdb(arguments!["dump", &ours]), expected);
    assert!(
        data_dir::blocks(&ours).expect("blocks").iter().all(|b| b.end_ms - b.min_ms <= 7_200_000)
    );
}

#[test]
fn a_bad_line_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ours = directory.path().join("data");
    fs::create_dir(&ours).expect("a directory");
    tsdb(arguments!["import", "/dev/null", "--format=prometheus", &ours]);
    let before = files(&ours);
    for (text, what) in [
        ("a 1 1\na x 2\n# EOF\n", "line 2: this is not a value at column 3: \"a x 2\""),
        ("a 1 1\nb 1\n# EOF\n", "line 2: the sample has no time"),
        ("a 1 1\nb{c=\"1\",c=\"2\"} 1 1\n# EOF\n", "line 2: a label name occurs twice"),
        ("a 1 1\n", "without `# EOF`"),
    ] {
        // Many lines before it, so that blocks exist already.
        let many: String = (0..50_000).map(|i| format!("a{{b=\"{}\"}} 1 {i}\n", i % 7)).collect();
        let text = format!("{many}{text}");
        let number = |what: &str| what.replace("line 2", "line 50002");
        let flags = arguments!["import", "--memory-limit=100KB", "-", &ours];
        let output = cli::run(flags, &text);
        assert_eq!(output.code, Some(1), "{what}");
        assert!(output.stderr.contains(&number(what)), "{what}: {}", output.stderr);
        let said = "nothing was imported: standard input: line ";
        assert!(what.contains("EOF") || output.stderr.contains(said), "{}", output.stderr);
        assert!(!output.stderr.contains(".tmp-for-creation"), "{}", output.stderr);
        assert_unchanged(&ours, &before, what);

        // A failed import removes its own blocks; earlier blocks stay.
        let new = directory.path().join("new");
        let output = cli::run(arguments!["import", "-", &new.join("data")], &text);
        assert_eq!(output.code, Some(1), "{what}");
        assert!(!new.exists(), "{what}");
        let empty = tempfile::tempdir().expect("a temporary directory");
        let output = cli::run(arguments!["import", "-", &empty.path().join("data")], &text);
        assert_eq!(output.code, Some(1), "{what}");
        assert!(files(empty.path()).is_empty() && empty.path().exists(), "{what}");
    }
    let missing = directory.path().join("missing");
    for wrong in [missing.as_path(), directory.path()] {
        let data_dir = directory.path().join("new");
        let output = cli::run(arguments!["import", wrong, &data_dir], "");
        assert_eq!(output.code, Some(1), "{wrong:?}");
        assert!(output.stderr.contains(&wrong.display().to_string()), "{}", output.stderr);
        assert!(!data_dir.exists(), "{wrong:?}");
    }
    let data_dir = directory.path().join("of-nothing/data");
    let output = cli::run(arguments!["import", "-", &data_dir], "# EOF\n");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(!data_dir.exists() && !directory.path().join("of-nothing").exists());
}

/// Milliseconds in place of seconds would make blocks of a far future, from which retention counts.
#[test]
fn times_of_the_future_are_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ours = directory.path().join("data");
    for time in ["1700000000000", "9223372036854775.807"] {
        let text = format!("a 1 1700000000\na 2 {time}\n# EOF\n");
        let output = cli::run(arguments!["import", "-", &ours], &text);
        assert_eq!(output.code, Some(1), "{time}: {}", output.stderr);
        assert!(output.stderr.contains("--max-future"), "{}", output.stderr);
        assert!(!ours.exists(), "{time}");
    }
    let text = "a 1 1700000000000\n# EOF\n";
    let allowed = cli::run(arguments!["import", "-q", "--max-future=100000y", "-", &ours], text);
    assert_eq!((allowed.code, allowed.stderr.as_str()), (Some(0), ""));
    let end = "a 1 9223372036854775.807\n# EOF\n";
    let flags = arguments!["import", "--max-future=100000000y", "-", &ours];
    assert_eq!(cli::run(flags, end).code, Some(1));
}

/// A pipe returns its text once, and the text may have to be read several times.
#[test]
fn a_pipe_with_a_name_is_read_as_a_file_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (pipe, ours) = (directory.path().join("pipe"), directory.path().join("data"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let text: String = (0..20_000).map(|i| format!("a{{b=\"{}\"}} {i} {i}\n", i % 977)).collect();
    let lines = text.lines().count();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, text)
    });
    let flags =
        arguments!["import", "--format=prometheus", "--memory-limit=64KB", "-q", &pipe, &ours];
    let output = cli::run(flags, "");
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    writer.join().expect("it does not panic").expect("the text is taken");
    assert_eq!(tsdb(arguments!["dump", &ours]).lines().count(), lines);
}
