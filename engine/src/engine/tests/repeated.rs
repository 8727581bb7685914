//! Requests that are repeated, with small changes or none: the template cache must change nothing
//! but speed.

use super::*;
use crate::codec::put_uvarint;
use crate::head::RefusalReason;
use proptest::prelude::*;

/// A time ahead of all samples.
const AHEAD_MS: i64 = 1_000_000;

const SERIES: usize = 90;
const SENDERS: usize = 3;

/// Shape of the requests of a sender.
#[derive(Clone, Debug)]
struct Sender {
    /// Numbers of series, in the order of their rows.
    series: Vec<usize>,
    /// Seed of the order of the symbols.
    symbols_seed: u64,
    /// Metadata of families: 0 for none, 1 for empty metadata, else a variant.
    metadata: u32,
    is_unpacked: bool,
    symbols_last: bool,
    version: RemoteWriteVersion,
}

#[derive(Clone, Debug)]
enum Step {
    Send(usize),
    /// The next operations change a sender's requests for good.
    Drop(usize, usize),
    Add(usize, usize),
    Swap(usize, usize, usize),
    Reorder(usize, u64),
    Metadata(usize, u32),
    /// One row of one request has no sample.
    Refused(usize, usize),
    /// The body of one request is cut short.
    Broken(usize, usize),
    /// Time passes until series without new samples are dropped.
    Truncate,
    Restart,
}

fn labels(number: usize) -> Vec<(String, String)> {
    vec![
        (LABEL_NAME.to_owned(), format!("s{number}")),
        ("instance".to_owned(), format!("node-{:03}.internal:9100", number / 20)),
        ("job".to_owned(), "monitoring/node".to_owned()),
        ("le".to_owned(), (number % 7).to_string()),
    ]
}

fn value_of(number: usize, time_ms: i64) -> f64 {
    number as f64 + time_ms as f64 / 1e6
}

fn number(out: &mut Vec<u8>, tag: u64, value: u64) {
    put_uvarint(out, tag << 3);
    put_uvarint(out, value);
}

fn field(tag: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_uvarint(&mut bytes, tag << 3 | 2);
    put_uvarint(&mut bytes, content.len() as u64);
    bytes.extend_from_slice(content);
    bytes
}

impl Sender {
    fn symbols(&self) -> Vec<String> {
        let mut strings: Vec<String> = vec!["help".to_owned(), "bytes".to_owned()];
        for (name, value) in self.series.iter().flat_map(|number| labels(*number)) {
            strings.extend([name, value]);
        }
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let rank = |text: &String| (text.bytes().fold(self.symbols_seed, mix), text.clone());
        strings.sort_by_cached_key(rank);
        strings.dedup();
        strings.insert(0, String::new());
        strings
    }

    fn labels(&self, pairs: &[(String, String)], position: &BTreeMap<&str, u64>) -> Vec<u8> {
        let refs = pairs.iter().flat_map(|(name, value)| [position[&**name], position[&**value]]);
        let mut out = Vec::new();
        match self.version {
            RemoteWriteVersion::V1 => {
                for (name, value) in pairs {
                    let both = [field(1, name.as_bytes()), field(2, value.as_bytes())].concat();
                    out.extend(field(1, &both));
                }
                out
            }
            RemoteWriteVersion::V2 if self.is_unpacked => {
                refs.for_each(|symbol_ref| number(&mut out, 1, symbol_ref));
                out
            }
            RemoteWriteVersion::V2 => {
                refs.for_each(|symbol_ref| put_uvarint(&mut out, symbol_ref));
                field(1, &out)
            }
        }
    }

    /// A request with a row of each series at one time, without the refused row's sample.
    fn body(&self, time_ms: i64, refused: Option<usize>) -> Vec<u8> {
        self.fields(time_ms, refused).into_iter().flat_map(|(_, bytes)| bytes).collect()
    }

    /// The fields of such a request, with their rows.
    fn fields(&self, time_ms: i64, refused: Option<usize>) -> Vec<(Option<usize>, Vec<u8>)> {
        let strings = self.symbols();
        let position: BTreeMap<&str, u64> = strings.iter().map(|text| &**text).zip(0..).collect();
        let is_v1 = self.version == RemoteWriteVersion::V1;
        let mut series = Vec::new();
        for (row, series_number) in self.series.iter().enumerate() {
            let mut one = self.labels(&labels(*series_number), &position);
            if refused != Some(row) {
                let mut sample = vec![0x09];
                sample.extend(value_of(*series_number, time_ms).to_le_bytes());
                number(&mut sample, 2, time_ms as u64);
                one.extend(field(2, &sample));
            }
            if !is_v1 && self.metadata > 0 {
                let mut metadata = Vec::new();
                if self.metadata > 1 {
                    let kind = 1 + (self.metadata + *series_number as u32 / 2) % 3;
                    number(&mut metadata, 1, u64::from(kind));
                    number(&mut metadata, 3, position["help"]);
                    number(&mut metadata, 4, position["bytes"]);
                }
                one.extend(field(5, &metadata));
            }
            series.push((Some(row), field(if is_v1 { 1 } else { 5 }, &one)));
        }
        let symbols: Vec<_> =
            strings.iter().map(|text| (None, field(4, text.as_bytes()))).collect();
        match (is_v1, self.symbols_last) {
            (true, _) => series,
            (false, true) => [series, symbols].concat(),
            (false, false) => [symbols, series].concat(),
        }
    }

    /// Returns the rows of a body whose last bytes are missing: none if that breaks a field, else
    /// those that are whole and have all their symbols.
    fn rows_left(&self, time_ms: i64, cut: usize) -> Vec<usize> {
        let fields = self.fields(time_ms, None);
        let len: usize = fields.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut left = len.saturating_sub(cut);
        let (mut rows, mut symbols) = (Vec::new(), 0);
        for (row, bytes) in &fields {
            if left < bytes.len() {
                break;
            }
            left -= bytes.len();
            match row {
                Some(row) => rows.push(*row),
                None => symbols += 1,
            }
        }
        if left > 0 {
            return Vec::new();
        }
        if self.version == RemoteWriteVersion::V2 {
            let strings = self.symbols();
            let has = |text: &String| strings[..symbols].contains(text);
            let labels_of = |row: &usize| labels(self.series[*row]);
            rows.retain(|row| labels_of(row).iter().all(|(name, value)| has(name) && has(value)));
        }
        rows
    }
}

fn sender() -> impl Strategy<Value = Sender> {
    let series = prop_oneof![
        4 => (0usize..40, 32usize..50).prop_map(|(first, count)| (first..first + count).collect()),
        1 => Just((0..SERIES).rev().collect::<Vec<_>>()),
        1 => prop::collection::btree_set(0..SERIES, 1..20).prop_map(|set| set.into_iter().collect()),
    ];
    let (unpacked, v1) = (prop::bool::weighted(0.1), prop::bool::weighted(0.2));
    (series, 0u64..3, 0u32..4, unpacked, any::<bool>(), v1).prop_map(
        |(series, symbols_seed, metadata, is_unpacked, symbols_last, is_v1)| {
            let version = if is_v1 { RemoteWriteVersion::V1 } else { RemoteWriteVersion::V2 };
            Sender { series, symbols_seed, metadata, is_unpacked, symbols_last, version }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let (who, at) = (|| 0..SENDERS, || 0usize..64);
    prop_oneof![
        24 => who().prop_map(Step::Send),
        1 => (who(), at()).prop_map(|(who, at)| Step::Drop(who, at)),
        1 => (who(), 0..SERIES).prop_map(|(who, number)| Step::Add(who, number)),
        1 => (who(), at(), at()).prop_map(|(who, a, b)| Step::Swap(who, a, b)),
        1 => (who(), 0u64..3).prop_map(|(who, seed)| Step::Reorder(who, seed)),
        1 => (who(), 0u32..4).prop_map(|(who, metadata)| Step::Metadata(who, metadata)),
        1 => (who(), at()).prop_map(|(who, at)| Step::Refused(who, at)),
        1 => (who(), 1usize..2000).prop_map(|(who, cut)| Step::Broken(who, cut)),
        1 => Just(Step::Truncate),
        1 => Just(Step::Restart),
    ]
}

fn held(node: &Node) -> BTreeMap<String, BTreeMap<i64, u64>> {
    let selection = all_of(Vec::new(), TimeRange::ALL);
    let mut cursor = node.engine.select(&selection).expect("a valid selection");
    let mut held = BTreeMap::new();
    loop {
        let series = cursor.next(u32::MAX).expect("sound data");
        if series.is_empty() {
            return held;
        }
        for one in series {
            let values = one.chunks.iter().flat_map(|chunk| {
                let values = crate::chunk::values(chunk).expect("a sound header");
                values.map(|value| match value.expect("a sound chunk") {
                    (time_ms, Value::Float(value)) => (time_ms, value.to_bits()),
                    other => panic!("{other:?} was never sent"),
                })
            });
            held.insert(one.labels.to_string(), values.collect());
        }
    }
}

fn templates(node: &mut Node) -> &mut RequestTemplates {
    &mut node.engine.owned.as_mut().expect("an engine with a head").templates
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Compared with an engine without templates, and with a plain map.
    #[test]
    fn what_was_known_never_shows(
        senders in prop::collection::vec(sender(), SENDERS),
        steps in prop::collection::vec(step(), 1..80),
        // Times of these decades are decoded in a way of their own.
        start_ms in prop_oneof![Just(1000), Just(1_760_000_000_000i64)],
    ) {
        let mut senders = senders;
        let (mut node, mut plain) = (Node::new(), Node::new());
        let mut model: BTreeMap<String, BTreeMap<i64, u64>> = BTreeMap::new();
        let mut time_ms = start_ms;
        let now_ms = start_ms + AHEAD_MS;
        for step in steps {
            let (who, refused, cut) = match step {
                Step::Send(who) => (who, None, 0),
                Step::Refused(who, at) => (who, Some(at), 0),
                Step::Broken(who, cut) => (who, None, cut),
                Step::Truncate => {
                    time_ms += 2000;
                    (0, None, 0)
                }
                Step::Drop(who, at) => {
                    let series = &mut senders[who].series;
                    if series.len() > 1 {
                        series.remove(at % series.len());
                    }
                    continue;
                }
                Step::Add(who, number) => {
                    let series = &mut senders[who].series;
                    if !series.contains(&number) {
                        series.insert(number % (series.len() + 1), number);
                    }
                    continue;
                }
                Step::Swap(who, a, b) => {
                    let series = &mut senders[who].series;
                    let len = series.len();
                    series.swap(a % len, b % len);
                    continue;
                }
                Step::Reorder(who, seed) => {
                    senders[who].symbols_seed = seed;
                    continue;
                }
                Step::Metadata(who, metadata) => {
                    senders[who].metadata = metadata;
                    continue;
                }
                Step::Restart => {
                    node.restart();
                    plain.restart();
                    continue;
                }
            };
            time_ms += 15;
            let sender = &senders[who];
            let body = sender.body(time_ms, refused);
            let body = &body[..body.len().saturating_sub(cut)];
            let outcome = node.engine.append_remote_write(sender.version, body, now_ms);
            *templates(&mut plain) = RequestTemplates::default();
            let expected = plain.engine.append_remote_write(sender.version, body, now_ms);
            prop_assert_eq!(outcome.as_ref().ok(), expected.as_ref().ok());
            if let (0, Ok(outcome)) = (cut, &outcome) {
                let rows = sender.series.iter().enumerate();
                let taken = rows.filter(|(row, _)| refused != Some(*row)).map(|(_, number)| number);
                prop_assert_eq!(outcome.samples_written, taken.clone().count() as u64);
                let reasons = outcome.refusals.iter().map(|refusal| refusal.reason);
                prop_assert!(reasons.into_iter().all(|why| why == RefusalReason::NoSamples));
                for number in taken {
                    let labels = labels(*number);
                    let pairs = labels.iter().map(|(name, value)| (&**name, &**value));
                    let series = model.entry(Labels::from_sorted(pairs).to_string()).or_default();
                    series.insert(time_ms, value_of(*number, time_ms).to_bits());
                }
            } else {
                prop_assert!(cut > 0);
                for row in sender.rows_left(time_ms, cut) {
                    let number = sender.series[row];
                    let labels = labels(number);
                    let pairs = labels.iter().map(|(name, value)| (&**name, &**value));
                    let series = model.entry(Labels::from_sorted(pairs).to_string()).or_default();
                    series.insert(time_ms, value_of(number, time_ms).to_bits());
                }
                prop_assert_eq!(held(&plain), model.clone());
            }
            for node in [&mut node, &mut plain] {
                while !node.engine.compact(now_ms, ROOM).expect("storage that works").done {}
            }
            prop_assert_eq!(node.engine.metadata("", u32::MAX), plain.engine.metadata("", u32::MAX));
        }
        prop_assert_eq!(held(&node), held(&plain));
        prop_assert_eq!(held(&node), model);
    }
}

/// From the third time on a request is known, until one of its series is dropped.
#[test]
fn a_request_is_known_once_it_was_seen_twice() {
    let mut node = Node::new();
    let sender = Sender {
        series: (0..40).collect(),
        symbols_seed: 1,
        metadata: 2,
        is_unpacked: false,
        symbols_last: false,
        version: RemoteWriteVersion::V2,
    };
    let mut send = |sender: &Sender, time_ms| {
        let body = sender.body(time_ms, None);
        let outcome = node.engine.append_remote_write(RemoteWriteVersion::V2, &body, AHEAD_MS);
        assert_eq!(outcome.expect("a sound body").refused, 0);
        node.compact();
        templates(&mut node).len()
    };
    let known: Vec<usize> = (1..=4).map(|scrape| send(&sender, scrape * 15)).collect();
    assert_eq!(known, [0, 1, 1, 1]);
    // Others are not known by it.
    let other = Sender { series: (0..39).chain([50]).collect(), ..sender.clone() };
    assert_eq!([send(&other, 75), send(&other, 90)], [1, 2]);
    // Once blocks were cut the series that is not sent any more is dropped, and with it all
    // that is known of requests.
    let known: Vec<usize> = (1..=4).map(|scrape| send(&sender, 3000 + scrape * 15)).collect();
    assert_eq!(known.last(), Some(&1));
    assert_eq!(held(&node).len(), 41);
}
