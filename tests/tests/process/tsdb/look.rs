//! `list`, `dump`, `export`, `analyze`: mistakes and damage are named.

use std::collections::HashSet;
use tidepool_tests::busy::busy_store;
use tidepool_tests::cli::{self, tsdb};
use tidepool_tests::{arguments, data_dir};

#[test]
fn mistakes_are_named() {
    let output = cli::run(arguments!["list", "no-such-directory"], "");
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("no-such-directory does not exist"), "{}", output.stderr);
    for wrong in [
        arguments!["dump", "--match", "up{"].to_vec(),
        arguments!["dump", "--no-such-flag"].to_vec(),
        arguments!["no-such-command"].to_vec(),
    ] {
        assert_eq!(cli::run(&wrong, "").code, Some(2), "{wrong:?}");
    }
    let output = cli::run(arguments!["dump", "--match", "{a=~\"(\"}", "."], "");
    assert_eq!(output.code, Some(1), "{output:?}");
    let empty = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(tsdb(arguments!["dump", empty.path()]), "");
    let output = cli::run(arguments!["analyze", empty.path()], "");
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("holds no block"), "{}", output.stderr);
}

/// Damage loses the damaged chunk; later chunks are printed, and the damage is named.
#[test]
fn a_damaged_chunk_costs_only_itself() {
    let (store, _) = busy_store(94);
    let data_dir = store.config.data_dir().to_owned();
    store.server.terminate().expect("tidepool ends");
    let whole = tsdb(arguments!["dump", &data_dir]);
    let block = data_dir::blocks(&data_dir).expect("blocks").swap_remove(0);
    let file = block.path.join("chunks/000001");
    let mut bytes = std::fs::read(&file).expect("a file");
    // In the middle of the file, and its last byte.
    let (middle, last) = (bytes.len() / 2, bytes.len() - 1);
    for at in [middle, last] {
        bytes[at] ^= 1;
    }
    std::fs::write(&file, bytes).expect("written");
    for command in ["dump", "export"] {
        let output = cli::run(arguments![command, &data_dir], "");
        assert_eq!(output.code, Some(1), "{command}");
        let place = format!("left out: {}/chunks/000001 is damaged at byte ", block.ulid);
        assert_eq!(output.stderr.matches(&place).count(), 2, "{command}: {}", output.stderr);
        if command == "export" {
            assert!(output.stdout.ends_with("# EOF\n"));
            continue;
        }
        let left: HashSet<&str> = output.stdout.lines().collect();
        let lost = whole.lines().filter(|line| !left.contains(line)).count();
        assert_eq!(left.len() + lost, whole.lines().count());
        // A chunk has 120 samples or a few more.
        assert!((2..=280).contains(&lost), "{lost} samples are missing");
    }
}
