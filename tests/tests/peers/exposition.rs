//! Every text in the tests of Prometheus' parsers gets the same result: the same content, or a
//! refusal. The texts are extracted from the Go module, so that a new version brings its own.

#[path = "../../../host/exposition/tests/table/mod.rs"]
mod table;

use std::collections::BTreeSet;
use std::process::Command;
use table::Difference;
use tidepool_tests::peers::{built, go_module};

const MODULE: &str = "github.com/prometheus/prometheus";

const LATE_END: &str = "the missing end is found after the last line";
const EXEMPLARS: &str = "classic samples keep their exemplars beside a converted histogram";
const TIMES: &str = "a converted histogram has the time of its own samples, not of the next one";

/// Texts with another result in tidepool, by reason: the position of the text, or its beginning.
const DIFFERENT: [(&str, &[&str]); 9] = [
    ("openmetricsparse_test.go TestOpenMetricsParse 0", &[LATE_END, EXEMPLARS]),
    ("openmetricsparse_test.go TestOpenMetricsParseErrors 10", &[LATE_END]),
    ("openmetricsparse_test.go TestOpenMetricsParseErrors 14", &[LATE_END]),
    ("openmetricsparse_test.go TestOMNullByteHandling 22", &[LATE_END]),
    ("nhcbparse_test.go TestNHCBParserOnOMParser 0", &[LATE_END, EXEMPLARS]),
    ("nhcbparse_test.go TestNHCBParserOMParser_MultipleHistograms 0", &[EXEMPLARS]),
    ("nhcbparse_test.go createTest", &[LATE_END, TIMES]),
    ("alltypes.5mfs.om.txt", &[EXEMPLARS]),
    ("ct.bench.om.txt", &[TIMES]),
];

#[test]
fn the_texts_of_upstreams_tests_are_read_as_upstream_reads_them() {
    let module = go_module(MODULE).unwrap_or_else(|error| panic!("{error}"));
    let program = built("go-exposition").unwrap_or_else(|error| panic!("{error}"));
    let output = Command::new(program).arg(module.join("model/textparse")).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cases.jsonl");
    std::fs::write(&path, output.stdout).expect("a file");

    let (differences, cases) = table::differences(&path).unwrap_or_else(|error| panic!("{error}"));
    assert!(cases > 5_000, "{cases} cases");
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for Difference { name, text } in &differences {
        match DIFFERENT.iter().find(|(place, _)| name.starts_with(place)) {
            Some((place, _)) => drop(seen.insert(place)),
            None => wrong.push(format!("{name} {text}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let gone: Vec<_> = DIFFERENT.iter().filter(|(place, _)| !seen.contains(place)).collect();
    assert!(gone.is_empty(), "no difference any more: {gone:?}");
}
