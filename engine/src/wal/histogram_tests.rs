//! Records of types 3 to 13: upstream's own and random ones.

use super::*;
use crate::model::histogram::testing::{
    Run, TestCount, UPSTREAM, any_histograms, hex, parse, upstream_runs,
};
use crate::model::histogram::{BucketLayout, NativeHistogram};
use crate::model::{Sample, TimeRange};
use proptest::prelude::*;

type Histograms<C> = Vec<HistogramRecord<C>>;

trait Pick: TestCount + WalCount {
    fn pick(record: Record<'_>) -> Result<Histograms<Self>, RecordError>;
}

impl Pick for u64 {
    fn pick(record: Record<'_>) -> Result<Histograms<u64>, RecordError> {
        match record {
            Record::Histograms(rows) => rows.collect(),
            _ => Ok(Vec::new()),
        }
    }
}

impl Pick for f64 {
    fn pick(record: Record<'_>) -> Result<Histograms<f64>, RecordError> {
        match record {
            Record::FloatHistograms(rows) => rows.collect(),
            _ => Ok(Vec::new()),
        }
    }
}

fn read<C: Pick>(record: &[u8]) -> Result<Histograms<C>, RecordError> {
    C::pick(decode(record)?)
}

fn written<C: WalCount>(rows: &[HistogramRecord<C>]) -> Vec<u8> {
    let Some(first) = rows.first() else { return Vec::new() };
    let is_custom = first.histogram.layout.has_custom_buckets();
    let start = (first.series_ref, first.timestamp_ms);
    let mut record = histograms_record::<C>(is_custom, start.0, start.1);
    for HistogramRecord { series_ref, timestamp_ms, histogram } in rows {
        put_histogram(&mut record, start, *series_ref, *timestamp_ms, histogram);
    }
    record
}

fn rows_of<C: TestCount>(run: &Run<'_>) -> Histograms<C> {
    let rows = run.samples.iter().zip(5..).map(|((timestamp_ms, text), series_ref)| {
        HistogramRecord { series_ref, timestamp_ms: *timestamp_ms, histogram: parse(text) }
    });
    rows.collect()
}

fn is_as_upstream<C: Pick>(run: &Run<'_>) {
    let rows = rows_of::<C>(run);
    for (kind, bytes) in &run.others {
        match *kind {
            "wal" => {
                assert_eq!(&written(&rows), bytes);
                assert_eq!(read::<C>(bytes).as_ref(), Ok(&rows));
            }
            "wal2" => assert_eq!(read::<C>(bytes).as_ref(), Ok(&rows)),
            _ => {}
        }
    }
}

#[test]
fn histogram_records_are_upstreams() {
    for run in upstream_runs() {
        match run.is_float {
            true => is_as_upstream::<f64>(&run),
            false => is_as_upstream::<u64>(&run),
        }
    }
}

#[test]
fn other_records_are_upstreams() -> Result<(), RecordError> {
    let lines = UPSTREAM.lines().filter_map(|line| line.strip_prefix("record "));
    let records: Vec<Vec<u8>> = lines.map(hex).collect();
    let mut seen = 0;
    for record in &records {
        match decode(record)? {
            Record::Tombstones(rows) => {
                let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
                let stone = |series_ref, start_ms, end_ms| TombstoneRecord {
                    series_ref,
                    range: TimeRange { start_ms, end_ms },
                };
                let wanted = [
                    stone(3, -5, 1_700_000_000_000),
                    stone(3, i64::MIN, i64::MAX),
                    stone(1 << 40, 0, 0),
                ];
                assert_eq!(rows, wanted);
                assert_eq!(&tombstones_record(rows), record);
            }
            Record::Exemplars(rows) => {
                let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
                let labels = vec![("span_id", "d"), ("trace_id", "abc")];
                let (series_ref, timestamp_ms, value) = (9, 1_700_000_000_000, 0.25);
                let first = ExemplarRecord { series_ref, timestamp_ms, value, labels };
                let (series_ref, timestamp_ms, value) = (7, 1_699_999_999_000, -1.0);
                let second = ExemplarRecord { series_ref, timestamp_ms, value, labels: vec![] };
                assert_eq!(rows, [first, second]);
                let start = (rows[0].series_ref, rows[0].timestamp_ms);
                let mut ours = exemplars_record(start.0, start.1);
                rows.iter().for_each(|row| put_exemplar(&mut ours, start, row));
                assert_eq!(&ours, record);
            }
            Record::MmapMarkers(rows) => {
                let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
                let marker =
                    |series_ref, chunk_position| MmapMarkerRecord { series_ref, chunk_position };
                assert_eq!(rows, [marker(3, 1 << 32 | 8), marker(4, 99)]);
                assert_eq!(&mmap_markers_record(rows), record);
            }
            Record::Metadata(rows) => {
                let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
                let (unit, help) = ("bytes", "What it is.");
                let known = MetadataRecord { series_ref: 300, kind: 1, unit, help, family: "" };
                let bare =
                    MetadataRecord { series_ref: 1, kind: 7, unit: "", help: "", family: "" };
                assert_eq!(rows, [known, bare]);
                let mut ours = metadata_record();
                rows.iter().for_each(|row| put_metadata(&mut ours, row));
                assert_eq!(&ours, record);
            }
            Record::SamplesV2(rows) => {
                let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
                let row =
                    |series_ref, timestamp_ms, value| (series_ref, Sample { timestamp_ms, value });
                let wanted =
                    [row(9, 1000, 1.0), row(5, 2000, 2.0), row(6, 1500, 3.0), row(7, 1600, 4.0)];
                assert_eq!(rows, wanted);
            }
            _ => panic!("a record of type {:?}", record.first()),
        }
        seen |= 1u32 << record[0];
    }
    assert_eq!(seen, 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 11);
    Ok(())
}

#[test]
fn unknown_schemas_are_passed_over_and_lies_are_damage() {
    let with_layout = |layout: BucketLayout| NativeHistogram::<u64> {
        layout: layout.into(),
        count: 3,
        ..NativeHistogram::stale()
    };
    let row = |histogram| HistogramRecord { series_ref: 1, timestamp_ms: 2, histogram };
    let sound = row(with_layout(BucketLayout::default()));
    let unknown = row(with_layout(BucketLayout { schema: 60, ..BucketLayout::default() }));
    let record = written(&[unknown, sound.clone()]);
    assert_eq!(read::<u64>(&record), Ok(vec![sound.clone()]));
    // A span without buckets.
    let spans = [crate::model::histogram::Span { offset: 0, length: 1 << 31 }].into();
    let lie = row(with_layout(BucketLayout { positive_spans: spans, ..BucketLayout::default() }));
    let offset = written(std::slice::from_ref(&sound)).len();
    assert_eq!(read::<u64>(&written(&[sound, lie])), Err(RecordError { kind: 7, offset }));
    // Four billion spans in no bytes.
    let mut record = histograms_record::<u64>(false, 0, 0);
    record.extend([0, 0, 0, 0]);
    record.extend([0; 8 + 1 + 1 + 8]);
    record.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert!(read::<u64>(&record).is_err());
}

#[test]
fn records_without_rows_are_sound() {
    for kind in 1..=13 {
        let empty = match decode(&[kind]) {
            Ok(Record::Series(mut rows)) => rows.next().is_none(),
            Ok(Record::Samples(mut rows)) => rows.next().is_none(),
            Ok(Record::Tombstones(mut rows)) => rows.next().is_none(),
            Ok(Record::Exemplars(mut rows)) => rows.next().is_none(),
            Ok(Record::MmapMarkers(mut rows)) => rows.next().is_none(),
            Ok(Record::Metadata(mut rows)) => rows.next().is_none(),
            Ok(Record::Histograms(mut rows)) => rows.next().is_none(),
            Ok(Record::FloatHistograms(mut rows)) => rows.next().is_none(),
            Ok(Record::SamplesV2(mut rows)) => rows.next().is_none(),
            Ok(
                Record::Columns(_)
                | Record::DeletionsApplied(_)
                | Record::Retired(_)
                | Record::Unknown(_),
            )
            | Err(_) => false,
        };
        assert!(empty, "type {kind}");
    }
    assert_eq!(decode(&[7, 0]).err(), Some(RecordError { kind: 7, offset: 1 }));
}

/// Reads everything that a record holds.
fn drain(record: &[u8]) {
    match decode(record) {
        Ok(Record::Series(rows)) => rows.for_each(drop),
        Ok(Record::Samples(rows)) => rows.for_each(drop),
        Ok(Record::Tombstones(rows)) => rows.for_each(drop),
        Ok(Record::Exemplars(rows)) => rows.for_each(drop),
        Ok(Record::MmapMarkers(rows)) => rows.for_each(drop),
        Ok(Record::Metadata(rows)) => rows.for_each(drop),
        Ok(Record::Histograms(rows)) => rows.for_each(drop),
        Ok(Record::FloatHistograms(rows)) => rows.for_each(drop),
        Ok(Record::SamplesV2(rows)) => rows.for_each(drop),
        Ok(Record::Columns(record)) => {
            let _ = ColumnReader::default().read(&record, 0);
        }
        Ok(Record::DeletionsApplied(_) | Record::Retired(_) | Record::Unknown(_)) | Err(_) => {}
    }
}

fn comes_back<C: Pick>(
    samples: Vec<(i64, NativeHistogram<C>)>,
    damage: (usize, u8, usize),
) -> Result<(), TestCaseError> {
    let rows: Histograms<C> = samples
        .into_iter()
        .map(|(timestamp_ms, histogram)| {
            let series_ref = (timestamp_ms as u64).wrapping_mul(7);
            HistogramRecord { series_ref, timestamp_ms, histogram }
        })
        .collect();
    let mut record = written(&rows);
    let back = read::<C>(&record);
    prop_assert_eq!(back.as_ref(), Ok(&rows));
    let (at, bit, cut) = damage;
    let cut = 1 + cut % (record.len() - 1);
    let after_cut = read::<C>(&record[..cut]);
    prop_assert!(after_cut.map_or(true, |kept| kept.len() < rows.len()));
    let at = at % record.len();
    record[at] ^= 1 << bit;
    drain(&record);
    Ok(())
}

proptest! {
    #[test]
    fn histograms_come_back(
        whole in any_histograms::<u64>(),
        fractions in any_histograms::<f64>(),
        damage: (usize, u8, usize),
    ) {
        let damage = (damage.0, damage.1 % 8, damage.2);
        comes_back(whole, damage)?;
        comes_back(fractions, damage)?;
    }

    #[test]
    fn any_bytes_are_survived(mut bytes: Vec<u8>, kind in 0u8..15) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        drain(&bytes);
    }
}
