//! Queries, both valid and invalid ones.

use super::{get, parameter, post};
use serde_json::Value;
use tidepool_tests::process::Server;
use tidepool_tests::tidepool::Store;

/// Asserts that answers to queries equal Prometheus' to the last digit, and texts of errors, too.
pub fn assert_queries_alike(store: &Store, peer: &Server, now_ms: i64) {
    const EXPRESSIONS: [&str; 27] = [
        "1 + 1",
        "\"text\"",
        "time()",
        "up",
        "requests_total",
        "requests_total offset 1m",
        "requests_total[5m]",
        "sum by (job) (requests_total)",
        "sum without (code) (rate(requests_total[5m]))",
        "avg_over_time(requests_total[2m:30s])",
        "topk(2, requests_total)",
        "count_values(\"value\", up)",
        "quantile(2, requests_total)",
        "up or vector(1)",
        "requests_total / on (job) group_left () up",
        "requests_total + on () group_left () up",
        "absent(nothing{job=\"x\"})",
        "label_replace(up, \"to\", \"$1-$1\", \"job\", \"(.).*\")",
        "label_replace(up, \"instance\", \"\", \"\", \"\")",
        "rate({job=\"web\"}[5m]) or up",
        "{__name__=~\".+\"}",
        "up{",
        "sum(",
        "rate(up)",
        "up up",
        "{}",
        "nothing_of_the_kind()",
    ];
    let (start, end) = (now_ms / 1000 - 120, now_ms / 1000);
    let asked = EXPRESSIONS.iter().flat_map(|expression| {
        let query = parameter("query", expression);
        [
            get(&format!("query?{query}&time={end}")),
            post("query", &format!("{query}&time={end}&limit=1")),
            get(&format!("query_range?{query}&start={start}&end={end}&step=15")),
            post("query_range", &format!("{query}&start={start}&end={end}&step=1m&limit=2")),
            get(&format!("query_range?{query}&start={start}&end={end}&step=30&stats=all")),
            get(&format!("query?{query}&time={end}&stats=1")),
            get(&format!("format_query?{query}")),
            post("parse_query", &query),
        ]
    });
    let wrong = [
        "query?query=up%7Ba%3D%22%FF%22%7D",
        "query?query=up%7Ba%3D%60x%FF%FE%60%7D+%2B+1",
        "query?query=up+%FF",
        "query?query=%FF%FE+%2B+1",
        "query?query=sum+by+(%FF)+(up)",
        "query?query=up%7B%FF%3D%22x%22%7D",
        "query?query=up%5B%FF%5D",
        "query?query=1+%23+%FF&time=4",
        "format_query?query=up%7Ba%3D%22%FF%22%7D",
        "query?query=up&time=soon",
        "query?query=up&timeout=x",
        "query?query=up&limit=-1",
        "query_range?query=up&start=0&end=1",
        "query_range?query=up&start=1&end=0&step=1",
        "query_range?query=up&start=0&end=1&step=0",
        "query_range?query=up&start=0&end=100000&step=1",
    ];
    let asked = asked
        .chain(wrong.map(get))
        .chain([get(&format!("query?query=up&time={end}&lookback_delta=1h"))]);
    // A tree deeper than JSON readers usually accept was once answered with 500.
    let deep = parameter("query", &format!("{}1{}", "(".repeat(150), ")".repeat(150)));
    let deep = post("parse_query", &deep);
    assert_eq!(deep.ask(peer).status, 200);
    assert_eq!(deep.ask(&store.server).status, 200);
    let mut differences = Vec::new();
    for question in asked {
        let answer = |server: &Server| {
            let response = question.ask(server);
            let mut body: Value = serde_json::from_slice(&response.body)
                .unwrap_or_else(|error| panic!("{question:?}: {error}: {}", response.text()));
            // Series of an instant vector have no specified order.
            let is_vector = body["data"]["resultType"] == "vector";
            if let Some(Value::Array(series)) = body.pointer_mut("/data/result")
                && is_vector
            {
                series.sort_by_key(Value::to_string);
            }
            // Prometheus collects them in a map, which has no order.
            for key in ["warnings", "infos"] {
                if let Some(Value::Array(all)) = body.get_mut(key) {
                    all.sort_by_key(Value::to_string);
                }
            }
            // Times differ, and these samples are counted differently.
            if let Some(stats) = body.pointer_mut("/data/stats") {
                assert!(stats["timings"]["execTotalTime"].is_number(), "{question:?}: {stats}");
                stats["timings"] = Value::Null;
                for name in ["samplesRead", "samplesReadPerStep", "peakSamples"] {
                    stats["samples"][name] = Value::Null;
                }
            }
            (response.status, body)
        };
        let (ours, theirs) = (answer(&store.server), answer(peer));
        // The selection of series of an instant vector under a limit may differ.
        let warnings = theirs.1["warnings"].as_array().map_or(&[][..], Vec::as_slice);
        let is_cut = warnings.contains(&"results truncated due to limit".into())
            && theirs.1["data"]["resultType"] == "vector";
        let alike = match is_cut {
            true => ours.1["warnings"] == theirs.1["warnings"],
            false => ours == theirs,
        };
        if !alike {
            let (ours, theirs) = (ours.1, theirs.1);
            differences.push(format!("{question:?}\n  tidepool   {ours}\n  Prometheus {theirs}"));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
