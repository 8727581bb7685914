//! Ingestion beside hostile PromQL queries: writes at a steady rate take hardly longer than alone.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidepool_tests::clock;
use tidepool_tests::hostile::{Contents, Phase, Writes, filled};
use tidepool_tests::http::Client;
use tidepool_tests::latency::median;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::tidepool::Store;

const CONTENTS: Contents = Contents { series: 20_000, exemplars: 0, families: 0 };

/// Number of requests in a second, with a thousand samples each.
const WRITES_PER_SECOND: u32 = 100;

const PHASE: Duration = Duration::from_secs(4);

/// Number of pairs of a quiet phase and one beside queries.
const PAIRS: usize = 5;

/// Number of clients that send hostile queries.
const CLIENTS: usize = 2;

/// Largest 99th percentile beside queries: the larger of a multiple of the quiet one, and of some
/// milliseconds more.
const RATIO_MAX: f64 = 1.2;
const MORE_MAX: Duration = Duration::from_millis(10);

/// Returns the hostile queries: joins, steps, labels, expressions, sorting, and large answers.
fn queries() -> Vec<String> {
    let all = "{__name__=~\".+\"}";
    let doubled = (0..30).fold("flood".to_owned(), |inner, _| {
        format!("label_replace({inner}, \"i\", \"$1$1\", \"i\", \"(.*)\")")
    });
    [
        format!("{all} * on () group_left {all}"),
        format!("{all} * on (__name__, i) {all}"),
        "sum_over_time(sum_over_time(vector(1)[1d:1s])[1d:1s])".into(),
        format!("sum_over_time({all}[1h:1s])"),
        format!("count_values(\"v\", {all} * time())"),
        doubled,
        "{__name__=~\".*[a-z0-9:._/-]*[a-z0-9]+.*\",i=~\".*[0-9]+.*7.*|x\"}".into(),
        format!("quantile(0.5, {all})"),
        format!("topk(9e18, {all})"),
        format!("info({all}, {all})"),
        all.into(),
    ]
    .into()
}

/// Sends queries until `stop` is set, and counts the answers.
fn ask(store: &Store, first: usize, stop: &AtomicBool, answers: &AtomicU64) {
    let client = Client::default();
    let queries = queries();
    for expression in queries.iter().cycle().skip(first * queries.len() / CLIENTS) {
        if stop.load(Relaxed) {
            break;
        }
        let query = percent_encode(expression);
        let url = format!("{}/api/v1/query?query={query}&timeout=1s", store.server.url());
        // A query that reaches its timeout may end within its answer.
        if let Ok(response) = client.get(&url) {
            let status = response.status;
            assert!(matches!(status, 200 | 422 | 503), "{expression}: {}", response.text());
        }
        answers.fetch_add(1, Relaxed);
    }
}

fn beside(store: &Store, writes: &mut Writes, answers: &AtomicU64) -> Phase {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let stop = &stop;
            scope.spawn(move || ask(store, number, stop, answers));
        }
        let phase = writes.send_for(PHASE);
        stop.store(true, Relaxed);
        phase.expect("writes that are taken")
    })
}

#[test]
fn hostile_queries_do_not_hold_writes_up() {
    let start_ms = clock::now_ms();
    let flags = ["--query-memory-limit=64MiB", "--enable-feature=promql-experimental-functions"]
        .map(str::to_owned);
    let store = filled(&flags, CONTENTS, start_ms).expect("a filled head");
    let mut writes = Writes::new(&store.server.url(), start_ms + 1_000, WRITES_PER_SECOND);
    // Series are created before the measurement.
    writes.send_for(PHASE).expect("writes that are taken");
    let answers = AtomicU64::new(0);
    let (mut quiet, mut loaded) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let alone = writes.send_for(PHASE).expect("writes that are taken");
        let with_queries = beside(&store, &mut writes, &answers);
        let of = |phase: &Phase| {
            let (count, p50) = (phase.taken.len(), phase.quantile(0.5));
            format!("{count} writes, p50 {p50:?}, p99 {:?}", phase.quantile(0.99))
        };
        println!("pair {pair}: quiet {}; beside queries {}", of(&alone), of(&with_queries));
        quiet.push(alone.quantile(0.99));
        loaded.push(with_queries.quantile(0.99));
    }
    let (quiet, loaded) = (median(quiet), median(loaded));
    let answers = answers.load(Relaxed);
    println!("median p99: quiet {quiet:?}, beside {answers} queries {loaded:?}");
    assert!(answers > 0, "no query ended");
    let most = quiet.mul_f64(RATIO_MAX).max(quiet + MORE_MAX);
    assert!(loaded <= most, "p99 {loaded:?} beside queries, {quiet:?} without");
}
