//! Numbers of series: none is given twice, since held segments and out-of-order samples refer to
//! them.

use super::*;
use crate::storage::Wal;
use crate::wal::{
    ExemplarRecord, MetadataRecord, Record, TombstoneRecord, decode, exemplars_record,
    metadata_record, put_exemplar, put_metadata, put_samples, put_series, samples_record,
    series_record, tombstones_record,
};

fn number_of(node: &mut Node, name: &str) -> Result<u64> {
    node.engine.series_ref(&Labels::from_sorted([(LABEL_NAME, name)]))
}

#[test]
fn a_number_that_a_checkpoint_leaves_out_is_not_given_again() -> Result<()> {
    for restarts in [1, 2] {
        let mut node = Node::new();
        node.append("stays", 0, 1);
        let mut last = 0;
        for name in ["gone", "gone too"] {
            node.append(name, 10, 1);
            last = last.max(number_of(&mut node, name)?);
        }
        for time_ms in (0..6_000).step_by(100) {
            node.append("stays", time_ms, 1);
            node.compact();
        }
        // Neither they nor a row of them is in the log any more.
        assert!(node.wal.segments(LogKind::InOrder)[0] > 3);
        assert_eq!(node.engine.figures()?.head_series, 1);
        for _ in 0..restarts {
            node.restart();
        }
        let new = number_of(&mut node, "new")?;
        assert!(new > last, "{new} was given before: the last was {last}");
    }
    Ok(())
}

#[test]
fn numbers_that_any_row_names_are_taken() -> Result<()> {
    let labels = vec![("trace", "1")];
    let mut exemplars = exemplars_record(70, 0);
    let row = ExemplarRecord { series_ref: 77, timestamp_ms: 0, value: 1.0, labels };
    put_exemplar(&mut exemplars, (70, 0), &row);
    let mut metadata = metadata_record();
    let row = MetadataRecord { series_ref: 99, kind: 1, unit: "", help: "", family: "f" };
    put_metadata(&mut metadata, &row);
    for (record, last) in [(exemplars, 77), (metadata, 99)] {
        let mut node = Node::new();
        node.wal.reopened().append(LogKind::InOrder, &[record])?;
        node.restart();
        assert_eq!(number_of(&mut node, "new")?, last + 1);
    }
    Ok(())
}

/// A series with this number, and floats of 1 under it.
fn of_number(series_ref: u64, is_new: bool, times_ms: &[i64]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    if is_new {
        let mut record = series_record();
        let labels = [(LABEL_NAME, "m"), ("job", "test")];
        put_series(&mut record, series_ref, labels.len(), labels.into_iter());
        records.push(record);
    }
    for time_ms in times_ms {
        let mut record = samples_record(series_ref, *time_ms, 1);
        let sample = Sample { timestamp_ms: *time_ms, value: 1.0 };
        put_samples(&mut record, (series_ref, *time_ms), series_ref, sample);
        records.push(record);
    }
    records
}

/// A series left the head and returned under another number. Prometheus goes on with the first
/// number, so a checkpoint must name both.
#[test]
fn a_checkpoint_names_all_numbers_that_rows_carry() -> Result<()> {
    for is_saved in [false, true] {
        let mut node = Node::with(WITH_OUT_OF_ORDER);
        let mut wal = node.wal.reopened();
        for records in [of_number(3, true, &[100, 400]), of_number(9, true, &[500, 700])] {
            wal.append(LogKind::InOrder, &records)?;
            wal.cut_segment(LogKind::InOrder)?;
        }
        wal.append(LogKind::InOrder, &of_number(3, false, &[900, 1_100, 1_400, 1_800]))?;
        wal.append(LogKind::OutOfOrder, &of_number(3, false, &[1_300]))?;
        node.restart();
        let times = |node: &Node| -> Vec<i64> {
            node.select(Vec::new(), TimeRange::ALL)["m"].keys().copied().collect()
        };
        let mut expected = vec![100, 400, 500, 700, 900, 1_100, 1_300, 1_400, 1_800];
        assert_eq!(times(&node), expected);
        for time_ms in [1_900, 2_000] {
            if is_saved {
                node.restart_cleanly();
            }
            node.append("m", time_ms, 1);
            expected.push(time_ms);
            node.compact();
            assert_eq!(times(&node), expected);
            node.restart();
            assert_eq!(times(&node), expected);
        }
        assert!(node.wal.segments(LogKind::InOrder)[0] > 0, "no checkpoint");
        // Once no segment carries it, it is forgotten.
        for time_ms in (2_100..9_000).step_by(100) {
            node.append("m", time_ms, 1);
            node.compact();
        }
        assert!(node.wal.segments(LogKind::InOrder)[0] > 3);
        let mut wal = node.wal.reopened();
        let checkpoint = wal.replay(1)?.expect("a checkpoint");
        let numbers = checkpoint.records.iter().map(|record| match decode(record) {
            Ok(Record::Series(series)) => series.count(),
            _ => 0,
        });
        assert_eq!(numbers.sum::<usize>(), 1);
    }
    Ok(())
}

/// A tombstone names one number of a series, and deletes under its earlier ones too.
#[test]
fn a_tombstone_hides_rows_by_earlier_numbers() -> Result<()> {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    let mut wal = node.wal.reopened();
    let range = TimeRange { start_ms: 0, end_ms: 600 };
    wal.append(LogKind::InOrder, &of_number(3, true, &[100]))?;
    wal.append(LogKind::InOrder, &of_number(9, true, &[500, 700]))?;
    let tombstone = TombstoneRecord { series_ref: 9, range };
    wal.append(LogKind::InOrder, &[tombstones_record(std::iter::once(tombstone))])?;
    wal.append(LogKind::InOrder, &of_number(12, true, &[800]))?;
    for (series_ref, time_ms) in [(3, 50), (9, 60), (3, 750), (12, 70)] {
        wal.append(LogKind::OutOfOrder, &of_number(series_ref, false, &[time_ms]))?;
    }
    node.restart();
    let found = node.select(Vec::new(), TimeRange::ALL);
    assert_eq!(found["m"].keys().copied().collect::<Vec<_>>(), [70, 700, 750, 800]);
    Ok(())
}
