//! Queries that find only late that two series have the same labels: however large the answer, it
//! is a 422, and no connection ends in the middle.

use serde_json::{Value, json};
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, Response};
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;

/// Number of series of each name, for an answer of some hundred KiB that is sent in parts.
const SERIES: usize = 3000;

/// Size of an answer that begins before it is complete: two pages.
const STREAMED_BYTES: usize = 128 << 10;

fn write(store: &Store, series: &[Series]) {
    let rows: Vec<_> = series.iter().map(Series::row).collect();
    let response = store.writer().send(Version::V2, &rows).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());
}

fn ask(store: &Store, path: &str) -> (Response, Value) {
    let url = format!("{}/api/v1/{path}", store.server.url());
    let response = Client::default().get(&url).expect("a whole answer");
    let answer = serde_json::from_slice(&response.body).expect("JSON");
    (response, answer)
}

#[test]
fn late_duplicates_are_a_422_whatever_came_before() {
    let store = Store::start_with(|config| config).expect("tidepool starts");
    let end_ms = now_ms();
    let samples: Vec<(i64, f64)> =
        (0..20).map(|n| (end_ms - 285_000 + n * 15_000, n as f64)).collect();
    let last = format!("{:06}", SERIES - 1);
    let mut all = Vec::new();
    for number in 0..SERIES {
        let i = format!("{number:06}");
        for name in ["a", "once", "twice", "typed"] {
            all.push(Series::new(&[("__name__", name), ("i", &i)], &samples));
        }
    }
    // Each of these has the labels of the last series of a name, which comes last.
    all.push(Series::new(&[("__name__", "b"), ("i", &last)], &samples));
    all.push(Series::new(&[("__name__", "twice"), ("i", &last), ("j", "1")], &samples));
    all.push(Series::new(&[("__name__", "typed"), ("__type__", "gauge"), ("i", &last)], &samples));
    for part in all.chunks(2000) {
        write(&store, part);
    }

    let (start, end) = (end_ms / 1000 - 120, end_ms / 1000);
    let same = "vector cannot contain metrics with the same labelset";
    for (expression, error) in [
        (r#"rate({__name__=~"a|b"}[5m])"#, same),
        (r#"-{__name__=~"a|b"}"#, same),
        ("rate(typed[5m])", same),
        (r#"label_replace(twice, "j", "1", "", "")"#, same),
        ("once * on (i) group_left twice", "many-to-many matching not allowed"),
    ] {
        let query = percent_encode(expression);
        for path in [
            format!("query?query={query}&time={end}"),
            format!("query_range?query={query}&start={start}&end={end}&step=1"),
        ] {
            let (response, answer) = ask(&store, &path);
            let found = (response.status, &answer["errorType"]);
            assert_eq!(found, (422, &json!("execution")), "{path}: {}", answer["error"]);
            let text = answer["error"].as_str().unwrap_or_default();
            assert!(text.contains(error), "{path}: {text}");
        }
    }
    // Without duplicates, the same answers are long.
    for expression in ["rate(a[5m])", r#"-{__name__=~"a|c"}"#, "once * a"] {
        let query = percent_encode(expression);
        let path = format!("query_range?query={query}&start={start}&end={end}&step=1");
        let (response, answer) = ask(&store, &path);
        assert_eq!(answer["status"], json!("success"), "{expression}");
        assert_eq!(answer["data"]["result"].as_array().map(Vec::len), Some(SERIES));
        assert!(response.body.len() > STREAMED_BYTES, "{}", response.body.len());
    }
}

#[test]
fn chains_of_thousands_of_operators_are_answered() {
    let store = Store::start_with(|config| config).expect("tidepool starts");
    let end_ms = now_ms();
    let names: Vec<String> = (0..5000).map(|number| format!("m{number}")).collect();
    let series: Vec<Series> = names
        .iter()
        .map(|name| Series::new(&[("__name__", name), ("i", name)], &[(end_ms - 1000, 1.0)]))
        .collect();
    for part in series.chunks(2500) {
        write(&store, part);
    }
    let post = |expression: &str| {
        let form = format!("query={}&time={}", percent_encode(expression), end_ms / 1000);
        let headers = [("Content-Type", "application/x-www-form-urlencoded")];
        let url = format!("{}/api/v1/query", store.server.url());
        let begun = std::time::Instant::now();
        let response =
            Client::default().post(&url, &headers, form.as_bytes()).expect("a whole answer");
        println!("{} bytes of expression: {:?}", expression.len(), begun.elapsed());
        let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
        assert_eq!(answer["status"], json!("success"), "{}", answer["error"]);
        answer["data"]["result"].clone()
    };
    let ones = vec!["1"; 5000].join("+");
    assert_eq!(post(&ones)[1], json!("5000"));
    let sum = post(&format!("m0 + {ones}"));
    assert_eq!(sum[0]["value"][1], json!("5001"));
    let all = post(&names.join(" or "));
    assert_eq!(all.as_array().map(Vec::len), Some(5000));
    let sum = post(&names[..2000].join(" + on () "));
    assert_eq!(sum[0]["value"][1], json!("2000"));
}
