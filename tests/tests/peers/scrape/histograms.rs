//! Native histograms over protobuf, classic ones that are converted, and exemplars of both formats.

use super::exposer::{Page, Scripts};
use super::messages::{self, COUNTER, GAUGE, GAUGE_HISTOGRAM, HISTOGRAM, Message};
use super::messages::{counter, exemplar, family, metric, native, with_buckets};
use super::{Pair, Side, TIMEOUT, configuration, job};
use serde_json::Value;
use std::collections::BTreeMap;
use tidepool_tests::http::Client;
use tidepool_tests::wait;

/// Buckets of the classic form of most histograms here.
const BUCKETS: [(f64, u64); 3] = [(0.5, 2), (1.0, 5), (f64::INFINITY, 7)];

fn histogram(labels: &[(&str, &str)], histogram: &Message) -> Message {
    metric(labels).message(7, histogram)
}

fn protobuf_pages() -> Vec<Page> {
    let both = |deltas: &[i64]| with_buckets(native(3.5, 3, -2, deltas), &BUCKETS);
    let page = |histograms: &[Message]| {
        let gauge = metric(&[]).message(2, &Message::default().double(1, 0.25));
        messages::page(&[
            family("requests_total", COUNTER, &[counter(&[("code", "200")], 5.0, None)]),
            family("level", GAUGE, &[gauge]),
            family("latency_seconds", HISTOGRAM, histograms),
        ])
    };
    let one = |message: Message| page(&[histogram(&[("path", "/")], &message)]);
    let summary = Message::default()
        .number(1, 9)
        .double(2, 1.5)
        .message(3, &Message::default().double(1, 0.5).double(2, 0.1))
        .message(3, &Message::default().double(1, 1.0).double(2, 0.9));
    vec![
        one(both(&[1, 2, 0])),
        one(both(&[2, 1, 1])),
        // A reset, another schema, no histogram at all.
        one(both(&[1, 0, 0])),
        one(native(1.0, 5, 4, &[3, 1])),
        page(&[]),
        // A classic histogram only.
        one(with_buckets(Message::default().number(1, 7).double(2, 3.5), &BUCKETS)),
        page(&[
            histogram(&[("path", "/a")], &both(&[1, 2, 0])),
            histogram(&[("path", "/b")], &native(0.5, 0, 0, &[2])),
        ]),
        messages::page(&[
            family("level_seconds", GAUGE_HISTOGRAM, &[histogram(&[], &both(&[1, 2, 0]))]),
            family("quantiles", 2, &[metric(&[]).message(4, &summary)]),
        ]),
        // Many buckets, for the limit.
        one(native(9.0, 3, 0, &[1; 8])),
        Page::new(messages::KIND, b"\x05\x0a\x09".as_slice()),
        one(both(&[1, 2, 0])),
        // One whose count is not that of its buckets, and one with an unknown schema, each after a
        // valid one.
        page(&[
            histogram(&[("path", "/a")], &both(&[1, 2, 0])),
            histogram(&[("path", "/")], &both(&[1, 2, 0]).number(1, 4)),
        ]),
        one(both(&[1, 2, 0])),
        page(&[
            histogram(&[("path", "/a")], &both(&[1, 2, 0])),
            histogram(&[("path", "/")], &with_buckets(native(3.5, 9, -2, &[1, 2, 0]), &BUCKETS)),
        ]),
        // Observations of NaN are in no bucket.
        one(both(&[1, 2, 0]).number(1, 20).double(2, f64::NAN)),
        one(both(&[1, 2, 0])),
    ]
}

#[test]
fn histograms_over_protobuf_are_those_of_prometheus() {
    let scrapes = protobuf_pages().len();
    let native = "scrape_native_histograms: true";
    let jobs = [
        job("off", "scrape_protocols: [PrometheusProto, PrometheusText0.0.4]"),
        job("native", native),
        job("both", &format!("{native}\nalways_scrape_classic_histograms: true")),
        job("converted", &format!("{native}\nconvert_classic_histograms_to_nhcb: true")),
        job(
            "all",
            &format!(
                "{native}\nconvert_classic_histograms_to_nhcb: true\n\
                 always_scrape_classic_histograms: true"
            ),
        ),
        job("limited", &format!("{native}\nnative_histogram_bucket_limit: 4")),
        job("coarse", &format!("{native}\nnative_histogram_min_bucket_factor: 2")),
        job("counted", &format!("{native}\nsample_limit: 3")),
    ];
    let pair = Pair::start(&configuration(&jobs), |_| {
        let paths =
            ["/off", "/native", "/both", "/converted", "/all", "/limited", "/coarse", "/counted"];
        Scripts::from(paths.map(|path| (path, protobuf_pages())))
    });
    pair.assert_same(jobs.len(), scrapes, 2.0);
}

#[test]
fn classic_histograms_are_converted_as_by_prometheus() {
    let of = |name: &str, labels: &str, counts: [u64; 3]| {
        let [one, two, all] = counts;
        format!(
            "{name}_bucket{{{labels}le=\"0.5\"}} {one}\n{name}_bucket{{{labels}le=\"1\"}} {two}\n\
             {name}_bucket{{{labels}le=\"+Inf\"}} {all}\n"
        )
    };
    let whole = |labels: &str, counts: [u64; 3]| {
        let label = labels.trim_end_matches(',');
        format!(
            "{}h_sum{{{label}}} 1.5\nh_count{{{label}}} {}\n",
            of("h", labels, counts),
            counts[2]
        )
    };
    let typed = |body: &str| format!("# TYPE h histogram\n{body}");
    let pages = vec![
        Page::text(&typed(&(whole("", [1, 2, 3]) + "other 1\n"))),
        Page::text(&typed(&whole("", [2, 4, 9]))),
        Page::text(&typed(&whole("", [1, 1, 1]))),
        Page::text(&typed(&(whole("x=\"1\",", [1, 2, 3]) + &whole("x=\"2\",", [0, 0, 4])))),
        // Without a type, without a sum, without a count, not cumulative.
        Page::text(&whole("", [1, 2, 3])),
        Page::text(&typed(&of("h", "", [1, 2, 3]))),
        Page::text(&typed(&(of("h", "", [1, 2, 3]) + "h_count 3\n"))),
        Page::text(&typed(&(of("h", "", [5, 2, 3]) + "h_sum 1\nh_count 3\n"))),
        Page::text(&typed(&(of("h", "", [1, 2, 3]) + "h_sum 1\nh_count 7\n"))),
        Page::text(&typed("h_bucket{le=\"0.5\"} 1.5\nh_bucket{le=\"+Inf\"} 2.5\nh_count 2.5\n")),
        Page::text(&typed("h_count 3\nh_sum 2\n")),
        Page::text(&typed("h_bucket{le=\"1\"} 1\nh_bucket{le=\"x\"} 2\nh_count 3\n")),
        Page::openmetrics(&(typed(&whole("", [1, 2, 3])) + "# EOF\n")),
        Page::text("other 1\n"),
    ];
    let scrapes = pages.len();
    let jobs = [
        job("classic", ""),
        job("converted", "convert_classic_histograms_to_nhcb: true"),
        job(
            "both",
            "convert_classic_histograms_to_nhcb: true\nalways_scrape_classic_histograms: true",
        ),
        job(
            "limited",
            "convert_classic_histograms_to_nhcb: true\nnative_histogram_bucket_limit: 2",
        ),
        job("counted", "convert_classic_histograms_to_nhcb: true\nsample_limit: 2"),
    ];
    let pair = Pair::start(&configuration(&jobs), |_| {
        let paths = ["/classic", "/converted", "/both", "/limited", "/counted"];
        Scripts::from(paths.map(|path| (path, pages.clone())))
    });
    pair.assert_same(jobs.len(), scrapes, 2.0);
}

/// Returns labels and value of exemplars by series, with their time if the page has it.
fn exemplars(side: &Side, base_ms: i64) -> BTreeMap<String, Vec<String>> {
    let selector = "%7B__name__%3D~%22.%2B%22%7D";
    let path = format!("/api/v1/query_exemplars?query={selector}&start=0&end=4000000000");
    let response = Client::default().get(&format!("{}{path}", side.server.url()));
    let answer: Value = serde_json::from_slice(&response.expect("an answer").body).expect("JSON");
    let series = answer["data"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let shown = |exemplar: &Value| {
        let ms = (exemplar["timestamp"].as_f64().expect("a time") * 1e3).round() as i64 - base_ms;
        // Others have the time of the scrape.
        let time = if ms < 0 { ms.to_string() } else { "now".to_owned() };
        format!("{} {} {time}", exemplar["labels"], exemplar["value"])
    };
    let of_series = |one: &Value| {
        let labels = one["seriesLabels"].to_string();
        let labels = labels.replace(&side.exposer.address().to_string(), "ADDRESS");
        let list = one["exemplars"].as_array().into_iter().flatten().map(shown);
        (labels, list.collect())
    };
    series.iter().map(of_series).collect()
}

#[test]
fn exemplars_are_those_of_prometheus() {
    let scripts = |base_ms: i64| {
        // Whole seconds, so that no time is rounded on its way.
        let second = |ago: i64| base_ms / 1_000 - ago;
        let open = |lines: &str| {
            Page::openmetrics(&format!("# TYPE c counter\n# TYPE h histogram\n{lines}# EOF\n"))
        };
        let text = vec![
            open("c_total 1\nh_bucket{le=\"1\"} 1 # {id=\"b\"} 0.7\n"),
            open(&format!("c_total 2 # {{id=\"c\"}} 1.5 {}\n", second(50))),
            // The same exemplar again, an older one, one that is newer.
            open(&format!("c_total 3 # {{id=\"c\"}} 1.5 {}\n", second(50))),
            open(&format!("c_total 4 # {{id=\"d\"}} 2.5 {}\n", second(90))),
            open(&format!("c_total 4 # {{id=\"e\"}} 3.5 {}.5\n", second(40))),
            // Without a time, also repeated, and without labels.
            open("c_total 5 # {id=\"f\"} 9\n"),
            open("c_total 5 # {id=\"f\"} 9\n"),
            open("c_total 6 # {id=\"f\"} 9.0\n"),
            open(&format!("c_total 6 # {{id=\"d\"}} 2.5 {}\n", second(90))),
            open("c_total 6 # {id=\"f\"} 9\n"),
            open("c_total 5 # {} 9\n"),
            open("c_total 5 # {} 9\n"),
            // Longer than the limit of an exemplar.
            open(&format!("c_total 6 # {{id=\"{}\"}} 1\n", "x".repeat(200))),
            open("c_total 7\nc_total{x=\"1\"} 1 # {id=\"g\"} NaN\n"),
            open("c_total 8\n"),
        ];
        let timed = |id: &str, ago: i64| exemplar(id, 0.25, Some(second(ago)));
        let page = |exemplars: &[Message], of_counter: Option<&Message>| {
            let all = native(3.5, 3, -2, &[1, 2, 0]);
            let all = exemplars.iter().fold(all, |message, one| message.message(16, one));
            messages::page(&[
                family("c_total", COUNTER, &[counter(&[], 1.0, of_counter)]),
                family("n", HISTOGRAM, &[histogram(&[], &all)]),
            ])
        };
        let protobuf = vec![
            page(&[timed("a", 60)], Some(&timed("x", 60))),
            page(&[timed("c", 40), timed("b", 45)], Some(&timed("y", 30))),
            // Exemplars of native histograms without a time do not count; then the same again.
            page(&[exemplar("d", 1.0, None), timed("c", 40)], Some(&timed("y", 30))),
            page(&[timed("e", 50)], Some(&exemplar("z", 1.0, None))),
            page(&[timed("e", 50)], Some(&exemplar("z", 1.0, None))),
            page(&[], None),
        ];
        Scripts::from([("/text", text), ("/protobuf", protobuf)])
    };
    let jobs = [job("text", ""), job("protobuf", "scrape_native_histograms: true")];
    let pair = Pair::start(&configuration(&jobs), scripts);
    // One more scrape than there are pages, so that the last page is stored.
    pair.assert_same(2, 15, 2.0);
    let theirs = exemplars(&pair.theirs, pair.base_ms);
    assert!(theirs.values().map(Vec::len).sum::<usize>() > 5, "{theirs:?}");
    let same = || (exemplars(&pair.ours, pair.base_ms) == theirs).then_some(());
    wait::until("the same exemplars", TIMEOUT, same)
        .unwrap_or_else(|_| assert_eq!(exemplars(&pair.ours, pair.base_ms), theirs));
}
