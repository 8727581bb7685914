//! API answers about the same targets: `targets`, the endpoints below it, and `scrape_pools`.

use super::exposer::{Page, Scripts};
use super::{Pair, Side, TIMEOUT, configuration, job};
use serde_json::Value;
use std::collections::BTreeMap;
use tidepool_settings::yaml;
use tidepool_tests::http::Client;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::wait;

/// Fields that differ from scrape to scrape, or in wording.
const OWN: [&str; 4] = ["lastScrape", "lastScrapeDuration", "lastError", "globalUrl"];

/// Returns a value as text, independent of the order of its keys.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(pairs) => {
            let pairs: BTreeMap<&String, String> =
                pairs.iter().map(|(key, value)| (key, sorted(value))).collect();
            format!("{pairs:?}")
        }
        other => other.to_string(),
    }
}

/// Returns status and answer, without the parts that belong to one server alone.
fn asked(side: &Side, path: &str) -> (u16, Value) {
    let response = Client::default().get(&format!("{}/api/v1/{path}", side.server.url()));
    let response = response.expect("an answer");
    let text = response.text().replace(&side.exposer.address().to_string(), "ADDRESS");
    let text = text.replace(&side.exposer.address().port().to_string(), "PORT");
    let mut answer: Value = serde_json::from_str(&text).expect("JSON");
    if let Some(targets) = answer.pointer_mut("/data/activeTargets").and_then(Value::as_array_mut) {
        for target in targets.iter_mut() {
            let has_failed = target["lastError"] != "";
            for key in OWN {
                assert!(!target[key].is_null(), "{key}: {target}");
                target[key] = Value::Null;
            }
            target["lastError"] = has_failed.into();
        }
        targets.sort_by_key(sorted);
    }
    // The pools of several targets have no specified order.
    if let Some(entries) = answer.pointer_mut("/data").and_then(Value::as_array_mut) {
        entries.sort_by_key(sorted);
    }
    // The texts of errors differ between the servers.
    if answer["status"] == "error" {
        answer["error"] = Value::Null;
    }
    (response.status, answer)
}

/// Returns the settings of a job by name. A value that is no list and no mapping is text.
fn settings(side: &Side, pool: &str) -> BTreeMap<String, Value> {
    let (status, answer) = asked(side, &format!("scrape_pools/config?scrapePool={pool}"));
    assert_eq!(status, 200, "{answer}");
    let text = answer["data"]["yaml"].as_str().expect("a text");
    let node = yaml::load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    yaml::read("settings", &node).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn targets_are_told_as_by_prometheus() {
    let first = Page::openmetrics(
        "# HELP c Of c.\n# TYPE c counter\nc_total 1\n# HELP t_seconds Of \\\\t\\n.\n\
         # TYPE t_seconds gauge\n# UNIT t_seconds seconds\nt_seconds 1\n# TYPE s summary\n\
         s{quantile=\"0.5\"} 1\ns_count 1\n# TYPE only info\nonly_info 1\n# EOF\n",
    );
    let second = Page::text(
        "# HELP c Another text.\n# TYPE c gauge\nc 1\n# HELP alone Without a type.\nalone 1\n\
         # TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n# HELP never No series.\n",
    );
    let rules = "relabel_configs:\n  - {source_labels: [which], regex: x, action: drop}\n  \
                 - {source_labels: [__address__], regex: '(.*):.*', target_label: host}\n  \
                 - {source_labels: [host, which], separator: '-', modulus: 8, target_label: shard, \
                 action: hashmod}\n  - {regex: meta_(.+), action: labelmap}\n  \
                 - {source_labels: [host], regex: gone, action: drop}\n  \
                 - {target_label: late, replacement: yes}";
    let dropped = "  - job_name: dropped\n    relabel_configs: [{source_labels: [which], regex: \
                   away, action: drop}]\n    static_configs:\n      - {targets: [ADDRESS, \
                   'other:1'], labels: {which: away}}\n      - {targets: [ADDRESS], labels: \
                   {which: dropped, __scrape_interval__: 3s, __scrape_timeout__: 1s}}\n";
    let jobs = [
        job("first", rules),
        job(
            "second",
            "scheme: http\nparams: {x: [a b]}\nhonor_labels: true\nsample_limit: 1000\nbasic_auth: \
             {username: a, password: b}\nmetric_relabel_configs: [{regex: z, action: labeldrop}]",
        ),
        job("down", ""),
        dropped.to_owned(),
        "  - job_name: empty\n".to_owned(),
    ];
    let pair = Pair::start(&configuration(&jobs), |_| {
        Scripts::from([
            ("/first", vec![first.clone()]),
            ("/second?x=a+b", vec![second.clone()]),
            ("/metrics", vec![Page::text("")]),
        ])
    });
    for side in pair.sides() {
        let all_known = || {
            let (_, answer) = asked(side, "targets");
            let targets = answer["data"]["activeTargets"].as_array()?;
            let is_known = |target: &Value| target["health"] != "unknown";
            (targets.len() == 4 && targets.iter().all(is_known)).then_some(())
        };
        wait::until("scrapes of all targets", TIMEOUT, all_known)
            .unwrap_or_else(|error| panic!("{error}\n{}", side.server.log()));
    }
    let labels = [
        r#"{"__address__":"a:80","which":"first","meta_zone":"z"}"#,
        r#"{"__address__":"gone:1","which":"first"}"#,
        r#"{"which":"x"}"#,
        "{}",
        "[]",
        "x",
    ];
    let mut paths: Vec<String> = [
        "targets",
        "targets?state=active",
        "targets?state=dropped",
        "targets?state=ANY",
        "targets?state=other",
        "targets?state=active&scrapePool=first",
        "targets?state=active&scrapePool=none",
        "targets?scrapePool=first",
        "targets?state=dropped&scrapePool=dropped",
        "targets?state=dropped&scrapePool=none",
        "scrape_pools",
        "scrape_pools/config",
        "scrape_pools/config?scrapePool=none",
        "targets/metadata",
        "targets/metadata?metric=c",
        "targets/metadata?metric=t_seconds",
        "targets/metadata?metric=none",
        "targets/metadata?match_target={which=\"second\"}",
        "targets/metadata?match_target={which=~\"f.*\"}&metric=c",
        "targets/metadata?match_target={which!=\"first\",job!~\"d.*\"}",
        "targets/metadata?match_target={which=\"none\"}",
        "targets/metadata?match_target={",
        "targets/metadata?limit=0",
        "targets/metadata?limit=x",
        "targets/metadata?limit=-1",
        "targets/relabel_steps",
        "targets/relabel_steps?scrapePool=first",
        "targets/relabel_steps?labels={}",
        "targets/relabel_steps?scrapePool=none&labels={}",
        "targets/relabel_steps?scrapePool=second&labels={}",
    ]
    .map(|path| {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(name, value)| format!("{name}={}", percent_encode(value)));
        format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
    })
    .to_vec();
    paths.extend(labels.map(|labels| {
        format!("targets/relabel_steps?scrapePool=first&labels={}", percent_encode(labels))
    }));
    let mut wrong = String::new();
    for path in paths {
        let (theirs, ours) = (asked(&pair.theirs, &path), asked(&pair.ours, &path));
        if theirs != ours {
            wrong += &format!("{path}\n  Prometheus {theirs:?}\n  tidepool   {ours:?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    for pool in ["first", "second", "down", "dropped"] {
        let (theirs, ours) = (settings(&pair.theirs, pool), settings(&pair.ours, pool));
        assert_eq!(ours, theirs, "{pool}");
    }
    assert_eq!(asked(&pair.ours, "targets/metadata").0, 200);
}
