//! A chunk of any bytes gives samples or an error, and what decodes without one encodes to samples
//! that decode again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidepool_engine::chunk::{XorAppender, XorIter};
use tidepool_engine::model::Sample;

fuzz_target!(|data: &[u8]| {
    let Ok(samples) = XorIter::new(data) else { return };
    let Ok(samples) = samples.collect::<Result<Vec<Sample>, _>>() else { return };
    let mut appender = XorAppender::new();
    for sample in &samples {
        appender.append(sample.timestamp_ms, sample.value);
    }
    let again: Result<Vec<Sample>, _> = XorIter::new(appender.data()).expect("a header").collect();
    assert_eq!(again.as_ref(), Ok(&samples));
});
