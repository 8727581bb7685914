//! One scrape that is shown and not stored.

use crate::http::Exposer;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidepool_relabel::{Action, RuleSpec};
use tidepool_scrape::config::{DiscoveryConfig, ScrapeConfig};
use tidepool_scrape::job::{Job, Limits};
use tidepool_scrape::labels::Labels;
use tidepool_scrape::target::TargetGroup;
use tidepool_scrape::trial::{Outcome, Shown, Trial, TrialError};

fn trial(url: String, job: Job, discovery: Vec<DiscoveryConfig>) -> Trial {
    let config = ScrapeConfig::new(job, discovery);
    let (user_agent, body_bytes_max) = ("agent/1".to_owned(), 8 << 20);
    let out_of_order_window = Duration::from_millis(500);
    Trial {
        url,
        config,
        timeout: None,
        user_agent,
        body_bytes_max,
        out_of_order_window,
        check_labels: Arc::new(|_| Ok(())),
    }
}

/// Returns the outcome of a path, and its text without parts that change from run to run.
async fn scraped(path: &str, job: Job, with_metadata: bool) -> (Outcome, String) {
    let exposer = Exposer::start().await;
    let url = format!("http://{}{path}", exposer.address);
    let outcome = trial(url, job, Vec::new()).run().await.expect("a target");
    let text = Shown { outcome: &outcome, with_metadata }.to_string();
    let text = text.replace(&exposer.address.to_string(), "TARGET");
    let is_kept = |line: &&str| !line.starts_with("scrape_duration_seconds");
    let cut = |line: &str| match line.strip_prefix("# body: ") {
        Some(_) => line.rsplit_once(", ").map_or("", |(before, _)| before).to_owned(),
        None => line.to_owned(),
    };
    let lines = text.lines().filter(is_kept).map(cut).collect::<Vec<_>>();
    (outcome, lines.join("\n") + "\n")
}

fn drop_rule(regex: &str) -> RuleSpec {
    let source_labels = vec!["__name__".to_owned()];
    RuleSpec { source_labels, regex: regex.to_owned(), ..RuleSpec::new(Action::Drop) }
}

#[tokio::test]
async fn samples_are_shown_as_they_would_be_stored() {
    let (_, text) = scraped("/openmetrics", Job::new("j"), true).await;
    let own = "{instance=\"TARGET\",job=\"j\"}";
    let expected = format!(
        "# target: http://TARGET/openmetrics {{instance=\"TARGET\", job=\"j\"}}\n\
         # answer: 200 OK over HTTP/1.1\n\
         # format: OpenMetrics (application/openmetrics-text; version=1.0.0)\n\
         # body: 172 bytes (identity), 172 uncompressed\n\
         # samples: 2 exposed, 2 after relabeling, 2 stored\n\n\
         # HELP c_seconds One\\ntwo.\n# TYPE c_seconds counter\n# UNIT c_seconds seconds\n\
         c_seconds_total{{exported_job=\"x\",instance=\"TARGET\",job=\"j\"}} 1e+06 # {{trace_id=\"t\"}} 0.5 1700000000.25\n\
         # TYPE g gauge\ng{own} NaN\n\n\
         # the report of the scrape\nup{own} 1\nscrape_samples_scraped{own} 2\n\
         scrape_samples_post_metric_relabeling{own} 2\nscrape_series_added{own} 2\n"
    );
    assert_eq!(text, expected);
}

#[tokio::test]
async fn native_histograms_are_shown_by_their_counts() {
    let job = Job { convert_classic_histograms: true, ..Job::new("j") };
    let (outcome, text) = scraped("/histogram", job, false).await;
    let expected = "\n# TYPE h histogram\nh{instance=\"TARGET\",job=\"j\"} \
        {count:3, sum:2.5, schema:-53, bounds:[1], buckets:2}\n";
    assert!(text.contains(expected), "{text}");
    let histogram = &outcome.json()["samples"][0]["histogram"];
    assert_eq!((&histogram["count"], &histogram["sum"]), (&"3".into(), &"2.5".into()));
    assert_eq!(histogram["positiveCounts"], serde_json::json!(["1", "2"]));
    assert_eq!(histogram["customBounds"], serde_json::json!(["1"]));
}

#[tokio::test]
async fn what_is_refused_is_named_with_its_reason() {
    let job = Job {
        metric_relabel: vec![drop_rule("dropped")],
        extra_metrics: true,
        honor_labels: true,
        ..Job::new("j")
    };
    let (outcome, text) = scraped("/refused", job, false).await;
    let expected = "\n# exposed, and not stored\n\
        # a: the series is exposed twice; the first sample counts\n\
        # c: its timestamp is more than 10 minutes ahead of the clock\n\
        # dropped: dropped by metric_relabel_configs\n\
        # b{instance=\"TARGET\",job=\"j\",x=\"\\\"\"}: out of order: the series has a sample that is too much newer\n\
        # b{instance=\"TARGET\",job=\"j\",x=\"\\\"\"}: the series has another value at the same time\n";
    assert!(text.ends_with(expected), "{text}");
    assert!(text.contains("# samples: 10 exposed, 9 after relabeling, 4 stored\n"), "{text}");
    assert!(text.contains("\nb{instance=\"TARGET\",job=\"j\",x=\"\\\"\"} 1 2000\n"), "{text}");
    // A metric that is called as one of the report is none of it.
    assert!(text.contains("\nup{instance=\"TARGET\",job=\"j\",x=\"1\"} 7\n"), "{text}");
    assert_eq!((outcome.report.len(), outcome.samples.len()), (8, 4));
    let json = outcome.json();
    assert_eq!((&json["up"], &json["error"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(json["samples"][1]["labels"]["__name__"], "b");
    assert_eq!(json["samples"][1]["value"], "1");
    assert_eq!(json["samples"][1]["timestamp"], 2.0);
    assert_eq!(json["samples"][0]["timestamp"], serde_json::Value::Null);
    assert_eq!(json["refused"][1]["series"], "c");
    assert_eq!((&json["refusedCount"], &json["answer"]["status"]), (&5.into(), &"200 OK".into()));
    assert_eq!(json["answer"]["format"], "Prometheus text");
}

/// Regression: samples that a server refuses by its limits were shown as stored.
#[tokio::test]
async fn labels_that_the_store_does_not_take_are_named() {
    let exposer = Exposer::start().await;
    let url = format!("http://{}/openmetrics", exposer.address);
    let check_labels =
        Arc::new(|pairs: &[(&str, &str)]| match pairs.contains(&("__name__", "g")) {
            true => Err("a label is too long".to_owned()),
            false => Ok(()),
        });
    let trial = Trial { check_labels, ..trial(url, Job::new("j"), Vec::new()) };
    let outcome = trial.run().await.expect("a target");
    let text = Shown { outcome: &outcome, with_metadata: false }.to_string();
    assert!(text.contains("# samples: 2 exposed, 2 after relabeling, 1 stored\n"), "{text}");
    let own = format!("{{instance=\"{}\",job=\"j\"}}", exposer.address);
    let expected = format!("\n# exposed, and not stored\n# g{own}: a label is too long\n");
    assert!(text.ends_with(&expected), "{text}");
    assert_eq!((outcome.error, outcome.report.len()), (None, 5));
}

#[tokio::test]
async fn a_scrape_that_fails_has_its_report_and_says_why() {
    let limited = Job { limits: Limits { samples: 1, ..Limits::default() }, ..Job::new("j") };
    for (path, job, said) in [
        (
            "/broken",
            Job::new("j"),
            "# FAILED: server returned HTTP status 503 Service Unavailable\n",
        ),
        ("/no-type", Job::new("j"), "set fallback_scrape_protocol of its job"),
        ("/wrong", Job::new("j"), "# FAILED: line 2: "),
        ("/nothing", Job::new("j"), "# answer: none after "),
        ("/metrics", limited, "# FAILED: sample limit exceeded (sample_limit: 1)\n"),
    ] {
        let (outcome, text) = scraped(path, job, false).await;
        assert!(text.contains(said), "{path}: {text}");
        assert!(text.contains("# Nothing but the report is stored.\n"), "{path}: {text}");
        assert!(text.contains("\nup{instance=\"TARGET\",job=\"j\"} 0\n"), "{path}: {text}");
        assert!(outcome.samples.is_empty() && outcome.error.is_some(), "{path}: {text}");
        assert_eq!(outcome.json()["up"], false);
    }
}

#[tokio::test]
async fn a_target_of_the_job_has_its_labels_and_parameters() {
    let exposer = Exposer::start().await;
    let address = exposer.address.to_string();
    let map = |pairs: &[(&str, &str)]| -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let group = TargetGroup {
        source: "0".into(),
        targets: vec![map(&[("__address__", "other:1")]), map(&[("__address__", &address)])],
        labels: map(&[("site", "attic"), ("__param_module", "x")]),
    };
    let params = BTreeMap::from([("module".to_owned(), vec!["y".to_owned()])]);
    let job = Job { params, timeout: Duration::from_secs(3), ..Job::new("j") };
    let discovery = vec![DiscoveryConfig::Static(Arc::new(vec![group]))];
    let run = |url: String, timeout| {
        let trial = Trial { timeout, ..trial(url, job.clone(), discovery.clone()) };
        async { trial.run().await.expect("a target") }
    };
    let outcome = run(address.clone(), None).await;
    assert_eq!(outcome.target.url(), format!("http://{address}/metrics?module=x"));
    assert_eq!(outcome.samples[0].labels.get("site"), "attic");
    let minute = Duration::from_secs(120);
    let outcome = run(format!("http://{address}/gzip?a=b"), Some(minute)).await;
    assert_eq!(outcome.target.url(), format!("http://{address}/gzip?a=b"));
    assert_eq!((outcome.target.timeout(), outcome.target.interval()), (minute, minute));
    let heads = exposer.requests();
    assert!(heads[0].to_lowercase().contains("x-prometheus-scrape-timeout-seconds: 3\r\n"));
    let answer = &outcome.answer;
    let head = answer.head.as_ref().expect("an answer");
    assert_eq!(head.content_encoding.as_deref(), Some("gzip"));
    assert!(answer.body_bytes > 0 && answer.body_bytes != outcome.body_bytes, "{answer:?}");
}

#[tokio::test]
async fn what_is_no_target_is_an_error_that_says_so() {
    let relabel = RuleSpec { regex: ".*".into(), ..RuleSpec::new(Action::Drop) };
    let dropping = Job { relabel: vec![relabel], ..Job::new("j") };
    for (url, job, said) in [
        ("a:1", dropping, "relabel_configs of job \"j\" drop this target: it would not be scraped"),
        ("ftp://a/", Job::new("j"), "ftp://a/ is no URL such as"),
    ] {
        let error: TrialError = trial(url.to_owned(), job, Vec::new()).run().await.unwrap_err();
        assert!(error.to_string().starts_with(said), "{error}");
    }
}
