//! Flags: those of Prometheus are known.

use std::process::Command;
use tidepool_tests::peers::Release;
use tidepool_tests::tidepool::binary;

/// Each flag that Prometheus' own help lists is taken, or refused with what there is instead.
#[test]
fn every_flag_of_prometheus_is_known() {
    let help = Command::new(Release::V3.prometheus().expect("it is built")).arg("--help").output();
    let help = help.expect("Prometheus runs");
    let help = String::from_utf8_lossy(&[help.stdout, help.stderr].concat()).into_owned();
    let flags = help.lines().filter_map(|line| line.strip_prefix("      --"));
    let mut known = 0;
    for flag in flags {
        let word = flag.split(|c: char| c == '=' || c.is_whitespace()).next().unwrap_or_default();
        let (name, value) = match word.strip_prefix("[no-]") {
            Some(name) => (name, ""),
            None => (word, "=1"),
        };
        if name == "version" {
            continue;
        }
        // What follows is always wrong, so that nothing is started.
        let output = Command::new(binary())
            .args([&format!("--{name}{value}"), "--listen=nowhere"])
            .output()
            .expect("tidepool runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(!said.contains("unexpected argument"), "{name}: {said}");
        known += 1;
    }
    assert!(known > 30, "{known} flags in {help}");
}
