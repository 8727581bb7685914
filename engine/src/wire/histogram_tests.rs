//! Histograms and exemplars in messages, against upstream's own and at random.

use super::tests::put_series;
use super::*;
use crate::model::histogram::testing::{Run, TestCount, any_histograms, parse, upstream_runs};
use crate::model::{Labels, Sample, Value as ModelValue};
use proptest::prelude::*;

#[derive(Default, Debug)]
struct Collected {
    samples: Vec<Sample>,
    histograms: Vec<(i64, ModelValue)>,
    exemplars: Vec<(f64, i64)>,
    pairs: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
    refs: Vec<Vec<u32>>,
}

impl Collected {
    fn take(&mut self, data: SeriesData<'_>) {
        self.samples.extend_from_slice(data.samples);
        self.histograms.extend_from_slice(data.histograms);
        for exemplar in data.exemplars {
            self.exemplars.push((exemplar.value, exemplar.timestamp_ms));
            match &exemplar.labels {
                ExemplarLabels::Pairs(pairs) => {
                    let owned = pairs.iter().map(|(name, value)| (name.to_vec(), value.to_vec()));
                    self.pairs.push(owned.collect());
                }
                ExemplarLabels::Refs(refs) => self.refs.push(refs.clone()),
            }
        }
    }
}

impl<'r> WriteSink<'r> for Collected {
    type Histogram = ModelValue;

    fn series_by_pairs(&mut self, _: &[(&'r [u8], &'r [u8])], data: SeriesData<'_>) {
        self.take(data);
    }

    fn series_by_refs(&mut self, _: &[u32], data: SeriesData<'_>) {
        self.take(data);
    }
}

fn labels() -> Labels {
    Labels::from_sorted([("a", "b")])
}

fn values_of<C: TestCount>(run: &Run<'_>) -> Vec<(i64, ModelValue)> {
    run.samples.iter().map(|(time, text)| (*time, C::value(parse::<C>(text)))).collect()
}

#[test]
fn upstreams_bodies_decode() {
    for run in upstream_runs() {
        let wanted = match run.is_float {
            true => values_of::<f64>(&run),
            false => values_of::<u64>(&run),
        };
        for (kind, body) in &run.others {
            let mut seen = Collected::default();
            match *kind {
                "write1" => assert_eq!(decode_write_v1(body, &mut seen), Ok(())),
                "write2" => assert_eq!(decode_write_v2(body, &mut seen), Ok(())),
                _ => continue,
            }
            assert_eq!(seen.histograms, wanted);
            assert_eq!(seen.exemplars, [(1.5, 7), (-2.0, 0)]);
            if *kind == "write1" {
                let pair = |name: &str, value: &str| (name.into(), value.into());
                assert_eq!(
                    seen.pairs,
                    [vec![pair("trace_id", "abc"), pair("span_id", "d")], vec![]]
                );
            } else {
                assert_eq!(seen.refs, [vec![3, 4], vec![]]);
            }
        }
    }
}

/// A series of a write body is that of a query result, with exemplars in front of histograms.
#[test]
fn encoded_histograms_are_upstreams() {
    let exemplars = b"\x1a\x2a\x0a\x0f\x0a\x08trace_id\x12\x03abc\x0a\x0c\x0a\x07span_id\x12\x01d\
        \x11\0\0\0\0\0\0\xf8\x3f\x18\x07\x1a\x09\x11\0\0\0\0\0\0\0\xc0";
    for run in upstream_runs() {
        let values = match run.is_float {
            true => values_of::<f64>(&run),
            false => values_of::<u64>(&run),
        };
        let mut out = Vec::new();
        put_series(&mut out, &labels(), &values);
        let body = run.others.iter().find(|(kind, _)| *kind == "write1").expect("a body");
        let fields = |message| Fields::new(message).map(|f| f.expect("a field").1);
        let [Value::Bytes(ours)] = fields(&out).collect::<Vec<_>>()[..] else {
            panic!("no series")
        };
        let [Value::Bytes(theirs)] = fields(&body.1).collect::<Vec<_>>()[..] else {
            panic!("no series");
        };
        let at = labels().packed().len();
        let (before, after) = theirs[at..].split_at(exemplars.len());
        assert_eq!(before, exemplars);
        assert_eq!(ours, [&theirs[..at], after].concat());
    }
}

#[test]
fn a_message_may_be_unusual() {
    // Unpacked lists, the count last, fields of the other kind, and an unknown hint.
    let histogram = b"\x60\x04\x60\x01\x69\0\0\0\0\0\0\xf0\x3f\x5a\x02\x10\x02\x70\x63\x78\x05\
        \x11\0\0\0\0\0\0\xf0\x3f\x08\x03";
    let series = [&[0x22, histogram.len() as u8], &histogram[..]].concat();
    let body = [&[0x0a, series.len() as u8], &series[..]].concat();
    let mut seen = Collected::default();
    assert_eq!(decode_write_v1(&body, &mut seen), Ok(()));
    let wanted = parse::<u64>("0;0;0;0;3;0;[0:2];[];[2,-1];[];[]");
    assert_eq!(seen.histograms, [(5, wanted.into())]);
    let cut = [&[0x0a, 4, 0x22, 2, 0x62, 1], &body[..]].concat();
    let error = decode_write_v1(&cut, &mut Collected::default()).err();
    assert_eq!(error.map(|error| error.offset), Some(4));
}

proptest! {
    #[test]
    fn values_of_all_kinds_come_back(
        numbers: Vec<(i64, u64)>,
        whole in any_histograms::<u64>(),
        fractions in any_histograms::<f64>(),
        damage: (usize, u8, usize),
    ) {
        let samples: Vec<Sample> = numbers.into_iter().map(|(timestamp_ms, bits)| {
            Sample { timestamp_ms, value: f64::from_bits(bits) }
        }).collect();
        let histograms: Vec<(i64, ModelValue)> = whole.into_iter().map(|(t, h)| (t, h.into()))
            .chain(fractions.into_iter().map(|(t, h)| (-t, h.into()))).collect();
        let floats = samples.iter().map(|s| (s.timestamp_ms, s.value.into()));
        let values: Vec<_> = histograms.iter().cloned().chain(floats).collect();
        let mut out = Vec::new();
        put_series(&mut out, &labels(), &values);
        let mut seen = Collected::default();
        prop_assert_eq!(decode_write_v1(&out, &mut seen), Ok(()));
        prop_assert_eq!(&seen.histograms, &histograms);
        prop_assert_eq!(&seen.samples, &samples);
        let (at, bit, cut) = damage;
        let bytes = out.len();
        out[at % bytes] ^= 1 << (bit % 8);
        let _ = decode_write_v1(&out, &mut Collected::default());
        out.truncate(cut % bytes);
        let _ = decode_write_v1(&out, &mut Collected::default());
        // As a 2.0 body the series is field 5, and its histograms are field 3.
        out.first_mut().into_iter().for_each(|tag| *tag = 0x2a);
        let _ = decode_write_v2(&out, &mut Collected::default());
    }
}
