//! A record of any bytes is understood or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidepool_engine::wal::{Record, decode};

fuzz_target!(|data: &[u8]| {
    match decode(data) {
        Ok(Record::Series(series)) => series.for_each(drop),
        Ok(Record::Samples(samples)) => samples.for_each(drop),
        _ => {}
    }
});
