//! Chunks with start timestamps: from upstream's packages, random, and hostile.

use super::xor2::encode_xor2;
use super::*;
use crate::model::histogram::STALE_NAN_BITS;
use crate::model::histogram::testing::{any_histogram, hex};
use crate::model::{Sample, TimeRange, Value};
use proptest::prelude::*;

/// Made by upstream's packages; `main.go` beside it describes how, and each line.
const UPSTREAM: &str = include_str!("../../tests/fixtures/starts/starts.txt");

type Row = (i64, i64, u64);

const WITH_STARTS: [Encoding; 3] =
    [Encoding::Xor2, Encoding::HistogramSt, Encoding::FloatHistogramSt];

/// The XOR2 chunk of floats with their times and start timestamps.
pub(crate) fn xor2_chunk(samples: &[(i64, i64, f64)]) -> Chunk {
    let all = samples.iter().map(|(timestamp_ms, start_ms, value)| {
        (Sample { timestamp_ms: *timestamp_ms, value: *value }, *start_ms)
    });
    let data = encode_xor2(all).into();
    let time = |sample: Option<&(i64, i64, f64)>| sample.expect("a sample").0;
    let (min_time_ms, max_time_ms) = (time(samples.first()), time(samples.last()));
    Chunk { encoding: Encoding::Xor2, min_time_ms, max_time_ms, data }
}

fn chunk(encoding: Encoding, data: Vec<u8>) -> Chunk {
    Chunk { encoding, min_time_ms: 0, max_time_ms: 0, data: data.into() }
}

fn rows(chunk: &Chunk) -> Vec<Row> {
    let rows = started_values(chunk).expect("a header").map(|next| {
        let StartedValue { timestamp_ms, start_ms, value } = next.expect("a sample");
        let Value::Float(value) = value else { panic!("not a float") };
        (timestamp_ms, start_ms, value.to_bits())
    });
    rows.collect()
}

#[test]
fn floats_are_read_and_written_as_upstream_does() {
    let (mut sent, mut compared): (Vec<Row>, usize) = (Vec::new(), 0);
    for line in UPSTREAM.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["s", time, start, bits] => sent.push((
                time.parse().expect("a time"),
                start.parse().expect("a start"),
                u64::from_str_radix(bits, 16).expect("bits"),
            )),
            [word @ ("xor2" | "resumed"), data] => {
                let upstream = chunk(Encoding::Xor2, hex(data));
                assert_eq!(sample_count(&upstream).map(usize::from), Ok(sent.len()));
                assert_eq!(rows(&upstream), sent);
                let samples = sent.iter().map(|(timestamp_ms, start_ms, bits)| {
                    let value = f64::from_bits(*bits);
                    (Sample { timestamp_ms: *timestamp_ms, value }, *start_ms)
                });
                let ours = encode_xor2(samples);
                assert_eq!(rows(&chunk(Encoding::Xor2, ours.clone())), sent);
                if word == "xor2" {
                    assert_eq!(ours, *upstream.data);
                    compared += 1;
                }
                let is_plain = sent.iter().all(|(_, start_ms, _)| *start_ms == 0);
                assert_eq!(is_plain_floats(&upstream), is_plain && sent.len() <= 127);
                let plain = plain(upstream).expect("a sound chunk");
                assert_eq!(plain.encoding, Encoding::Xor);
                sent.iter_mut().for_each(|(_, start_ms, _)| *start_ms = 0);
                assert_eq!(rows(&plain), sent);
                sent.clear();
            }
            _ => {}
        }
    }
    assert!(compared >= 5, "{compared}");
}

fn starts_of(chunk: &Chunk) -> Vec<(i64, i64)> {
    let all = started_values(chunk).expect("a header").map(|next| {
        let StartedValue { timestamp_ms, start_ms, .. } = next.expect("a histogram");
        (timestamp_ms, start_ms)
    });
    all.collect()
}

#[test]
fn histograms_gain_and_lose_starts_as_upstream_writes_them() {
    let mut lines = UPSTREAM.lines();
    let mut compared = 0;
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("plain ") else { continue };
        let (kind, data) = rest.split_once(' ').expect("a kind and bytes");
        let (plain_encoding, encoding) = match kind {
            "float" => (Encoding::FloatHistogram, Encoding::FloatHistogramSt),
            _ => (Encoding::Histogram, Encoding::HistogramSt),
        };
        let without = chunk(plain_encoding, hex(data));
        let starts = lines.next().and_then(|line| line.strip_prefix("starts "));
        let starts: Vec<(i64, i64)> = starts
            .expect("start timestamps")
            .split(',')
            .map(|both| both.split_once(':').expect("two times"))
            .map(|(time, start)| (time.parse().expect("a time"), start.parse().expect("a start")))
            .collect();
        let with = lines.next().and_then(|line| line.strip_prefix("with ")).expect("a chunk");
        let with = chunk(encoding, hex(with));
        assert_eq!(sample_count(&with), sample_count(&without));
        assert_eq!(starts_of(&with), starts);
        assert_eq!(plain(with.clone()), Ok(without.clone()));
        let starts_ms: Vec<i64> = starts.iter().map(|(_, start_ms)| *start_ms).collect();
        let ours = match encoding {
            Encoding::HistogramSt => histogram::put_starts::<u64>(&without.data, &starts_ms),
            _ => histogram::put_starts::<f64>(&without.data, &starts_ms),
        };
        assert_eq!(ours, Ok(Some(with.data.to_vec())));
        compared += 1;
    }
    assert!(compared >= 8, "{compared}");
}

fn any_start() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        6 => Just(None),
        2 => Just(Some(0)),
        2 => Just(Some(1_700_000_000_000)),
        1 => any::<i64>().prop_map(Some),
    ]
}

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => Just(1.0),
        2 => (0u32..50).prop_map(f64::from),
        1 => Just(f64::from_bits(STALE_NAN_BITS)),
        1 => any::<u64>().prop_map(f64::from_bits),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => any_float().prop_map(Value::from),
        1 => any_histogram::<u64>().prop_map(Value::from),
        1 => any_histogram::<f64>().prop_map(Value::from),
    ]
}

fn any_step() -> impl Strategy<Value = i64> {
    prop_oneof![Just(15_000), 10_000i64..20_000, 1i64..1 << 21, 1i64..1 << 45]
}

/// Values of one series; a missing start timestamp is that of the value before.
fn any_started(
    values: impl Strategy<Value = Value>,
    len: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<StartedValue>> {
    let row = (any_step(), any_start(), values);
    prop::collection::vec(row, len).prop_map(|rows| {
        let (mut timestamp_ms, mut start_ms) = (1_600_000_000_000, 0);
        let started = rows.into_iter().map(|(step_ms, start, value)| {
            timestamp_ms += step_ms;
            start_ms = start.unwrap_or(start_ms);
            StartedValue { timestamp_ms, start_ms, value }
        });
        started.collect()
    })
}

fn decoded(chunks: &[Chunk]) -> Result<Vec<StartedValue>, ChunkError> {
    let mut all = Vec::new();
    for chunk in chunks {
        for value in started_values(chunk)? {
            all.push(value?);
        }
    }
    Ok(all)
}

fn are_same(a: &[StartedValue], b: &[StartedValue]) -> bool {
    let same = |(a, b): (&StartedValue, &StartedValue)| {
        (a.timestamp_ms, a.start_ms) == (b.timestamp_ms, b.start_ms)
            && a.value.same_observations(&b.value)
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

proptest! {
    #[test]
    fn floats_come_back(sent in any_started(any_float().prop_map(Value::from), 1..300)) {
        let all = sent.iter().map(|StartedValue { timestamp_ms, start_ms, value }| {
            let Value::Float(value) = value else { unreachable!("floats only") };
            (Sample { timestamp_ms: *timestamp_ms, value: *value }, *start_ms)
        });
        let chunk = chunk(Encoding::Xor2, encode_xor2(all.clone()));
        let bits = |(sample, start_ms): (Sample, i64)| {
            (sample.timestamp_ms, start_ms, sample.value.to_bits())
        };
        prop_assert_eq!(rows(&chunk), all.map(bits).collect::<Vec<_>>());
    }

    /// Values encoded with start timestamps have them, and are the same without.
    #[test]
    fn values_of_all_kinds_keep_their_starts(sent in any_started(any_value(), 1..200)) {
        let chunks = encode_started(sent.iter().cloned())?;
        prop_assert!(are_same(&decoded(&chunks)?, &sent));
        let values = || sent.iter().map(|sent| (sent.timestamp_ms, sent.value.clone()));
        let plain: Result<Vec<Chunk>, _> = chunks.iter().cloned().map(super::plain).collect();
        prop_assert_eq!(plain?, encode(values()));
        for (chunk, plain) in chunks.iter().zip(encode(values())) {
            let has_starts = starts_of(chunk).iter().any(|(_, start_ms)| *start_ms != 0);
            prop_assert_eq!(chunk.encoding.is_plain(), !has_starts);
            prop_assert_eq!(sample_count(chunk)?, sample_count(&plain)?);
        }
    }

    /// Deleting a span leaves the others their start timestamps.
    #[test]
    fn a_deletion_leaves_starts(
        sent in any_started(any_value(), 1..200),
        (from, to) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let (from, to) = (from.index(sent.len()), to.index(sent.len()));
        let gone = TimeRange { start_ms: sent[from].timestamp_ms, end_ms: sent[to].timestamp_ms };
        let mut kept = Vec::new();
        for chunk in encode_started(sent.iter().cloned())? {
            kept.extend(without(&chunk, &[gone])?);
        }
        let expected: Vec<StartedValue> =
            sent.into_iter().filter(|sent| !gone.contains(sent.timestamp_ms)).collect();
        prop_assert!(are_same(&decoded(&kept)?, &expected));
    }

    #[test]
    fn hostile_bytes_are_survived(
        data in prop::collection::vec(any::<u8>(), 0..120),
        sent in any_started(any_value(), 1..60),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut all: Vec<Chunk> =
            WITH_STARTS.iter().map(|encoding| chunk(*encoding, data.clone())).collect();
        for mut chunk in encode_started(sent.into_iter())? {
            let mut data = chunk.data.to_vec();
            for (place, byte) in &flips {
                let place = place.index(data.len());
                data[place] = *byte;
            }
            chunk.data = data.into();
            all.push(chunk);
        }
        for chunk in all {
            let values = values(&chunk).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let plain = super::plain(chunk.clone());
            let _ = sample_count(&chunk);
            match (values, plain) {
                (Ok(values), Ok(plain)) => {
                    let again: Vec<_> = super::values(&plain)?.collect::<Result<_, _>>()?;
                    prop_assert_eq!(values.len(), again.len());
                    for ((time, value), (time_again, value_again)) in values.iter().zip(&again) {
                        prop_assert_eq!(time, time_again);
                        prop_assert!(value.same_observations(value_again));
                    }
                }
                (Ok(_), Err(error)) => prop_assert!(false, "{error}"),
                // An XOR chunk, say, is plain whatever it holds.
                (Err(_), plain) => prop_assert!(plain.is_err() || chunk.encoding.is_plain()),
            }
        }
    }
}
