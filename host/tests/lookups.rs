//! Lookups of labels through the whole store (head instance, query instance, blocks on disk),
//! compared with what Prometheus answers about the same samples.

#[path = "../runtime/tests/image/mod.rs"]
mod image;

use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;
use tempfile::TempDir;
use tidepool_host::config::ConfigSource;
use tidepool_runtime::{Label, Lookup, MatchOp, Matcher, RemoteWriteVersion, TimeRange};
use tidepool_store::{BodyBudget, LookupPart, Store, StoreConfig, StoreError};
use tidepool_tests::clock;
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::{Version, Writer, message_bytes};
use tidepool_tests::series::Series;
use tidepool_tests::{prometheus, wait};
use tokio::sync::mpsc::Receiver;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Longest wait for a block to be cut.
const CUT_TIMEOUT: Duration = Duration::from_secs(30);

fn config(dir: &TempDir) -> TestResult<StoreConfig> {
    let data_dir = format!("--data-dir={}", dir.path().display());
    let flags = ["--wal-sync=off", "--block-duration=1m", "--out-of-order-window=0s"];
    let arguments = ["tidepool", "serve", &data_dir].into_iter().chain(flags);
    Ok(ConfigSource::new(arguments.map(Into::into)).serve()?.0.store)
}

/// Makes a series: some end early and are in a block only, some begin after the cut and are in the
/// head only, some are in both.
fn series(number: i64, early_ms: i64, out_of_order_ms: i64) -> Series {
    let (metric, pod) = (format!("metric_{}", number % 3), format!("pod-{number:04}"));
    let job = format!("job-{}", number % 2);
    let mut labels = vec![("__name__", &*metric), ("job", &job), ("pod", &pod)];
    match number % 5 {
        0 => labels.push(("zone", "ä\"\\")),
        1 => labels.push(("tier", "front\nback")),
        _ => {}
    }
    let mut samples = Vec::new();
    if number < 2000 {
        samples.push((early_ms, number as f64));
    }
    if number >= 1000 {
        samples.push((out_of_order_ms, number as f64));
    }
    Series::new(&labels, &samples)
}

/// A set of matchers, in PromQL and as the store's type.
struct Set {
    promql: String,
    matchers: Vec<Matcher>,
}

fn set(matchers: &[(&str, &str, &str)]) -> Set {
    let mut promql = "{".to_owned();
    let mut compiled = Vec::new();
    for (name, op, value) in matchers {
        let _ = write!(promql, "{name}{op}{value:?},");
        let op = match *op {
            "=" => MatchOp::Equal,
            "!=" => MatchOp::NotEqual,
            "=~" => MatchOp::Regex,
            _ => MatchOp::NotRegex,
        };
        compiled.push(Matcher { name: (*name).into(), op, value: (*value).into() });
    }
    promql.push('}');
    Set { promql, matchers: compiled }
}

/// Matcher sets; PromQL requires in each at least one matcher that rejects the empty value.
fn questions() -> Vec<Vec<Set>> {
    vec![
        vec![set(&[("__name__", "=", "metric_1")])],
        vec![set(&[("pod", "=~", "pod-00.*")])],
        vec![set(&[("pod", "=~", "pod-(00|2)1.+"), ("job", "!=", "job-1")])],
        vec![set(&[("__name__", "=~", ".+"), ("zone", "=", "")])],
        vec![set(&[("zone", "!=", "")])],
        vec![set(&[("job", "=", "job-0"), ("tier", "=~", "front.*|")])],
        vec![set(&[("job", "=", "job-0"), ("tier", "!~", "front.*|")])],
        vec![set(&[("job", "=", "job-0"), ("tier", "!~", ".+")])],
        vec![set(&[("job", "=", "job-0"), ("tier", "=~", ".*")])],
        vec![
            set(&[("__name__", "=", "metric_2"), ("pod", "=~", "pod-.*7")]),
            set(&[("zone", "=~", "ä.*"), ("pod", "!~", "pod-[01].*")]),
            set(&[("pod", "=~", "pod-0001|pod-1001|pod-2999|none")]),
        ],
        vec![set(&[("pod", "=", "none")])],
    ]
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let mut encoded = String::new();
    for byte in text.bytes() {
        match plain(byte) {
            true => encoded.push(char::from(byte)),
            false => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

/// Asks Prometheus; returns the result, and whether its warnings say that the limit truncated it.
fn ask(
    server: &Server,
    path: &str,
    sets: &[Set],
    (start_ms, end_ms): (i64, i64),
    limit: u64,
) -> TestResult<(Vec<Value>, bool)> {
    let seconds = |ms: i64| format!("{}.{:03}", ms / 1000, ms % 1000);
    let (start, end) = (seconds(start_ms), seconds(end_ms));
    let mut url = format!("{}/api/v1/{path}?limit={limit}&start={start}&end={end}", server.url());
    for set in sets {
        let _ = write!(url, "&match[]={}", encoded(&set.promql));
    }
    let answer: Value = serde_json::from_slice(&Client::default().get(&url)?.body)?;
    let found = answer["data"].as_array().ok_or_else(|| format!("{url}: {answer}"))?.clone();
    let is_cut = answer["warnings"].to_string().contains("results truncated due to limit");
    Ok((found, is_cut))
}

async fn all<T>(
    mut parts: Receiver<Result<LookupPart<T>, StoreError>>,
) -> TestResult<(Vec<T>, bool)> {
    let mut found = Vec::new();
    while let Some(part) = parts.recv().await {
        match part? {
            LookupPart::Page(page) => found.extend(page),
            LookupPart::End { is_truncated, .. } => return Ok((found, is_truncated)),
        }
    }
    Err("the answer was cut short".into())
}

fn lookup(sets: &[Set], (start_ms, end_ms): (i64, i64), limit: u64) -> Lookup {
    let matcher_sets = sets.iter().map(|set| set.matchers.clone()).collect();
    Lookup { matcher_sets, range: TimeRange { start_ms, end_ms }, limit }
}

fn json(labels: Vec<Label>) -> Value {
    let pairs = labels.into_iter().map(|label| (label.name, Value::String(label.value)));
    Value::Object(pairs.collect())
}

fn sorted(mut found: Vec<Value>) -> Vec<Value> {
    found.sort_by_key(Value::to_string);
    found
}

fn strings(found: Vec<String>) -> Vec<Value> {
    found.into_iter().map(Value::String).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lookups_agree_with_prometheus() -> TestResult {
    let now_ms = clock::now_ms();
    let (early_ms, out_of_order_ms) = (now_ms - 600_000, now_ms);
    let data: Vec<Series> =
        (0..3000).map(|number| series(number, early_ms, out_of_order_ms)).collect();
    let dir = tempfile::tempdir()?;
    image::install();
    let (store, threads) = Store::open(config(&dir)?)?;
    wait::until("the store", CUT_TIMEOUT, || store.is_ready().then_some(()))?;
    let peer_dir = tempfile::tempdir()?;
    let peer = prometheus::Config::new(Release::V3, peer_dir.path())?.receiver().start()?;
    let writer = Writer::new(&peer.url());
    for time_ms in [early_ms, out_of_order_ms] {
        let part: Vec<Series> = data.iter().map(|s| s.between(time_ms, time_ms)).collect();
        let part: Vec<_> = part.iter().filter(|s| !s.samples.is_empty()).collect();
        let rows: Vec<_> = part.iter().map(|series| series.row()).collect();
        let body = message_bytes(Version::V2, &rows);
        let room = BodyBudget::new(1 << 24).whole(body.len()).await?;
        let outcome = store.append(RemoteWriteVersion::V2, body, room).await?;
        assert_eq!((outcome.samples_written, outcome.refused), (2000, 0));
        let response = writer.send(Version::V2, &rows)?;
        assert_eq!(response.status, 204, "{}", response.text());
    }
    wait::until("a block", CUT_TIMEOUT, || (store.block_figures().0 > 0).then_some(()))?;

    let whole = (early_ms - 1000, out_of_order_ms + 1000);
    for sets in questions() {
        for limit in [0, 5, 2000] {
            let about = || format!("{:?}", sets.iter().map(|set| &set.promql).collect::<Vec<_>>());
            let lookup = || lookup(&sets, whole, limit);
            let names = all(store.label_names(lookup()).await?).await?;
            let expected = ask(&peer, "labels", &sets, whole, limit)?;
            assert_eq!((strings(names.0), names.1), expected, "{}", about());
            for name in ["pod", "__name__", "zone", "tier", "none"] {
                let values = all(store.label_values(name.into(), lookup()).await?).await?;
                let path = format!("label/{name}/values");
                let expected = ask(&peer, &path, &sets, whole, limit)?;
                assert_eq!((strings(values.0), values.1), expected, "{name} {}", about());
            }
            let (found, is_cut) = all(store.series(lookup()).await?).await?;
            let found: Vec<Value> = found.into_iter().map(json).collect();
            let (expected, _) = ask(&peer, "series", &sets, whole, limit)?;
            assert_eq!(found.len(), expected.len(), "{}", about());
            // Prometheus does not warn when it truncates series, and truncates in any order.
            let (uncut, _) = ask(&peer, "series", &sets, whole, 0)?;
            assert_eq!(is_cut, uncut.len() > found.len(), "{}", about());
            if limit == 0 {
                assert_eq!(sorted(found), sorted(expected), "{}", about());
            }
        }
    }
    // Without matchers, which PromQL cannot express.
    let everything = lookup(&[], whole, 0);
    let names = all(store.label_names(everything.clone()).await?).await?;
    assert_eq!((strings(names.0), names.1), ask(&peer, "labels", &[], whole, 0)?);
    let values = all(store.label_values("pod".into(), everything.clone()).await?).await?;
    assert_eq!((strings(values.0), values.1), ask(&peer, "label/pod/values", &[], whole, 0)?);
    let series = all(store.series(everything).await?).await?;
    assert_eq!(series.0.len(), 3000);

    // Only series with chunks in the range.
    let any = [set(&[("__name__", "=~", ".+")])];
    for range in [
        (early_ms, early_ms),
        (out_of_order_ms, out_of_order_ms),
        (early_ms + 1, out_of_order_ms - 1),
        (5, 6),
    ] {
        let (found, _) = all(store.series(lookup(&any, range, 0)).await?).await?;
        let found: Vec<Value> = found.into_iter().map(json).collect();
        let (expected, _) = ask(&peer, "series", &any, range, 0)?;
        match range {
            // One chunk of Prometheus' head may span both samples; tidepool's ends with the block.
            (start_ms, end_ms) if start_ms > early_ms && end_ms < out_of_order_ms => {
                assert_eq!(found.len(), 0);
            }
            _ => assert_eq!(sorted(found), sorted(expected), "{range:?}"),
        }
    }

    // A matcher that does not compile, and a receiver that is dropped.
    let broken = [Set {
        promql: String::new(),
        matchers: vec![Matcher { name: "a".into(), op: MatchOp::Regex, value: "(".into() }],
    }];
    let refused = all(store.label_names(lookup(&broken, whole, 0)).await?).await;
    let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("regular expression"), "{refused}");
    for _ in 0..10 {
        drop(store.series(lookup(&any, whole, 0)).await?);
    }
    wait::until("the head's cursors", CUT_TIMEOUT, || {
        let figures = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(store.figures())
        });
        figures.is_ok_and(|figures| figures.open_cursors == 0).then_some(())
    })?;
    store.close(threads)?;
    Ok(())
}
