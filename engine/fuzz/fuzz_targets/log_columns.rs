//! Records by columns: of any bytes they return rows or an error, and any rows come back bit by
//! bit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidepool_engine::model::Sample;
use tidepool_engine::wal::{ColumnReader, ColumnWriter, Record, decode};

fuzz_target!(|input: (Vec<Vec<u8>>, Vec<Vec<(u16, i64, u64)>>)| {
    let (records, batches) = input;
    let mut reader = ColumnReader::default();
    for record in &records {
        let kind = if record.len() % 2 == 0 { 203 } else { 201 };
        let record = [&[kind][..], record].concat();
        if let Ok(Record::Columns(record)) = decode(&record) {
            let _ = reader.read(&record, 0);
        }
    }
    // What was read before is of no importance to a chain that begins.
    let mut writer = ColumnWriter::new(1);
    for rows in batches.iter().filter(|rows| !rows.is_empty()) {
        let sample = |timestamp_ms, bits| Sample { timestamp_ms, value: f64::from_bits(bits) };
        let rows: Vec<(u64, Sample)> = rows
            .iter()
            .map(|(series, timestamp_ms, bits)| (u64::from(*series), sample(*timestamp_ms, *bits)))
            .collect();
        let record = writer.record(&rows).expect("few series");
        match decode(&record) {
            Ok(Record::Columns(record)) => assert_eq!(reader.read(&record, 0), Ok(&rows[..])),
            _ => panic!("no record by columns"),
        }
    }
});
