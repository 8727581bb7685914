//! `verify` accepts sound data, and names each flipped byte.

use rustix::process::Signal;
use std::path::{Path, PathBuf};
use tidepool_tests::busy::{WAIT, busy_store, copy};
use tidepool_tests::cli::{self, tsdb};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{recent_data, send_all};
use tidepool_tests::tidepool::Store;
use tidepool_tests::{arguments, data_dir};

#[test]
fn our_own_data_is_sound_while_and_after_it_is_written() {
    let (mut store, data) = busy_store(93);
    let data_dir = store.config.data_dir().to_owned();
    tsdb(arguments!["verify", &data_dir]);
    store.server.signal(Signal::KILL).expect("it can be killed");
    store.server.wait_end(WAIT).expect("tidepool ends");
    let report = tsdb(arguments!["verify", &data_dir]);
    assert!(!report.contains("DAMAGED") && report.contains("logs ok"), "{report}");
    let blocks = data_dir::blocks(&data_dir).expect("blocks");
    assert_eq!(report.lines().filter(|line| line.starts_with("block ")).count(), blocks.len());
    drop(data);
}

/// The report of each flip must name the damaged file.
#[test]
fn flipped_bytes_are_found_in_their_files() {
    let (store, _) = busy_store(95);
    let data_dir = store.config.data_dir().to_owned();
    store.server.terminate().expect("tidepool ends");
    let damaged = copy(&data_dir);
    let block = data_dir::blocks(damaged.path()).expect("blocks").swap_remove(1);
    // All other blocks would only cost time.
    for other in data_dir::blocks(damaged.path()).expect("blocks") {
        if other.ulid != block.ulid {
            std::fs::remove_dir_all(&other.path).expect("removed");
        }
    }
    std::fs::remove_dir_all(damaged.path().join("wal")).expect("removed");
    for name in ["index", "chunks/000001", "tombstones"] {
        let place = format!("{}/{name}: byte ", block.ulid);
        flip_and_verify(damaged.path(), &block.path.join(name), &place, 40);
    }
}

#[test]
fn flipped_bytes_of_a_log_are_found() {
    let store = Store::start().expect("tidepool starts");
    send_all(&store, Version::V2, &recent_data(96, 40, 30));
    let data_dir = store.config.data_dir().to_owned();
    store.server.kill().expect("tidepool ends");
    let damaged = copy(&data_dir);
    let segments = data_dir::wal_segments(damaged.path()).expect("segments");
    let name = format!("{:08}", segments[0]);
    let segment = damaged.path().join("wal").join(&name);
    flip_and_verify(damaged.path(), &segment, &format!("wal/{name}: byte "), 150);
    // A truncation is found as well.
    let whole = std::fs::read(&segment).expect("a segment");
    std::fs::write(&segment, &whole[..whole.len() - 1]).expect("written");
    let output = cli::run(arguments!["verify", damaged.path()], "");
    assert!(output.stdout.contains("the next start cuts them off"), "{}", output.stdout);
    assert_eq!(output.code, Some(1));
}

/// Flips bits at places all over a file, and at each of its first bytes.
fn flip_and_verify(data_dir: &Path, file: &PathBuf, place: &str, flips: usize) {
    let whole = std::fs::read(file).expect("a file");
    let step = (whole.len() / flips).max(1);
    for at in (0..whole.len()).step_by(step).chain(0..16.min(whole.len())) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(file, bytes).expect("written");
        let output = cli::run(arguments!["verify", data_dir], "");
        assert_eq!(output.code, Some(1), "{place}{at}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains(place), "{place}{at}: {}", output.stdout);
    }
    std::fs::write(file, whole).expect("written");
    tsdb(arguments!["verify", data_dir]);
}
