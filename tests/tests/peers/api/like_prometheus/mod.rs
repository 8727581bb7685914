//! The same requests, valid and invalid ones, to Prometheus and to tidepool with the same data.
//!
//! Status, envelope and data must be the same, except for the texts of errors and these intended
//! differences:
//!
//! - `limit` truncates values and series in their order, with a warning; Prometheus truncates them
//!   in any order, and series without a warning.
//! - Query stats have other times, and count a sample read from the store once.
//! - `status/walreplay` also has a `state`, as in upstream's documentation, and `status/tsdb` a
//!   list of label names with the most series.
//! - `status/{buildinfo,runtimeinfo,config,flags}` describe tidepool, under Prometheus' keys.
//! - Metadata is that of senders; Prometheus has only that of its own targets.
//! - HEAD is accepted where GET is, and a page of another origin may not use the admin API.
//! - A name with a slash can be requested as `a%2Fb`, which Prometheus does not find. Paths with a
//!   slash too many are not found; Prometheus redirects clients to the right ones.

mod federation;
mod queries;

use federation::assert_federation_alike;
use queries::assert_queries_alike;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, Response, exchange, request_bytes};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus::{self, percent_encode};
use tidepool_tests::proto::prometheus::{Exemplar, Label};
use tidepool_tests::remote_write::{Version, Writer, message_v1};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const TIMEOUT: Duration = Duration::from_secs(30);

/// A request that both servers get.
#[derive(Clone, Debug)]
struct Question {
    method: &'static str,
    /// Path below `/api/v1/`, with parameters.
    path: String,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
}

fn get(path: &str) -> Question {
    Question { method: "GET", path: path.to_owned(), headers: vec![], body: String::new() }
}

fn post(path: &str, body: &str) -> Question {
    Question { method: "POST", headers: vec![FORM], body: body.to_owned(), ..get(path) }
}

impl Question {
    fn ask(&self, server: &Server) -> Response {
        let url = format!("{}/api/v1/{}", server.url(), self.path);
        let answer = match self.method {
            "GET" if self.headers.is_empty() => Client::default().get(&url),
            "POST" => Client::default().post(&url, &self.headers, self.body.as_bytes()),
            method => {
                let path = format!("/api/v1/{}", self.path);
                let mut headers = self.headers.clone();
                headers.push(("Connection", "close"));
                let body = self.body.as_bytes();
                let bytes = request_bytes(method, &path, &headers, body.len(), body);
                exchange(server.address(), bytes, TIMEOUT)
            }
        };
        answer.unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }
}

/// Makes series, with any characters in names and line breaks in values if the release has them.
fn series(now_ms: i64, with_any_characters: bool) -> Vec<Series> {
    let mut all: Vec<Vec<(&str, &str)>> = vec![
        vec![("__name__", "up"), ("instance", "a:1"), ("job", "node")],
        vec![("__name__", "up"), ("instance", "b:1"), ("job", "node")],
        vec![("__name__", "up"), ("instance", "b:1"), ("job", "\"quoted\"\\ <html> \u{e9}")],
        vec![("__name__", "requests_total"), ("code", "200"), ("job", "web")],
        vec![("__name__", "requests_total"), ("code", "500"), ("job", "web"), ("zone", "x")],
        vec![("__name__", "job:requests:rate5m"), ("job", "web")],
        vec![("__name__", "digits"), ("code", "\u{664}\u{662}"), ("job", "web")],
    ];
    if with_any_characters {
        all.push(vec![("__name__", "up"), ("instance", "c:1"), ("job", "a\nb")]);
        all.push(vec![("__name__", "dotted.name"), ("label with spaces", "1"), ("job", "web")]);
        all.push(vec![("__name__", "\u{e9}"), ("a_b", "2"), ("__x", "3")]);
    }
    all.into_iter().map(|pairs| Series::new(&pairs, &[(now_ms, 1.0)])).collect()
}

/// Writes series, with exemplars for those that count requests.
fn write(server: &Server, series: &[Series], now_ms: i64) {
    let rows: Vec<_> = series.iter().map(Series::row).collect();
    let mut message = message_v1(&rows);
    let values = [0.25, 1e-7, -1.5e22, f64::NAN, f64::INFINITY, 67.0];
    for (number, series) in message.timeseries.iter_mut().enumerate() {
        if series.labels.iter().any(|label| label.value == "requests_total") {
            series.exemplars = (0..3)
                .map(|offset| Exemplar {
                    labels: vec![Label {
                        name: "trace_id".into(),
                        value: format!("{number}-{offset}"),
                    }],
                    value: values[(number + offset * 2) % values.len()],
                    timestamp: now_ms - 2000 + offset as i64 * 970,
                })
                .collect();
        }
    }
    let response = Writer::new(&server.url()).send_message(Version::V1, &message);
    let response = response.expect("an answer");
    assert!(response.is_success(), "{} {}", response.status, response.text());
}

fn pair(release: Release) -> (Store, Server, tempfile::TempDir, i64) {
    let per_step = "--enable-feature=promql-per-step-stats";
    let store = Store::start_with(|config| config.flag(per_step)).expect("tidepool starts");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = prometheus::Config::new(release, directory.path()).expect("a directory");
    let config = config.receiver().flag("--enable-feature=exemplar-storage").flag(per_step);
    let peer = config.start().expect("Prometheus starts");
    let now_ms = now_ms();
    let series = series(now_ms, release == Release::V3);
    write(&store.server, &series, now_ms);
    write(&peer, &series, now_ms);
    (store, peer, directory, now_ms)
}

/// Removes the texts of errors, and sorts lists whose order is not specified.
fn comparable(question: &Question, response: &Response) -> Value {
    let mut answer = json!({ "code": response.status });
    let content_type = response.header("content-type").unwrap_or_default();
    answer["type"] = content_type.split(';').next().unwrap_or_default().into();
    if response.status == 405 || response.body.is_empty() {
        // Upstream names no type there.
        answer["type"] = Value::Null;
        answer["allow"] = response.header("allow").is_some().into();
    }
    if content_type != "application/json" {
        return answer;
    }
    let mut body: Map<String, Value> = serde_json::from_slice(&response.body)
        .unwrap_or_else(|error| panic!("{question:?}: {error}: {}", response.text()));
    if let Some(error) = body.get_mut("error") {
        assert!(error.as_str().is_some_and(|text| !text.is_empty()), "{question:?}: {error}");
        *error = Value::Null;
    }
    if question.path.starts_with("series")
        && let Some(Value::Array(series)) = body.get_mut("data")
    {
        series.sort_by_key(Value::to_string);
    }
    answer["body"] = body.into();
    answer
}

#[track_caller]
fn assert_alike(store: &Store, peer: &Server, questions: &[Question]) {
    let mut differences = Vec::new();
    for question in questions {
        let ours = comparable(question, &question.ask(&store.server));
        let theirs = comparable(question, &question.ask(peer));
        if ours != theirs {
            differences.push(format!("{question:?}\n  tidepool   {ours}\n  Prometheus {theirs}"));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

fn parameter(name: &str, value: &str) -> String {
    format!("{name}={}", percent_encode(value))
}

/// Returns parameters of lookups, valid and invalid ones.
fn lookups(now_ms: i64) -> Vec<String> {
    let selectors = [
        "up",
        "nothing_of_the_kind",
        "{job=\"web\",code!=\"500\"}",
        "{__name__=~\"up|requests.*\",zone=\"\"}",
        "{job=~\".+\"}",
        // RE2's classes are ASCII only, and a bracket inside one is a literal.
        "{code=~\"\\\\d+\"}",
        "{code=~\"\\\\D+\"}",
        "{job=~\".*\\\\bh\\\\w+[\\\\s[> ]*\\\\W\"}",
        "{job=~\".*\\\\Q<html>\\\\E.*\"}",
        "up{job!~\"n.*\"}",
        "",
        "{}",
        "{job=~\".*\"}",
        "{job=\"\"}",
        "up{",
        "up{job=~\"(\"}",
        "up{job=~\"[z-a]\"}",
        "up[5m]",
        "up offset 5m",
        "sum(up)",
        "1",
        "up{job=\"node\"} # with a comment",
    ];
    let mut all: Vec<String> = selectors.map(|text| parameter("match[]", text)).into();
    let two = format!("{}&{}", parameter("match[]", "up"), parameter("match[]", "{zone=\"x\"}"));
    all.push(two.clone());
    all.push(format!("{two}&{}", parameter("match[]", "broken{")));
    let seconds = now_ms / 1000;
    for (start, end) in [
        ("0", format!("{}", seconds + 10)),
        ("2020-01-01T00:00:00Z", "2100-01-01T00:00:00.123+02:00".to_owned()),
        ("-292273086-05-16T16:47:06Z", "292277025-08-18T07:12:54.999999999Z".to_owned()),
        ("0", "1.5".to_owned()),
        ("1e3", "1e12".to_owned()),
        ("5", "1".to_owned()),
        ("", String::new()),
        ("now", "0".to_owned()),
        ("0", "5m".to_owned()),
        ("2020-01-01", "2".to_owned()),
    ] {
        let range = format!("{}&{}", parameter("start", start), parameter("end", &end));
        all.push(format!("{range}&{two}"));
    }
    all
}

fn questions(now_ms: i64) -> Vec<Question> {
    let mut all = vec![get("labels"), get("series"), post("labels", ""), post("series", "")];
    for values in ["__name__", "job", "zone", "none", "code"] {
        all.push(get(&format!("label/{values}/values")));
    }
    for lookup in lookups(now_ms) {
        for path in ["labels", "series"] {
            all.push(get(&format!("{path}?{lookup}")));
            all.push(post(path, &lookup));
        }
        all.push(get(&format!("label/job/values?{lookup}")));
    }
    // The form's parameters come first, then the URL's; other bodies are not read.
    all.push(post("series?match[]=up&start=0", "match[]=requests_total&start=wrong"));
    all.push(Question {
        headers: vec![("Content-Type", "text/plain")],
        ..post("series?match[]=up", "match[]=requests_total")
    });
    // With a multipart form, the URL's parameters come first.
    let field = |name: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let instant = field("query", "41+1") + &field("time", "5") + "--b--\r\n";
    let range = field("query", "time()") + &field("start", "1") + &field("end", "3");
    let range = range + &field("step", "1") + "--b--\r\n";
    for (path, body) in [
        ("query", &instant),
        ("query?query=7&time=6", &instant),
        ("query_range", &range),
        ("query_range?step=2", &range),
    ] {
        let headers = vec![("Content-Type", "multipart/form-data; boundary=b")];
        all.push(Question { headers, ..post(path, body) });
    }
    // Steps around the largest value that upstream accepts.
    for step in ["9223372036", "9223372037", "9007199254740", "9.3e18", "292y", "293y", "-1"] {
        all.push(get(&format!("query_range?query=1&start=1&end=3&step={step}")));
    }
    for path in ["labels", "label/job/values", "series", "metadata", "status/config", "rules"] {
        for method in ["PUT", "PATCH"] {
            all.push(Question { method, ..get(path) });
        }
    }
    for path in ["label/job/values", "metadata", "status/flags", "status/tsdb", "alerts"] {
        all.push(post(path, ""));
    }
    for path in ["nothing", "label/job", "status", "status/nothing"] {
        all.push(get(path));
    }
    for call in ["delete_series", "clean_tombstones", "snapshot"] {
        all.push(post(&format!("admin/tsdb/{call}"), "match[]=up"));
        all.push(get(&format!("admin/tsdb/{call}")));
    }
    let (start, end) = ((now_ms - 60_000) / 1000, now_ms / 1000 + 60);
    for query in ["requests_total", "{code=\"500\"}", "nothing", "", "up{", "{}", "requests_total)"]
    {
        let query = parameter("query", query);
        all.push(get(&format!("query_exemplars?{query}&start={start}&end={end}")));
        all.push(post("query_exemplars", &format!("{query}&start={start}&end={end}")));
    }
    for range in ["start=5&end=1", "start=x", "end=x", "start=0&end=1"] {
        all.push(get(&format!("query_exemplars?query=requests_total&{range}")));
    }
    for metadata in ["limit=x", "limit=1.5", "limit=-1", "metric=nothing"] {
        all.push(get(&format!("metadata?{metadata}")));
    }
    for path in ["rules", "rules?type=alert", "rules?type=record", "alerts"] {
        all.push(get(path));
    }
    all.push(get("alertmanagers"));
    all
}

#[test]
fn the_answers_are_those_of_prometheus_3() {
    let (store, peer, _directory, now_ms) = pair(Release::V3);
    let mut all = questions(now_ms);
    for limit in ["0", "1", "2", "100", "+1", "", "-1", "x", "1.5", "99999999999999999999"] {
        let limit = parameter("limit", limit);
        all.push(get(&format!("labels?{limit}")));
        all.push(post("labels", &format!("{limit}&match[]=up")));
    }
    for limit in ["0", "4", "100", "", "-1", "x"] {
        let limit = parameter("limit", limit);
        all.push(get(&format!("label/job/values?{limit}")));
        all.push(get(&format!("label/job/values?{limit}&match[]=up&match[]=requests_total")));
    }
    for name in [
        "U__dotted_2e_name",
        "U__label_20_with_20_spaces",
        "U__a__b",
        "U____x",
        "U__broken_",
        "a%20b",
        "label%20with%20spaces",
        "%C3%A9",
        "%FF",
        "1",
        "U__",
    ] {
        all.push(get(&format!("label/{name}/values")));
    }
    for limit in ["0", "-1", "x", "10001"] {
        all.push(get(&format!("status/tsdb?limit={limit}")));
    }
    all.push(get("metadata?limit_per_metric=x"));
    all.push(Question { method: "DELETE", ..get("series") });
    all.push(get("rules?type=x"));
    all.push(get("rules?match[]={}"));
    all.push(get("rules?exclude_alerts=x"));
    all.push(get("targets"));
    assert_alike(&store, &peer, &all);

    // The selection under a limit may differ; the number must not.
    for limit in [1, 2, 3, 4] {
        for path in ["series?match[]=up", "label/job/values?start=0"] {
            let question = get(&format!("{path}&limit={limit}"));
            let count = |server: &Server| {
                let answer: Value =
                    serde_json::from_slice(&question.ask(server).body).expect("JSON");
                let is_cut = answer["warnings"][0] == "results truncated due to limit";
                (answer["data"].as_array().map(Vec::len), is_cut)
            };
            assert_eq!(count(&store.server), (Some(limit), limit < 4), "{question:?}");
            assert_eq!(count(&peer).0, Some(limit), "{question:?}");
        }
    }
    assert_head_alike(&store, &peer);
    assert_keys(&store, &peer);
    assert_browsers_hear_the_same(&store, &peer);
    assert_queries_alike(&store, &peer, now_ms);
    assert_federation_alike(&store, &peer);
}

#[test]
fn the_answers_are_those_of_prometheus_2() {
    let (store, peer, _directory, now_ms) = pair(Release::V2);
    assert_alike(&store, &peer, &questions(now_ms));
    assert_head_alike(&store, &peer);
    assert_browsers_hear_the_same(&store, &peer);
}

fn data(server: &Server, path: &str) -> Value {
    let response = get(path).ask(server);
    let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!((response.status, &answer["status"]), (200, &json!("success")), "{path}: {answer}");
    answer["data"].clone()
}

/// Asserts that both describe the same head.
fn assert_head_alike(store: &Store, peer: &Server) {
    let about = |server: &Server| {
        let status = data(server, "status/tsdb");
        let list = |name: &str| {
            let mut items: Vec<Value> = status[name].as_array().expect("a list").clone();
            items.sort_by_key(Value::to_string);
            items
        };
        let stats = &status["headStats"];
        let numbers = ["numSeries", "numLabelPairs", "minTime", "maxTime"].map(|k| &stats[k]);
        let numbers: Vec<Value> = numbers.into_iter().cloned().collect();
        let lists = ["seriesCountByMetricName", "labelValueCountByLabelName"];
        (numbers, lists.map(list))
    };
    assert_eq!(about(&store.server), about(peer));
}

/// Asserts that every key of Prometheus exists.
fn assert_keys(store: &Store, peer: &Server) {
    for path in ["status/buildinfo", "status/runtimeinfo", "status/config", "status/walreplay"] {
        let (ours, theirs) = (data(&store.server, path), data(peer, path));
        for (key, value) in theirs.as_object().expect("an object") {
            let ours = ours.get(key).unwrap_or_else(|| panic!("{path} lacks {key}: {ours}"));
            assert_eq!(
                std::mem::discriminant(ours),
                std::mem::discriminant(value),
                "{path}, {key}: {ours}, {value}"
            );
        }
    }
    let (ours, theirs) = (data(&store.server, "status/flags"), data(peer, "status/flags"));
    // Flags with the same default have the same value.
    for flag in [
        "query.lookback-delta",
        "query.max-concurrency",
        "query.max-samples",
        "query.timeout",
        "storage.remote.read-concurrent-limit",
        "storage.remote.read-max-bytes-in-frame",
        "storage.remote.read-sample-limit",
        "storage.tsdb.delay-compact-file.path",
        "storage.tsdb.max-block-duration",
        "storage.tsdb.min-block-duration",
        "storage.tsdb.retention.size",
        "storage.tsdb.retention.time",
        "storage.tsdb.samples-per-chunk",
        "storage.tsdb.wal-compression",
        "storage.tsdb.wal-compression-type",
        "web.cors.origin",
        "web.enable-admin-api",
        "web.enable-remote-write-receiver",
        "web.max-connections",
    ] {
        assert_eq!(ours[flag], theirs[flag], "{flag}");
    }
    for flag in ["storage.tsdb.path", "web.listen-address", "storage.tsdb.wal-segment-size"] {
        assert!(ours[flag].is_string() && theirs[flag].is_string(), "{flag}");
    }
}

/// Asserts that pages of other origins get the same answers.
fn assert_browsers_hear_the_same(store: &Store, peer: &Server) {
    let origin = ("Origin", "http://page.example");
    for (method, path) in [("OPTIONS", "labels"), ("OPTIONS", "nothing"), ("GET", "alerts")] {
        let question = Question { method, headers: vec![origin], ..get(path) };
        let told = |server: &Server| {
            let response = question.ask(server);
            let names = ["allow-headers", "allow-methods", "expose-headers"];
            let headers = names
                .map(|name| response.header(&format!("access-control-{name}")).map(str::to_owned));
            // Some releases return the origin where others return a star.
            let allowed = response.header("access-control-allow-origin");
            let is_allowed = allowed.is_some_and(|allowed| allowed == "*" || allowed == origin.1);
            let varies =
                response.headers.iter().any(|(name, value)| name == "vary" && value == "Origin");
            (response.status, headers, is_allowed, varies)
        };
        assert_eq!(told(&store.server), told(peer), "{method} {path}");
    }
}
