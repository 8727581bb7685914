//! A chunk with start timestamps of any bytes gives values or an error. What decodes loses its
//! start timestamps and keeps its values; encoded again it has both.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidepool_engine::chunk::{
    Chunk, ChunkError, Encoding, StartedValue, encode_started, plain, started_values, values,
};
use tidepool_engine::model::Value;

type All = Result<Vec<StartedValue>, ChunkError>;

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, data) = input;
    let Some(encoding) = Encoding::try_from_u8(kind % 3 + 4) else { return };
    let chunk = Chunk { encoding, min_time_ms: 0, max_time_ms: 0, data: data.into() };
    let Ok(decoded) = started_values(&chunk).and_then(Iterator::collect::<All>) else { return };
    let without = plain(chunk).expect("what decodes loses its start timestamps");
    assert!(without.encoding.is_plain());
    let without: Result<Vec<(i64, Value)>, _> = values(&without).expect("a header").collect();
    let without = without.expect("sound values");
    assert_eq!(without.len(), decoded.len());
    for (started, (time_ms, value)) in decoded.iter().zip(&without) {
        assert_eq!(started.timestamp_ms, *time_ms);
        assert!(started.value.same_observations(value), "{:?} {value:?}", started.value);
    }
    // Those who append keep order.
    if !decoded.is_sorted_by(|a, b| a.timestamp_ms < b.timestamp_ms) {
        return;
    }
    let mut again = Vec::new();
    for chunk in encode_started(decoded.iter().cloned()).expect("values that fit") {
        again.extend(started_values(&chunk).expect("a header").collect::<All>().expect("sound"));
    }
    assert_eq!(again.len(), decoded.len());
    for (before, after) in decoded.iter().zip(&again) {
        let times = |value: &StartedValue| (value.timestamp_ms, value.start_ms);
        assert_eq!(times(before), times(after));
        assert!(before.value.same_observations(&after.value));
    }
});
