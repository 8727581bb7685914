//! `POST /api/v1/read`: both kinds of answer, in every detail.
//!
//! The reader of these tests refuses an answer that breaks a rule of the protocol (order, one
//! series in a frame, frame sizes, chunk times, headers), so every successful read here checks
//! them.

mod read;

use prost::Message;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::{Client, request_bytes};
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::proto::prometheus::read_request::ResponseType;
use tidepool_tests::proto::prometheus::{LabelMatcher, Query, ReadHints, ReadRequest};
use tidepool_tests::remote_read::{
    PATH, Reader, SAMPLES_CONTENT_TYPE, STREAMED_CONTENT_TYPE, everything, matcher, query, request,
};
use tidepool_tests::remote_write::{Version, compress};
use tidepool_tests::sender::{assert_holds, send_all};
use tidepool_tests::series::{Dataset, Random, Sample, Series, Shape, Texture};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::{self, chain};

/// More than two chunks of each series.
const SAMPLES: i64 = 300;

/// Seven small series, one sample a second, the last one now.
struct Fixture {
    store: Store,
    reader: Reader,
    series: Vec<Series>,
    start_ms: i64,
}

impl Fixture {
    fn start() -> Fixture {
        let store = Store::start().expect("tidepool starts");
        let start_ms = now_ms() - SAMPLES * 1_000;
        let samples: Vec<_> = (0..SAMPLES).map(|i| (start_ms + i * 1_000, i as f64)).collect();
        let series: Vec<Series> = [
            &[("__name__", "m"), ("x", "a")][..],
            &[("__name__", "m"), ("x", "ab")],
            &[("__name__", "m"), ("x", "a\nb")],
            &[("__name__", "m")],
            &[("__name__", "m"), ("x", "b"), ("y", "1")],
            &[("__name__", "n"), ("x", "a")],
            &[("__name__", "m"), ("x", "A")],
        ]
        .into_iter()
        .map(|pairs| Series::new(pairs, &samples))
        .collect();
        let rows: Vec<_> = series.iter().map(Series::row).collect();
        let response = store.writer().send(Version::V2, &rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
        let reader = store.reader();
        Fixture { store, reader, series, start_ms }
    }

    fn end_ms(&self) -> i64 {
        self.start_ms + SAMPLES * 1_000
    }

    /// Reads by both kinds and compares with these series, trimmed to the queries' ranges.
    #[track_caller]
    fn assert_answers(&self, queries: &[Query], expected: &[&[usize]]) {
        let streamed = self.reader.streamed(queries);
        let samples = self.reader.samples(queries);
        for (kind, answer) in [("streamed", streamed), ("samples", samples)] {
            let answer = answer.unwrap_or_else(|e| panic!("{kind} {queries:?}: {}", chain(&e)));
            for ((query, expected), found) in queries.iter().zip(expected).zip(&answer) {
                let (start, end) = (query.start_timestamp_ms, query.end_timestamp_ms);
                let sent: Vec<Series> =
                    expected.iter().map(|i| self.series[*i].between(start, end)).collect();
                assert_same(&format!("{kind} {query:?}"), &sent, found);
            }
        }
    }

    fn query(&self, matchers: Vec<LabelMatcher>) -> Query {
        query(self.start_ms, self.end_ms(), matchers)
    }

    fn request(&self, accepted: &[i32]) -> ReadRequest {
        let queries = vec![everything(self.start_ms, self.end_ms())];
        ReadRequest { queries, accepted_response_types: accepted.to_vec() }
    }
}

/// Matchers, and the numbers of the series they select.
type Case = (&'static [(Type, &'static str, &'static str)], &'static [usize]);

#[test]
fn matchers_of_every_kind_select() {
    use Type::{Eq, Neq, Nre, Re};
    let fixture = Fixture::start();
    let cases: &[Case] = &[
        (&[(Eq, "__name__", "m")], &[0, 1, 2, 3, 4, 6]),
        (&[(Eq, "__name__", "m"), (Eq, "x", "a")], &[0]),
        (&[(Eq, "x", "a")], &[0, 5]),
        (&[(Eq, "x", "nothing")], &[]),
        (&[(Eq, "no_such_label", "a")], &[]),
        (&[(Neq, "x", "a"), (Eq, "__name__", "m")], &[1, 2, 3, 4, 6]),
        (&[(Neq, "x", ""), (Eq, "__name__", "m")], &[0, 1, 2, 4, 6]),
        (&[(Neq, "__name__", "m")], &[5]),
        (&[(Re, "x", "a|b")], &[0, 4, 5]),
        // Anchored on both sides, and the dot matches a newline.
        (&[(Re, "x", "a")], &[0, 5]),
        (&[(Re, "x", "a.b")], &[2]),
        (&[(Re, "x", "a.*")], &[0, 1, 2, 5]),
        (&[(Re, "x", "a.+")], &[1, 2]),
        (&[(Re, "x", "(?i)a")], &[0, 5, 6]),
        (&[(Re, "x", "[ab]+"), (Nre, "x", "ab")], &[0, 4, 5]),
        (&[(Nre, "x", "a.*"), (Eq, "__name__", "m")], &[3, 4, 6]),
        // A missing label is the empty string.
        (&[(Eq, "x", ""), (Eq, "__name__", "m")], &[3]),
        (&[(Eq, "no_such_label", ""), (Eq, "x", "ab")], &[1]),
        (&[(Re, "x", "|b"), (Eq, "__name__", "m")], &[3, 4]),
        (&[(Re, "x", ".*"), (Eq, "__name__", "m")], &[0, 1, 2, 3, 4, 6]),
        (&[(Re, "x", ".+"), (Eq, "__name__", "m")], &[0, 1, 2, 4, 6]),
        (&[(Nre, "x", ".+"), (Eq, "__name__", "m")], &[3]),
        (&[(Nre, "x", ".*"), (Eq, "__name__", "m")], &[]),
        (&[(Nre, "x", "|a"), (Eq, "__name__", "m")], &[1, 2, 4, 6]),
        // The same name more than once.
        (&[(Neq, "x", "a"), (Neq, "x", "b"), (Re, "x", ".+")], &[1, 2, 6]),
        (&[(Eq, "x", "a"), (Eq, "x", "b")], &[]),
        // Only matchers that match the empty string: legal here, unlike in PromQL.
        (&[(Eq, "y", "")], &[0, 1, 2, 3, 5, 6]),
        (&[(Re, "y", ".*")], &[0, 1, 2, 3, 4, 5, 6]),
    ];
    for (matchers, expected) in cases {
        let matchers = matchers.iter().map(|(kind, name, value)| matcher(*kind, name, value));
        fixture.assert_answers(&[fixture.query(matchers.collect())], &[expected]);
    }
    fixture.assert_answers(&[fixture.query(vec![])], &[&[0, 1, 2, 3, 4, 5, 6]]);
}

#[test]
fn both_ends_of_a_range_are_included() {
    let fixture = Fixture::start();
    let at = |second: i64| fixture.start_ms + second * 1_000;
    let all = &[0, 1, 2, 3, 4, 5, 6][..];
    for (start_ms, end_ms) in [
        (at(0), at(0)),
        (at(0), at(SAMPLES - 1)),
        (at(7), at(9)),
        (at(7) + 1, at(9) - 1),
        // Around the ends of chunks of 120 samples.
        (at(119), at(119)),
        (at(119), at(120)),
        (at(120), at(120)),
        (at(100), at(260)),
        (at(SAMPLES - 1), i64::MAX),
        (i64::MIN, at(0)),
        (i64::MIN, i64::MAX),
    ] {
        fixture.assert_answers(&[everything(start_ms, end_ms)], &[all]);
    }
    // Between two samples, before and after all of them, and backwards: nothing.
    for (start_ms, end_ms) in [(at(5) + 1, at(6) - 1), (0, at(0) - 1), (at(9), at(7))] {
        fixture.assert_answers(&[everything(start_ms, end_ms)], &[&[]]);
    }
}

#[test]
fn several_queries_are_answered_in_their_order() {
    let fixture = Fixture::start();
    let x = |value| matcher(Type::Eq, "x", value);
    let out_of_order = query(fixture.end_ms() - 9_000, fixture.end_ms(), vec![x("a")]);
    fixture.assert_answers(
        &[
            fixture.query(vec![x("b")]),
            fixture.query(vec![x("nothing")]),
            out_of_order,
            fixture.query(vec![x("a")]),
            fixture.query(vec![x("a")]),
            fixture.query(vec![x("nothing")]),
        ],
        &[&[4], &[], &[0, 5], &[0, 5], &[0, 5], &[]],
    );
}

#[test]
fn hints_are_advice_only() {
    let fixture = Fixture::start();
    let mut query = fixture.query(vec![matcher(Type::Eq, "x", "a")]);
    // With `series`, upstream's own storage would leave the chunks out.
    for func in ["rate", "series"] {
        query.hints = Some(ReadHints {
            step_ms: 60_000,
            func: func.to_string(),
            start_ms: fixture.start_ms + 100_000,
            end_ms: fixture.end_ms() - 100_000,
            grouping: vec!["x".to_string()],
            by: true,
            range_ms: 300_000,
        });
        fixture.assert_answers(&[query.clone()], &[&[0, 5]]);
    }
}

#[test]
fn an_empty_result_is_an_empty_success() {
    let fixture = Fixture::start();
    let nothing = fixture.query(vec![matcher(Type::Eq, "x", "nothing")]);
    let request = ReadRequest { queries: vec![nothing.clone()], accepted_response_types: vec![1] };
    let response = fixture.reader.post(&request).expect("an answer");
    assert_eq!((response.status, response.body.len()), (200, 0), "{}", response.text());
    assert_eq!(response.header("Content-Type"), Some(STREAMED_CONTENT_TYPE));

    let message = fixture.reader.samples_message(&[nothing]).expect("samples");
    assert_eq!(message.results.len(), 1);
    assert!(message.results[0].timeseries.is_empty());

    let request = ReadRequest { queries: vec![], accepted_response_types: vec![1] };
    let response = fixture.reader.post(&request).expect("an answer");
    assert_eq!((response.status, response.body.len()), (200, 0), "{}", response.text());
}

#[test]
fn bad_requests_are_refused_for_good() {
    let fixture = Fixture::start();
    let mut bad: Vec<ReadRequest> = Vec::new();
    for accepted in [0, 1] {
        for expression in ["(", "a{2,1}", "[b-a]", "*", "\\"] {
            for kind in [Type::Re, Type::Nre] {
                let query = fixture.query(vec![matcher(kind, "x", expression)]);
                let accepted_response_types = vec![accepted];
                bad.push(ReadRequest { queries: vec![query], accepted_response_types });
            }
        }
        let unknown = LabelMatcher { r#type: 4, ..matcher(Type::Eq, "x", "a") };
        let queries = vec![fixture.query(vec![unknown])];
        bad.push(ReadRequest { queries, accepted_response_types: vec![accepted] });
    }
    bad.push(fixture.request(&[7]));
    bad.push(fixture.request(&[-1, 2]));
    for request in bad {
        let response = fixture.reader.post(&request).expect("an answer");
        assert_eq!(response.status, 400, "{request:?}: {}", response.text());
        assert!(!response.body.is_empty(), "{request:?}: no reason given");
    }
    for body in [b"not snappy".to_vec(), Vec::new(), compress(&[0xff; 30])] {
        let response = fixture.reader.post_body(&body).expect("an answer");
        assert_eq!(response.status, 400, "{body:?}: {}", response.text());
    }
    let url = format!("{}{PATH}", fixture.store.server.url());
    assert_eq!(Client::default().get(&url).expect("an answer").status, 405);
}

#[test]
fn the_first_supported_kind_is_taken() {
    let fixture = Fixture::start();
    let cases: &[(&[i32], &str)] = &[
        (&[], SAMPLES_CONTENT_TYPE),
        (&[0], SAMPLES_CONTENT_TYPE),
        (&[1], STREAMED_CONTENT_TYPE),
        (&[1, 0], STREAMED_CONTENT_TYPE),
        (&[0, 1], SAMPLES_CONTENT_TYPE),
        (&[9, 1, 0], STREAMED_CONTENT_TYPE),
    ];
    for (accepted, content_type) in cases {
        let response = fixture.reader.post(&fixture.request(accepted)).expect("an answer");
        assert_eq!(response.status, 200, "{accepted:?}: {}", response.text());
        assert_eq!(response.header("Content-Type"), Some(*content_type), "{accepted:?}");
        let encoding = (*content_type == SAMPLES_CONTENT_TYPE).then_some("snappy");
        assert_eq!(response.header("Content-Encoding"), encoding, "{accepted:?}");
    }
}

/// Thanos sends `application/x-stream-protobuf`, others send nothing.
#[test]
fn the_type_of_the_request_is_not_looked_at() {
    use prost::Message;
    let fixture = Fixture::start();
    let body = compress(&fixture.request(&[0]).encode_to_vec());
    let url = format!("{}{PATH}", fixture.store.server.url());
    for headers in [&[("Content-Type", "application/x-stream-protobuf")][..], &[]] {
        let response = Client::default().post(&url, headers, &body).expect("an answer");
        assert_eq!(response.status, 200, "{headers:?}: {}", response.text());
    }
}

/// A series larger than a frame fills several, each with its labels.
#[test]
fn a_long_series_spans_frames() {
    let store = Store::start().expect("tidepool starts");
    let mut random = Random::new(21, 0);
    let start_ms = now_ms() - 300_000;
    let sample = |i| Sample { timestamp_ms: start_ms + i, value: random.fraction() };
    let long = Series {
        labels: Series::new(&[("__name__", "long")], &[]).labels,
        samples: (0..250_000).map(sample).collect(),
    };
    let short = Series::new(&[("__name__", "longer")], &[(start_ms, 1.0)]);
    for part in long.samples.chunks(50_000) {
        let row = tidepool_tests::series::Row { labels: &long.labels, samples: part };
        let response = store.writer().send(Version::V1, &[row]).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }
    let response = store.writer().send(Version::V1, &[short.row()]).expect("an answer");
    assert_eq!(response.status, 204, "{}", response.text());

    let query = [everything(start_ms, i64::MAX)];
    let answer = store.reader().streamed(&query).unwrap_or_else(|e| panic!("{}", chain(&e)));
    assert_same("streamed", [&long, &short], &answer[0]);
    let stats = store.reader().visit_streamed(&query, |_, _, _| ()).expect("a stream");
    assert!((3..=6).contains(&stats.frames), "{stats:?}");
    let answer = store.reader().samples(&query).unwrap_or_else(|e| panic!("{}", chain(&e)));
    assert_same("samples", [&long, &short], &answer[0]);
}

/// Ten thousand series are returned complete, in the order of their labels.
#[test]
fn many_series_come_in_order() {
    let store = Store::start().expect("tidepool starts");
    let (scrapes, interval_ms) = (3, 15_000);
    let data = Dataset::generate(Shape {
        seed: 22,
        series: 10_000,
        scrapes,
        start_ms: now_ms() - scrapes as i64 * interval_ms,
        interval_ms,
        texture: Texture::Regular,
    });
    for rows in data.requests(2_000) {
        let response = store.writer().send(Version::V2, &rows).expect("an answer");
        assert_eq!(response.status, 204, "{}", response.text());
    }
    let query = [everything(i64::MIN, i64::MAX)];
    let answer = store.reader().streamed(&query).unwrap_or_else(|e| panic!("{}", chain(&e)));
    assert_same("streamed", &data.series, &answer[0]);
    let answer = store.reader().samples(&query).unwrap_or_else(|e| panic!("{}", chain(&e)));
    assert_same("samples", &data.series, &answer[0]);
}

/// A client that reads nothing does not keep the head from truncating, and is disconnected in the
/// middle: it must not believe that the answer is complete.
#[test]
fn a_stalled_client_is_cut_off() {
    let store = Store::start_with(|config| config.flag("--read-timeout=2s"));
    let store = store.expect("tidepool starts");
    let data = Dataset::generate(Shape {
        seed: 23,
        series: 5_000,
        scrapes: 2,
        start_ms: now_ms() - 60_000,
        interval_ms: 15_000,
        texture: Texture::Regular,
    });
    send_all(&store, Version::V2, &data);
    // Between two queries no cursor is open, but the read's instance has memory until it ends.
    let is_reading = |wanted: bool| {
        wait::until("a change", Duration::from_secs(20), || {
            let bytes = store.metric("tidepool_reads_memory_bytes")?;
            ((bytes > 0.0) == wanted).then_some(())
        })
        .unwrap_or_else(|e| panic!("reading is not {wanted}: {e}"));
    };

    // Far more than the sockets between the two can hold.
    let queries = vec![everything(i64::MIN, i64::MAX); 100];
    let message = request(&queries, ResponseType::StreamedXorChunks);
    let body = compress(&message.encode_to_vec());
    let bytes = request_bytes("POST", "/api/v1/read", &[], body.len(), &body);
    let mut stalled = TcpStream::connect(store.server.address()).expect("a connection");
    stalled.write_all(&bytes).expect("the request is taken");
    is_reading(true);
    is_reading(false);
    let mut answer = Vec::new();
    // A reset, or an end without the last chunk of the chunked coding.
    let end = stalled.read_to_end(&mut answer);
    assert!(end.is_err() || !answer.ends_with(b"\r\n0\r\n\r\n"), "the answer looks complete");
    assert_holds(&store, &data);
}
