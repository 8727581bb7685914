//! Messages in pieces of any size, and bytes that are no messages.

use super::client::{
    Bucket, BucketSpan, Counter, Exemplar, Gauge, Histogram, LabelPair, Metric, MetricFamily,
    Quantile, Summary,
};
use super::{HistogramOptions, ProtobufParser};
use crate::limits::{FAMILY_BYTES_MAX, METRIC_BYTES_MAX, METRIC_FIELDS_MAX};
use crate::{FamilyError, HistogramError, Item, ParseError};
use proptest::prelude::*;
use prost::Message as _;

fn label(name: &str, value: &str) -> LabelPair {
    LabelPair { name: Some(name.to_owned()), value: Some(value.to_owned()) }
}

/// A counter, a summary, a classic histogram and a native one.
fn families(value: &str) -> Vec<MetricFamily> {
    let metric = || Metric { label: vec![label("a", value)], ..Metric::default() };
    let exemplar = Exemplar { label: vec![label("id", value)], value: Some(1.0), timestamp: None };
    let counter = Counter { value: Some(5.0), exemplar: Some(exemplar), created_timestamp: None };
    let summary = Summary {
        sample_count: Some(2),
        quantile: vec![Quantile { quantile: Some(0.5), value: Some(1.0) }],
        ..Summary::default()
    };
    let bucket = |upper_bound, below| Bucket {
        cumulative_count: Some(below),
        upper_bound: Some(upper_bound),
        ..Bucket::default()
    };
    let classic = Histogram {
        sample_count: Some(3),
        bucket: vec![bucket(1.0, 1), bucket(2.0, 3)],
        ..Histogram::default()
    };
    let native = Histogram {
        positive_span: vec![BucketSpan { offset: Some(1), length: Some(2) }],
        positive_delta: vec![1, 1],
        ..classic.clone()
    };
    let family = |name: &str, kind, metric| MetricFamily {
        name: Some(name.to_owned()),
        r#type: Some(kind),
        metric: vec![metric],
        ..MetricFamily::default()
    };
    vec![
        family("c.d", 0, Metric { counter: Some(counter), ..metric() }),
        family("s", 2, Metric { summary: Some(summary), ..metric() }),
        family("h", 4, Metric { histogram: Some(classic), ..metric() }),
        family("n", 5, Metric { histogram: Some(native), ..metric() }),
        family("g", 1, Metric { gauge: Some(Gauge { value: Some(1.0) }), ..metric() }),
    ]
}

fn encoded(families: &[MetricFamily]) -> Vec<u8> {
    families.iter().flat_map(MetricFamily::encode_length_delimited_to_vec).collect()
}

/// Returns the items of a body in pieces, as text.
fn in_pieces(body: &[u8], cuts: &[usize], options: HistogramOptions) -> Vec<String> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
    cuts.push(body.len());
    cuts.sort_unstable();
    let mut parser = ProtobufParser::new(options);
    let mut found = Vec::new();
    let mut start = 0;
    for (at, cut) in cuts.iter().enumerate() {
        parser.feed(&body[start..*cut]);
        start = *cut;
        if at + 1 == cuts.len() {
            parser.end();
        }
        loop {
            match parser.next() {
                Ok(None) => break,
                Ok(Some(item)) => {
                    let labels = match &item {
                        Item::Sample(sample) => Some(sample.series.labels()),
                        Item::Histogram(sample) => Some(sample.series.labels()),
                        _ => None,
                    };
                    found.push(format!("{item:?} {labels:?}"));
                }
                Err(error) => {
                    found.push(error.to_string());
                    return found;
                }
            }
        }
    }
    assert_eq!(parser.bytes(), body.len() as u64);
    found
}

const ALL: HistogramOptions =
    HistogramOptions { ignores_native: false, keeps_classic: true, converts_classic: true };

#[test]
fn families_are_bounded() {
    let next = |body: &[u8], is_all: bool| {
        let mut parser = ProtobufParser::new(HistogramOptions::default());
        parser.feed(body);
        if is_all {
            parser.end();
        }
        parser.next().map(|item| item.is_some())
    };
    let mut length = Vec::new();
    prost::encoding::encode_varint(FAMILY_BYTES_MAX as u64 + 1, &mut length);
    let bytes = FAMILY_BYTES_MAX as u64 + 1;
    assert_eq!(next(&length, false), Err(ParseError::FamilyTooLarge { family: 1, bytes }));
    assert_eq!(next(&[5, 10], false), Ok(false));
    assert_eq!(next(&[5, 10], true), Err(ParseError::FamilyCutOff { family: 1, missing: 4 }));
    assert_eq!(next(&[0x80], false), Ok(false));
    assert_eq!(next(&[0x80], true), Err(ParseError::FamilyCutOff { family: 1, missing: 1 }));
    assert_eq!(next(&[], true), Ok(false));
    let wrong = next(&[0x80; 5], false);
    assert!(matches!(wrong, Err(ParseError::Family { what: FamilyError::Length, .. })));
}

#[test]
fn an_error_names_family_and_metric() {
    let mut families = families("x");
    if let Some(native) = families[3].metric[0].histogram.as_mut() {
        native.positive_delta.push(1);
    }
    let good = families[3].metric[0].clone();
    families[3].metric.insert(0, Metric { histogram: Some(Histogram::default()), ..good });
    let found = in_pieces(&encoded(&families), &[], HistogramOptions::default());
    let wanted =
        "metric family 4 \"n\", metric 2: positive spans require 2 buckets, but there are 3";
    assert_eq!(found.last().map(String::as_str), Some(wanted));
    let source = HistogramError::Spans { side: "positive", wanted: 2, found: 3 };
    assert!(wanted.ends_with(&source.to_string()));
}

proptest! {
    #[test]
    fn pieces_do_not_matter(value in ".{0,5}", cuts in prop::collection::vec(any::<usize>(), 0..8)) {
        let body = encoded(&families(&value));
        let whole = in_pieces(&body, &[], ALL);
        prop_assert_eq!(in_pieces(&body, &cuts, ALL), whole.clone());
        let every: Vec<usize> = (0..body.len()).collect();
        prop_assert_eq!(in_pieces(&body, &every, ALL), whole);
    }

    #[test]
    fn any_bytes_are_survived(
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        cuts in prop::collection::vec(any::<usize>(), 0..4),
        bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut body = encoded(&families("x"));
        for (at, byte) in changes {
            let at = at % body.len();
            body[at] = byte;
        }
        for body in [body, bytes] {
            for options in [ALL, HistogramOptions::default()] {
                prop_assert_eq!(in_pieces(&body, &cuts, options), in_pieces(&body, &[], options));
            }
        }
    }
}

/// Regression: 16 MiB of empty buckets, of two bytes each, took more than a gigabyte once decoded.
#[test]
fn a_metric_is_bounded_before_it_is_decoded() {
    let histogram = |buckets: usize| {
        let histogram = [0x1a, 0].repeat(buckets);
        let mut metric = vec![0x3a];
        prost::encoding::encode_varint(histogram.len() as u64, &mut metric);
        metric.extend(histogram);
        metric
    };
    let read = |metric: &[u8]| {
        let mut family = vec![0x0a, 1, b'h', 0x18, 4, 0x22];
        prost::encoding::encode_varint(metric.len() as u64, &mut family);
        family.extend_from_slice(metric);
        let mut body = Vec::new();
        prost::encoding::encode_varint(family.len() as u64, &mut body);
        body.extend(family);
        let mut parser = ProtobufParser::new(HistogramOptions::default());
        parser.feed(&body);
        match parser.next() {
            Ok(item) => Ok(item.is_some()),
            Err(ParseError::Family { what, metric: 1, .. }) => Err(what),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(read(&histogram(METRIC_FIELDS_MAX - 1)), Ok(true));
    assert_eq!(read(&histogram(METRIC_FIELDS_MAX)), Err(FamilyError::TooManyFields));
    let large = histogram(METRIC_BYTES_MAX / 2);
    assert_eq!(read(&large), Err(FamilyError::MetricTooLarge { bytes: large.len() }));
}
