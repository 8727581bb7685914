use super::*;
use crate::codec::BitWriter;
use crate::model::Sample;
use crate::wal::{Record, decode};
use proptest::prelude::*;

type Rows = Vec<(u64, Sample)>;

fn read(reader: &mut ColumnReader, record: &[u8]) -> Result<Rows, ColumnError> {
    match decode(record)? {
        Record::Columns(record) => reader.read(&record, 0).map(<[_]>::to_vec),
        _ => panic!("no record by columns"),
    }
}

fn row(series_ref: u64, timestamp_ms: i64, bits: u64) -> (u64, Sample) {
    (series_ref, Sample { timestamp_ms, value: f64::from_bits(bits) })
}

/// The bytes that the module's head describes.
#[test]
fn the_documented_bytes() {
    let mut writer = ColumnWriter::new(1);
    let one = 1f64.to_bits();
    let first = writer.record(&[row(7, 1000, one), row(9, 1000, 0)]).expect("two series");
    assert_eq!((first[0], &first[9..11]), (203, &[0, 2][..]), "the first record, two rows");
    // No reference is predicted: the first is 7 from 0, the other 2 behind it.
    assert_eq!(first[11..15], [0, 14, 0, 4]);
    // One row 1000 ms behind 0, the next one in the same time.
    assert_eq!(first[15..20], [1, 0xd0, 0x0f, 1, 0]);
    // 1 is an integer, and by 1 more than 0: no scale, no shift, two bits. Then the same bits as
    // before, which is 0 in the second series.
    assert_eq!(first[20..], [0b1111_0000, 0b0000_0000, 0b0011_0000]);

    let second = writer.record(&[row(7, 2000, one), row(9, 2000, 0)]).expect("two series");
    assert_eq!((&second[1..9], &second[9..11]), (&first[1..9], &[1, 2][..]), "of one epoch");
    // 7 was never seen behind 9; 9 is expected behind 7. Both lie 1000 ms behind their last row,
    // with the same bits, which is 10 behind a difference.
    assert_eq!(second[11..], [0, 14, 1, 2, 0xd0, 0x0f, 0b1000_0000]);

    let mut reader = ColumnReader::default();
    assert_eq!(read(&mut reader, &first), Ok(vec![row(7, 1000, one), row(9, 1000, 0)]));
    assert_eq!(read(&mut reader, &second), Ok(vec![row(7, 2000, one), row(9, 2000, 0)]));
}

/// A log of a version that wrote type 201: 1 at scale 1, then 12, 1.5 at scale 10, and 0.1 + 0.2.
#[test]
fn records_of_type_201_are_read() {
    let head = |seq: u8| [&[201, 1, 2, 3, 4, 5, 6, 7, 8, seq, 2][..], &[0, 14, 0, 4]].concat();
    let first = [&head(0)[..], &[1, 0xd0, 0x0f, 1, 0], &[0b1010_0000, 0b0001_0000]].concat();
    let known = [&[201, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2][..], &[0, 14, 1]].concat();
    // 10 and 10 + 8 bits: 10 more than the difference before; 1111, scale 1, 10 + 8 bits: 15.
    let values = [0b1010_0000, 0b1010_1111, 0b0011_0000, 0b0111_1000];
    let second = [&known[..], &[2, 0xd0, 0x0f], &values].concat();
    let mut reader = ColumnReader::default();
    let bits = f64::to_bits;
    assert_eq!(read(&mut reader, &first), Ok(vec![row(7, 1000, bits(1.0)), row(9, 1000, 0)]));
    let rows = vec![row(7, 2000, bits(12.0)), row(9, 2000, bits(1.5))];
    assert_eq!(read(&mut reader, &second), Ok(rows));
    // 1110, 1 leading zero, all 63 other bits; and the same window once more.
    let difference = bits(0.1 + 0.2) ^ bits(12.0);
    let mut bytes = vec![0; 40];
    let mut writer = BitWriter::resume(&mut bytes, 0);
    for (value, width) in [(0b1110, 4), (1, 5), (63, 6), (difference, 63), (0, 1)] {
        writer.put(value, width);
    }
    let third = [&known[..9], &[2, 2, 0, 14, 1, 2, 0xd0, 0x0f], &bytes].concat();
    let rows = vec![row(7, 3000, bits(0.1 + 0.2)), row(9, 3000, bits(1.5))];
    assert_eq!(read(&mut reader, &third), Ok(rows));
}

#[test]
fn memory_that_was_given_back_begins_an_epoch() {
    let (mut writer, mut reader) = (ColumnWriter::new(1), ColumnReader::default());
    let rows = |time_ms| -> Rows { (0..1000).map(|series| row(series, time_ms, 7)).collect() };
    let mut epochs = Vec::new();
    for time_ms in 0..6 {
        if time_ms % 2 == 0 {
            writer.give_back();
            assert!(!writer.is_chained());
            assert_eq!(writer.chain.series.capacity(), 0);
        }
        let record = writer.record(&rows(time_ms)).expect("few series");
        assert_eq!(read(&mut reader, &record), Ok(rows(time_ms)));
        epochs.push(record[1..9].to_vec());
    }
    epochs.dedup();
    assert_eq!(epochs.len(), 3);
}

#[test]
fn regular_rows_take_few_bytes_however_requests_are_cut() {
    let mut writer = ColumnWriter::new(1);
    let mut rows = Vec::new();
    for scrape in 0..240i64 {
        for series in 0..1003u64 {
            let value = (series * 1000 + scrape as u64 * (series % 10)) as f64;
            rows.push((series, Sample { timestamp_ms: 15_000 * scrape, value }));
        }
    }
    let mut reader = ColumnReader::default();
    let mut bytes = 0;
    for rows in rows.chunks(400) {
        let record = writer.record(rows).expect("few series");
        assert_eq!(read(&mut reader, &record).as_deref(), Ok(rows));
        bytes += record.len();
    }
    let per_row = bytes as f64 / rows.len() as f64;
    assert!(per_row < 2.0, "{per_row} bytes a row");
}

/// Steps of nine random bits differ by ten bits, with two for the width: twelve and the row's kind.
#[test]
fn widths_follow_the_series_and_whole_pages_cost_nothing_more() {
    for page in [1u64, 4096] {
        let (mut pages, mut random) = (1u64 << 30, 1u64);
        let rows = (0..1000).map(|number| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            pages += random >> 55;
            row(1, number, ((pages * page) as f64).to_bits())
        });
        let rows: Rows = rows.collect();
        let record = ColumnWriter::new(1).record(&rows).expect("one series");
        assert_eq!(read(&mut ColumnReader::default(), &record), Ok(rows));
        assert!(record.len() < 1000 * 13 / 8, "{} bytes for pages of {page}", record.len());
    }
}

#[test]
fn what_is_missing_costs_no_more_than_an_epoch() {
    let mut writer = ColumnWriter::new(1);
    let mut reader = ColumnReader::default();
    let mut unread = 0;
    for number in 0..5000u64 {
        let rows: Rows = (0..100).map(|series| row(series, number as i64, number)).collect();
        let record = writer.record(&rows).expect("few series");
        if number == 700 {
            continue;
        }
        let found = read(&mut reader, &record);
        let is_read = found.is_ok();
        match found {
            Ok(found) => assert_eq!(found, rows),
            Err(error) => assert_eq!(error, ColumnError::Unchained),
        }
        unread += u32::from(!is_read);
        // A segment that could not be synced is written once more.
        let again = read(&mut reader, &record);
        assert_eq!(again.is_ok_and(|again| again.is_empty() || again == rows), is_read);
    }
    assert!((1..=656).contains(&unread), "{unread} records of 100 rows");
}

#[test]
fn a_restart_needs_nothing_from_before() {
    let mut writer = ColumnWriter::new(1);
    let rows = [row(1, 10, 20), row(2, 10, 21)];
    assert!(!writer.is_chained());
    writer.record(&rows).expect("two series");
    assert!(writer.is_chained());
    writer.restart();
    assert!(!writer.is_chained());
    let record = writer.record(&rows).expect("two series");
    assert_eq!(read(&mut ColumnReader::default(), &record).as_deref(), Ok(&rows[..]));
}

/// Repeated records were once recognized by chain names alone: of two equal ones, one was lost.
#[test]
fn another_chain_with_the_same_name_is_read() {
    let mut reader = ColumnReader::default();
    for (seed, first_ms) in [(1, 10), (2, 20), (1, 30)] {
        let mut writer = ColumnWriter::new(seed);
        for step_ms in 0..3 {
            let rows = [row(1, first_ms + step_ms, 20), row(2, first_ms + step_ms, 21)];
            let record = writer.record(&rows).expect("two series");
            assert_eq!(read(&mut reader, &record).as_deref(), Ok(&rows[..]));
        }
    }
}

#[test]
fn too_many_series_are_left_to_others() {
    let mut writer = ColumnWriter::new(1);
    let mut refused = 0;
    for chunk in 0..(SERIES_MAX / ROWS_MAX) as u64 + 2 {
        let first = chunk * ROWS_MAX as u64;
        let rows: Rows = (first..first + ROWS_MAX as u64).map(|at| row(at, 0, 0)).collect();
        refused += u32::from(writer.record(&rows).is_none());
        assert!(writer.chain.series.len() <= SERIES_MAX);
    }
    assert_eq!(refused, 0, "a new epoch begins instead");
}

#[derive(Clone, Debug)]
enum Step {
    Record(Vec<(u64, i64, u64)>),
    Lost,
    Restart,
    Twice,
}

fn step() -> impl Strategy<Value = Step> {
    let refs = prop_oneof![8 => 0u64..20, 1 => any::<u64>()];
    let times = prop_oneof![8 => 0i64..3, 4 => -70_000i64..70_000, 1 => any::<i64>()];
    let bits = prop_oneof![
        4 => Just(1.5f64.to_bits()),
        4 => (0u32..1000).prop_map(|number| f64::from(number).to_bits()),
        4 => (0u32..100_000, 1u32..10).prop_map(|(number, places)| {
            (f64::from(number) / 10f64.powi(places as i32)).to_bits()
        }),
        1 => Just((-0.0f64).to_bits()),
        2 => any::<u64>(),
        4 => (0u64..1 << 40, 0u32..13).prop_map(|(n, shift)| ((n << shift) as f64).to_bits()),
    ];
    let rows = prop::collection::vec((refs, times, bits), 1..40);
    prop_oneof![
        10 => rows.prop_map(Step::Record),
        1 => Just(Step::Lost),
        1 => Just(Step::Restart),
        1 => Just(Step::Twice),
    ]
}

proptest! {
    /// Rows come back bit by bit, or not at all if a record that they depend on is missing.
    #[test]
    fn rows_come_back(seed: u64, steps in prop::collection::vec(step(), 1..40)) {
        let mut writer = ColumnWriter::new(seed);
        let mut reader = ColumnReader::default();
        let (mut is_lost, mut has_begun, mut last) = (false, false, None);
        for step in steps {
            match step {
                Step::Record(rows) => {
                    let rows: Rows = rows.into_iter().map(|(r, t, v)| row(r, t, v)).collect();
                    is_lost &= writer.is_chained();
                    let record = writer.record(&rows).expect("few series");
                    let expected = match (is_lost, has_begun) {
                        (true, true) => Err(ColumnError::Unchained),
                        // For all it can know, the log begins here.
                        (true, false) => Err(ColumnError::CutOff),
                        (false, _) => Ok(rows),
                    };
                    has_begun |= !is_lost;
                    prop_assert_eq!(read(&mut reader, &record), expected);
                    last = Some(record);
                }
                Step::Lost => {
                    is_lost = true;
                    writer.record(&[row(1, 2, 3)]).expect("one series");
                }
                Step::Restart => writer.restart(),
                Step::Twice => if let Some(last) = last.as_ref().filter(|_| !is_lost) {
                    prop_assert!(read(&mut reader, last).is_ok());
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_survived(
        rows in prop::collection::vec((0u64..9, 0i64..99, any::<u64>()), 1..40),
        damage in prop::collection::vec((9usize..200, any::<u8>()), 1..5),
        bytes: Vec<u8>,
    ) {
        let rows: Rows = rows.into_iter().map(|(r, t, v)| row(r, t, v)).collect();
        let mut record = ColumnWriter::new(1).record(&rows).expect("few series");
        let mut reader = ColumnReader::default();
        for (at, byte) in damage {
            if let Some(place) = record.get_mut(at) {
                *place = byte;
            }
            let _ = decode(&record).map(|_| read(&mut reader, &record));
        }
        for kind in [201, 203] {
            let noise = [&[kind][..], &bytes].concat();
            let _ = decode(&noise).map(|_| read(&mut reader, &noise));
        }
    }
}
