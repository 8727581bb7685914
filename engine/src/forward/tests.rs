use super::*;
use crate::chunk::encode;
use crate::model::{FloatHistogram, Histogram, Sample, Value};
use crate::relabel::Action;
use crate::storage::LogKind::{InOrder, OutOfOrder};
use crate::wal::{
    ColumnWriter, ExemplarRecord, exemplars_record, histograms_record, put_exemplar, put_histogram,
    put_samples, put_series, samples_record, series_record,
};
use crate::wire::{
    ExemplarLabels, SeriesData, WriteSink, decode_write_v1, decode_write_v2, put_chunked_series,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const V1: RemoteWriteVersion = RemoteWriteVersion::V1;
const V2: RemoteWriteVersion = RemoteWriteVersion::V2;

/// Rows that a receiver got, by series: time and bits, in the order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Received(BTreeMap<String, Vec<(i64, u64)>>);

#[derive(Default)]
struct Sink<'r> {
    symbols: Vec<&'r [u8]>,
    received: Received,
    exemplars: Vec<(i64, u64, String)>,
    histograms: Vec<(i64, Value)>,
    metadata: Vec<(u32, String)>,
}

impl<'r> Sink<'r> {
    fn take(&mut self, pairs: Vec<(&'r [u8], &'r [u8])>, data: SeriesData<'_>) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let labels: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{}={}", text(name), text(value))).collect();
        let rows = self.received.0.entry(labels.join(",")).or_default();
        rows.extend(data.samples.iter().map(|s| (s.timestamp_ms, s.value.to_bits())));
        self.histograms.extend(data.histograms.iter().cloned());
        for exemplar in data.exemplars {
            let labels = match &exemplar.labels {
                ExemplarLabels::Pairs(pairs) => {
                    pairs.iter().map(|(n, v)| format!("{}={}", text(n), text(v))).collect()
                }
                ExemplarLabels::Refs(refs) => {
                    let symbol = |at: &u32| text(self.symbols[*at as usize]);
                    refs.iter().map(symbol).collect::<Vec<_>>().join("=")
                }
            };
            self.exemplars.push((exemplar.timestamp_ms, exemplar.value.to_bits(), labels));
        }
    }
}

impl<'r> WriteSink<'r> for Sink<'r> {
    type Histogram = Value;

    fn symbols(&mut self, symbols: &[&'r [u8]], _encoded: &'r [u8]) {
        self.symbols = symbols.to_vec();
    }

    fn series_by_pairs(&mut self, labels: &[(&'r [u8], &'r [u8])], data: SeriesData<'_>) {
        self.take(labels.to_vec(), data);
    }

    fn series_by_refs(&mut self, labels: &[u32], data: SeriesData<'_>) {
        let symbol = |at: u32| self.symbols[at as usize];
        let pairs = labels.chunks(2).map(|pair| (symbol(pair[0]), symbol(pair[1]))).collect();
        self.take(pairs, data);
    }

    fn series_metadata(&mut self, _labels: &[u32], kind: u32, help: u32, _unit: u32) {
        let help = String::from_utf8(self.symbols[help as usize].to_vec()).expect("text");
        self.metadata.push((kind, help));
    }
}

fn decoded(version: RemoteWriteVersion, body: &[u8]) -> Sink<'_> {
    let mut sink = Sink::default();
    match version {
        V1 => decode_write_v1(body, &mut sink),
        V2 => decode_write_v2(body, &mut sink),
    }
    .expect("a request");
    sink
}

fn labels_of(series: usize) -> Labels {
    let (name, number) = (format!("metric_{}", series % 3), format!("{series:03}"));
    Labels::from_pairs([("__name__", name.as_str()), ("number", number.as_str())]).expect("labels")
}

fn key_of(series: usize) -> String {
    format!("__name__=metric_{},number={series:03}", series % 3)
}

fn series_records(series: std::ops::Range<usize>) -> Vec<u8> {
    let mut record = series_record();
    for at in series {
        let labels = labels_of(at);
        put_series(&mut record, at as u64 + 1, labels.iter().count(), labels.iter());
    }
    record
}

fn samples_of(rows: &[(usize, i64, f64)]) -> Vec<u8> {
    let first = (rows[0].0 as u64 + 1, rows[0].1);
    let mut record = samples_record(first.0, first.1, rows.len());
    for (series, timestamp_ms, value) in rows {
        let sample = Sample { timestamp_ms: *timestamp_ms, value: *value };
        put_samples(&mut record, first, *series as u64 + 1, sample);
    }
    record
}

fn feed(forwarder: &mut Forwarder, log: LogKind, records: &[Vec<u8>]) -> Fed {
    forwarder.feed(log, 0, 0, records.iter().map(Vec::as_slice), 1000)
}

fn settings() -> Settings {
    Settings { exemplars: true, histograms: true, ..Settings::default() }
}

#[test]
fn all_kinds_arrive_in_both_versions() {
    let histogram = Histogram { count: 3, sum: 1.5, ..Histogram::stale() };
    let fractions = FloatHistogram { count: 2.5, sum: 2.5, ..FloatHistogram::stale() };
    let mut whole = histograms_record::<u64>(false, 1, 20);
    put_histogram(&mut whole, (1, 20), 1, 20, &histogram);
    let mut float = histograms_record::<f64>(false, 1, 30);
    put_histogram(&mut float, (1, 30), 1, 30, &fractions);
    let mut exemplars = exemplars_record(2, 11);
    let exemplar =
        ExemplarRecord { series_ref: 2, timestamp_ms: 11, value: 0.5, labels: vec![("id", "x")] };
    put_exemplar(&mut exemplars, (2, 11), &exemplar);
    let mut metadata = crate::wal::metadata_record();
    let said = crate::wal::MetadataRecord {
        series_ref: 2,
        kind: 1,
        unit: "",
        help: "counts",
        family: "metric_1",
    };
    crate::wal::put_metadata(&mut metadata, &said);
    let records = [
        series_records(0..2),
        samples_of(&[(0, 10, 1.0), (1, 10, -0.0)]),
        whole,
        float,
        exemplars,
        metadata,
    ];
    for version in [V1, V2] {
        let mut forwarder = Forwarder::new(settings(), 1).expect("settings");
        let fed = feed(&mut forwarder, InOrder, &records);
        assert_eq!((fed.records, fed.rows, fed.unknown, fed.exemplars_dropped), (6, 4, 0, 0));
        let batch = forwarder.take(0, version, 100, i64::MIN).expect("rows");
        assert_eq!((batch.samples, batch.histograms, batch.exemplars), (2, 2, 1));
        let sink = decoded(version, &batch.body);
        let expected = [(0, vec![(10, 1f64.to_bits())]), (1, vec![(10, (-0f64).to_bits())])];
        let expected = expected.map(|(series, rows)| (key_of(series), rows));
        assert_eq!(sink.received.0, BTreeMap::from(expected));
        assert_eq!(sink.exemplars, [(11, 0.5f64.to_bits(), "id=x".to_owned())]);
        let values = [(20, Value::from(histogram.clone())), (30, fractions.clone().into())];
        assert_eq!(sink.histograms, values);
        if version == V2 {
            assert_eq!(sink.metadata, [(1, "counts".to_owned())]);
        }
        assert_eq!(forwarder.take(0, version, 100, i64::MIN), Some(batch), "until it is done");
        forwarder.done(0);
        assert_eq!(forwarder.take(0, version, 100, i64::MIN), None);
        let (body, last) = forwarder.metadata_request("", 10).expect("a family");
        assert_eq!((last.as_str(), body.is_empty()), ("metric_1", false));
        assert_eq!(forwarder.metadata_request(&last, 10), None);
    }
}

#[test]
fn labels_are_changed_and_series_dropped_once() {
    let keep = RuleSpec {
        source_labels: vec!["number".into()],
        regex: "000|002".into(),
        ..RuleSpec::new(Action::Keep)
    };
    let rename = RuleSpec {
        target_label: "copy".into(),
        source_labels: vec!["number".into()],
        ..RuleSpec::new(Action::Replace)
    };
    let external_labels = Labels::from_pairs([("node", "a"), ("number", "no")]).expect("labels");
    let settings = Settings { external_labels, rules: vec![keep, rename], ..settings() };
    let mut forwarder = Forwarder::new(settings, 1).expect("settings");
    let rows = [(0, 10, 1.0), (1, 10, 2.0), (2, 10, 3.0), (0, 20, 4.0)];
    let fed = feed(&mut forwarder, InOrder, &[series_records(0..3), samples_of(&rows)]);
    assert_eq!((fed.rows, fed.dropped), (3, 1));
    let batch = forwarder.take(0, V2, 100, 20).expect("rows");
    assert_eq!((batch.too_old, batch.samples), (2, 1), "those before 20 are left out");
    let sink = decoded(V2, &batch.body);
    let key = "__name__=metric_0,copy=000,node=a,number=000".to_owned();
    assert_eq!(sink.received.0, BTreeMap::from([(key, vec![(20, 4f64.to_bits())])]));
}

#[test]
fn series_are_dropped_and_their_strings_with_them() {
    let mut forwarder = Forwarder::new(settings(), 1).expect("settings");
    let records = [series_records(0..5), samples_of(&[(4, 10, 1.0)])];
    feed(&mut forwarder, InOrder, &records);
    let kept = [series_records(0..2)];
    forwarder.note_series(7, kept.iter().map(Vec::as_slice));
    forwarder.drop_series(7);
    assert_eq!(forwarder.series_count(), 3, "the two that were kept, and one with a row");
    let batch = forwarder.take(0, V1, 10, i64::MIN).expect("the row");
    assert!(decoded(V1, &batch.body).received.0.contains_key(&key_of(4)));
    forwarder.done(0);
    forwarder.drop_series(7);
    assert_eq!(forwarder.series_count(), 2);
}

/// A dropped window stays dropped: its rows do not come along with those that it gets later.
#[test]
fn rows_of_a_dropped_window_do_not_come_back() {
    let mut forwarder = Forwarder::new(settings(), 1).expect("settings");
    forwarder.detach();
    let rows = [(0, 10, 1.0), (1, WINDOW_MS + 10, 2.0)];
    feed(&mut forwarder, InOrder, &[series_records(0..2), samples_of(&rows)]);
    forwarder.attach();
    assert_eq!(forwarder.store_window(), Some((0, 1)));
    forwarder.end_store_window();
    forwarder.detach();
    let newer = samples_of(&[(0, 20, 3.0)]);
    forwarder.feed(InOrder, 0, 2, std::iter::once(newer.as_slice()), 1000);
    forwarder.attach();
    assert_eq!(forwarder.gap_rows(), 2);

    let mut frames = Vec::new();
    for (series, rows) in [(0, vec![(10, 1.0), (20, 3.0)]), (1, vec![(WINDOW_MS + 10, 2.0)])] {
        let rows = rows.into_iter().map(|(at, value): (i64, f64)| (at, Value::from(value)));
        put_chunked_series(&mut frames, &labels_of(series), &encode(rows));
    }
    let mut received = BTreeMap::new();
    while forwarder.store_window().is_some() {
        forwarder.begin_store_window(RowPosition::default());
        forwarder.feed_store(&frames, 1000).expect("frames");
        let batch = forwarder.take(0, V2, 100, i64::MIN).expect("rows");
        received.extend(decoded(V2, &batch.body).received.0);
        forwarder.done(0);
        forwarder.end_store_window();
    }
    let expected = [(0, (20, 3f64.to_bits())), (1, (WINDOW_MS + 10, 2f64.to_bits()))];
    let expected = expected.map(|(series, row)| (key_of(series), vec![row]));
    assert_eq!(received, BTreeMap::from(expected));
}

/// The records of both logs, and the rows that they hold.
#[derive(Debug)]
struct World {
    /// Records of both logs by segment.
    logs: [Vec<Vec<Vec<u8>>>; 2],
    rows: BTreeMap<usize, BTreeMap<i64, f64>>,
    /// Times of in-order rows by series.
    in_order: BTreeMap<String, Vec<i64>>,
}

fn world() -> impl Strategy<Value = World> {
    // (series, steps of 5 minutes, is out of order) and whether a segment ends.
    let row = (0usize..6, 1i64..5, prop::bool::weighted(0.15));
    let request = (prop::collection::vec(row, 1..8), prop::bool::weighted(0.2));
    (prop::collection::vec(request, 1..40), any::<bool>()).prop_map(|(requests, by_columns)| {
        let mut world = World {
            logs: [vec![vec![]], vec![vec![]]],
            rows: BTreeMap::new(),
            in_order: BTreeMap::new(),
        };
        let mut writer = ColumnWriter::new(3);
        let mut known = std::collections::BTreeSet::new();
        let mut value = 0.0;
        for (rows, ends_segment) in requests {
            let (mut in_order, mut out_of_order) = (vec![], vec![]);
            for (series, steps, is_out_of_order) in rows {
                value += 1.0;
                let times = world.rows.entry(series).or_default();
                let newest_ms = times.keys().next_back().copied().unwrap_or(0);
                // Out-of-order ones lie between the others.
                let step_ms = steps * 300_000;
                let time_ms = if is_out_of_order {
                    newest_ms - step_ms - 1 - times.len() as i64
                } else {
                    newest_ms + step_ms
                };
                if is_out_of_order && (times.is_empty() || times.contains_key(&time_ms)) {
                    continue;
                }
                times.insert(time_ms, value);
                if is_out_of_order {
                    out_of_order.push((series, time_ms, value));
                } else {
                    world.in_order.entry(key_of(series)).or_default().push(time_ms);
                    in_order.push((series, time_ms, value));
                }
                if known.insert(series) {
                    let records = world.logs[0].last_mut().expect("a segment");
                    records.push(series_records(series..series + 1));
                }
            }
            for (which, rows) in [(0, in_order), (1, out_of_order)] {
                let records = world.logs[which].last_mut().expect("a segment");
                if rows.is_empty() {
                    continue;
                }
                let columns: Vec<(u64, Sample)> = rows
                    .iter()
                    .map(|(series, timestamp_ms, value)| {
                        let sample = Sample { timestamp_ms: *timestamp_ms, value: *value };
                        (*series as u64 + 1, sample)
                    })
                    .collect();
                match by_columns && which == 0 {
                    true => records.extend(writer.record(&columns)),
                    false => records.push(samples_of(&rows)),
                }
            }
            if ends_segment {
                writer.restart();
                world.logs.iter_mut().for_each(|log| log.push(vec![]));
            }
        }
        world
    })
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Feeds the next records of both logs.
    Feed(usize),
    /// Sends the front of a queue; the receiver may not get it, or not acknowledge it.
    Send { shard: usize, rows: usize, arrives: bool, is_acknowledged: bool },
    /// Restarts with the positions as they were saved after the last acknowledgement.
    Restart,
    /// Truncates so many more segments.
    Detach(usize),
    /// Takes some missing rows from the store.
    Drain(usize),
    /// Ends the read of the store; the next one begins with the first series again.
    Reopen,
    /// Changes the number of queues, if they are empty.
    Reshard(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1usize..6).prop_map(Step::Feed),
        8 => (0usize..4, 1usize..9, any::<bool>(), prop::bool::weighted(0.8)).prop_map(
            |(shard, rows, arrives, is_acknowledged)| Step::Send {
                shard, rows, arrives, is_acknowledged
            }
        ),
        1 => Just(Step::Restart),
        1 => (1usize..4).prop_map(Step::Detach),
        3 => (1usize..4).prop_map(Step::Drain),
        1 => Just(Step::Reopen),
        1 => (1u32..5).prop_map(Step::Reshard),
    ]
}

/// A destination as the host runs it, without its files and sockets.
struct Run<'w> {
    world: &'w World,
    forwarder: Forwarder,
    /// Next record of each log.
    at: [(usize, usize); 2],
    /// Number of series of the window that were taken from the store.
    store_at: usize,
    saved: (Vec<ShardPosition>, Vec<u8>),
    received: Received,
    /// Rows that arrived without being acknowledged; they may come again.
    unacknowledged: BTreeMap<(String, i64), usize>,
    version: RemoteWriteVersion,
}

const CAPACITY: usize = 12;

impl<'w> Run<'w> {
    fn new(world: &'w World, version: RemoteWriteVersion) -> Run<'w> {
        let mut forwarder = Forwarder::new(settings(), 3).expect("settings");
        let saved = (forwarder.positions(), Vec::new());
        Run {
            world,
            forwarder,
            at: [(0, 0); 2],
            store_at: 0,
            saved,
            received: Received::default(),
            unacknowledged: BTreeMap::new(),
            version,
        }
    }

    fn save(&mut self) {
        self.saved = (self.forwarder.positions(), self.forwarder.encode_gaps());
    }

    /// Feeds a record; returns whether one was taken. The out-of-order log follows when all of the
    /// in-order one was read.
    fn feed_one(&mut self) -> bool {
        match self.feed_one_of(0) {
            true => true,
            false => !self.forwarder.is_full(CAPACITY) && self.feed_one_of(1),
        }
    }

    fn feed_one_of(&mut self, which: usize) -> bool {
        let log = [InOrder, OutOfOrder][which];
        let (segment, record) = self.at[which];
        let segments = &self.world.logs[which];
        let Some(records) = segments.get(segment) else { return false };
        let number = segment as u32;
        if let Some(next) = records.get(record) {
            let next = std::iter::once(next.as_slice());
            let fed = self.forwarder.feed(log, number, record as u32, next, CAPACITY);
            assert_eq!((fed.unknown, fed.no_room), (0, 0));
            self.at[which].1 += fed.records as usize;
            return fed.records == 1;
        }
        if segment + 1 < segments.len() {
            self.forwarder.end_segment(log, number);
            self.at[which] = (segment + 1, 0);
            return true;
        }
        false
    }

    /// The end of the out-of-order log.
    fn out_of_order_end(&self) -> RowPosition {
        let segments = &self.world.logs[1];
        let record = segments.last().map_or(0, Vec::len) as u32;
        RowPosition { segment: segments.len() as u32 - 1, record, row: 0 }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Feed(count) => {
                // Oldest first: what is missing comes before what is in the log.
                if self.forwarder.store_window().is_none() {
                    let _ = (0..count).all(|_| self.feed_one());
                }
            }
            Step::Send { shard, rows, arrives, is_acknowledged } => {
                self.send(shard as u32, rows, arrives, is_acknowledged);
            }
            Step::Restart => {
                let mut forwarder = Forwarder::new(settings(), 1).expect("settings");
                forwarder.resume(&self.saved.0, &self.saved.1).expect("what was saved");
                self.forwarder = forwarder;
                (self.at, self.store_at) = ([(0, 0); 2], 0);
            }
            Step::Detach(segments) => {
                self.forwarder.detach();
                let end = self.at[0].0 + segments;
                while self.at[0].0 < end && self.feed_one_of(0) {}
                while self.at[1].0 < end && self.feed_one_of(1) {}
                self.forwarder.attach();
                self.save();
            }
            Step::Drain(count) => self.drain(count),
            Step::Reopen => self.store_at = 0,
            Step::Reshard(count) => {
                if self.forwarder.can_reshard() {
                    self.forwarder.reshard(count).expect("empty queues");
                    self.save();
                }
            }
        }
    }

    fn send(&mut self, shard: u32, rows: usize, arrives: bool, is_acknowledged: bool) {
        let Some(batch) = self.forwarder.take(shard, self.version, rows, i64::MIN) else { return };
        if arrives || is_acknowledged {
            let got = decoded(self.version, &batch.body).received;
            for (key, rows) in got.0 {
                for row in &rows {
                    if !is_acknowledged {
                        *self.unacknowledged.entry((key.clone(), row.0)).or_default() += 1;
                    }
                }
                self.received.0.entry(key).or_default().extend(rows);
            }
        }
        if is_acknowledged {
            self.forwarder.done(shard);
            self.save();
        }
    }

    /// Takes so many series from the store.
    fn drain(&mut self, count: usize) {
        for _ in 0..count {
            let Some((window_ms, _)) = self.forwarder.store_window() else { return };
            let out_of_order_end = self.out_of_order_end();
            self.forwarder.begin_store_window(out_of_order_end);
            let mut series: Vec<(Labels, usize)> =
                self.world.rows.keys().map(|series| (labels_of(*series), *series)).collect();
            series.sort();
            let Some((labels, series)) = series.get(self.store_at) else {
                if !self.forwarder.has_store_rows() {
                    self.forwarder.end_store_window();
                    self.store_at = 0;
                    self.save();
                }
                return;
            };
            let rows = &self.world.rows[series];
            let rows = rows.range(window_ms..window_ms + WINDOW_MS);
            let rows: Vec<(i64, Value)> = rows.map(|(at, value)| (*at, (*value).into())).collect();
            let mut frames = Vec::new();
            put_chunked_series(&mut frames, labels, &encode(rows.into_iter()));
            let fed = self.forwarder.feed_store(&frames, CAPACITY).expect("frames");
            if fed.is_full {
                return;
            }
            self.store_at += 1;
        }
    }

    /// Delivers all that is left.
    fn finish(&mut self) {
        for _ in 0..100_000 {
            let shards = self.forwarder.pending().count() as u32;
            (0..shards).for_each(|shard| self.send(shard, 5, true, true));
            if self.forwarder.store_window().is_some() {
                self.drain(3);
            } else if !self.feed_one() && self.forwarder.pending().all(|rows| rows == 0) {
                return;
            }
        }
        panic!("it never ends");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Each row arrives; one comes twice only if it arrived without being acknowledged; in-order
    /// rows of a series come in their order for the first time.
    #[test]
    fn every_row_arrives_and_in_order(
        world in world(), steps in prop::collection::vec(step(), 0..80), is_v2: bool,
    ) {
        let mut run = Run::new(&world, if is_v2 { V2 } else { V1 });
        steps.iter().for_each(|step| run.step(*step));
        run.finish();
        let mut expected_count = 0;
        for (series, rows) in &world.rows {
            let key = key_of(*series);
            let got = run.received.0.get(&key).cloned().unwrap_or_default();
            for (time_ms, value) in rows {
                let times = got.iter().filter(|(at, _)| at == time_ms).count();
                let may = run.unacknowledged.get(&(key.clone(), *time_ms)).copied().unwrap_or(0);
                prop_assert!((1..=1 + may).contains(&times), "{key} {time_ms}: {times} times");
                prop_assert!(got.iter().all(|(at, bits)| at != time_ms || *bits == value.to_bits()));
                expected_count += 1;
            }
            let mut firsts = Vec::new();
            for (at, _) in &got {
                let is_in_order = world.in_order.get(&key).is_some_and(|times| times.contains(at));
                if is_in_order && !firsts.contains(at) {
                    firsts.push(*at);
                }
            }
            prop_assert!(firsts.is_sorted(), "{key}: {firsts:?}");
        }
        let distinct: usize = world.rows.values().map(BTreeMap::len).sum();
        prop_assert_eq!(expected_count, distinct);
    }

    #[test]
    fn gaps_are_written_and_read(bytes: Vec<u8>, rows: Vec<(u64, i64, bool)>) {
        let _ = Gap::decode(&bytes);
        let mut gap = Gap::default();
        for (hash, time_ms, is_out_of_order) in rows {
            let time_ms = time_ms / 4;
            if is_out_of_order { gap.add_out_of_order(hash, time_ms); } else { gap.add_in_order(hash, time_ms); }
        }
        let mut out = Vec::new();
        gap.encode(&mut out);
        let (read, rest) = Gap::decode(&out).expect("a gap");
        prop_assert_eq!(read, gap);
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn any_record_is_read_or_counted(record: Vec<u8>, frames: Vec<u8>) {
        let mut forwarder = Forwarder::new(settings(), 2).expect("settings");
        feed(&mut forwarder, InOrder, &[series_records(0..3), record]);
        forwarder.detach();
        let _ = forwarder.feed_store(&frames, 10);
        while let Some(_batch) = forwarder.take(0, V2, 10, 0) { forwarder.done(0); }
    }
}
