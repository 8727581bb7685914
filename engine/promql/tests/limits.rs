//! Limits of queries, and the memory that queries need.

use std::rc::Rc;
use tidepool_promql::eval::{EvalError, Evaluation, Limit, Limits, Query};
use tidepool_promql::model::{FloatPoint, Labels, Samples};
use tidepool_promql::plan::{Options, PlanError};
use tidepool_promql::source::{Selection, SeriesSet, Source, SourceError};
use tidepool_promql::syntax::{MatchOp, ParserOptions, Span, parse};

const GAP_MS: i64 = 15_000;

/// Series of each metric name with a sample every 15 seconds; `x` and `y` stand for any selection.
struct Store {
    series: usize,
}

impl Source for Store {
    fn select(&self, selection: &Selection) -> Result<Box<dyn SeriesSet>, SourceError> {
        let name = selection.matchers.iter().find(|it| it.name == "__name__");
        let name = name.map_or("x", |it| it.value.as_str());
        let labels = (0..self.series).map(|i| {
            let instance = format!("host-{i:05}");
            let job = format!("job-{}", i % 10);
            Labels::new([("__name__", name), ("instance", &instance), ("job", &job)])
        });
        // Other matchers only ask for a label.
        let has = |labels: &Labels| {
            let mut asked = selection.matchers.iter().filter(|it| it.op == MatchOp::NotEqual);
            asked.all(|it| !labels.get(&it.name).is_empty())
        };
        let (start_ms, end_ms) = (selection.start_ms, selection.end_ms);
        let rest = labels.filter(has).collect::<Vec<_>>().into_iter();
        Ok(Box::new(SelectedSeries { rest, start_ms, end_ms, at_ms: 0 }))
    }
}

struct SelectedSeries {
    rest: std::vec::IntoIter<Labels>,
    start_ms: i64,
    end_ms: i64,
    at_ms: i64,
}

impl SeriesSet for SelectedSeries {
    fn next(&mut self) -> Result<Option<Labels>, SourceError> {
        self.at_ms = self.start_ms.clamp(0, 1 << 50).div_euclid(GAP_MS) * GAP_MS + GAP_MS;
        Ok(self.rest.next())
    }

    fn read(&mut self, samples: &mut Samples) -> Result<bool, SourceError> {
        for _ in 0..120 {
            if self.at_ms > self.end_ms.min(1 << 50) {
                return Ok(false);
            }
            samples.floats.push(FloatPoint { time_ms: self.at_ms, value: self.at_ms as f64 });
            self.at_ms += GAP_MS;
        }
        Ok(true)
    }
}

fn query(text: &str, options: Options) -> Result<Query, PlanError> {
    Query::new(&parse(text, &ParserOptions::all()).expect("an expression"), options)
}

fn evaluation(text: &str, options: Options, series: usize) -> Evaluation {
    let query = query(text, options).expect("a plan");
    query.evaluate(Rc::new(Store { series })).expect("an evaluation")
}

/// Evaluates to the end; returns the numbers of series and samples.
fn run(evaluation: &mut Evaluation) -> Result<(usize, usize), EvalError> {
    let (mut series, mut samples) = (0, 0);
    for one in evaluation {
        series += 1;
        samples += one?.samples.len();
    }
    Ok((series, samples))
}

fn day() -> Options {
    Options::range(86_400_000, 2 * 86_400_000 - 60_000, 60_000)
}

#[test]
fn a_large_answer_takes_little_memory() {
    let mut evaluation = evaluation("x", day(), 10_000);
    assert_eq!(run(&mut evaluation), Ok((10_000, 14_400_000)));
    let stats = evaluation.stats();
    assert!(stats.bytes_peak < 100_000, "{stats:?}");
}

#[test]
fn names_are_taken_out_while_series_flow() {
    for text in ["rate(x[5m])", "-x", "x * 2", "abs(x)"] {
        let mut evaluation = evaluation(text, day(), 2_000);
        assert_eq!(run(&mut evaluation).expect("an answer").0, 2_000, "{text}");
        let stats = evaluation.stats();
        assert!(stats.bytes_peak < 200_000, "{text}: {stats:?}");
    }
}

#[test]
fn aggregations_hold_their_groups() {
    for text in ["sum by (job) (rate(x[5m]))", "avg by (job) (x)", "count by (job) (x > 5)"] {
        let mut evaluation = evaluation(text, day(), 1_000);
        assert_eq!(run(&mut evaluation), Ok((10, 14_400)), "{text}");
        let held = evaluation.stats().bytes_peak;
        assert!(held < 1_000_000, "{text}: {held}");
    }
}

#[test]
fn what_holds_too_much_names_its_part() {
    let limits = Limits { bytes_max: 1_000_000, ..Limits::default() };
    for (text, span) in [
        ("sum(x) + quantile(0.9, x)", Span { start: 9, end: 25 }),
        ("abs(x + on (instance) y)", Span { start: 4, end: 23 }),
        ("topk(50, x)", Span { start: 0, end: 11 }),
        ("vector(1) or sum by (instance) (x)", Span { start: 13, end: 34 }),
    ] {
        let mut evaluation = evaluation(text, Options { limits, ..day() }, 1_000);
        let error = run(&mut evaluation).expect_err(text);
        assert_eq!(error, EvalError::limit(Limit::Bytes, 1_000_000, span), "{text}");
        assert!(evaluation.next().is_none(), "nothing comes behind an error");
    }
}

#[test]
fn values_of_subqueries_count() {
    let limits = Limits { bytes_max: 1_000_000, ..Limits::default() };
    let options = Options { limits, ..Options::instant(86_400_000) };
    // A column of 54,000 steps takes 486 kB, and its values in the subquery 864 kB.
    let text = "1 + max_over_time(x[15h:1s])";
    let error = run(&mut evaluation(text, options.clone(), 3)).expect_err("a limit");
    assert_eq!(error, EvalError::limit(Limit::Bytes, 1_000_000, Span { start: 4, end: 28 }));
    assert_eq!(run(&mut evaluation("1 + max_over_time(x[8h:1s])", options, 3)), Ok((3, 3)));
}

#[test]
fn columns_on_their_way_count() {
    let limits = Limits { bytes_max: 1_000_000, ..Limits::default() };
    let text = "max_over_time((x + 1)[20h:1s])";
    let options = Options { limits, ..Options::instant(86_400_000) };
    let query = query(text, options).expect("a plan");
    let Err(error) = query.evaluate(Rc::new(Store { series: 1 })) else { panic!("not refused") };
    assert_eq!(error, EvalError::limit(Limit::Bytes, 1_000_000, Span { start: 15, end: 20 }));
}

#[test]
fn samples_that_are_held_are_bounded() {
    let limits = Limits { samples_max: 50_000, ..Limits::default() };
    let options = Options { limits, ..day() };
    assert!(run(&mut evaluation("sum(x)", options.clone(), 100)).is_ok());
    let error = run(&mut evaluation("quantile(0.5, x)", options, 100)).expect_err("a limit");
    assert!(matches!(error, EvalError::Limit { limit: Limit::Samples, max: 50_000, .. }));
}

#[test]
fn too_many_steps_are_refused_before_anything_is_read() {
    let limit = |result: Result<Query, PlanError>| match result {
        Err(PlanError::Evaluation(EvalError::Limit { limit, span, .. })) => Some((limit, span)),
        _ => None,
    };
    let whole = Span { start: 0, end: 1 };
    let many = Options::range(0, 1_000_000_000_000, 1);
    assert_eq!(limit(query("x", many)), Some((Limit::Steps, whole)));
    let subquery = query("max_over_time(x[100y:1ms])", Options::instant(0));
    assert_eq!(limit(subquery), Some((Limit::Steps, Span { start: 14, end: 25 })));
    let most = Options::range(i64::MIN, i64::MAX, 1);
    assert_eq!(limit(query("x", most)), Some((Limit::Steps, whole)));
    let small = Limits { bytes_max: 1_000, ..Limits::default() };
    let options = Options { limits: small, ..day() };
    assert_eq!(limit(query("x", options)), Some((Limit::Bytes, whole)));
}

#[test]
fn deep_expressions_are_refused() {
    let text = format!("{}x{}", "abs(".repeat(20), ")".repeat(20));
    let limits = Limits { depth_max: 10, ..Limits::default() };
    let options = Options { limits, ..Options::instant(0) };
    let Err(PlanError::Evaluation(error)) = query(&text, options) else {
        panic!("not refused");
    };
    assert!(matches!(error, EvalError::Limit { limit: Limit::Depth, max: 10, .. }));
    assert!(query(&text, Options::instant(0)).is_ok());
}

#[test]
fn labels_do_not_explode() {
    let mut text = "x".to_string();
    for _ in 0..40 {
        text = format!(r#"label_replace({text}, "job", "$1$1", "job", "(.*)")"#);
    }
    let error = run(&mut evaluation(&text, Options::instant(60_000), 1)).expect_err("a limit");
    assert!(matches!(error, EvalError::Limit { limit: Limit::LabelBytes, .. }), "{error}");
    let sources = r#", "job""#.repeat(2_000);
    let mut text = "x".to_string();
    for _ in 0..3 {
        text = format!(r#"label_join({text}, "job", "-"{sources})"#);
    }
    let error = run(&mut evaluation(&text, Options::instant(60_000), 1)).expect_err("a limit");
    assert!(matches!(error, EvalError::Limit { limit: Limit::LabelBytes, .. }), "{error}");
}

/// Each pair of these series is a duplicate: there are hundreds of millions.
#[test]
fn duplicates_of_a_join_are_found_without_being_gathered() {
    for text in ["x * on () group_left y", "x * on (job) y", "x * on () group_right y"] {
        let mut evaluation = evaluation(text, Options::instant(60_000), 30_000);
        let error = run(&mut evaluation).expect_err(text).to_string();
        assert!(error.contains("many-to-many matching not allowed"), "{text}: {error}");
    }
}

#[test]
fn compiled_expressions_count_as_memory() {
    let mut text = "x".to_string();
    for _ in 0..50 {
        text = format!(r#"label_replace({text}, "a", "$1", "job", "(.{{0,111}}x?){{9}}")"#);
    }
    let limits = Limits { bytes_max: 4 << 20, ..Limits::default() };
    match query(&text, Options { limits, ..Options::instant(60_000) }) {
        Err(PlanError::Evaluation(EvalError::Limit { limit, span, .. })) => {
            assert_eq!(limit, Limit::Bytes);
            assert!(text[span.start as usize..].starts_with("label_replace("));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn equal_selectors_share_scans_up_to_a_number() {
    let sums = |count: usize| vec!["sum(x)"; count].join(" + ");
    let scans = |text: &str| query(text, day()).expect("a plan").scans().count();
    assert_eq!(scans(&sums(100)), 1);
    assert_eq!(scans(&sums(150)), 2);
}

#[test]
fn times_at_the_ends_of_the_range_do_no_harm() {
    for text in [
        "x @ 9223372036854775",
        "x @ -9223372036854775 offset 200y",
        "rate(x[200y] offset -200y)",
        "max_over_time(x[10y:5y] @ 9223372036854775)",
        "sum_over_time(x[5m] @ start() offset 100y)",
    ] {
        for time_ms in [i64::MIN, i64::MAX, 0] {
            let _ = run(&mut evaluation(text, Options::instant(time_ms), 1));
        }
    }
}

#[test]
fn work_is_done_in_small_parts() {
    let mut evaluation = evaluation("sum(x)", day(), 100);
    let (mut parts, mut series) = (0, 0);
    while evaluation.advance(10).expect("an answer") {
        series += usize::from(evaluation.take_ready().is_some());
        parts += 1;
    }
    // A day of samples is read in 48 parts.
    assert!((400..600).contains(&parts), "{parts}");
    assert_eq!(series, 1);
}

#[test]
fn ranges_are_sorted_while_a_quarter_of_the_memory_holds_them() {
    let text = r#"label_replace(x, "a", "$1", "instance", ".*(.)")"#;
    // A column of a day takes 11 KB and a half.
    for (bytes_max, expected) in [(8 << 20, true), (1 << 20, false)] {
        let limits = Limits { bytes_max, ..Limits::default() };
        let evaluation = evaluation(text, Options { limits, ..day() }, 100);
        let series: Result<Vec<_>, _> = evaluation.collect();
        let labels: Vec<Labels> =
            series.expect("an answer").into_iter().map(|it| it.labels).collect();
        assert_eq!((labels.len(), labels.is_sorted()), (100, expected), "{bytes_max}");
    }
}

#[test]
fn series_that_come_by_labels_do_not_wait() {
    for text in ["x", "rate(x[5m])", "2 * -abs(x)", "x and on () y", "max_over_time(x[5m:1m])"] {
        let mut evaluation = evaluation(text, day(), 100);
        let first = evaluation.next();
        assert!(first.is_some_and(|it| it.is_ok()), "{text}");
        let read = evaluation.stats().series;
        assert!(read < 150, "{text}: {read} series were read for the first one");
        let labels: Vec<_> = evaluation.map(|it| it.expect("a series").labels).collect();
        assert!(labels.is_sorted(), "{text}");
    }
}

#[test]
fn samples_are_counted_as_upstream_counts_them() {
    // A step counts the samples it uses, a part that is evaluated once counts at each step, and a
    // subquery counts where the outer function uses it.
    let options = || Options { stats_per_step: true, ..Options::range(300_000, 420_000, 60_000) };
    for (text, per_step) in [
        ("x", 2),
        ("x @ 300", 2),
        ("sum_over_time(x[1m])", 8),
        ("sum_over_time(x[1m] @ 300)", 8),
        ("sum_over_time(x[2m:1m])", 4),
        ("sum_over_time(x[2m:1m] @ 300)", 4),
        ("x + on (instance) sum_over_time(x[1m])", 10),
        ("time()", 0),
    ] {
        let mut evaluation = evaluation(text, options(), 2);
        run(&mut evaluation).expect("an answer");
        let stats = evaluation.stats();
        assert_eq!(stats.samples_per_step, [per_step; 3], "{text}");
        assert_eq!(stats.samples_total, per_step * 3, "{text}");
    }
}

#[test]
fn the_deepest_expressions_need_little_stack() {
    let levels = Limits::default().depth_max - 2;
    let nested =
        |before: &str, after: &str| format!("{}x{}", before.repeat(levels), after.repeat(levels));
    for text in [
        nested("abs(", ")"),
        nested("-", ""),
        nested("sum by (job) (", ")"),
        nested("1 + ", ""),
        nested("y + on (job, instance) ", ""),
        nested("topk(2, ", ")"),
        nested("y or ", ""),
        nested("label_replace(", ", \"a\", \"b\", \"\", \"\")"),
        nested("sum_over_time(", "[1m:1m])"),
        nested("quantile_over_time(scalar(", "), x[1m])"),
        nested("histogram_quantile(0.5, ", ")"),
    ] {
        let run = move || {
            let Ok(expr) = parse(&text, &ParserOptions::all()) else { return };
            let query = Query::new(&expr, Options::range(60_000, 180_000, 60_000));
            let Ok(query) = query else { return };
            let mut evaluation = query.evaluate(Rc::new(Store { series: 3 })).expect("a start");
            let _ = run(&mut evaluation);
        };
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run);
        thread.expect("a thread").join().expect("an end");
    }
}

#[test]
fn series_wait_for_the_side_that_is_held() {
    let options = || Options::range(300_000, 600_000, 60_000);
    for (text, series) in [
        ("sum by (instance) (x) - on (instance) x", 20),
        ("sum by (instance) (x) unless on (instance) x", 0),
        ("sum by (job) (x) / count by (job) (x)", 10),
        ("max(x) - scalar(min(x))", 1),
    ] {
        let query = query(text, options()).expect("a plan");
        assert_eq!(query.scans().count(), 1, "{text}");
        let evaluation = query.evaluate(Rc::new(Store { series: 20 })).expect("an evaluation");
        let all: Result<Vec<_>, _> = evaluation.collect();
        let all = all.expect("an answer");
        assert_eq!(all.len(), series, "{text}");
        for one in all {
            let minutes = (5..=10).map(|minute| minute * 60_000);
            assert!(one.samples.floats.iter().map(|it| it.time_ms).eq(minutes), "{text}");
            if text.contains('-') {
                assert!(one.samples.floats.iter().all(|it| it.value == 0.0), "{text}");
            }
        }
    }
}
