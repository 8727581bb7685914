//! Scans of the store that expressions need.

use tidepool_promql::eval::Query;
use tidepool_promql::plan::{Options, PlanError, Scan};
use tidepool_promql::syntax::{ParserOptions, parse};

const MINUTE: i64 = 60_000;

fn query(text: &str, options: Options) -> Result<Query, PlanError> {
    Query::new(&parse(text, &ParserOptions::all()).expect("an expression"), options)
}

fn range() -> Options {
    Options::range(100 * MINUTE, 200 * MINUTE, MINUTE)
}

/// Ranges of the scans in minutes: the first time is excluded, the last one included.
fn times(text: &str) -> Vec<(i64, i64)> {
    let query = query(text, range()).expect("a plan");
    let minutes = |scan: &Scan| ((scan.start_ms - 1) / MINUTE, scan.end_ms / MINUTE);
    query.scans().map(minutes).collect()
}

#[test]
fn selectors_ask_for_the_time_they_need() {
    for (text, expected) in [
        ("x", vec![(95, 200)]),
        ("x offset 10m", vec![(85, 190)]),
        ("x offset -10m", vec![(105, 210)]),
        ("rate(x[20m])", vec![(80, 200)]),
        ("rate(x[20m] offset 1h)", vec![(20, 140)]),
        ("x @ 3000", vec![(45, 50)]),
        ("x @ end() offset 5m", vec![(190, 195)]),
        ("rate(x[20m] @ start())", vec![(80, 100)]),
        // The inner times are the multiples of 10 minutes behind 100 - 30 to 200.
        ("max_over_time(x[30m:10m])", vec![(75, 200)]),
        ("max_over_time(x[30m:7m])", vec![(72, 196)]),
        ("max_over_time(rate(x[5m])[30m:10m] @ 6000)", vec![(75, 100)]),
        ("rate(x[20m] anchored)", vec![(75, 200)]),
        ("rate(x[20m] smoothed)", vec![(75, 205)]),
        ("x smoothed", vec![(95, 205)]),
        ("vector(1)", vec![]),
    ] {
        assert_eq!(times(text), expected, "{text}");
    }
}

#[test]
fn equal_selectors_are_read_once() {
    for (text, scans) in [
        ("sum(x) / count(x)", 1),
        ("sum(rate(x[5m])) by (a) / sum(rate(x[5m])) by (b)", 1),
        ("stddev(x) + on() avg(x) * max(x)", 1),
        // The left side would wait for the whole right side.
        ("x - on (a) x", 2),
        ("x - on (a) group_left sum by (a) (x)", 2),
        ("sum by (a) (x) - on (a) group_right x", 2),
        ("sum by (a) (x) - on (a) x", 1),
        // Series of one name that match by all labels match themselves.
        ("x - x offset 0s", 1),
        ("rate(x[5m]) / rate(x[5m])", 1),
        ("abs(rate(x[5m])) > bool 2 * x offset 5m", 1),
        ("x / (x + x * 2)", 1),
        ("x + x + x + x", 1),
        ("x and x > 5", 1),
        ("x unless (x > 5 and x < 7)", 1),
        ("max_over_time(x[30m:10m]) - x", 1),
        ("x @ end() - x @ end()", 1),
        ("-(x ^ x) + sum(y)", 2),
        ("x / (x + y)", 2),
        ("(x + y) / x", 2),
        ("x / (x + y + z)", 3),
        ("x * on (a) group_left y / x", 3),
        ("x * scalar(y) - x", 2),
        ("x - x * scalar(y)", 2),
        ("quantile_over_time(scalar(y), x[5m]) - x", 2),
        ("x / (x and on (a) y)", 2),
        // The whole flowing side would wait for `y`.
        ("x / (y + x)", 3),
        // Labels differ, or may belong to several series.
        ("x - ignoring (a) x", 2),
        ("x - ignoring () group_left x", 2),
        ("x - fill(0) x", 2),
        ("x or x", 2),
        ("{a=\"b\"} - {a=\"b\"}", 2),
        ("{__name__=~\"x\"} - {__name__=~\"x\"}", 2),
        ("label_replace(x, \"a\", \"\", \"\", \"\") - x", 2),
        ("x - x{a=\"b\"}", 2),
        ("x - topk(1, x)", 2),
        // Adjacent times are read at once, others are not.
        ("x - x offset 5m", 1),
        ("x - x offset 1d", 2),
        ("sum(x) / sum(x offset 5m)", 1),
        ("sum(x) / sum(x offset 1d)", 2),
        ("sum(x) / sum(y)", 2),
        ("sum(rate(x[5m])) + sum(x)", 1),
        ("sum(rate(x[10m])) + sum(x)", 1),
    ] {
        let query = query(text, range()).expect("a plan");
        assert_eq!(query.scans().count(), scans, "{text}");
    }
}

/// Chunks between windows are left out of a scan only if all windows end at the same times.
#[test]
fn what_lies_between_windows_is_not_read_to_read_once() {
    let day = 24 * 60 * MINUTE;
    let daily = Options::range(0, 30 * day, day);
    for (text, scans) in [
        ("x - x", 1),
        ("x - rate(x[2m])", 1),
        ("x - x offset 5m", 2),
        ("sum(x) / sum(x offset 5m)", 2),
        ("rate(x[1d]) - rate(x[1d] offset 5m)", 1),
    ] {
        let query = query(text, daily.clone()).expect("a plan");
        assert_eq!(query.scans().count(), scans, "{text}");
    }
}

#[test]
fn buckets_are_left_out_where_no_one_looks_at_them() {
    for (text, is_without) in [
        ("histogram_count(h)", true),
        ("histogram_sum(sum(rate(h[5m])))", true),
        ("histogram_avg(h) + histogram_quantile(0.9, g)", true),
        ("histogram_quantile(0.9, h)", false),
        ("histogram_count(h </ 5)", false),
        ("histogram_count(increase(h[10m:1m]))", false),
        ("h", false),
    ] {
        let query = query(text, range()).expect("a plan");
        let scan = query.scans().find(|scan| scan.matchers[0].value == "h").expect("a scan");
        assert_eq!(scan.hints.without_buckets, is_without, "{text}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_refused() {
    for (text, error) in [
        ("rate(x[step() - 1m])", "7:18: duration must be greater than 0"),
        ("x offset (1m / (step() - 60))", "10:27: division by zero"),
        (
            "\"a\"",
            "invalid expression type \"string\" for range query, must be Scalar or instant Vector",
        ),
        (
            "x[5m]",
            "invalid expression type \"range vector\" for range query, must be Scalar or instant Vector",
        ),
        (
            "label_replace(x, \"a\", \"\", \"b\", \"(\")",
            "invalid regular expression in label_replace(): (",
        ),
        (
            "deriv(x[5m] smoothed)",
            "smoothed modifier can only be used with: delta, increase, rate - not with deriv",
        ),
    ] {
        let found = query(text, range()).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(found, Err(error.to_string()), "{text}");
    }
}
