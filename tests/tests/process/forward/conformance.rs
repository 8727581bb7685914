//! Requirements of the specifications of remote write 1.0 and 2.0 for senders, case by case,
//! checked by a receiver that keeps every byte. The cases are those of upstream's compliance suite
//! for senders (prometheus/compliance, `remotewrite/sender`), with additional ones.

use std::collections::BTreeSet;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::forwarding::{TIMEOUT, figure, node, wait_for_delivery};
use tidepool_tests::http::Response;
use tidepool_tests::proto::write_v2::metadata::MetricType;
use tidepool_tests::proto::write_v2::{self, histogram};
use tidepool_tests::receiver::{Message, Received, Receiver, labels_v2, status, taken};
use tidepool_tests::remote_write::{Symbols, Version};
use tidepool_tests::sender::{recent_data, send_all};
use tidepool_tests::series::{ORDINARY_NAN_BITS, STALE_MARKER_BITS, Series};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

/// Sends everything, soon, in one shard.
const ALL: &str = "    send_exemplars: true\n    send_native_histograms: true\n    \
                   queue_config: {batch_send_deadline: 200ms, max_shards: 1, min_backoff: 10ms, \
                   max_backoff: 80ms}\n    metadata_config: {send_interval: 1s}\n";

/// Writes series to a node; each must be accepted.
#[track_caller]
fn write(node: &Store, series: &[Series]) {
    let rows: Vec<_> = series.iter().map(Series::row).collect();
    let answer = node.writer().send(Version::V2, &rows).expect("an answer");
    assert_eq!(answer.status, 204, "{}", answer.text());
}

/// Returns one sample at the current time.
fn one_sample() -> Vec<Series> {
    vec![Series::new(&[("__name__", "test_metric"), ("job", "test")], &[(now_ms(), 42.0)])]
}

/// Waits for this number of requests with samples, and returns all of them.
#[track_caller]
fn requests(receiver: &Receiver, node: &Store, count: usize) -> Vec<Received> {
    let mut found = Vec::new();
    let arrived = wait::until("requests", TIMEOUT, || {
        found = receiver.received();
        found.retain(|request| !request.message().is_ok_and(|m| m.label_sets().is_empty()));
        (found.len() >= count).then_some(())
    });
    if let Err(error) = arrived {
        let all = receiver.received();
        panic!("{error}: {all:#?}; the log says:\n{}", node.server.log());
    }
    found
}

fn message(received: &Received) -> Message {
    received.message().unwrap_or_else(|error| panic!("{error}: {received:?}"))
}

fn message_v2(received: &Received) -> write_v2::Request {
    match message(received) {
        Message::V2(message) => message,
        Message::V1(message) => panic!("2.0 is expected, not {message:?}"),
    }
}

/// A sender names format and itself in headers, uses POST, and sends a snappy block.
#[test]
fn requests_have_the_headers_of_their_version() {
    for version in Version::ALL {
        let receiver = Receiver::start().expect("a receiver");
        let node = node(receiver.address(), version, ALL, |config| config);
        write(&node, &one_sample());
        let request = requests(&receiver, &node, 1).remove(0);
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/api/v1/write"));
        let length = request.body.len().to_string();
        let host = receiver.address().to_string();
        for (name, value) in [
            ("content-type", version.content_type()),
            ("content-encoding", "snappy"),
            ("x-prometheus-remote-write-version", version.header()),
            ("content-length", length.as_str()),
            ("host", host.as_str()),
        ] {
            assert_eq!(request.header(name), Some(value), "{name}");
        }
        let agent = request.header("user-agent").unwrap_or_default();
        assert!(agent.starts_with("tidepool/"), "{agent:?}");
        assert_eq!(request.header("retry-attempt"), None, "it is the first attempt");
        // A block, not a stream, which would begin with its magic.
        assert!(!request.body.starts_with(b"\xff\x06\x00\x00sNaPpY"));
        assert_eq!(message(&request).series(), request.series().expect("it decodes"));
    }
}

/// Label sets are sorted, without empty or doubled names, whatever changed them on the way.
#[test]
fn labels_are_sorted_and_whole() {
    let rules = "    write_relabel_configs:
      - {target_label: a_first, replacement: added}
      - {target_label: zz_last, replacement: added}
      - {source_labels: [gone], target_label: gone, replacement: ''}
      - {regex: 'old_(.*)', action: labelmap}
";
    let long = "x".repeat(4_000);
    let names: Vec<String> = (0..60).map(|number| format!("label_{number:02}")).collect();
    let mut wide = vec![("__name__", "ns:wide:total"), ("long", long.as_str())];
    wide.extend(names.iter().map(|name| (name.as_str(), "value")));
    let at = now_ms();
    let series = [
        Series::new(&[("__name__", "test_metric"), ("gone", "x"), ("old_name", "b")], &[(at, 1.0)]),
        Series::new(
            &[("__name__", "test_metric"), ("text", "日本\u{1f30a} \"\\\n\t"), ("Zone", "z")],
            &[(at, 2.0)],
        ),
        Series::new(&wide, &[(at, 3.0)]),
    ];
    for version in Version::ALL {
        let receiver = Receiver::start().expect("a receiver");
        let lines = format!("{ALL}{rules}");
        let node = node(receiver.address(), version, &lines, |config| {
            config.flag("--external-label=middle=external").flag("--external-label=text=outer")
        });
        write(&node, &series);
        let sets = message(&requests(&receiver, &node, 1)[0]).label_sets();
        assert_eq!(sets.len(), series.len());
        for labels in &sets {
            assert!(labels.is_sorted(), "{labels}");
            let is_whole = |(name, value): &(String, String)| !name.is_empty() && !value.is_empty();
            assert!(labels.pairs().iter().all(is_whole), "{labels}");
            assert!(!labels.value("__name__").is_empty(), "{labels}");
            for (name, value) in
                [("a_first", "added"), ("zz_last", "added"), ("middle", "external"), ("gone", "")]
            {
                assert_eq!(labels.value(name), value, "{name}");
            }
        }
        let has = |name: &str, value: &str| sets.iter().any(|set| set.value(name) == value);
        assert!(has("name", "b") && has("text", "日本\u{1f30a} \"\\\n\t") && has("text", "outer"));
        assert!(has("long", &long) && has("label_59", "value"));
    }
}

/// Values keep their bits and times their milliseconds; the samples of a series are in order.
#[test]
fn values_and_times_arrive_bit_by_bit() {
    let now = now_ms();
    let values = [
        0.0,
        -0.0,
        1e308,
        5e-324,
        0.000123,
        std::f64::consts::PI,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::from_bits(ORDINARY_NAN_BITS),
        f64::from_bits(STALE_MARKER_BITS),
    ];
    let samples: Vec<(i64, f64)> = (now - values.len() as i64..).zip(values).collect();
    let sent = Series::new(&[("__name__", "odd")], &samples);
    for version in Version::ALL {
        let receiver = Receiver::start().expect("a receiver");
        let node = node(receiver.address(), version, ALL, |config| config);
        write(&node, std::slice::from_ref(&sent));
        wait_for_delivery(&node, values.len() as u64);
        let mut got = Vec::new();
        for request in requests(&receiver, &node, 1) {
            got.extend(request.series().expect("it decodes").into_iter().flat_map(|s| s.samples));
        }
        let bits = |samples: &[tidepool_tests::series::Sample]| -> Vec<(i64, u64)> {
            samples.iter().map(|s| (s.timestamp_ms, s.value.to_bits())).collect()
        };
        assert_eq!(bits(&got), bits(&sent.samples), "{version}");
    }
}

/// Makes a message of everything in 2.0: floats and histograms with exemplars and metadata.
fn everything_of_v2(at: i64) -> write_v2::Request {
    let mut symbols = Symbols::default();
    let exemplar = |symbols: &mut Symbols<'_>, value| write_v2::Exemplar {
        labels_refs: ["span_id", "7", "trace_id", "abc"].map(|t| symbols.position(t)).to_vec(),
        value,
        timestamp: at - 5,
    };
    let span = |offset, length| write_v2::BucketSpan { offset, length };
    let whole = write_v2::Histogram {
        count: Some(histogram::Count::CountInt(7)),
        sum: 250.5,
        schema: 1,
        zero_threshold: 0.001,
        zero_count: Some(histogram::ZeroCount::ZeroCountInt(1)),
        positive_spans: vec![span(0, 2), span(1, 1)],
        positive_deltas: vec![1, 1, -1],
        negative_spans: vec![span(0, 1)],
        negative_deltas: vec![2],
        timestamp: at,
        ..Default::default()
    };
    let fractional = write_v2::Histogram {
        count: Some(histogram::Count::CountFloat(3.5)),
        sum: 1.25,
        schema: 0,
        zero_threshold: 0.001,
        zero_count: Some(histogram::ZeroCount::ZeroCountFloat(0.5)),
        positive_spans: vec![span(0, 2)],
        positive_counts: vec![1.0, 2.0],
        timestamp: at,
        ..Default::default()
    };
    let metadata = |symbols: &mut Symbols<'_>, kind: MetricType, help, unit| write_v2::Metadata {
        r#type: kind.into(),
        help_ref: symbols.position(help),
        unit_ref: symbols.position(unit),
    };
    let sample = write_v2::Sample { value: 1.0, timestamp: at, start_timestamp: 0 };
    let refs = |symbols: &mut Symbols<'_>, name: &'static str| {
        ["__name__", name, "job", "test"].map(|text| symbols.position(text)).to_vec()
    };
    let timeseries = vec![
        write_v2::TimeSeries {
            labels_refs: refs(&mut symbols, "requests_total"),
            samples: vec![sample],
            exemplars: vec![exemplar(&mut symbols, 1.0)],
            metadata: Some(metadata(&mut symbols, MetricType::Counter, "All\nof \"them\"", "")),
            ..Default::default()
        },
        write_v2::TimeSeries {
            labels_refs: refs(&mut symbols, "latency_seconds"),
            histograms: vec![whole],
            exemplars: vec![exemplar(&mut symbols, 0.25)],
            metadata: Some(metadata(&mut symbols, MetricType::Histogram, "How long", "seconds")),
            ..Default::default()
        },
        write_v2::TimeSeries {
            labels_refs: refs(&mut symbols, "load"),
            histograms: vec![fractional],
            metadata: Some(metadata(&mut symbols, MetricType::Gaugehistogram, "Load", "")),
            ..Default::default()
        },
    ];
    write_v2::Request { symbols: symbols.into_strings(), timeseries }
}

/// Histograms, exemplars and metadata are sent as they were written, with a symbol table as
/// specified.
#[test]
fn all_kinds_of_2_0_arrive_with_a_proper_table_of_symbols() {
    let receiver = Receiver::start().expect("a receiver");
    let node = node(receiver.address(), Version::V2, ALL, |config| config);
    let at = now_ms();
    let sent = everything_of_v2(at);
    let answer = node.writer().send_message(Version::V2, &sent).expect("an answer");
    assert_eq!(answer.status, 204, "{}", answer.text());
    let got = message_v2(&requests(&receiver, &node, 1)[0]);

    assert_eq!(got.symbols.first().map(String::as_str), Some(""), "the first symbol is empty");
    let unique: BTreeSet<&String> = got.symbols.iter().collect();
    assert_eq!(unique.len(), got.symbols.len(), "each symbol once: {:?}", got.symbols);
    let mut used = BTreeSet::from([0]);
    for series in &got.timeseries {
        used.extend(series.labels_refs.iter().copied());
        used.extend(series.exemplars.iter().flat_map(|e| e.labels_refs.iter().copied()));
        used.extend(series.metadata.iter().flat_map(|m| [m.help_ref, m.unit_ref]));
        let is_mixed = !series.samples.is_empty() && !series.histograms.is_empty();
        assert!(!is_mixed, "floats or histograms, not both: {series:?}");
    }
    assert_eq!(used, (0..got.symbols.len() as u32).collect(), "no more symbols than are used");

    let of = |message: &write_v2::Request, name: &str| {
        let labels = |series: &write_v2::TimeSeries| labels_v2(message, &series.labels_refs);
        let mut series = message.timeseries.iter();
        let found = series.find(|series| labels(series).value("__name__") == name);
        found.unwrap_or_else(|| panic!("{name} is not in {message:?}")).clone()
    };
    for name in ["requests_total", "latency_seconds", "load"] {
        let (was, is) = (of(&sent, name), of(&got, name));
        assert_eq!(is.samples, was.samples, "{name}");
        // Resets of counters are detected again when samples are read.
        let without_hint = |histograms: &[write_v2::Histogram]| -> Vec<write_v2::Histogram> {
            let hintless =
                |h: &write_v2::Histogram| write_v2::Histogram { reset_hint: 0, ..h.clone() };
            histograms.iter().map(hintless).collect()
        };
        assert_eq!(without_hint(&is.histograms), without_hint(&was.histograms), "{name}");
        let exemplars = |message: &write_v2::Request, series: &write_v2::TimeSeries| {
            let one =
                |e: &write_v2::Exemplar| (labels_v2(message, &e.labels_refs), e.value, e.timestamp);
            series.exemplars.iter().map(one).collect::<Vec<_>>()
        };
        assert_eq!(exemplars(&got, &is), exemplars(&sent, &was), "{name}");
        let said = |message: &write_v2::Request, series: &write_v2::TimeSeries| {
            let text = |at: u32| message.symbols[at as usize].clone();
            series.metadata.map(|m| (m.r#type, text(m.help_ref), text(m.unit_ref)))
        };
        assert_eq!(said(&got, &is), said(&sent, &was), "{name}");
    }
    // Rows are counted once their answer has arrived.
    wait_for_delivery(&node, 1);
    let histograms = figure(&node, "prometheus_remote_storage_histograms_total", "");
    assert_eq!(histograms, 2.0);
}

/// The same in 1.0: metadata by family, in requests of their own.
#[test]
fn all_kinds_of_1_0_arrive() {
    let receiver = Receiver::start().expect("a receiver");
    let node = node(receiver.address(), Version::V1, ALL, |config| config);
    let sent = everything_of_v2(now_ms());
    let answer = node.writer().send_message(Version::V2, &sent).expect("an answer");
    assert_eq!(answer.status, 204, "{}", answer.text());
    let Message::V1(got) = message(&requests(&receiver, &node, 1)[0]) else { panic!("2.0 came") };
    let [counts, exemplars] = got.timeseries.iter().fold([0, 0], |[counts, exemplars], series| {
        [counts + series.histograms.len(), exemplars + series.exemplars.len()]
    });
    assert_eq!((got.timeseries.len(), counts, exemplars), (3, 2, 2), "{got:?}");
    wait::until("metadata", TIMEOUT, || {
        let of = |request: &Received| match request.message().ok()? {
            Message::V1(message) if !message.metadata.is_empty() => Some(message),
            _ => None,
        };
        let message = receiver.received().iter().find_map(of)?;
        let families: BTreeSet<(String, String)> = message
            .metadata
            .iter()
            .map(|family| (family.metric_family_name.clone(), family.help.clone()))
            .collect();
        let wanted = [("latency_seconds", "How long"), ("load", "Load")];
        let has =
            |(name, help): &(&str, &str)| families.contains(&((*name).into(), (*help).into()));
        (message.timeseries.is_empty() && wanted.iter().all(has)).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}: {:#?}", receiver.received()));
}

/// By default, neither exemplars nor histograms are sent.
#[test]
fn what_is_not_asked_for_is_not_sent() {
    let receiver = Receiver::start().expect("a receiver");
    let lines = "    queue_config: {batch_send_deadline: 200ms}\n";
    let node = node(receiver.address(), Version::V2, lines, |config| config);
    let sent = everything_of_v2(now_ms());
    let answer = node.writer().send_message(Version::V2, &sent).expect("an answer");
    assert_eq!(answer.status, 204, "{}", answer.text());
    let got = message_v2(&requests(&receiver, &node, 1)[0]);
    assert_eq!(got.timeseries.len(), 1, "{got:?}");
    assert!(got.timeseries[0].exemplars.is_empty(), "{got:?}");
}

/// Requests that the receiver may accept later are repeated unchanged, with growing pauses.
#[test]
fn failures_of_the_receiver_are_tried_again() {
    for version in Version::ALL {
        let receiver = Receiver::start().expect("a receiver");
        let failures = [500, 502, 503, 504];
        receiver.answers(move |number, received| match failures.get(number) {
            Some(code) => status(*code),
            None => taken(received),
        });
        let lines = "    queue_config: {batch_send_deadline: 100ms, min_backoff: 100ms, \
                     max_backoff: 400ms}\n    metadata_config: {send: false}\n";
        let node = node(receiver.address(), version, lines, |config| config);
        write(&node, &one_sample());
        let all = requests(&receiver, &node, failures.len() + 1);
        assert!(all.iter().all(|request| request.body == all[0].body), "the same request");
        let attempts: Vec<_> = all.iter().map(|request| request.header("retry-attempt")).collect();
        assert_eq!(attempts, [None, Some("1"), Some("2"), Some("3"), Some("4")]);
        let pauses: Vec<Duration> = all.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        for (pause, least_ms) in pauses.iter().zip([100, 200, 400, 400]) {
            assert!(*pause >= Duration::from_millis(least_ms), "{pauses:?}");
        }
        wait_for_delivery(&node, 1);
    }
}

/// `Retry-After` is respected with 503 and, if configured, with 429.
#[test]
fn a_receiver_says_when_to_come_again() {
    for code in [503, 429] {
        let receiver = Receiver::start().expect("a receiver");
        receiver.answers(move |number, received| match number {
            0 => Response { headers: vec![("retry-after".into(), "2".into())], ..status(code) },
            _ => taken(received),
        });
        let lines = "    queue_config: {batch_send_deadline: 100ms, min_backoff: 5ms, \
                     max_backoff: 5ms, retry_on_http_429: true}\n    metadata_config: {send: false}\n";
        let node = node(receiver.address(), Version::V2, lines, |config| config);
        write(&node, &one_sample());
        let all = requests(&receiver, &node, 2);
        assert!(all[1].at - all[0].at >= Duration::from_secs(2), "{code}");
        wait_for_delivery(&node, 1);
    }
}

/// Permanently refused requests are not sent again, whatever comes after them.
#[test]
fn refusals_are_final() {
    for code in [400, 401, 403, 404, 413, 429] {
        let receiver = Receiver::start().expect("a receiver");
        receiver.answers(move |number, received| match number {
            0 => status(code),
            _ => taken(received),
        });
        let lines = "    queue_config: {batch_send_deadline: 100ms, min_backoff: 5ms}\n    \
                     metadata_config: {send: false}\n";
        let node = node(receiver.address(), Version::V2, lines, |config| config);
        write(&node, &one_sample());
        wait::until("the refusal", TIMEOUT, || {
            let name = "prometheus_remote_storage_samples_failed_total";
            (figure(&node, name, "") == 1.0).then_some(())
        })
        .unwrap_or_else(|error| panic!("{code}: {error}; {}", node.server.log()));
        let name = "tidepool_remote_storage_samples_refused_total";
        assert_eq!(figure(&node, name, &format!("status=\"{code}\"")), 1.0);
        let next = Series::new(&[("__name__", "next")], &[(now_ms(), 1.0)]);
        write(&node, &[next]);
        let all = requests(&receiver, &node, 2);
        let names: Vec<_> = all.iter().flat_map(|request| message(request).label_sets()).collect();
        assert_eq!(names.len(), 2, "{code}: {names:?}");
        assert_eq!(names[1].value("__name__"), "next", "{code}");
    }
}

/// A redirect, such as that of a gateway which demands a login, is not followed, and loses nothing.
#[test]
fn redirects_are_tried_again_and_not_followed() {
    for code in [301, 302, 307, 308] {
        let (receiver, elsewhere) = (Receiver::start(), Receiver::start());
        let (receiver, elsewhere) = (receiver.expect("one"), elsewhere.expect("another"));
        let location = elsewhere.url();
        receiver.answers(move |number, received| match number {
            0 => Response { headers: vec![("location".into(), location.clone())], ..status(code) },
            _ => taken(received),
        });
        let node = node(receiver.address(), Version::V2, ALL, |config| config);
        write(&node, &one_sample());
        wait_for_delivery(&node, 1);
        assert!(elsewhere.received().is_empty(), "{code}");
        assert_eq!(figure(&node, "prometheus_remote_storage_samples_failed_total", ""), 0.0);
    }
}

/// A receiver that does not support 2.0 gets the same rows as 1.0, and from then on 1.0.
#[test]
fn a_receiver_of_1_0_gets_1_0() {
    // One receiver says so; the other takes everything for 1.0, and returns no counts.
    let not_known: fn(&Received) -> Response = |_| status(415);
    let silent: fn(&Received) -> Response = |_| status(204);
    for answer in [not_known, silent] {
        let receiver = Receiver::start().expect("a receiver");
        receiver.answers(move |_, received| match received.version() {
            Version::V1 => taken(received),
            Version::V2 => answer(received),
        });
        let lines = "    queue_config: {batch_send_deadline: 100ms, max_shards: 1}\n    \
                     metadata_config: {send: false}\n";
        let node = node(receiver.address(), Version::V2, lines, |config| config);
        let (first, second) = (recent_data(101, 5, 3), recent_data(102, 5, 3));
        send_all(&node, Version::V2, &first);
        wait_for_delivery(&node, first.sample_count());
        send_all(&node, Version::V1, &second);
        wait_for_delivery(&node, first.sample_count() + second.sample_count());
        let all = requests(&receiver, &node, 3);
        let versions: Vec<Version> = all.iter().map(Received::version).collect();
        assert_eq!(versions[..2], [Version::V2, Version::V1]);
        assert!(versions[1..].iter().all(|version| *version == Version::V1), "{versions:?}");
        let of = |request: &Received| request.series().expect("it decodes");
        assert_eq!(of(&all[0]), of(&all[1]), "the same rows");
    }
}

/// A success of 2.0 with counts is accepted, and is never a reason for 1.0.
#[test]
fn a_receiver_that_counts_keeps_2_0() {
    let receiver = Receiver::start().expect("a receiver");
    receiver.answers(|_, received| Response {
        // Some receivers answer with 200 and a text.
        status: 200,
        body: b"thank you".to_vec(),
        ..taken(received)
    });
    let node = node(receiver.address(), Version::V2, ALL, |config| config);
    for round in 0..3 {
        write(&node, &one_sample());
        wait_for_delivery(&node, round + 1);
    }
    let all = requests(&receiver, &node, 3);
    assert!(all.iter().all(|request| request.version() == Version::V2));
    assert_eq!(all.len(), 3);
}

/// Many series share a request, no request is larger than configured, and none is empty.
#[test]
fn requests_are_batches() {
    for version in Version::ALL {
        let receiver = Receiver::start().expect("a receiver");
        let lines = "    queue_config: {batch_send_deadline: 300ms, max_shards: 1, \
                     max_samples_per_send: 500}\n    metadata_config: {send: false}\n";
        let node = node(receiver.address(), version, lines, |config| config);
        let data = recent_data(103, 700, 5);
        send_all(&node, Version::V2, &data);
        wait_for_delivery(&node, data.sample_count());
        let all = requests(&receiver, &node, 2);
        let sizes: Vec<usize> = all
            .iter()
            .map(|request| request.series().expect("it decodes"))
            .map(|series| series.iter().map(|series| series.samples.len()).sum())
            .collect();
        assert!(sizes.iter().all(|size| (1..=500).contains(size)), "{sizes:?}");
        assert!(sizes.contains(&500), "{sizes:?}");
        assert_eq!(sizes.iter().sum::<usize>() as u64, data.sample_count());
    }
}

/// Answers that are too long, cut, endless or not HTTP only affect their own request, and the
/// status in their first line counts.
#[test]
fn odd_answers_end_nothing() {
    let huge = [b"HTTP/1.1 500 Oh\r\ncontent-length: 1000000\r\n\r\n", &[b'x'; 1_000_000][..]];
    let odd: [Vec<u8>; 6] = [
        huge.concat(),
        b"HTTP/1.1 503 Oh\r\ncontent-length: 1000\r\n\r\nonly this".to_vec(),
        b"this is not HTTP\r\n\r\n".to_vec(),
        b"HTTP/1.1 502 Oh\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec(),
        b"HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n".to_vec(),
    ];
    let receiver = Receiver::start().expect("a receiver");
    receiver.answers_in_bytes(move |number, received| match odd.get(number) {
        Some(answer) => answer.clone(),
        None => taken(received).to_bytes(),
    });
    let lines = "    queue_config: {batch_send_deadline: 50ms, min_backoff: 5ms}\n    \
                 metadata_config: {send: false}\n";
    let node = node(receiver.address(), Version::V1, lines, |config| config);
    // The fifth answer accepts the sample.
    write(&node, &one_sample());
    wait_for_delivery(&node, 1);
    assert_eq!(receiver.received().len(), 5);
    // The sixth answer refuses the sample, the next one accepts it.
    write(&node, &one_sample());
    wait::until("the refusal", TIMEOUT, || {
        let name = "prometheus_remote_storage_samples_failed_total";
        (figure(&node, name, "") == 1.0).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}; {}", node.server.log()));
    write(&node, &one_sample());
    wait_for_delivery(&node, 2);
    assert_eq!(receiver.received().len(), 7);
}
