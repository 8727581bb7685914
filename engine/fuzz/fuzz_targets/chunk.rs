//! A chunk of any bytes and kind returns values or an error, and what decodes without one encodes
//! to chunks that decode to the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidepool_engine::chunk::{ChunkError, Encoding, encode, values, values_of};
use tidepool_engine::model::Value;

type Values = Result<Vec<(i64, Value)>, ChunkError>;

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, data) = input;
    let Some(encoding) = Encoding::try_from_u8(kind % 6 + 1) else { return };
    let Ok(decoded) = values_of(encoding, data) else { return };
    let Ok(decoded) = decoded.collect::<Values>() else { return };
    // Those who append keep order.
    if !decoded.is_sorted_by(|a, b| a.0 < b.0) {
        return;
    }
    let mut again = Vec::new();
    for chunk in encode(decoded.iter().cloned()) {
        again.extend(values(&chunk).expect("a header").collect::<Values>().expect("sound values"));
    }
    assert_eq!(again.len(), decoded.len());
    for ((time, value), (time_again, value_again)) in decoded.iter().zip(&again) {
        assert_eq!(time, time_again);
        assert!(value.same_observations(value_again), "{value:?} {value_again:?}");
    }
});
