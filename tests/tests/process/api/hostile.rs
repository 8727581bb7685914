//! Queries in PromQL that exceed limits: each ends with an error that gives the reason, and the
//! next one is answered.

use serde_json::Value;
use std::time::{Duration, Instant};
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, Response};
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const SERIES: usize = 1000;

/// Memory limit of a query's instance in bytes; most of it is for the evaluation.
const MEMORY_BYTES: u64 = 32 << 20;

/// Memory of a query outside its instance: its body, its answer, a thread, freed memory that is not
/// returned.
const BESIDE_BYTES: u64 = 32 << 20;

const ALL: &str = "{__name__=~\".+\"}";

const FLAGS: [&str; 3] = [
    "--query-memory-limit=32MiB",
    "--query-timeout=50s",
    "--enable-feature=promql-experimental-functions",
];

/// Texts that errors must contain.
const MEMORY: &str = "bytes of memory it may take (in \"";
const TIMEOUT: &str = "query timed out in expression evaluation";
const DEEP: &str = "the expression is nested too deeply";

/// A query, and its expected end.
struct Case {
    name: &'static str,
    expression: String,
    /// Parameters besides the expression; those of a range have a start.
    more: String,
    status: u16,
    kind: &'static str,
    text: String,
}

fn case(
    name: &'static str,
    expression: impl Into<String>,
    (status, kind, text): (u16, &'static str, &str),
) -> Case {
    let (expression, text) = (expression.into(), text.to_owned());
    Case { name, expression, more: String::new(), status, kind, text }
}

impl Case {
    fn with(self, more: impl Into<String>) -> Case {
        Case { more: more.into(), ..self }
    }
}

fn bad_data(text: &str) -> (u16, &'static str, &str) {
    (400, "bad_data", text)
}

fn execution(text: &str) -> (u16, &'static str, &str) {
    (422, "execution", text)
}

/// Nests an expression in others, this number of times.
fn nested(count: usize, inner: &str, around: impl Fn(&str) -> String) -> String {
    (0..count).fold(inner.to_owned(), |inner, _| around(&inner))
}

/// Makes a tree of sums with this number of levels.
fn tree(levels: u32) -> String {
    nested(levels as usize, "a", |half| format!("({half}-{half})"))
}

fn joins_and_steps(now_ms: i64) -> Vec<Case> {
    let range = |steps: i64| {
        let end = now_ms / 1000;
        format!("start={}&end={end}&step=1", end - steps)
    };
    let fine = format!("start=0&end={}&step=1", 1_000_000_000);
    let by_name = format!("{ALL} * on (__name__, i) {ALL}");
    let duplicate = "many-to-many matching not allowed";
    let minutes = |inner: &str| format!("sum_over_time({inner}[1d:1s])");
    vec![
        case("a join with duplicates", format!("{ALL} * on (job) {ALL}"), execution(duplicate)),
        case("a join of one group", format!("{ALL} * on () {ALL}"), execution(duplicate)),
        case("to many", format!("{ALL} * on () group_left {ALL}"), execution(duplicate)),
        case("a join over time", &by_name, execution(MEMORY)).with(range(11_000)),
        case("1e9 steps", "1", bad_data("exceeded maximum resolution of 11,000 points")).with(fine),
        case("11,002 steps", "1", bad_data("exceeded maximum resolution of 11,000 points"))
            .with(range(11_001)),
        case("all of time", "1", bad_data("exceeded maximum resolution of 11,000 points"))
            .with("start=-9e15&end=9e15&step=15".to_owned()),
        case(
            "a subquery of 3e12 steps",
            "1 + max_over_time(vector(1)[100y:1ms])",
            execution("more than 10000000 steps (in \"vector(1)[100y:1ms]\")"),
        ),
        case(
            "a subquery of 1e7 steps",
            format!("sum_over_time({ALL}[10000s:1ms])"),
            execution(MEMORY),
        ),
        case(
            "subqueries of subqueries",
            nested(4, "vector(1)", minutes),
            (503, "timeout", TIMEOUT),
        )
        .with("timeout=300ms"),
        case(
            "many of them",
            nested(40, "vector(1)", |inner| format!("max_over_time({inner}[1h:1s])")),
            execution(MEMORY),
        ),
        case("numbers counted", format!("count_values(\"v\", {ALL} + time())"), execution(MEMORY))
            .with(range(11_000)),
        case("a tree of sums", tree(14), execution(MEMORY)),
    ]
}

fn labels_and_expressions() -> Vec<Case> {
    let one = "metric_1{i=\"1\"}";
    let doubled = |inner: &str| format!("label_replace({inner}, \"i\", \"$1$1\", \"i\", \"(.*)\")");
    let joined =
        |inner: &str| format!("label_join({inner}, \"i\", \"-\"{})", ", \"i\"".repeat(100));
    let compiled = |inner: &str| {
        format!("label_replace({inner}, \"a\", \"$1\", \"i\", \"(.{{0,90}}x?){{9}}\")")
    };
    let long = "a label's value would have more than 1048576 bytes (in \"label_";
    let filled = |inner: &str| {
        let long = "x".repeat(40_000);
        format!("sort(label_replace({inner}, \"a\", \"{long}\", \"\", \"\"))")
    };
    let regexes = "error parsing regexp";
    let nested_repeats = "{a=~\"((a{0,100}){0,100}){0,100}\"}";
    let alternatives: Vec<String> = (0..20_000).map(|number| format!("x{number}.*")).collect();
    vec![
        case("labels that double", nested(40, one, doubled), execution(long)),
        case("labels joined with themselves", nested(4, one, joined), execution(long)),
        case("long labels of many series", filled(ALL), execution(MEMORY)),
        case("expressions to replace by", nested(150, one, compiled), execution(MEMORY)),
        case("nested repetitions", nested_repeats, bad_data(regexes)),
        case(
            "a long expression",
            format!("{{a=~\"{}\"}}", alternatives.join("|")),
            bad_data("it has more than 65536 bytes"),
        ),
        case("open groups", format!("{{a=~\"{}\"}}", "(".repeat(30_000)), bad_data(regexes)),
    ]
}

fn texts() -> Vec<Case> {
    let parens = |count: usize| format!("{}1{}", "(".repeat(count), ")".repeat(count));
    let matchers: Vec<String> = (0..1000).map(|number| format!("b{number}=\"c\"")).collect();
    let too_large = (413, "bad_data", "the body is larger than 1048576 bytes");
    vec![
        case("parentheses", parens(100_000), bad_data(DEEP)),
        case("minus signs", format!("{}a", "-".repeat(100_000)), bad_data(DEEP)),
        case("minus signs in a duration", format!("a[{}1s]", "-".repeat(100_000)), bad_data(DEEP)),
        case("calls", nested(1000, "a", |inner| format!("abs({inner})")), bad_data(DEEP)),
        case(
            "a chain",
            vec!["a"; 500_000].join("*"),
            bad_data("more than 10000 operators follow one another"),
        ),
        case(
            "subqueries behind one another",
            format!("a{}", "[1m:]".repeat(20_000)),
            bad_data("the expression has too many levels"),
        ),
        case(
            "subqueries with arithmetic behind one another",
            format!("a{}", "[1m+1m:]".repeat(20_000)),
            bad_data("the expression has too many levels"),
        ),
        case("a long text", format!("\"{}\"", "x".repeat(1 << 20)), too_large),
        case("a long name", "x".repeat(1_048_000), (200, "", "")),
        case("a long number", "9".repeat(1_000_000), bad_data("error parsing number")),
        case(
            "absent with many matchers",
            format!("absent(a{{{}}})", matchers.join(",")),
            execution("at most 200 matchers"),
        ),
    ]
}

fn parameters() -> Vec<Case> {
    let of_all = |call: &str| format!("{call}, {ALL})");
    vec![
        case("topk(1e300)", of_all("topk(1e300"), execution("Scalar value 1e+300 overflows int64")),
        case("topk(NaN)", of_all("topk(NaN"), execution("Parameter value is NaN")),
        case("topk(9e18)", of_all("topk(9e18"), (200, "", "")),
        case("bottomk(-1e18)", of_all("bottomk(-1e18"), (200, "", "")),
        case("limitk(9e18)", of_all("limitk(9e18"), (200, "", "")),
        case("quantile(1e300)", of_all("quantile(1e300"), (200, "", "")),
        case("quantile(NaN)", of_all("quantile(NaN"), (200, "", "")),
        case("info", format!("info({ALL})"), (200, "", "")),
        case("info of infos", nested(20, ALL, |it| format!("info({it}, {ALL})")), (200, "", "")),
        case("a self-join", format!("{ALL} * on (__name__, i) {ALL}"), (200, "", "")),
    ]
}

fn ask(store: &Store, case: &Case) -> Response {
    let endpoint = if case.more.starts_with("start") { "query_range" } else { "query" };
    let url = format!("{}/api/v1/{endpoint}", store.server.url());
    let expression = percent_encode(&case.expression).replace("%2A", "*");
    let form = format!("query={expression}&{}", case.more);
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    Client::default().post(&url, &headers, form.as_bytes()).expect("an answer")
}

/// Returns a description of a query that ended differently than expected.
fn wrong(store: &Store, case: &Case) -> Option<String> {
    let begun = Instant::now();
    let response = ask(store, case);
    println!("{}: {} after {:?}", case.name, response.status, begun.elapsed());
    let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let kind = answer["errorType"].as_str().unwrap_or_default();
    let error = answer["error"].as_str().unwrap_or_default();
    let is_as_said =
        (response.status, kind) == (case.status, case.kind) && error.contains(&case.text);
    let short = |text: &str| text.chars().take(300).collect::<String>();
    if !is_as_said {
        return Some(format!("{}: {} {}", case.name, response.status, short(&response.text())));
    }
    // A query with a timeout of its own ends soon after it, on a busy machine, too.
    let took = begun.elapsed();
    if case.status == 503 && took > Duration::from_secs(20) {
        return Some(format!("{}: took {took:?}", case.name));
    }
    let next = Client::default().get(&format!("{}/api/v1/query?query=1%2B1", store.server.url()));
    let next = next.expect("an answer");
    (next.status != 200).then(|| format!("behind {}: {}", case.name, next.text()))
}

#[test]
fn hostile_queries_end_with_a_reason() {
    let store =
        Store::start_with(|config| FLAGS.iter().fold(config, |config, flag| config.flag(flag)))
            .expect("tidepool starts");
    let now_ms = now_ms();
    let samples: Vec<(i64, f64)> =
        (0..5).map(|n| (now_ms - 60_000 + n * 15_000, n as f64)).collect();
    let series: Vec<Series> = (0..SERIES)
        .map(|number| {
            let (name, job) = (format!("metric_{}", number % 50), format!("job-{}", number % 10));
            let labels = [("__name__", &*name), ("i", &number.to_string()), ("job", &job)];
            Series::new(&labels, &samples)
        })
        .collect();
    let rows: Vec<_> = series.iter().map(Series::row).collect();
    let response = store.writer().send(Version::V2, &rows).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());

    let usual = case("a usual query", format!("sum by (job) ({ALL})"), (200, "", ""));
    assert_eq!(wrong(&store, &usual), None);
    let is_idle = || {
        let is_zero = |name| (store.metric(name)? == 0.0).then_some(());
        is_zero("tidepool_reads_memory_bytes").and(is_zero("prometheus_engine_queries"))
    };
    let timeout = Duration::from_secs(60);
    wait::until("an idle store", timeout, is_idle).expect("it is");
    store.server.reset_peak_memory().expect("a process");
    let before = store.server.usage().expect("a process").peak_memory_bytes;

    let mut cases = joins_and_steps(now_ms);
    cases.extend(labels_and_expressions());
    cases.extend(texts());
    cases.extend(parameters());
    let wrong: Vec<String> = cases.iter().filter_map(|case| wrong(&store, case)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    wait::until("the queries' memory", timeout, is_idle).expect("given back");
    let peak = store.server.usage().expect("a process").peak_memory_bytes;
    let most = before + MEMORY_BYTES + BESIDE_BYTES;
    println!("peak memory: {before} bytes before, {peak} beside");
    assert!(peak <= most, "{peak} bytes, {before} before");
}
