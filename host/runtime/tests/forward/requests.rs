//! Requests: floats, histograms, exemplars and metadata in both versions, and rows left out.

use crate::node::{Node, feed, feed_piece, settings};
use crate::received::{Rows, decoded, deliver_all, key_v1, key_v2};
use crate::{BASE_MS, MINUTE_MS, TestResult};
use prost::Message as _;
use tidepool_disk::wal::LogKind;
use tidepool_runtime::{ForwardSettings, MetadataRequest, RemoteWriteVersion, Request};
use tidepool_tests::proto::prometheus::{
    BucketSpan, Exemplar, Histogram, Label, MetricMetadata, Sample, TimeSeries, WriteRequest,
    histogram, metric_metadata::MetricType,
};
use tidepool_tests::proto::write_v2;
use tidepool_tests::series::Series;

const COUNTER: &str = "__name__=requests_total,job=a";
const LATENCY: &str = "__name__=latency,job=a";

fn label(name: &str, value: &str) -> Label {
    Label { name: name.into(), value: value.into() }
}

fn latency() -> Histogram {
    Histogram {
        count: Some(histogram::Count::CountInt(12)),
        sum: 18.5,
        schema: 3,
        zero_threshold: 0.001,
        zero_count: Some(histogram::ZeroCount::ZeroCountInt(2)),
        positive_spans: vec![
            BucketSpan { offset: 0, length: 2 },
            BucketSpan { offset: 3, length: 1 },
        ],
        positive_deltas: vec![3, 1, -1],
        timestamp: BASE_MS,
        ..Histogram::default()
    }
}

fn exemplar() -> Exemplar {
    let (labels, timestamp) = (vec![label("trace_id", "abc")], BASE_MS + MINUTE_MS);
    Exemplar { labels, value: 0.25, timestamp }
}

/// A message with two floats with an exemplar, a histogram, and metadata of both families.
fn message() -> WriteRequest {
    let sample = |at: i64, value: f64| Sample { timestamp: BASE_MS + at * MINUTE_MS, value };
    let metadata = |kind: MetricType, family: &str, help: &str, unit: &str| MetricMetadata {
        r#type: kind.into(),
        metric_family_name: family.into(),
        help: help.into(),
        unit: unit.into(),
    };
    WriteRequest {
        timeseries: vec![
            TimeSeries {
                labels: vec![label("__name__", "requests_total"), label("job", "a")],
                samples: vec![sample(0, 1.5), sample(1, 2.5)],
                exemplars: vec![exemplar()],
                ..TimeSeries::default()
            },
            TimeSeries {
                labels: vec![label("__name__", "latency"), label("job", "a")],
                histograms: vec![latency()],
                ..TimeSeries::default()
            },
        ],
        metadata: vec![
            metadata(MetricType::Counter, "requests_total", "All requests.", ""),
            metadata(MetricType::Histogram, "latency", "Time of a request.", "seconds"),
        ],
    }
}

fn node() -> TestResult<Node> {
    let mut node = Node::new()?;
    node.write_message(RemoteWriteVersion::V1, &message().encode_to_vec())?;
    Ok(node)
}

fn floats() -> Rows {
    let samples = [(BASE_MS, 1.5), (BASE_MS + MINUTE_MS, 2.5)];
    Rows::of(&[Series::new(&[("__name__", "requests_total"), ("job", "a")], &samples)])
}

/// Takes all rows in a single request of this version.
fn whole(settings: &ForwardSettings, version: RemoteWriteVersion) -> TestResult<Request> {
    let node = node()?;
    let mut destination = node.destination(settings)?;
    let fed = feed(&mut destination, &node.all_pieces()?)?;
    assert_eq!(fed.iter().map(|fed| fed.unknown).sum::<u64>(), 0);
    assert_eq!(fed.iter().map(|fed| fed.newest_ms).max(), Some(BASE_MS + MINUTE_MS));
    Ok(destination.take(0, version, 100, i64::MIN)?.ok_or("no rows")?)
}

#[test]
fn every_kind_of_row_is_in_a_request_of_version_1() -> TestResult {
    let request = whole(&settings(1), RemoteWriteVersion::V1)?;
    assert_eq!((request.samples, request.histograms, request.exemplars), (2, 1, 1));
    assert_eq!((request.too_old, request.newest_ms), (0, BASE_MS + MINUTE_MS));
    let mut rows = decoded(RemoteWriteVersion::V1, &request.body)?;
    rows.0.retain(|_, rows| !rows.is_empty());
    assert_eq!(rows, floats());
    let message = WriteRequest::decode(&*request.body)?;
    let mut exemplars = Vec::new();
    for series in message.timeseries {
        match key_v1(&series.labels).as_str() {
            COUNTER => assert!(series.histograms.is_empty()),
            LATENCY => assert_eq!(series.histograms, [latency()]),
            other => panic!("{other}"),
        }
        exemplars.extend(series.exemplars.into_iter().map(|found| (key_v1(&series.labels), found)));
    }
    assert_eq!(exemplars, [(COUNTER.to_owned(), exemplar())]);
    Ok(())
}

#[test]
fn every_kind_of_row_is_in_a_request_of_version_2() -> TestResult {
    let request = whole(&settings(1), RemoteWriteVersion::V2)?;
    assert_eq!((request.samples, request.histograms, request.exemplars), (2, 1, 1));
    let mut rows = decoded(RemoteWriteVersion::V2, &request.body)?;
    rows.0.retain(|_, rows| !rows.is_empty());
    assert_eq!(rows, floats());
    let message = write_v2::Request::decode(&*request.body)?;
    let text = |at: u32| message.symbols[at as usize].as_str();
    let mut exemplars = Vec::new();
    for series in &message.timeseries {
        let metadata = series.metadata.as_ref().ok_or("no metadata")?;
        let said = (metadata.r#type(), text(metadata.help_ref), text(metadata.unit_ref));
        match key_v2(&message, &series.labels_refs).as_str() {
            COUNTER => {
                let expected = (write_v2::metadata::MetricType::Counter, "All requests.", "");
                assert_eq!(said, expected);
                let found = series.exemplars.iter();
                exemplars.extend(found.map(|e| (&e.labels_refs, e.value, e.timestamp)));
            }
            LATENCY => {
                let kind = write_v2::metadata::MetricType::Histogram;
                assert_eq!(said, (kind, "Time of a request.", "seconds"));
                let [found] = series.histograms.as_slice() else { panic!("one histogram") };
                let spans: Vec<(i32, u32)> =
                    found.positive_spans.iter().map(|s| (s.offset, s.length)).collect();
                assert_eq!(found.count, Some(write_v2::histogram::Count::CountInt(12)));
                let zero = write_v2::histogram::ZeroCount::ZeroCountInt(2);
                assert_eq!((&found.zero_count, found.zero_threshold), (&Some(zero), 0.001));
                assert_eq!((found.sum, found.schema, found.timestamp), (18.5, 3, BASE_MS));
                assert_eq!(
                    (spans, &*found.positive_deltas),
                    (vec![(0, 2), (3, 1)], &[3, 1, -1][..])
                );
            }
            other => panic!("{other}"),
        }
    }
    let [(labels, value, timestamp)] = exemplars.as_slice() else { panic!("one exemplar") };
    assert_eq!(key_v2(&message, labels), "trace_id=abc");
    assert_eq!((*value, *timestamp), (0.25, BASE_MS + MINUTE_MS));
    Ok(())
}

#[test]
fn histograms_and_exemplars_are_sent_only_if_asked_for() -> TestResult {
    let settings = ForwardSettings { exemplars: false, histograms: false, ..settings(1) };
    let request = whole(&settings, RemoteWriteVersion::V1)?;
    assert_eq!((request.samples, request.histograms, request.exemplars), (2, 0, 0));
    let message = WriteRequest::decode(&*request.body)?;
    let [series] = message.timeseries.as_slice() else { panic!("one series") };
    assert!(series.exemplars.is_empty() && series.histograms.is_empty());
    Ok(())
}

#[test]
fn metadata_comes_family_by_family() -> TestResult {
    let node = node()?;
    let mut destination = node.destination(&settings(1))?;
    feed(&mut destination, &node.all_pieces()?)?;
    let mut families = Vec::new();
    let mut after = String::new();
    while let Some(MetadataRequest { body, last }) = destination.metadata(&after, 1)? {
        let message = WriteRequest::decode(&*body)?;
        let [found] = message.metadata.as_slice() else { panic!("one family") };
        assert_eq!(found.metric_family_name, last);
        families.push(found.clone());
        after = last;
    }
    let mut expected = message().metadata;
    expected.sort_by(|a, b| a.metric_family_name.cmp(&b.metric_family_name));
    assert_eq!(families, expected);
    let MetadataRequest { body, last } = destination.metadata("", 9)?.ok_or("no families")?;
    assert_eq!(WriteRequest::decode(&*body)?.metadata, expected);
    assert_eq!(last, "requests_total");
    Ok(())
}

#[test]
fn rows_stay_until_they_are_done() -> TestResult {
    let mut node = Node::new()?;
    let samples: Vec<(i64, f64)> =
        (0..10).map(|at| (BASE_MS + at * MINUTE_MS, at as f64)).collect();
    let written = [Series::new(&[("__name__", "m")], &samples)];
    node.write(&written)?;
    let mut destination = node.destination(&settings(1))?;
    let fed = feed(&mut destination, &node.all_pieces()?)?;
    assert_eq!(fed.iter().map(|fed| fed.rows).sum::<u64>(), 10);
    assert_eq!(destination.pending()?, [10]);
    let mut take = |version, rows_max, not_before_ms| {
        destination.take(0, version, rows_max, not_before_ms).map_err(|error| error.to_string())
    };
    let first = take(RemoteWriteVersion::V2, 4, i64::MIN)?.ok_or("no rows")?;
    let expected = |samples: &[(i64, f64)]| Rows::of(&[Series::new(&[("__name__", "m")], samples)]);
    assert_eq!(decoded(RemoteWriteVersion::V2, &first.body)?, expected(&samples[..4]));
    // The same rows, whatever is asked for.
    let again = take(RemoteWriteVersion::V1, 9, i64::MIN)?.ok_or("no rows")?;
    assert_eq!(decoded(RemoteWriteVersion::V1, &again.body)?, expected(&samples[..4]));
    let newer = take(RemoteWriteVersion::V2, 4, samples[3].0)?.ok_or("no rows")?;
    assert_eq!((newer.samples, newer.too_old), (1, 3));
    assert_eq!(decoded(RemoteWriteVersion::V2, &newer.body)?, expected(&samples[3..4]));
    let none = take(RemoteWriteVersion::V2, 4, i64::MAX)?.ok_or("no rows")?;
    assert_eq!((none.body.is_empty(), none.samples, none.too_old), (true, 0, 4));
    assert!(destination.take(1, RemoteWriteVersion::V2, 4, i64::MIN)?.is_none(), "no such shard");
    destination.done(0)?;
    assert_eq!(destination.pending()?, [6]);
    assert_eq!(deliver_all(&mut destination)?, expected(&samples[4..]));
    assert_eq!(destination.pending()?, [0]);
    assert!(destination.take(0, RemoteWriteVersion::V2, 4, i64::MIN)?.is_none());
    Ok(())
}

/// Reading stops at a full shard and continues with the record that was not taken.
#[test]
fn a_full_shard_stops_reading() -> TestResult {
    let mut node = Node::new()?;
    let rows: Vec<Series> = (0..6)
        .map(|at| Series::new(&[("__name__", "m")], &[(BASE_MS + at * MINUTE_MS, at as f64)]))
        .collect();
    for row in &rows {
        node.write(std::slice::from_ref(row))?;
    }
    let mut destination = node.destination(&settings(1))?;
    let [piece] = &mut *node.pieces(LogKind::InOrder)? else { panic!("one piece") };
    let (mut received, mut stops) = (Rows::default(), 0);
    loop {
        let fed = feed_piece(&mut destination, piece, 2)?;
        received.extend(deliver_all(&mut destination)?);
        let taken = fed.records as usize;
        let bytes: u32 = piece.records.lengths.drain(..taken).sum();
        piece.records.bytes.drain(..bytes as usize);
        piece.first += fed.records;
        if !fed.is_full {
            break;
        }
        assert!(fed.rows == 2, "one row a record: {fed:?}");
        stops += 1;
    }
    assert_eq!((received, stops), (Rows::of(&rows), 2));
    Ok(())
}
