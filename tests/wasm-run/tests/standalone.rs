//! The standalone component works in the same directories as the program, in both directions, and
//! promtool reads its blocks.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tidepool_tests::built;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::promtool::{self, clear_nan_bits, parse_dump};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{hours_of_data, read_all, recent_data, send_all, wait_for_blocks};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::{Config, Store};
use tidepool_tests::wait;
use tidepool_tests::{arguments, cli, data_dir};

const COMPONENT: &str = "component-small/tidepool-standalone.wasm";

const CONTRACT: &str = "component-small/tidepool-contract-standalone.wasm";

/// Starts the component's command in a directory.
#[track_caller]
fn start(directory: &Path, words: &[&str]) -> Child {
    start_component(COMPONENT, directory, words)
}

#[track_caller]
fn start_component(component: &str, directory: &Path, words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_wasm-run"))
        .arg(built::standalone(component))
        .args(words)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the runner starts")
}

/// Runs the component's command, which must succeed; returns its output and its warnings.
#[track_caller]
fn run(directory: &Path, words: &[&str], input: &str) -> (String, String) {
    let mut child = start(directory, words);
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    let feeder = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().expect("it ends");
    feeder.join().expect("the input is written");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{words:?}: {stderr}");
    (String::from_utf8(output.stdout).expect("text"), stderr)
}

fn host_dump(data: &Path) -> String {
    cli::tsdb(arguments!["dump", data])
}

/// The component reads blocks, a log in Zstandard, out-of-order samples, and a head snapshot.
#[test]
fn it_reads_what_the_program_wrote() {
    let configure = |c: Config| c.block_duration("10m").flag("--wal-compression=zstd");
    let mut store = Store::start_with(configure).expect("tidepool starts");
    let data = hours_of_data(7);
    send_all(&store, Version::V2, &data);
    wait_for_blocks(&store, &data, 600_000);
    store.server.signal(rustix::process::Signal::TERM).expect("it can be stopped");
    store.server.wait_end(Duration::from_secs(10)).expect("tidepool ends");
    let directory = store.config.data_dir();

    let (dump, warnings) = run(directory, &["dump"], "");
    assert_eq!(warnings, "");
    assert_eq!(dump, host_dump(directory));
    let dumped = parse_dump(&dump).expect("a dump");
    assert_same("the dump", &clear_nan_bits(&data.series), &dumped);

    // The component continues where the program stopped, and the program after it: the program's
    // head snapshot is outdated by then and must not be used.
    let more = recent_data(8, 20, 30);
    let renamed = |line: &str| line.replacen("{__name__=\"", "{__name__=\"more_", 1) + "\n";
    let lines: String = dump_of(&more).lines().map(renamed).collect();
    run(directory, &["write"], &lines);
    let expected = host_dump(directory);
    assert!(expected.contains("more_"));
    let server = store.config.start().expect("tidepool starts");
    let store = Store { server, ..store };
    let read = held(&store);
    let both = [clear_nan_bits(&data.series), parse_dump(&lines).expect("a dump")].concat();
    assert_same("what the program reads", &both, &read);
}

/// Returns all samples of the program that a dump can express.
fn held(store: &Store) -> Vec<Series> {
    let read = store.reader().streamed(&[read_all()]).expect("an answer");
    clear_nan_bits(&read[0])
}

/// Returns a data set as lines of a dump.
fn dump_of(data: &tidepool_tests::series::Dataset) -> String {
    let store = Store::start().expect("tidepool starts");
    send_all(&store, Version::V2, data);
    host_dump(store.config.data_dir())
}

#[test]
fn what_it_writes_the_program_and_promtool_read() {
    let data = recent_data(9, 200, 120);
    let lines = dump_of(&data);
    let directory = tempfile::tempdir().expect("a directory");
    let config = Config::new(directory.path());
    let written = config.data_dir();
    std::fs::create_dir(written).expect("a directory");
    let (said, _) = run(written, &["write"], &lines);
    assert_eq!(said, format!("{} samples written, 0 refused\n", data.sample_count()));
    // Read from the log, then from blocks.
    assert_eq!(host_dump(written), lines);
    let (said, _) = run(written, &["compact", "--all"], "");
    assert!(said.contains("level 1"), "{said}");
    assert!(!data_dir::blocks(written).expect("blocks").is_empty());
    assert_eq!(run(written, &["dump"], "").0, lines);
    for release in Release::ALL {
        let dump = promtool::tsdb(release, "dump", written, &[]);
        assert_eq!(parse_dump(&dump).expect("a dump"), parse_dump(&lines).expect("a dump"));
    }
    let store = Store { server: config.start().expect("tidepool starts"), config, directory };
    assert_same("what the program reads", &clear_nan_bits(&data.series), &held(&store));
    store.restart(Server::kill).expect("tidepool starts again");
}

/// A process that is killed leaves whole batches, and a torn last record costs that record only.
#[test]
fn a_kill_and_a_torn_tail_cost_no_whole_batch() {
    let lines = dump_of(&recent_data(10, 300, 100));
    let all: Vec<&str> = lines.lines().collect();
    // The component appends ten thousand rows at a time.
    assert!(all.len() > 21_000, "{}", all.len());
    let directory = tempfile::tempdir().expect("a directory");
    let mut child = start(directory.path(), &["write"]);
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all((all[..21_000].join("\n") + "\n").as_bytes()).expect("it reads");
    let segment = directory.path().join("wal/00000000");
    let mut size = 0;
    wait::until("two batches in the log", Duration::from_secs(60), || {
        size = std::fs::metadata(&segment).map_or(0, |meta| meta.len());
        // Two batches of rough values take more than this.
        (size > 80_000).then_some(())
    })
    .expect("it writes");
    child.kill().expect("a kill");
    child.wait().expect("it ends");
    let (dump, _) = run(directory.path(), &["dump"], "");
    let kept = dump.lines().count();
    assert!(kept >= 10_000 && kept % 10_000 == 0, "{kept} samples, of a log of {size} bytes");
    assert_eq!(dump.lines().collect::<Vec<_>>(), all[..kept]);

    let bytes = std::fs::read(&segment).expect("the segment");
    std::fs::write(&segment, &bytes[..bytes.len() - 100]).expect("a torn tail");
    let (torn, warnings) = run(directory.path(), &["dump"], "");
    assert!(warnings.contains("removed the unfinished last write"), "{warnings}");
    // At most one batch is lost; a dump is sorted by series, so the remaining lines are a part of
    // it.
    assert!(torn.lines().count() >= kept - 10_000);
    let dump: HashSet<&str> = dump.lines().collect();
    assert!(torn.lines().all(|line| dump.contains(line)));
    // The log is repaired: the next start warns of nothing, and the program reads the same.
    assert_eq!(run(directory.path(), &["dump"], ""), (torn.clone(), String::new()));
    assert_eq!(host_dump(directory.path()), torn);
}

#[test]
fn mistakes_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    for (words, input, expected) in [
        (&["dump", "job"][..], "", "`job` is no matcher"),
        (&["dump", "job=~("], "", "job"),
        (&["fly"], "", "usage: write"),
        (&["write"], "{a=\"b\"} x 1\n", "line 1: `x` is no number"),
    ] {
        let mut child = start(directory.path(), words);
        drop(child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{words:?}: {said}");
    }
}

#[test]
fn its_storage_keeps_the_contract() {
    let directory = tempfile::tempdir().expect("a directory");
    for life in ["write", "read-back"] {
        let child = start_component(CONTRACT, directory.path(), &[life]);
        let output = child.wait_with_output().expect("it ends");
        let broken = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{life}: {broken}");
        assert_eq!(broken, "", "{life}");
    }
}
