//! Test support of several rooms: upstream's histograms as text, and random ones.

use super::*;
use proptest::prelude::*;

/// Made by upstream's packages; `main.go` beside it has the command and the meaning of lines.
pub const UPSTREAM: &str = include_str!("../../../tests/fixtures/histograms/histograms.txt");

pub trait TestCount: Count {
    const NAME: &str;
    fn parse_total(text: &str) -> Self;
    fn parse_bucket(text: &str) -> Self::Bucket;
    fn total(number: u64) -> Self;
    fn bucket(number: u64) -> Self::Bucket;
    fn value(histogram: NativeHistogram<Self>) -> crate::model::Value;
}

pub type Texts<'a> = Vec<(i64, &'a str)>;

#[derive(Debug, Default)]
pub struct Run<'a> {
    pub is_float: bool,
    pub cut: u16,
    pub samples: Texts<'a>,
    pub chunks: Vec<(Vec<u8>, Texts<'a>)>,
    /// Other lines: their kind and their bytes.
    pub others: Vec<(&'a str, Vec<u8>)>,
}

pub fn upstream_runs() -> Vec<Run<'static>> {
    let mut runs: Vec<Run<'static>> = Vec::new();
    for line in UPSTREAM.lines() {
        let (word, rest) = line.split_once(' ').expect("a line of several words");
        let sample = |rest: &'static str| {
            let (time, text) = rest.split_once(' ').expect("a time and a histogram");
            (time.parse().expect("a time"), text)
        };
        if word == "run" {
            let (kind, cut) = rest.split_once(' ').expect("a kind and a number");
            let cut = cut.parse().expect("a number");
            runs.push(Run { is_float: kind == "float", cut, ..Run::default() });
            continue;
        }
        let Some(run) = runs.last_mut() else { continue };
        match word {
            "h" => run.samples.push(sample(rest)),
            "chunk" => run.chunks.push((hex(rest), Vec::new())),
            "r" => run.chunks.last_mut().expect("a chunk").1.push(sample(rest)),
            "valid" | "reduce" => {}
            other => run.others.push((other, hex(rest))),
        }
    }
    runs
}

pub fn upstream_lines<C: TestCount>(word: &str) -> Vec<Vec<&'static str>> {
    let words = UPSTREAM.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let wanted = words.filter(|words| words[0] == word && words[1] == C::NAME);
    wanted.map(|words| words[2..].to_vec()).collect()
}

pub fn hex(text: &str) -> Vec<u8> {
    let byte = |i| u8::from_str_radix(&text[i..i + 2], 16).expect("two digits");
    (0..text.len()).step_by(2).map(byte).collect()
}

pub fn parse<C: TestCount>(text: &str) -> NativeHistogram<C> {
    let fields: Vec<&str> = text.split(';').collect();
    let list = |i: usize| {
        let inner = fields[i].trim_start_matches('[').trim_end_matches(']');
        inner.split(',').filter(|item| !item.is_empty())
    };
    let spans = |i| {
        list(i)
            .map(|span: &str| {
                let (offset, length) = span.split_once(':').expect("offset and length");
                Span { offset: offset.parse().unwrap(), length: length.parse().unwrap() }
            })
            .collect()
    };
    NativeHistogram {
        layout: Rc::new(BucketLayout {
            schema: fields[1].parse().expect("a schema"),
            zero_threshold: float(fields[2]),
            positive_spans: spans(6),
            negative_spans: spans(7),
            custom_values: list(10).map(float).collect(),
        }),
        reset_hint: ResetHint::from_number(fields[0].parse().expect("a hint")),
        count: C::parse_total(fields[4]),
        zero_count: C::parse_total(fields[3]),
        sum: float(fields[5]),
        positive_buckets: list(8).map(C::parse_bucket).collect(),
        negative_buckets: list(9).map(C::parse_bucket).collect(),
    }
}

fn float(bits: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(bits, 16).expect("sixteen digits"))
}

type Buckets = Vec<(u8, u32)>;

pub fn any_histogram<C: TestCount>() -> impl Strategy<Value = NativeHistogram<C>> {
    let buckets = || prop::collection::vec((0u8..4, prop_oneof![Just(0), any::<u32>()]), 0..12);
    let schema = prop_oneof![4 => -4..=8, 1 => Just(CUSTOM_BUCKETS_SCHEMA)];
    let sum = prop_oneof![9 => any::<f64>(), 1 => Just(f64::from_bits(STALE_NAN_BITS))];
    let threshold = prop_oneof![Just(0.0), Just(2f64.powi(-128)), Just(0.001)];
    (schema, threshold, any::<u16>(), sum, 0u64..4, buckets(), buckets(), -30i32..30).prop_map(
        |(schema, zero_threshold, zero, sum, hint, positive, negative, start)| {
            let is_custom = schema == CUSTOM_BUCKETS_SCHEMA;
            let (zero, start) = if is_custom { (0, 0) } else { (u64::from(zero), start) };
            let negative = if is_custom { Vec::new() } else { negative };
            let observed = |side: &Buckets| side.iter().map(|(_, n)| u64::from(*n)).sum::<u64>();
            let bounds = if is_custom { 60 } else { 0 };
            NativeHistogram {
                layout: Rc::new(BucketLayout {
                    schema,
                    zero_threshold: if is_custom { 0.0 } else { zero_threshold },
                    positive_spans: spans_of(&positive, start),
                    negative_spans: spans_of(&negative, start),
                    custom_values: (0..bounds).map(|i| f64::from(i) / 3.0 - 2.0).collect(),
                }),
                reset_hint: ResetHint::from_number(hint),
                count: C::total(zero + observed(&positive) + observed(&negative)),
                zero_count: C::total(zero),
                sum,
                positive_buckets: buckets_of::<C>(&positive),
                negative_buckets: buckets_of::<C>(&negative),
            }
        },
    )
}

fn spans_of(buckets: &Buckets, start: i32) -> Box<[Span]> {
    let mut next = 0;
    let mut spans: Vec<Span> = Vec::new();
    for (i, (gap, _)) in buckets.iter().enumerate() {
        let offset = i32::from(*gap) + if i == 0 { start } else { 0 };
        next += 1;
        match spans.last_mut() {
            // Neighbours now and then stand in a span of their own.
            Some(last) if offset == 0 && next % 5 != 0 => last.length += 1,
            _ => spans.push(Span { offset, length: 1 }),
        }
    }
    spans.into()
}

fn buckets_of<C: TestCount>(buckets: &Buckets) -> Vec<C::Bucket> {
    let mut before = C::Bucket::default();
    let kept = |(_, number): &(u8, u32)| {
        let count = C::bucket(u64::from(*number));
        C::kept(std::mem::replace(&mut before, count), count)
    };
    buckets.iter().map(kept).collect()
}

pub fn any_histograms<C: TestCount>() -> impl Strategy<Value = Vec<(i64, NativeHistogram<C>)>> {
    let step = prop_oneof![4 => Just(15_000i64), 1 => 1i64..4_000_000];
    let each = (step, any_histogram::<C>(), 0u8..10);
    prop::collection::vec(each, 1..25).prop_map(|steps| {
        let mut timestamp_ms = 1_700_000_000_000;
        let mut out: Vec<(i64, NativeHistogram<C>)> = Vec::new();
        for (step_ms, histogram, turn) in steps {
            timestamp_ms += step_ms;
            let histogram = match out.last() {
                Some((_, last)) if turn > 2 => NativeHistogram {
                    sum: histogram.sum,
                    reset_hint: last.reset_hint,
                    ..last.clone()
                },
                _ => histogram,
            };
            out.push((timestamp_ms, histogram));
        }
        out
    })
}

impl TestCount for u64 {
    const NAME: &str = "int";

    fn parse_total(text: &str) -> u64 {
        text.parse().expect("a count")
    }

    fn parse_bucket(text: &str) -> i64 {
        text.parse().expect("a bucket")
    }

    fn total(number: u64) -> u64 {
        number
    }

    fn bucket(number: u64) -> i64 {
        number as i64
    }

    fn value(histogram: NativeHistogram<u64>) -> crate::model::Value {
        histogram.into()
    }
}

impl TestCount for f64 {
    const NAME: &str = "float";

    fn parse_total(text: &str) -> f64 {
        float(text)
    }

    fn parse_bucket(text: &str) -> f64 {
        float(text)
    }

    fn total(number: u64) -> f64 {
        number as f64 / 4.0
    }

    fn bucket(number: u64) -> f64 {
        number as f64 / 4.0
    }

    fn value(histogram: NativeHistogram<f64>) -> crate::model::Value {
        histogram.into()
    }
}
