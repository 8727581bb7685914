//! Segments of the in-order log end often enough to be dropped early, and no more often; the order
//! of rows in both logs.

use super::*;
use crate::head::Exemplar;
use crate::storage::{StorageResult, Wal, WalBatch, WalCheckpoint};
use crate::wal::{
    ColumnReader, ColumnWriter, Record, decode, put_samples, put_series, samples_record,
    series_record,
};

/// A node whose segments span 500 ms.
fn node(by_columns: bool) -> Node {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    node.write_columns(by_columns).expect("an own head");
    node
}

/// Two agents, one of which sends samples 600 ms late, and an older exemplar.
#[test]
fn an_agent_that_catches_up_ends_no_segments() -> Result<()> {
    for by_columns in [false, true] {
        let mut node = node(by_columns);
        let names = ["live", "behind"].map(|name| Labels::from_sorted([(LABEL_NAME, name)]));
        for step_ms in 0..300 {
            for (labels, time_ms) in names.iter().zip([10_000 + step_ms, 9_400 + step_ms]) {
                node.engine.append_batch("append", 1_000_000, |head, batch| {
                    let slot = head.series_by_labels(batch, labels).expect("a valid label set");
                    Ingest::check(head, batch, slot, time_ms, Value::Float(1.0))?;
                    let (labels, value) = (Labels::default(), step_ms as f64);
                    let exemplar = Exemplar { labels, value, timestamp_ms: time_ms - 900 };
                    head.check_exemplar(batch, slot, exemplar);
                    Ok(())
                })?;
            }
        }
        // Up to 10,299 ms, from 10,000 ms on.
        assert_eq!(node.wal.segments(LogKind::InOrder), [0], "by columns: {by_columns}");
        node.append("next", 10_600, 1);
        assert_eq!(node.wal.segments(LogKind::InOrder), [0, 1], "by columns: {by_columns}");
        // What is older than that, in whatever order, stays in the segment.
        for time_ms in [10_500, 9_800, 11_000, 9_900, 11_100] {
            node.append(&format!("at {time_ms}"), time_ms, 1);
        }
        assert_eq!(node.wal.segments(LogKind::InOrder), [0, 1], "by columns: {by_columns}");
        let expected = node.select(Vec::new(), TimeRange::ALL);
        assert_eq!((expected["live"].len(), expected["behind"].len()), (300, 300));
        node.restart();
        assert_eq!(node.select(Vec::new(), TimeRange::ALL), expected);
    }
    Ok(())
}

/// With one agent or two, the log stays equally short for a long time.
#[test]
fn the_log_shrinks_beside_an_agent_that_catches_up() {
    for by_columns in [false, true] {
        let mut node = node(by_columns);
        for time_ms in (1_000..10_000).step_by(50) {
            node.append("live", time_ms, 1);
            node.append("behind", time_ms - 600, 2);
            node.compact();
            let segments = node.wal.segments(LogKind::InOrder);
            assert!(segments.len() <= 6, "by columns: {by_columns}, at {time_ms}: {segments:?}");
        }
        let segments = node.wal.segments(LogKind::InOrder);
        assert!((10..=20).contains(&segments[0]), "by columns: {by_columns}: {segments:?}");
        let expected = node.select(Vec::new(), TimeRange::ALL);
        assert_eq!((expected["live"].len(), expected["behind"].len()), (180, 180));
        node.restart();
        assert_eq!(node.select(Vec::new(), TimeRange::ALL), expected);
        // What is left of the log builds on nothing that was dropped.
        let replayed = node.engine.replay(64).expect("a sound log");
        assert_eq!(replayed.skipped_records, 0, "by columns: {by_columns}");
    }
}

/// Series are logged before their first sample, and the next process goes on.
#[test]
fn segments_end_in_every_life() {
    let mut node = node(false);
    for life in 0..3 {
        for time_ms in (0..1_400).step_by(100) {
            node.append("s", 10_000 + life * 1_400 + time_ms, 1);
        }
        node.restart();
    }
    // 4.1 s of samples; storage in memory goes on in the last segment of the life before.
    let segments = node.wal.segments(LogKind::InOrder);
    assert!((6..=9).contains(&segments.len()), "{segments:?}");
}

/// A log whose host ends a segment after some batches, as others do at a length.
struct ShortSegments {
    wal: MemoryWal,
    batches_max: usize,
    batches: usize,
    /// Whether segments end only when the next one is asked for.
    ends_when_asked: bool,
}

impl Wal for ShortSegments {
    fn append(&mut self, log: LogKind, records: &[Vec<u8>]) -> StorageResult<u32> {
        let is_due = self.batches >= self.batches_max;
        if is_due && records.is_empty() == self.ends_when_asked {
            self.wal.cut_segment(log)?;
            self.batches = 0;
        }
        self.batches += usize::from(!records.is_empty());
        self.wal.append(log, records)
    }

    fn replay(&mut self, bytes_max: u32) -> StorageResult<Option<WalBatch>> {
        self.wal.replay(bytes_max)
    }

    fn cut_segment(&mut self, log: LogKind) -> StorageResult<u32> {
        self.batches = 0;
        self.wal.cut_segment(log)
    }

    fn checkpoint(&mut self, last_segment: u32) -> StorageResult<Box<dyn WalCheckpoint>> {
        self.wal.checkpoint(last_segment)
    }

    fn truncate_out_of_order(&mut self, last_segment: u32) -> StorageResult<()> {
        self.wal.truncate_out_of_order(last_segment)
    }
}

/// The host ended segments at a length, and the next one's first record built on the one before:
/// forwarding that resumed there did not send its samples.
#[test]
fn a_segment_that_the_host_ends_is_followed_by_a_new_chain() -> Result<()> {
    for ends_when_asked in [true, false] {
        let mut node = node(true);
        let wal = node.wal.clone();
        let wal = Box::new(ShortSegments { wal, batches_max: 7, batches: 0, ends_when_asked });
        let blocks = Rc::new(node.blocks.clone());
        let storage = Storage { wal, blocks, head: None };
        node.engine = Engine::open(Role::All, WITH_OUT_OF_ORDER, storage)?;
        assert!(node.engine.replay(64)?.done);
        node.write_columns(true)?;
        for time_ms in 10_000..10_200 {
            node.append("s", time_ms, time_ms as u64);
        }
        let expected = node.select(Vec::new(), TimeRange::ALL);
        assert_eq!(expected["s"].len(), 200);

        // Each segment read alone.
        let (mut records, mut unchained) = (BTreeMap::new(), 0);
        let mut wal = node.wal.reopened();
        while let Some(batch) = wal.replay(1)? {
            for record in batch.records.iter() {
                let reader: &mut (ColumnReader, u32) = records.entry(batch.segment).or_default();
                if let Ok(Record::Columns(record)) = decode(record) {
                    reader.1 += 1;
                    unchained += usize::from(reader.0.read(&record, batch.segment).is_err());
                }
            }
        }
        let counts: Vec<u32> = records.values().map(|(_, count)| *count).collect();
        assert_eq!((counts.len(), counts.iter().sum()), (29, 200), "{counts:?}");
        // One that ends segments unasked leaves one such record in each: it is still read behind
        // the segment before.
        assert_eq!(unchained, if ends_when_asked { 0 } else { counts.len() - 1 });
        node.restart();
        assert_eq!(node.select(Vec::new(), TimeRange::ALL), expected);
    }
    Ok(())
}

/// Failed syncs left a log that begins with such a record behind a checkpoint, which was taken for
/// one that builds on segment 0, so no later checkpoint could end.
#[test]
fn a_record_whose_predecessor_is_gone_holds_no_cut_up() -> Result<()> {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    let mut wal = node.wal.reopened();
    for _ in 0..2 {
        wal.cut_segment(LogKind::InOrder)?;
    }
    // As upstream writes it: with samples, some of them newer than what is cut next.
    let mut series = series_record();
    put_series(&mut series, 1, 1, [(LABEL_NAME, "ahead")].into_iter());
    let ahead = Sample { timestamp_ms: 11_400, value: 1.0 };
    let mut samples = samples_record(1, ahead.timestamp_ms, 1);
    put_samples(&mut samples, (1, ahead.timestamp_ms), 1, ahead);
    let mut checkpoint = wal.checkpoint(1)?;
    checkpoint.append(&[series, samples])?;
    checkpoint.commit()?;
    let mut writer = ColumnWriter::new(1);
    let mut record = |timestamp_ms| writer.record(&[(1, Sample { timestamp_ms, value: 1.0 })]);
    let (_, chained) = (record(9_000), record(9_010));
    wal.append(LogKind::InOrder, &[chained.expect("few series")])?;
    node.restart();
    assert_eq!(node.engine.replay(1)?.skipped_records, 0, "the checkpoint has what it says");
    for time_ms in (10_000..16_000).step_by(50) {
        assert_eq!(node.append("s", time_ms, 1).refused, 0);
        node.compact();
    }
    assert!(node.wal.segments(LogKind::InOrder)[0] > 4, "segments are dropped");
    node.restart();
    let all = node.select(Vec::new(), TimeRange::ALL);
    assert_eq!((all["s"].len(), all["ahead"].len()), (120, 1));
    Ok(())
}

/// Series that the log names, and out-of-order rows.
fn named_and_late(wal: &MemoryWal) -> Result<(usize, usize)> {
    let (mut named, mut late) = (0, 0);
    let mut wal = wal.reopened();
    while let Some(batch) = wal.replay(1)? {
        for record in batch.records.iter() {
            match decode(record) {
                Ok(Record::Series(series)) => named += series.count(),
                _ if batch.log == LogKind::OutOfOrder => late += 1,
                _ => {}
            }
        }
    }
    Ok((named, late))
}

/// Forwarding that read between two writes of a batch must know the series of its rows.
#[test]
fn the_series_of_an_out_of_order_row_is_in_the_log_before_it() -> Result<()> {
    for (writes, expected) in [(0, (0, 0)), (1, (1, 0)), (2, (1, 1)), (3, (1, 1))] {
        let mut node = node(false);
        for time_ms in (6_000..=10_000).step_by(100) {
            node.append("s", time_ms, 1);
        }
        node.compact();
        let (named, late) = named_and_late(&node.wal)?;
        let rows = [("late", 8_100), ("s", 10_010)];
        let rows = rows.map(|(name, time_ms)| (name.to_owned(), time_ms, Value::Float(1.0)));
        Fault::set(Some(Fault { after_calls: writes, is_full: false, takes_effect: false }));
        let written = node.append_rows(&rows, 1_000_000);
        Fault::set(None);
        assert_eq!(written.is_ok(), writes == 3, "after {writes} writes: {written:?}");
        let now = named_and_late(&node.wal)?;
        assert_eq!((now.0 - named, now.1 - late), expected, "after {writes} writes");

        // The sender repeats what has no answer.
        node.append_rows(&rows, 1_000_000)?;
        node.restart();
        let all = node.select(Vec::new(), TimeRange::ALL);
        assert_eq!((all["late"].len(), all["s"].len()), (1, 42), "after {writes} writes");
    }
    Ok(())
}
