use super::*;
use crate::model::Sample;
use proptest::prelude::*;

type Rows = Vec<(u64, Sample)>;

fn read_samples(record: &[u8]) -> Result<Rows, RecordError> {
    match decode(record)? {
        Record::Samples(samples) => samples.collect(),
        _ => panic!("not a samples record"),
    }
}

#[test]
fn the_documents_worked_bytes_decode() {
    let mut record = series_record();
    put_series(&mut record, 7, 1, [("a", "bc")].into_iter());
    assert_eq!(record, [1, 0, 0, 0, 0, 0, 0, 0, 7, 1, 1, b'a', 2, b'b', b'c']);

    let sample = Sample { timestamp_ms: 1000, value: 1.0 };
    let mut record = samples_record(7, 1000, 2);
    put_samples(&mut record, (7, 1000), 7, sample);
    put_samples(&mut record, (7, 1000), 9, Sample { timestamp_ms: 998, value: 1.0 });
    let value = 1.0f64.to_bits().to_be_bytes();
    let wanted =
        [&[2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 3, 232, 0, 0], &value[..], &[4, 3], &value]
            .concat();
    assert_eq!(record, wanted);
}

#[test]
fn unknown_kinds_are_told_by_their_number() {
    assert!(matches!(decode(&[14, 0]), Ok(Record::Unknown(14))));
    assert!(matches!(decode(&[199]), Ok(Record::Unknown(199))));
    assert!(matches!(decode(&[]), Ok(Record::Unknown(0))));
}

proptest! {
    #[test]
    fn samples_come_back(
        any_rows: Vec<(u64, i64, u64)>,
        near_rows in prop::collection::vec((0u64..20_000, -3_000_000i64..3_000_000, any::<u64>()), 0..20),
    ) {
        let rows = near_rows.into_iter().chain(any_rows).collect::<Vec<_>>();
        let rows: Rows = rows.into_iter().map(|(series_ref, timestamp_ms, bits)| {
            (series_ref, Sample { timestamp_ms, value: f64::from_bits(bits) })
        }).collect();
        let first = rows.first().map_or((0, 0), |(r, s)| (*r, s.timestamp_ms));
        let mut record = samples_record(first.0, first.1, rows.len());
        for (series_ref, sample) in &rows {
            put_samples(&mut record, first, *series_ref, *sample);
        }
        let mut each = Vec::new();
        if let Ok(Record::Samples(samples)) = decode(&record) {
            prop_assert_eq!(samples.each(|series_ref, sample| each.push((series_ref, sample))), Ok(()));
        }
        prop_assert_eq!(&each, &rows);
        prop_assert_eq!(read_samples(&record), Ok(rows));
    }

    #[test]
    fn damage_is_an_error_or_other_rows_but_never_a_panic(mut bytes: Vec<u8>, kind in 0u8..4) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        match decode(&bytes) {
            Ok(Record::Series(series)) => series.for_each(drop),
            Ok(Record::Samples(samples)) => samples.for_each(drop),
            _ => {}
        }
    }
}
