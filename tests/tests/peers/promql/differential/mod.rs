//! Random expressions over random data: the real Prometheus and three stores with the same samples
//! must answer alike. One store has all in its head, one has blocks and a head, one only blocks.

mod answer;
mod buckets;

use answer::{Answer, Order, Times, ask, ask_lossless, difference};
use std::collections::BTreeMap;
use tidepool_tests::arguments;
use tidepool_tests::cli::tsdb;
use tidepool_tests::clock::now_ms;
use tidepool_tests::histogram::generate::SentSeries;
use tidepool_tests::histogram::stored::{rows, send, wait_for};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::prometheus;
use tidepool_tests::promql::{Data, Expressions, data};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Random;
use tidepool_tests::soak;
use tidepool_tests::tidepool::Store;

/// Number of scrapes of the data: two hours.
const SCRAPES: usize = 480;

/// All features behind upstream's flags that tidepool supports, except the removal of names.
const FEATURES: &str = "--enable-feature=promql-experimental-functions,\
     promql-extended-range-selectors,promql-binop-fill-modifiers";

/// Names are dropped at the end of an evaluation instead of at each function.
const DELAYED_NAME_REMOVAL: &str = "--enable-feature=promql-delayed-name-removal";

/// Words that must occur in expressions whose answers have values.
const WORDS: [&str; 18] = [
    " anchored",
    " smoothed",
    " fill ",
    " fill_left",
    " fill_right",
    " </ ",
    " >/ ",
    "info(",
    "limitk",
    "limit_ratio",
    "sort(",
    "sort_by_label",
    "histogram_quantiles(",
    "step()]",
    "min_of(",
    " offset (",
    " @ ",
    ":30s]",
];

/// Prometheus, and the three stores.
struct Servers {
    peer: Server,
    stores: [(&'static str, Store); 3],
    _directory: tempfile::TempDir,
}

fn times(random: &mut Random, start_ms: i64, end_ms: i64) -> Times {
    let seconds = |ms: i64| format!("{}.{:03}", ms / 1000, ms % 1000);
    let span_ms = (end_ms - start_ms) as u64;
    let from_ms = start_ms + random.below(span_ms) as i64;
    if random.one_in(2) {
        return Times { path: "query", parameters: format!("time={}", seconds(from_ms)) };
    }
    let step_ms = random.pick(&[1_000, 15_000, 60_000, 77_000, 300_000]);
    let steps = 1 + random.below(60) as i64;
    let (start, end) = (seconds(from_ms), seconds(from_ms + step_ms * steps));
    let step = seconds(step_ms);
    Times { path: "query_range", parameters: format!("start={start}&end={end}&step={step}") }
}

fn write(server: &Server, data: &Data) {
    // Prometheus returns series in the order of their creation. If the order matters, as in sums of
    // histograms and among equal values, it must be tidepool's: that of the labels.
    let first = |it: &SentSeries| SentSeries { values: it.values[..1].to_vec(), ..it.clone() };
    let mut first: Vec<SentSeries> = data.series.iter().map(first).collect();
    first.sort_by(|a, b| a.labels.pairs().cmp(b.labels.pairs()));
    let first: Vec<_> = first.iter().flat_map(|one| rows(std::slice::from_ref(one))).collect();
    // Only version 2.0 carries custom bounds.
    send(server, Version::V2, &first);
    send(server, Version::V2, &rows(&data.series));
    send(server, Version::V2, &rows(&data.out_of_order));
}

fn servers(data: &Data, features: &[&str]) -> Servers {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = prometheus::Config::new(Release::V3, directory.path()).expect("a directory");
    let config = config.receiver().out_of_order_window("3h");
    let config = features.iter().fold(config, |config, flag| config.flag(flag));
    let peer = config.start().expect("Prometheus starts");
    write(&peer, data);
    let start = |duration: &str| {
        let store = Store::start_with(|config| {
            let config = config.block_duration(duration).flag("--out-of-order-window=3h");
            features.iter().fold(config, |config, flag| config.flag(flag))
        });
        let store = store.expect("tidepool starts");
        write(&store.server, data);
        store
    };
    let (head, mixed) = (start("2h"), start("10m"));
    wait_for("blocks", mixed.config.data_dir(), |blocks| blocks.len() >= 5);
    let Store { server, config, directory: blocks } = start("30m");
    server.terminate().expect("it ends");
    tsdb(arguments!["compact", "--head", "--block-duration=30m", config.data_dir()]);
    let server = config.start().expect("tidepool starts");
    assert_eq!(server.metric("prometheus_tsdb_head_series"), Some(0.0), "all is in blocks");
    let blocks = Store { server, config, directory: blocks };
    let stores = [("the head", head), ("blocks and the head", mixed), ("blocks", blocks)];
    Servers { peer, stores, _directory: directory }
}

/// Sends some expressions to all servers and compares the answers.
fn compare(seed: u64, count: usize, features: &[&str]) {
    let end_ms = now_ms() - 60_000;
    let start_ms = end_ms - SCRAPES as i64 * 15_000;
    let Servers { peer, stores, .. } = &servers(&data(seed, SCRAPES, end_ms), features);
    let mut random = Random::new(seed, 1);
    let mut expressions = Expressions::new(seed, (start_ms / 1000, end_ms / 1000));
    let mut differences = Vec::new();
    let mut with_values = 0;
    let mut words: BTreeMap<&str, usize> = WORDS.map(|word| (word, 0)).into();
    for number in 0..count {
        let expression = expressions.next_expression();
        let times = times(&mut random, start_ms, end_ms);
        let order = Order::of(&expression, &times);
        let theirs = ask(peer, &expression, &times);
        if matches!(&theirs, Answer::Value { series, .. } if !series.is_empty()) {
            with_values += 1;
            let found = words.iter_mut().filter(|(word, _)| expression.contains(**word));
            found.for_each(|(_, count)| *count += 1);
        }
        let mut differs = |what: &str, difference: Option<String>| {
            let line = |it| format!("{what}: {expression}\n  {times:?}\n  {it}");
            differences.extend(difference.map(line));
        };
        let mut own = Vec::new();
        for (what, store) in stores {
            let ours = ask(&store.server, &expression, &times);
            differs(what, difference(&ours, &theirs, order));
            own.push(ours);
        }
        let place = number % stores.len();
        let (what, store) = &stores[place];
        let lossless = ask_lossless(&store.server, &expression, &times);
        let lossless = difference(&lossless, &own[place], order);
        differs(&format!("{what}, protobuf against JSON"), lossless);
    }
    assert!(
        differences.is_empty(),
        "seed {seed}: {} of {count}:\n{}",
        differences.len(),
        differences.join("\n")
    );
    // Empty answers are equal without proving anything.
    println!("{with_values} of {count} answers have values; {words:?}");
    assert!(with_values * 5 > count * 2, "only {with_values} of {count} answers have values");
    let missing: Vec<_> = words.iter().filter(|(_, count)| **count == 0).collect();
    assert!(missing.is_empty(), "no answer with values is about {missing:?}");
}

#[test]
fn random_expressions_have_prometheus_answers() {
    compare(20_261, soak::count(400, 5_000), &[FEATURES]);
}

#[test]
fn random_expressions_whose_names_go_at_the_end_have_prometheus_answers() {
    compare(20_262, soak::count(300, 3_000), &[FEATURES, DELAYED_NAME_REMOVAL]);
}
