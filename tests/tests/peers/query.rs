//! `tidepool query` prints the same as `promtool query`, byte for byte, against the same server;
//! and again with `--dir`, once that server has ended.

use serde_json::Value;
use std::ffi::OsStr;
use std::process::Stdio;
use tidepool_tests::cli::run_command;
use tidepool_tests::clock::now_ms;
use tidepool_tests::histogram::stored::{data_until_now, rows, send};
use tidepool_tests::peers::Release;
use tidepool_tests::promtool;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

const SCRAPES: i64 = 40;
const INTERVAL_MS: i64 = 15_000;

/// Expressions that are evaluated at one time.
const EXPRESSIONS: [&str; 31] = [
    "1 + 1",
    "0 - 1 / 0",
    "0 / 0",
    "scalar(plain)",
    "time()",
    "vector(1e300)",
    "vector(1e-9)",
    "plain",
    "special",
    "nothing",
    "plain[45s]",
    "plain[2m:30s]",
    "nothing[5m]",
    "rate(plain[5m])",
    "sum by (odd) (plain)",
    "sort_desc(plain)",
    "count_values(\"value\", plain)",
    "{__name__=~\".+\", __name__!~\"plain|special|latency_bucket\"}",
    "{__name__!~\"plain|special|latency_bucket\", __name__=~\".+\"}[1m]",
    "sum(rate({__name__!~\"plain|special|latency_bucket\", __name__=~\".+\"}[2m]))",
    "histogram_quantile(0.9, rate(latency_bucket[2m]))",
    "quantile(2, plain)",
    "label_replace(plain, \"new\", \"<&>\\\"\\u2028\", \"\", \"\")",
    // Errors.
    "plain{",
    "no_such_function(plain)",
    "plain + on (same) special",
    "rate(plain)",
    "",
    "\"text",
    "sum(plain) by",
    "label_replace(plain, \"new\", \"$1\", \"odd\", \"(\")",
];

/// The other commands: arguments before `--server=URL` or `URL`, and arguments after it.
fn others(at: i64) -> Vec<(Vec<String>, Vec<String>)> {
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let (start, end) = (format!("--start={}", at - 600), format!("--end={at}.5"));
    let time = format!("--time={at}");
    let ranged = |more: &[&str], expression: &str| {
        let before = [&["range", start.as_str(), end.as_str()], more].concat();
        (own(&before), own(&[expression]))
    };
    vec![
        ranged(&[], "plain"),
        ranged(&["--step=1m"], "sum by (odd) (plain)"),
        ranged(&["--step=90s"], "{__name__=~\".+\", __name__!~\"plain|special\"}"),
        ranged(&["--step=1.5m"], "1"),
        ranged(&["--step=1m"], "special"),
        ranged(&[], "nothing"),
        ranged(&["--step=1ms"], "plain"),
        ranged(&["--step=-1s"], "plain"),
        ranged(&[], "plain[5m]"),
        ranged(&[], "plain{"),
        (own(&["range", &end, &format!("--start={at}.5")]), own(&["plain"])),
        (own(&["range", "--end=never"]), own(&["plain"])),
        (own(&["range", &end, "--start=2023-11-14"]), own(&["plain"])),
        (own(&["instant", "--time=2030-01-01T00:00:00+01:00"]), own(&["plain"])),
        (own(&["instant", "--time=never"]), own(&["plain"])),
        (own(&["series", "--match=plain", "--match={odd=\"yes\"}"]), vec![]),
        (own(&["series", "--match={__name__=~\".+\"}", &start, &end]), vec![]),
        (own(&["series", "--match=plain", "--end=1000"]), vec![]),
        (own(&["series", "--match={}"]), vec![]),
        (own(&["series", "--match=plain{"]), vec![]),
        (own(&["series", "--match=plain", "--start=never"]), vec![]),
        (own(&["labels"]), own(&["odd"])),
        (own(&["labels", "--match=latency_bucket", &start, &end]), own(&["le"])),
        (own(&["labels"]), own(&["__name__"])),
        (own(&["labels"]), own(&["no_such_label"])),
        (own(&["labels", "--end=never"]), own(&["odd"])),
        (own(&["analyze", "--type=histogram", &time, "--match=latency_bucket"]), vec![]),
        (own(&["analyze", "--type=histogram", &time, "--duration=90s", "--match=plain"]), vec![]),
        (own(&["analyze", "--type=histogram", &time, "--match=latency_counter"]), vec![]),
        (own(&["analyze", "--type=histogram", &time, "--match=plain{"]), vec![]),
        (own(&["analyze", "--type=summary", "--match=plain"]), vec![]),
        (own(&["analyze", "--type=histogram", "--time=never", "--match=plain"]), vec![]),
    ]
}

fn store(at_ms: i64) -> Store {
    let store = Store::start().expect("tidepool starts");
    let begin_ms = at_ms - SCRAPES * INTERVAL_MS;
    let samples = |value: &dyn Fn(i64) -> f64| -> Vec<(i64, f64)> {
        (0..=SCRAPES).map(|scrape| (begin_ms + scrape * INTERVAL_MS, value(scrape))).collect()
    };
    let mut series = vec![
        Series::new(
            &[
                ("__name__", "plain"),
                ("odd", "yes"),
                ("text", "<a> & \"b\"\\\n\u{7f}\u{e9}\u{a0}\u{1f600}"),
            ],
            &samples(&|scrape| scrape as f64 * 1.5),
        ),
        Series::new(
            &[("__name__", "plain"), ("odd", "no")],
            &samples(&|scrape| 1e9 + scrape as f64),
        ),
        Series::new(&[("__name__", "plain"), ("odd", "no"), ("odd2", "1")], &samples(&|_| -0.25)),
    ];
    for (number, value) in
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, 1.7e308].into_iter().enumerate()
    {
        let number = number.to_string();
        let labels = [("__name__", "special"), ("number", number.as_str())];
        series.push(Series::new(&labels, &samples(&|_| value)));
    }
    for (le, share) in [("0.5", 1), ("2.5", 1), ("10", 3), ("+Inf", 4)] {
        let labels = [("__name__", "latency_bucket"), ("job", "a"), ("le", le)];
        series.push(Series::new(&labels, &samples(&|scrape| (scrape * share / 2) as f64)));
    }
    let all: Vec<_> = series.iter().map(Series::row).collect();
    let written = store.writer().send(Version::V2, &all).expect("an answer");
    assert_eq!(written.status, 204, "{}", written.text());
    send(&store.server, Version::V2, &rows(&data_until_now(191, 9, SCRAPES as usize, INTERVAL_MS)));
    store
}

/// Output and exit code of a command.
#[derive(Debug, PartialEq)]
struct Said {
    success: bool,
    stdout: String,
    stderr: String,
}

fn ours(arguments: &[String]) -> Said {
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    let output = run_command("query", &arguments, "");
    assert!(matches!(output.code, Some(0 | 1)), "{arguments:?}: {output:?}");
    Said { success: output.code == Some(0), stdout: output.stdout, stderr: output.stderr }
}

fn upstreams(arguments: &[String]) -> Said {
    let arguments: Vec<&str> =
        std::iter::once("query").chain(arguments.iter().map(String::as_str)).collect();
    let output = promtool::run(Release::V3, arguments, Stdio::null()).expect("promtool runs");
    Said { success: output.success, stdout: output.stdout, stderr: output.stderr }
}

/// Sorts the series of JSON: a server returns those of a range in any order.
fn in_order(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(mut series)) if series.iter().all(|one| one.get("values").is_some()) => {
            series.sort_by_key(|one| one["metric"].to_string());
            Value::Array(series).to_string()
        }
        _ => text.to_owned(),
    }
}

#[test]
fn answers_are_promtools() {
    let at = now_ms() / 1000;
    let store = store(at * 1000);
    let url = store.server.url();
    let mut commands: Vec<(Vec<String>, Vec<String>)> = EXPRESSIONS
        .iter()
        .map(|expression| {
            (vec!["instant".into(), format!("--time={at}")], vec![(*expression).into()])
        })
        .collect();
    commands.extend(others(at));
    let mut answers = Vec::new();
    for (before, behind) in &commands {
        for format in ["promql", "json"] {
            let to_server = match before[0].as_str() {
                "analyze" => format!("--server={url}"),
                _ => url.clone(),
            };
            let format = vec![format!("--format={format}")];
            let arguments = [&format, before.as_slice(), &[to_server], behind].concat();
            let expected = upstreams(&arguments);
            assert_eq!(ours(&arguments), expected, "{arguments:?}");
            answers.push((format, before, behind, expected));
        }
    }
    let count = |is_wanted: &dyn Fn(&Said) -> bool| {
        answers.iter().filter(|(.., said)| is_wanted(said)).count()
    };
    // The comparison must cover enough errors and long outputs.
    assert!(count(&|said| !said.success) >= 30 && count(&|said| said.stdout.len() > 100) >= 40);
    assert!(count(&|said| said.stdout.contains("Count: ")) >= 3);
    assert!(count(&|said| said.stdout.contains("Native histogram series")) >= 2);
    assert!(count(&|said| said.stdout.contains("Classic histogram series")) >= 2);

    // promtool cannot read a string result; tidepool prints it.
    let arguments = |format: &str| {
        let format = format!("--format={format}");
        [format.as_str(), "instant", "--time=5", &url, "\"a <text>\""].map(str::to_owned)
    };
    let upstream = upstreams(&arguments("promql"));
    assert!(upstream.stderr.contains("unexpected value type \"string\""), "{upstream:?}");
    assert_eq!(ours(&arguments("promql")).stdout, "a <text>\n");
    assert_eq!(ours(&arguments("json")).stdout, "[5,\"a \\u003ctext\\u003e\"]\n");

    let data_dir = store.config.data_dir().display().to_string();
    store.server.terminate().expect("tidepool ends");
    for (format, before, behind, expected) in answers {
        let dir = [format!("--dir={data_dir}")];
        let arguments = [&format, before.as_slice(), &dir, behind].concat();
        let mut said = ours(&arguments);
        said.stdout = in_order(&said.stdout);
        let expected = Said { stdout: in_order(&expected.stdout), ..expected };
        assert_eq!(said, expected, "{arguments:?}");
    }
}
