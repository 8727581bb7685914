use super::*;
use crate::chunk::{Chunk, XorAppender};
use crate::model::{Labels, Sample, Value as ModelValue};
use proptest::prelude::*;

type OwnedLabels = Vec<(Vec<u8>, Vec<u8>)>;

#[derive(Default, Debug, PartialEq)]
struct Collected {
    symbols: Vec<Vec<u8>>,
    series: Vec<(OwnedLabels, Vec<Sample>, u64, u64)>,
    refs: Vec<(Vec<u32>, Vec<Sample>)>,
    metadata: Vec<(Vec<u8>, u32)>,
}

impl<'r> WriteSink<'r> for Collected {
    type Histogram = ModelValue;

    fn symbols(&mut self, symbols: &[&'r [u8]], _: &'r [u8]) {
        self.symbols = symbols.iter().map(|symbol| symbol.to_vec()).collect();
    }

    fn series_by_pairs(&mut self, labels: &[(&'r [u8], &'r [u8])], data: SeriesData<'_>) {
        let labels = labels.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        self.series.push((
            labels,
            data.samples.to_vec(),
            data.histograms.len() as u64,
            data.exemplars.len() as u64,
        ));
    }

    fn series_by_refs(&mut self, labels: &[u32], data: SeriesData<'_>) {
        self.refs.push((labels.to_vec(), data.samples.to_vec()));
    }

    fn family_metadata(&mut self, family: &'r [u8], kind: u32, _: &'r [u8], _: &'r [u8]) {
        self.metadata.push((family.to_vec(), kind));
    }

    fn series_metadata(&mut self, _: &[u32], kind: u32, help_ref: u32, _: u32) {
        self.metadata.push((help_ref.to_string().into_bytes(), kind));
    }
}

fn message(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, content.len() as u8], content].concat()
}

fn sample(value: f64, timestamp_ms: u8) -> Vec<u8> {
    [&[0x09], &value.to_le_bytes()[..], &[0x10, timestamp_ms]].concat()
}

fn label(name: &[u8], value: &[u8]) -> Vec<u8> {
    [message(1, name), message(2, value)].concat()
}

#[test]
fn a_1_0_body_gives_labels_samples_and_counts() {
    let series = [
        message(1, &label(b"__name__", b"up")),
        message(2, &sample(1.5, 7)),
        message(2, &sample(-0.0, 9)),
        message(3, b""),
        message(4, b""),
        message(15, b"later"),
    ];
    let metadata = [&[0x08, 1][..], &message(2, b"up"), &message(4, b"help")].concat();
    let body = [message(1, &series.concat()), message(3, &metadata)].concat();
    let mut seen = Collected::default();
    assert_eq!(decode_write_v1(&body, &mut seen), Ok(()));
    let samples = [(7, 1.5), (9, -0.0)].map(|(timestamp_ms, value)| Sample { timestamp_ms, value });
    let labels = vec![(b"__name__".to_vec(), b"up".to_vec())];
    assert_eq!(seen.series, [(labels, samples.to_vec(), 1, 1)]);
    assert_eq!(seen.metadata, [(b"up".to_vec(), 1)]);
}

#[test]
fn a_2_0_body_may_give_its_symbols_last() {
    let series = [message(1, &[1, 2]), message(2, &sample(3.0, 4)), message(5, &[0x18, 2])];
    let body = [message(5, &series.concat()), message(4, b""), message(4, b"a"), message(4, b"b")]
        .concat();
    let mut seen = Collected::default();
    assert_eq!(decode_write_v2(&body, &mut seen), Ok(()));
    assert_eq!(seen.symbols, [b"".to_vec(), b"a".to_vec(), b"b".to_vec()]);
    assert_eq!(seen.refs, [(vec![1, 2], vec![Sample { timestamp_ms: 4, value: 3.0 }])]);
    assert_eq!(seen.metadata, [(b"2".to_vec(), 0)]);
}

#[test]
fn a_body_of_the_other_version_is_not_an_empty_one() {
    let v1 = message(1, &message(1, &label(b"a", b"b")));
    let v2 = [message(4, b""), message(5, &message(1, &[1, 2]))].concat();
    let told = |error: Option<WireError>| error.is_some_and(|e| e.reason.contains("content type"));
    assert!(told(decode_write_v2(&v1, &mut Collected::default()).err()));
    assert!(told(decode_write_v1(&v2, &mut Collected::default()).err()));
    // Unknown fields beside known ones are no matter.
    let both = [v1, v2].concat();
    assert!(decode_write_v1(&both, &mut Collected::default()).is_ok());
    assert!(decode_write_v2(&both, &mut Collected::default()).is_ok());
}

#[test]
fn errors_say_which_message_and_where() {
    let body = [message(1, &message(1, &label(b"a", b"b"))), vec![0x0a, 0x7f, 1]].concat();
    let error = decode_write_v1(&body, &mut Collected::default()).err();
    let offset = error.as_ref().map(|error| (error.message, error.offset));
    assert_eq!(offset, Some(("prometheus.WriteRequest", body.len() - 3)));
    let first_symbol = message(4, b"not empty");
    assert!(decode_write_v2(&first_symbol, &mut Collected::default()).is_err());
}

pub(super) fn put_series(out: &mut Vec<u8>, labels: &Labels, values: &[(i64, ModelValue)]) {
    let mut samples = Vec::new();
    for is_float in [true, false] {
        let kind = values.iter().filter(|(_, v)| matches!(v, ModelValue::Float(_)) == is_float);
        kind.for_each(|(timestamp_ms, value)| put_value(&mut samples, *timestamp_ms, value));
    }
    let start = out.len();
    put_series_head(out, labels, samples.len() as u64);
    out.extend(&samples);
    assert_eq!((out.len() - start) as u64, series_bytes(labels, samples.len() as u64));
}

fn chunk(times: std::ops::Range<i64>) -> Chunk {
    let mut appender = XorAppender::new();
    times.for_each(|time| appender.append(time, time as f64));
    appender.to_chunk().expect("a chunk of at least one sample")
}

#[test]
fn series_come_back_from_the_form_between_instances() {
    let labels = Labels::from_sorted([("__name__", "up"), ("job", "node")]);
    let chunks = [chunk(-5..100), chunk(100..101)];
    let mut bytes = Vec::new();
    put_chunked_series(&mut bytes, &labels, &chunks);
    put_chunked_series(&mut bytes, &labels, &chunks[1..]);
    let (series, rest) = split_chunked_series(&bytes).expect("the first series");
    assert_eq!((series.labels, series.chunks.as_slice()), (labels.clone(), &chunks[..]));
    let (series, rest) = split_chunked_series(rest).expect("the second series");
    assert_eq!((series.labels, series.chunks.as_slice(), rest), (labels, &chunks[1..], &[][..]));
}

#[test]
fn frames_are_checksummed_and_cut_at_their_bound() {
    let labels = Labels::from_sorted([("__name__", "up")]);
    let chunks = [chunk(0..120), chunk(120..240), chunk(240..360)];
    let mut out = Vec::new();
    let bytes_max = chunks[0].data.len() * 3 / 2;
    let options = FrameOptions { query_index: 300, bytes_max, crc32c: Some(crate::codec::crc32c) };
    put_streamed_frames(&mut out, options, &labels, &chunks);
    let mut rest = out.as_slice();
    let mut chunk_counts = Vec::new();
    while !rest.is_empty() {
        let (len, after) = crate::codec::split_uvarint(rest).expect("a length");
        let (checksum, after) = after.split_first_chunk::<4>().expect("a checksum");
        let (payload, after) = after.split_at(len as usize);
        assert_eq!(u32::from_be_bytes(*checksum), crate::codec::crc32c(payload));
        let fields: Vec<_> = Fields::new(payload).map(|field| field.expect("a field")).collect();
        assert_eq!(fields[1], (2, Value::Varint(300)));
        let Value::Bytes(series) = fields[0].1 else { panic!("no series") };
        chunk_counts.push(Fields::new(series).filter(|f| f.is_ok_and(|(n, _)| n == 2)).count());
        rest = after;
    }
    assert_eq!(chunk_counts, [2, 1]);
}

proptest! {
    #[test]
    fn hostile_bodies_are_survived(body: Vec<u8>) {
        let _ = decode_write_v1(&body, &mut Collected::default());
        let _ = decode_write_v2(&body, &mut Collected::default());
        let _ = split_chunked_series(&body);
    }

    #[test]
    fn damaged_bodies_are_survived(at in 0usize..200, bits: u8) {
        let series = [message(1, &label(b"__name__", b"up")), message(2, &sample(1.5, 7))].concat();
        for decode_as_v2 in [false, true] {
            let mut body = [message(1, &series), message(4, b""), message(5, &series)].concat();
            let at = at % body.len();
            body[at] ^= bits;
            body.truncate(200 - at);
            let _ = match decode_as_v2 {
                true => decode_write_v2(&body, &mut Collected::default()),
                false => decode_write_v1(&body, &mut Collected::default()),
            };
        }
    }

    #[test]
    fn plain_samples_keep_their_bits(rows: Vec<(i64, u64)>) {
        let samples: Vec<Sample> = rows.iter().map(|(timestamp_ms, bits)| {
            Sample { timestamp_ms: *timestamp_ms, value: f64::from_bits(*bits) }
        }).collect();
        let labels = Labels::from_sorted([("a", "b")]);
        let mut out = Vec::new();
        let values: Vec<_> = samples.iter().map(|s| (s.timestamp_ms, s.value.into())).collect();
        put_series(&mut out, &labels, &values);
        // A query result's series looks like a write request's: the same field numbers.
        let mut seen = Collected::default();
        prop_assert_eq!(decode_write_v1(&out, &mut seen), Ok(()));
        prop_assert_eq!(&seen.series[0].1, &samples);
    }
}
