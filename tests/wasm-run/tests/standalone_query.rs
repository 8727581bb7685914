//! The command `query` of the standalone component with PromQL answers as Prometheus does. Runs
//! only some cases of `tests/contract/queries`, since each takes a process that compiles the
//! component.

use serde_json::{Value as Json, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tidepool_tests::built;

const COMPONENT: &str = "component-small-promql/tidepool-standalone-promql.wasm";

const CASES: &str = include_str!("../../contract/queries/cases.json");

fn run(directory: &Path, words: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wasm-run"))
        .arg(built::standalone(COMPONENT))
        .args(words)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the runner starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

/// Returns the samples as lines of a dump.
fn lines(series: &Json) -> String {
    let number = |name: &str| series[name].as_i64().expect("a time");
    let labels = series["labels"].as_object().expect("labels");
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let values = series["values"].as_array().expect("values").iter().enumerate();
    let line = |(step, value)| {
        let time_ms = number("startMs") + number("stepMs") * step as i64;
        format!("{{{}}} {value} {time_ms}\n", labels.join(", "))
    };
    values.map(line).collect()
}

/// Returns the fields of `data` in an answer of Prometheus' HTTP API.
fn data(case: &Json) -> Json {
    let point = |point: &Json| json!([point[0].as_f64().expect("a time") / 1000.0, point[1]]);
    let series = case["series"].as_array().expect("series");
    let result = match case["resultType"].as_str().expect("a type") {
        "string" => json!([case["startMs"].as_f64().expect("a time") / 1000.0, case["text"]]),
        "scalar" => point(&series[0]["points"][0]),
        "vector" => series
            .iter()
            .map(|one| json!({"metric": one["labels"], "value": point(&one["points"][0])}))
            .collect(),
        _ => series
            .iter()
            .map(|one| {
                let points = one["points"].as_array().expect("points").iter().map(point);
                json!({"metric": one["labels"], "values": points.collect::<Vec<_>>()})
            })
            .collect(),
    };
    json!({"resultType": case["resultType"], "result": result})
}

/// Normalizes these fields: whole numbers as floats, series by their labels.
fn plain(data: &Json) -> Json {
    match data {
        Json::Number(number) => json!(number.as_f64()),
        Json::Array(items) => {
            let mut items: Vec<Json> = items.iter().map(plain).collect();
            if items.iter().all(Json::is_object) {
                items.sort_by_key(|item| item["metric"].to_string());
            }
            Json::Array(items)
        }
        Json::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(k, v)| (k.clone(), plain(v))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Json::Object(fields.into_iter().collect())
        }
        other => other.clone(),
    }
}

#[test]
fn the_command_answers_as_prometheus() {
    let cases: Json = serde_json::from_str(CASES).expect("cases");
    let directory = tempfile::tempdir().expect("a directory");
    let input: String = cases["series"].as_array().expect("series").iter().map(lines).collect();
    let written = run(directory.path(), &["write"], &input);
    let samples = input.lines().count();
    assert_eq!(
        String::from_utf8_lossy(&written.stdout),
        format!("{samples} samples written, 0 refused\n")
    );

    let mut answered = 0;
    for case in cases["queries"].as_array().expect("queries") {
        let expression = case["query"].as_str().expect("an expression");
        if ![
            "sum by (job) (rate(http_requests_total[2m]))",
            "quantile(2, temperature_celsius)",
            "scalar(temperature_celsius{room=\"lab\"}) * 2",
            "\"a \\\"text\\\"\"",
            "sum(rate(http_requests_total[5m])",
        ]
        .contains(&expression)
        {
            continue;
        }
        answered += 1;
        let seconds = |name: &str| (case[name].as_f64().expect("a time") / 1000.0).to_string();
        let (start, end, step) = (seconds("startMs"), seconds("endMs"), seconds("stepMs"));
        let words = match step.as_str() {
            "0" => vec!["query", expression, &start],
            _ => vec!["query", expression, &start, &end, &step],
        };
        let output = run(directory.path(), &words, "");
        let said = String::from_utf8(output.stderr).expect("text");
        if let Some(message) = case["error"].as_str() {
            let message = message.trim_start_matches("invalid parameter \"query\": ");
            assert_eq!((said.trim_end(), output.status.success()), (message, false));
            continue;
        }
        let notes = [&case["warnings"], &case["infos"]].map(|all| all.as_array().expect("a list"));
        let notes: Vec<_> = notes.into_iter().flatten().filter_map(Json::as_str).collect();
        assert_eq!(said.lines().collect::<Vec<_>>(), notes, "{expression}");
        let found: Json = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(plain(&found), plain(&data(case)), "{expression}");
    }
    assert_eq!(answered, 5);

    for (words, expected) in [
        (&["query"][..], "query EXPRESSION"),
        (&["query", "1", "soon"], "`soon` is no number of seconds"),
        (&["query", "1", "1", "2"], "give one time, or start, end and step"),
    ] {
        let output = run(directory.path(), words, "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{words:?}: {said}");
    }
}
