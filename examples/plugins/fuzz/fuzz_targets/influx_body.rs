//! Any body and query give samples or a refusal, and columns that fit together.
#![no_main]

use influx_line::InfluxLine;
use libfuzzer_sys::fuzz_target;
use tidepool_plugin::decoder::{Guest as _, Request};

// Plugins are libraries for WebAssembly, which nothing here can depend on.
#[path = "../../influx-line/src/lib.rs"]
mod influx_line;

fuzz_target!(|input: (&str, &[u8])| {
    let (query, body) = input;
    let request = Request {
        content_type: String::new(),
        path: "/write".to_owned(),
        query: query.to_owned(),
        received_ms: 1_700_000_000_000,
        body: body.to_vec(),
    };
    let Ok(decoded) = InfluxLine::decode(request) else { return };
    let batch = decoded.batch;
    let series = batch.series_ends.len() as u32;
    assert!(batch.samples.series.iter().all(|place| *place < series));
    assert_eq!(batch.samples.series.len(), batch.samples.values.len());
    assert_eq!(batch.samples.series.len(), batch.samples.timestamps_ms.len());
    assert!(batch.samples.values.iter().all(|value| value.is_finite()));
    assert!(batch.symbol_ends.is_sorted() && batch.series_ends.is_sorted());
});
