//! Metrics: texts that are valid, invalid in every way, and randomly changed. promtool's output on
//! each must match to the letter; only the order of metrics with equally many series may differ.

use std::ffi::OsStr;
use std::io::{Seek as _, Write as _};
use tidepool_tests::cli::run_command;
use tidepool_tests::peers::Release;
use tidepool_tests::promtool;
use tidepool_tests::series::Random;

const SEED: u64 = 41;

/// Number of randomly changed texts.
const CHANGED: usize = 400;

/// Flags with which the command is called.
const FLAGS: [&[&str]; 4] =
    [&[], &["--extended"], &["--extended", "--lint=none"], &["--lint=other"]];

/// Texts that random changes insert.
const PIECES: [&str; 24] = [
    "\n",
    " ",
    "\"",
    "\\",
    "}",
    "=",
    ",",
    "#",
    "_",
    ":",
    "a",
    "le",
    "1",
    ".5",
    "-",
    "\t",
    "e",
    "NaN",
    "\u{e9}",
    "_total",
    "# TYPE ",
    "# HELP ",
    "{a=\"b\"}",
    " 1\n",
];

const TEXTS: [&str; 74] = [
    "",
    "\n\n",
    "   ",
    "# HELP a_total help\n# TYPE a_total counter\na_total 1\na_total{x=\"1\"} 2 123\n",
    "# HELP h_seconds help \"x\" \\\\ \\n\n# TYPE h_seconds histogram\n\
     h_seconds_bucket{le=\"1\",a=\"b\"} 1\nh_seconds_bucket{le=\"+Inf\",a=\"b\"} 2\n\
     h_seconds_sum{a=\"b\"} 3.5\nh_seconds_count{a=\"b\"} 2\nh_seconds_bucket{le=\"1\"} 2.5\n",
    "# TYPE s summary\ns{quantile=\"0.5\"} 1\ns{quantile=\"0.9\",le=\"x\"} 2e3\ns_sum 5\ns_count 2\n",
    "# TYPE g_gauge gauge\ng_gauge{quantile=\"1\",le=\"2\",camelCase=\"x\"} NaN\n\
     g_gauge{quantile=\"1\",le=\"2\",camelCase=\"x\"} +Inf -5\ng_ms 4\n\
     requestDuration_milliseconds_s 1\nx:y_MB 2\n",
    "# TYPE gh gaugehistogram\ngh_bucket{le=\"1\"} 1\ngh_gcount 5\ngh_count 1\n",
    "  a   {  x = \"1\" , y=\"2\" ,  }  5   77\n#comment\n# \n#\n\t\nb{x=\"a\\\"b\\\\\\n\"} 1\n",
    "# HELP x\n# TYPE x\nx_total_count 1\n# HELP x \n",
    "# TYPE a_weeks_bits_gauge_histogram gauge_histogram\na_weeks_bits_gauge_histogram 1\n",
    "a{b=\"1\",c=\"2\"} 1\na{c=\"2\",b=\"1\"} 1\na{b=\"1\",c=\"2\"} 1\na{b=\"1\",c=\"2\"} 1\n",
    "{\"foo\"} 1\n{\"bar\",x=\"y\"} 2\n{\"b.c\",\"d.e\"=\"f\"} 3\n",
    "{x} 1\n",
    "{x,y=\"z\"} 1\n",
    "{y=\"z\",x} 1\n",
    "{y=\"z\",y=\"u\",x} 1\n",
    "{\"x\",y} 1\n",
    "{x 1\n",
    "{} 1\n",
    "{a=\"b\"} 1\n",
    "x{\"a\"=\"b\"} 1\n",
    "x{\"a.b\"=\"b\"} 1\n",
    "\"x\" 1\n",
    "\"x{\" 1\n",
    "x\"y 1\n",
    "\"x\ny\" 1\n",
    "# HELP \"x\" a\nx 1\n",
    "# TYPE x counter\n# TYPE x gauge\n",
    "x 1\n# TYPE x gauge\n",
    "# HELP x a\n# HELP x b\nx 1\n",
    "# TYPE x coun\\ter\nx 1\n",
    "# TYPE x Counter\nx 1\n",
    "# TYPE x info\n",
    "# TYPE x{ gauge\n",
    "# TYPE a gauge\r\na 1\n",
    "# HELP x a\\q\nx 1\n",
    "# HELP x a\\\nx 1\n",
    "#HELP x a\nx 1\n",
    "# TYPE x gauge\n#",
    "x{__name__=\"y\"} 1\n",
    "x{a=\"b\",a=\"c\"} 1\n",
    "x{a} 1\n",
    "x{a=b} 1\n",
    "x{a=\"b\n\"} 1\n",
    "x{a=\"b\" c=\"d\"} 1\n",
    "x{,} 1\n",
    "x{a=\"b\",,} 1\n",
    "x{a=\"b\\t\"} 1\n",
    "1x 1\n",
    "x\u{e9} 1\n",
    "x 1",
    "x\n",
    "x 1 2 3\n",
    "x 1 2 \n",
    "x 1 \n",
    "x 1 1.5\n",
    "x 1 -5\n",
    "x 0x10\n",
    "x 0x1p3\n",
    "x 1_000\n",
    "x 1e400\n",
    "x -nan\n",
    "x infinity\n",
    "x +inf\n",
    "x .5\n",
    "a 1\r\n",
    "# TYPE h histogram\nh_count -1\n",
    "# TYPE h histogram\nh_bucket{le=\"1\"} -1\n",
    "# TYPE h histogram\nh_sum -1\nh 5\n",
    "# TYPE h histogram\nh_bucket{le=\"x\"} 1\n",
    "# TYPE h histogram\nh_bucket{le=\"1\",le=\"2\"} 1\n",
    "# TYPE s summary\ns{quantile=\"x\"} 1\n",
    "# TYPE s summary\ns_bucket{quantile=\"1\"} 1\n",
];

/// Returns a text with some changes.
fn changed(random: &mut Random) -> String {
    let mut text = random.pick(&TEXTS).to_owned();
    for _ in 0..=random.below(3) {
        let places: Vec<usize> =
            text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let at = random.pick(&places);
        match random.below(4) {
            0 if at < text.len() => drop(text.remove(at)),
            1 => text += random.pick(&TEXTS),
            _ => text.insert_str(at, random.pick(&PIECES)),
        }
    }
    text
}

/// Returns whether a sample begins with a brace. If it also has no name, or labels before the
/// brace, upstream takes it for a part of the sample before, and tidepool does not.
fn has_brace_in_front(text: &str) -> bool {
    text.lines().any(|line| line.trim_start_matches([' ', '\t']).starts_with('{'))
}

/// Returns the lines of a table, sorted.
fn sorted(table: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = table.lines().collect();
    lines.sort_unstable();
    lines
}

#[track_caller]
fn assert_same(text: &str, flags: &[&str]) {
    let mut input = tempfile::tempfile().expect("a file");
    input.write_all(text.as_bytes()).and_then(|()| input.rewind()).expect("a file");
    let arguments = [&["metrics"], flags].concat();
    let all = [&["check"], arguments.as_slice()].concat();
    let theirs = promtool::run(Release::V3, all, input.into()).expect("promtool runs");
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    let ours = run_command("check", &arguments, text);
    let said = format!("{text:?} {flags:?}: {theirs:?}\n{ours:?}");
    assert_eq!((ours.code, &ours.stderr), (theirs.code, &theirs.stderr), "{said}");
    assert_eq!(sorted(&ours.stdout), sorted(&theirs.stdout), "{said}");
}

#[test]
fn texts_are_judged_as_promtool_judges_them() {
    for text in TEXTS {
        FLAGS.into_iter().for_each(|flags| assert_same(text, flags));
    }
    assert_same("a 1\n", &["--lint=none"]);
}

#[test]
fn texts_that_are_changed_at_random_are_judged_as_promtool_judges_them() {
    let mut random = Random::new(SEED, 1);
    let mut judged = 0;
    while judged < CHANGED {
        let text = changed(&mut random);
        if !has_brace_in_front(&text) {
            assert_same(&text, random.pick(&FLAGS));
            judged += 1;
        }
    }
}
