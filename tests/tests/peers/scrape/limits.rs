//! Every limit of a job, exceeded and not exceeded.

use super::exposer::{Page, Scripts};
use super::{Pair, configuration, job};

/// Returns a page with this number of series.
fn of_series(count: usize) -> String {
    (0..count).map(|number| format!("s{{number=\"{number}\"}} {number}\n")).collect()
}

#[test]
fn limits_are_those_of_prometheus() {
    let sized = |bytes: usize| {
        let mut body = "a 1\n".to_owned();
        body += &format!("# {}\n", "x".repeat(bytes - body.len() - 3));
        assert_eq!(body.len(), bytes);
        Page::text(&body)
    };
    let body = vec![
        sized(200),
        sized(201),
        sized(199),
        sized(5_000).gzip(usize::MAX),
        sized(200).gzip(usize::MAX),
        sized(5_000).chunked(),
        sized(300).cut(),
        sized(100),
    ];
    let samples = vec![
        Page::text(&of_series(3)),
        Page::text(&of_series(4)),
        Page::text(&of_series(2)),
        // Half of them are dropped before they are counted.
        Page::text(
            "s{number=\"1\"} 1\ns{number=\"2\"} 1\ns{number=\"3\"} 1\ngone 1\ngone{x=\"1\"} 2\n",
        ),
        Page::text(&of_series(40)),
        Page::text("s{number=\"1\"} 1\ns{number=\"1\"} 2\ns{number=\"1\"} 3\ns{number=\"1\"} 4\n"),
        Page::text(""),
        Page::text(&of_series(3)),
    ];
    // In addition to those of the target: `instance`, `job`, `which` and the name.
    let labels = vec![
        Page::text("a{x=\"1\"} 1\n"),
        Page::text("a{x=\"1\",y=\"2\"} 1\n"),
        Page::text("a{x=\"1\"} 1\nb{x=\"1\",y=\"2\"} 1\n"),
        Page::text("a{x=\"1\",y=\"\"} 1\n"),
        Page::text("a{long=\"1\"} 1\n"),
        Page::text("a{a_name_of_twenty_chars=\"1\"} 1\n"),
        Page::text("a{x=\"a value that is far too long for this\"} 1\n"),
        Page::text("a_metric_name_that_is_far_too_long_for_this 1\n"),
    ];
    let scrapes = body.len();
    let target_limit = |name: &str, limit: usize| {
        format!(
            "  - job_name: {name}\n    target_limit: {limit}\n    metrics_path: /few\n    \
             static_configs:\n      - {{targets: [ADDRESS], labels: {{which: {name}_1}}}}\n      \
             - {{targets: [ADDRESS], labels: {{which: {name}_2}}}}\n"
        )
    };
    let drop = "metric_relabel_configs: [{source_labels: [__name__], regex: gone, action: drop}]";
    let jobs = [
        job("body", "body_size_limit: 200B"),
        job("samples", &format!("sample_limit: 3\n{drop}")),
        job("labels", "label_limit: 5"),
        job("names", "label_name_length_limit: 12"),
        job("values", "label_value_length_limit: 30"),
        job("extra", "body_size_limit: 200B\nsample_limit: 5\nextra_scrape_metrics: true"),
        target_limit("under", 2),
        target_limit("over", 1),
        job("kept", "keep_dropped_targets: 1\ntarget_limit: 1"),
    ];
    let pair = Pair::start(&configuration(&jobs), |_| {
        let labelled = ["/labels", "/names", "/values"].map(|path| (path, labels.clone()));
        let few = ["/few", "/kept"].map(|path| (path, vec![Page::text(&of_series(2))]));
        let mut scripts = Scripts::from(labelled);
        scripts.extend(few);
        scripts.insert("/body", body.clone());
        scripts.insert("/extra", body.clone());
        scripts.insert("/samples", samples.clone());
        scripts
    });
    pair.assert_same(jobs.len() + 2, scrapes, 2.0);
}
