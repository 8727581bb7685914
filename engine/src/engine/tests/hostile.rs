//! Hostile or broken requests: they are refused, in part or whole, and leave nothing behind.

use super::*;
use crate::codec::put_uvarint;
use crate::head::RefusalReason;

const NOW_MS: i64 = 1_000_000;

fn field(number: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_uvarint(&mut bytes, number << 3 | 2);
    put_uvarint(&mut bytes, content.len() as u64);
    bytes.extend_from_slice(content);
    bytes
}

fn label(name: &str, value: &str) -> Vec<u8> {
    field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat())
}

fn sample(timestamp_ms: i64) -> Vec<u8> {
    let mut bytes = vec![0x09];
    bytes.extend_from_slice(&1.5f64.to_le_bytes());
    bytes.push(0x10);
    put_uvarint(&mut bytes, timestamp_ms as u64);
    field(2, &bytes)
}

fn series(labels: &[(&str, &str)], times_ms: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let labels = labels.iter().flat_map(|(name, value)| label(name, value));
    field(1, &labels.chain(times_ms.into_iter().flat_map(sample)).collect::<Vec<u8>>())
}

impl Node {
    fn write(&mut self, version: RemoteWriteVersion, body: &[u8]) -> Result<WriteOutcome> {
        self.engine.append_remote_write(version, body, NOW_MS)
    }

    fn write_v1(&mut self, body: &[Vec<u8>]) -> WriteOutcome {
        self.write(RemoteWriteVersion::V1, &body.concat()).expect("a body that decodes")
    }

    fn head_series(&self) -> u64 {
        self.engine.figures().expect("storage that works").head_series
    }
}

#[test]
fn label_sets_beyond_the_limits_are_refused_and_the_rest_kept() {
    let limits = LabelLimits { labels_max: 3, name_bytes_max: 10, value_bytes_max: 20 };
    let mut node = Node::with(HeadOptions { label_limits: limits, ..OPTIONS });
    let huge = "x".repeat(2_000_000);
    let many: Vec<String> = (0..10_000).map(|i| format!("l{i}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (&**name, "v")).collect();
    let many = [&[(LABEL_NAME, "many")], many.as_slice()].concat();
    for (labels, why) in [
        (&many[..], "the label set has 10001 labels; at most 3 are allowed"),
        (&[(LABEL_NAME, "a"), (&huge, "v")], "has 2000000 bytes; at most 10 are allowed"),
        (&[(LABEL_NAME, "a"), ("l", &huge)], "has 2000000 bytes; at most 20 are allowed"),
        (&[(LABEL_NAME, &huge)], "has 2000000 bytes; at most 20 are allowed"),
        (&[("a", "1"), (LABEL_NAME, "a"), ("b", "2"), ("c", "3")], "has 4 labels"),
    ] {
        let good = series(&[("b", "2"), (LABEL_NAME, "good"), ("a", "1")], [NOW_MS]);
        let outcome = node.write_v1(&[series(labels, [NOW_MS, NOW_MS]), good]);
        assert_eq!((outcome.samples_written, outcome.refused), (1, 2));
        let refusal = &outcome.refusals[0];
        assert_eq!(refusal.reason, RefusalReason::InvalidLabels);
        assert!(refusal.detail.contains(why), "{}", refusal.detail);
        assert_eq!(node.head_series(), 1);
    }
    let labels = Labels::from_sorted([(LABEL_NAME, "a"), ("l", &huge)]);
    let refused = node.engine.series_ref(&labels);
    assert!(refused.is_err_and(|error| error.to_string().contains("2000000 bytes")));
}

/// Limits apply to new data: the log's content is replayed whatever the limits are.
#[test]
fn limits_that_were_lowered_do_not_lose_what_is_stored() {
    let mut node = Node::new();
    let labels = [(LABEL_NAME, "a"), ("long", "0123456789")];
    assert_eq!(node.write_v1(&[series(&labels, [NOW_MS])]).refused, 0);
    let label_limits = LabelLimits { labels_max: 1, name_bytes_max: 1, value_bytes_max: 1 };
    node.options = HeadOptions { label_limits, ..OPTIONS };
    node.restart();
    assert_eq!(node.head_series(), 1);
    assert_eq!(node.write_v1(&[series(&labels, [NOW_MS + 1])]).refused, 0);
    let unsorted = [labels[1], labels[0]];
    assert_eq!(node.write_v1(&[series(&unsorted, [NOW_MS + 2])]).refused, 0);
}

#[test]
fn what_is_refused_makes_no_series() {
    let mut node = Node::new();
    let future = NOW_MS + OPTIONS.future_limit_ms + 1;
    let names: Vec<String> = (0..5000).map(|i| format!("n{i}")).collect();
    let empty = names.iter().map(|name| series(&[(LABEL_NAME, name)], []));
    let refused = names.iter().map(|name| series(&[(LABEL_NAME, name)], [future]));
    let mut body: Vec<Vec<u8>> = empty.chain(refused).collect();
    body.push(series(&[(LABEL_NAME, "n7")], [NOW_MS]));
    let outcome = node.write_v1(&body);
    assert_eq!((outcome.samples_written, outcome.refused, node.head_series()), (1, 10_000, 1));
    assert_eq!(outcome.refusals[0].reason, RefusalReason::NoSamples);

    // The exemplar of a series that is not made goes with it, in the count too.
    let exemplar = field(3, &[label("trace", "x"), sample(NOW_MS)[2..].to_vec()].concat());
    let labels = label(LABEL_NAME, "other");
    let with_exemplar = field(1, &[labels, sample(future), exemplar].concat());
    let outcome = node.write_v1(&[with_exemplar]);
    assert_eq!((outcome.samples_written, outcome.exemplars_written), (0, 0));
    assert_eq!((outcome.refused, node.head_series()), (2, 1));
}

/// A few bytes announce hundreds; sixteen times the body is enough for honest requests.
#[test]
fn bodies_of_empty_parts_are_refused_before_they_take_memory() {
    let mut node = Node::new();
    let parts = 600_000;
    let repeated = |number| field(number, &[]).repeat(parts);
    for (version, body) in [
        (RemoteWriteVersion::V1, repeated(1)),
        (RemoteWriteVersion::V1, field(1, &repeated(1))),
        (RemoteWriteVersion::V1, field(1, &repeated(2))),
        (RemoteWriteVersion::V1, field(1, &repeated(3))),
        (RemoteWriteVersion::V1, field(1, &repeated(4))),
        (RemoteWriteVersion::V2, repeated(4)),
        (RemoteWriteVersion::V2, repeated(5)),
        (RemoteWriteVersion::V2, field(5, &repeated(2))),
        (RemoteWriteVersion::V2, field(5, &repeated(3))),
        (RemoteWriteVersion::V2, field(5, &repeated(4))),
    ] {
        let refused = node.write(version, &body);
        assert!(
            matches!(&refused, Err(Error::Malformed(error)) if error.reason.contains("parts")),
            "{version:?} {:?}: {refused:?}",
            &body[..8]
        );
    }
    assert_eq!(
        (node.head_series(), node.engine.figures().map(|f| f.head_symbols).ok()),
        (0, Some(0))
    );
}

/// Descending or repeated times are found without a look at all others.
#[test]
fn a_series_in_any_order_is_judged_row_by_row() {
    let rows = 100_000;
    let mut node = Node::with(HeadOptions { out_of_order_window_ms: 200_000, ..OPTIONS });
    let labels = [(LABEL_NAME, "a")];
    let descending = (0..rows).map(|step| NOW_MS - step);
    let ascending = (0..rows).map(|step| NOW_MS - 150_000 + step);
    let times: Vec<i64> = descending.chain(ascending.clone()).chain(ascending).collect();
    let outcome = node.write_v1(&[series(&labels, times)]);
    assert_eq!((outcome.samples_written, outcome.refused), (3 * rows as u64, 0));
    assert_eq!(outcome.samples_duplicate, 49_999 + rows as u64);

    let mut node = Node::new();
    let again = std::iter::repeat_n(NOW_MS, rows as usize);
    let times: Vec<i64> = (0..rows).map(|step| NOW_MS + step).chain(again).collect();
    let outcome = node.write_v1(&[series(&labels, times)]);
    assert_eq!(outcome.samples_duplicate, rows as u64);
}

/// A series of a 2.0 request: label references and other fields.
fn series_v2(refs: impl IntoIterator<Item = u64>, fields: &[Vec<u8>]) -> Vec<u8> {
    let mut packed = Vec::new();
    refs.into_iter().for_each(|symbol_ref| put_uvarint(&mut packed, symbol_ref));
    field(5, &[field(1, &packed), fields.concat()].concat())
}

/// The symbols of a 2.0 request: "", the metric name's name, "m", a long one, and short names.
fn symbols_v2(long: &[u8], names: usize) -> Vec<u8> {
    let names: Vec<String> = (0..names).map(|i| format!("n{i:04}")).collect();
    let all = [b"", LABEL_NAME.as_bytes(), b"m", long].into_iter();
    all.chain(names.iter().map(|name| name.as_bytes())).flat_map(|text| field(4, text)).collect()
}

const NAMES: u64 = 4;

const LONG: u64 = 3;

/// An exemplar whose 2,000 labels all refer to one symbol of 4 MB must be refused before its labels
/// are built: 8 GB of them ended the instance.
#[test]
fn an_exemplar_is_judged_by_its_length_before_its_texts_are_looked_at() {
    let mut node = Node::new();
    // Whoever looks at the text finds that it is no text.
    let long = [&[b'x'; 100_000][..], b"\xff"].concat();
    let mut packed = Vec::new();
    for name in 0..2000 {
        put_uvarint(&mut packed, NAMES + name);
        put_uvarint(&mut packed, LONG);
    }
    let mut exemplar = field(1, &packed);
    exemplar.push(0x18);
    put_uvarint(&mut exemplar, NOW_MS as u64);
    let row = series_v2([1, 2], &[sample(NOW_MS), field(4, &exemplar)]);
    let body = [symbols_v2(&long, 2000), row].concat();
    let outcome = node.write(RemoteWriteVersion::V2, &body).expect("a body that decodes");
    assert_eq!((outcome.samples_written, outcome.exemplars_written, outcome.refused), (1, 0, 1));
    assert_eq!(outcome.refusals[0].reason, RefusalReason::InvalidExemplar);
    // 2,000 names of 5 bytes, 2,000 times the long symbol.
    assert!(outcome.refusals[0].detail.contains("200012000 bytes"), "{:?}", outcome.refusals);
}

/// Series that refer to a long symbol many times cost its length for each reference: 4 MB of
/// requests blocked writes for half a minute, and 2,000 series ended the process.
#[test]
fn series_of_a_request_lead_to_a_bounded_amount_of_text() {
    let long = "x".repeat(64 << 10);
    let labels = |i: u64| {
        let labels = (0..64).flat_map(|name| [NAMES + name, LONG]);
        [1, 2].into_iter().chain(labels).chain([NAMES + 64, NAMES + 64 + i])
    };
    let of_long = (0..40).flat_map(|i| series_v2(labels(i), &[sample(NOW_MS)]));
    let good = series_v2([1, 2], &[sample(NOW_MS)]);
    let body = [symbols_v2(long.as_bytes(), 200), of_long.collect(), good].concat();

    // Without limits of a series, that of a request: 16 MiB, of 4 MiB a series.
    let mut node = Node::new();
    let outcome = node.write(RemoteWriteVersion::V2, &body).expect("a body that decodes");
    assert_eq!((outcome.samples_written, outcome.refused), (4 + 1, 36));
    assert_eq!(outcome.refusals[0].reason, RefusalReason::InvalidLabels);
    assert!(outcome.refusals[0].detail.contains("send fewer"), "{:?}", outcome.refusals);
    // The next request has a budget of its own; what is stored costs nothing of it.
    for stored in [8, 12] {
        let outcome = node.write(RemoteWriteVersion::V2, &body).expect("a body that decodes");
        assert_eq!((outcome.samples_written, node.head_series()), (stored + 1, stored + 1));
    }

    // With limits, each is refused by the length of the symbol.
    let label_limits = LabelLimits { labels_max: 0, name_bytes_max: 0, value_bytes_max: 4096 };
    let mut node = Node::with(HeadOptions { label_limits, ..OPTIONS });
    let outcome = node.write(RemoteWriteVersion::V2, &body).expect("a body that decodes");
    assert_eq!((outcome.samples_written, outcome.refused, node.head_series()), (1, 40, 1));
    for refusal in outcome.refusals {
        assert!(refusal.detail.contains("has 65536 bytes; at most 4096"), "{}", refusal.detail);
    }
}

/// Stored series are found whatever the limits are, also by references out of order.
#[test]
fn references_to_a_stored_series_with_long_labels_find_it() {
    let long = "x".repeat(1000);
    let body = |refs: [u64; 4], time_ms| {
        [symbols_v2(long.as_bytes(), 1), series_v2(refs, &[sample(time_ms)])].concat()
    };
    let mut node = Node::new();
    let write = |node: &mut Node, refs, time_ms| {
        node.write(RemoteWriteVersion::V2, &body(refs, time_ms)).expect("a body that decodes")
    };
    assert_eq!(write(&mut node, [1, 2, NAMES, LONG], NOW_MS).refused, 0);
    let label_limits = LabelLimits { labels_max: 1, name_bytes_max: 1, value_bytes_max: 1 };
    node.options = HeadOptions { label_limits, ..OPTIONS };
    node.restart();
    assert_eq!(write(&mut node, [NAMES, LONG, 1, 2], NOW_MS + 1).refused, 0);
    assert_eq!(write(&mut node, [1, LONG, NAMES, 2], NOW_MS + 2).refused, 1);
}
