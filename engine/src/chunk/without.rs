//! Removes deleted time ranges from a chunk.

use super::xor_iter::before;
use super::{Chunk, ChunkError, Encoding, StartedValue, encode_started, started_values};
use crate::model::TimeRange;

/// Returns the values of a chunk outside deleted ranges; shares its bytes if no range overlaps.
pub fn without(chunk: &Chunk, deleted: &[TimeRange]) -> Result<Vec<Chunk>, ChunkError> {
    let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
    if !deleted.iter().any(|range| range.overlaps(&span)) {
        return Ok(vec![chunk.clone()]);
    }
    if deleted.iter().any(|range| range.covers(&span)) {
        return Ok(Vec::new());
    }
    // Reads hide samples in this way that were appended after they began; nothing is re-encoded.
    if let [TimeRange { start_ms, end_ms }] = *deleted
        && end_ms >= chunk.max_time_ms
        && chunk.encoding == Encoding::Xor
    {
        return Ok(before(chunk, start_ms)?.into_iter().collect());
    }
    let mut kept = Vec::new();
    let mut follows_gap = false;
    for next in started_values(chunk)? {
        let StartedValue { timestamp_ms, start_ms, value } = next?;
        if deleted.iter().any(|range| range.contains(timestamp_ms)) {
            follows_gap = true;
            continue;
        }
        // A reset hint refers to the previous histogram, so it is not valid after a gap.
        let value = if follows_gap { value.without_reset_hint() } else { value };
        follows_gap = false;
        kept.push(StartedValue { timestamp_ms, start_ms, value });
    }
    encode_started(kept.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::encode;
    use crate::model::Value;
    use proptest::prelude::*;

    fn chunk(times_ms: impl Iterator<Item = i64>) -> Vec<Chunk> {
        encode(times_ms.map(|time_ms| (time_ms, Value::Float(time_ms as f64))))
    }

    #[test]
    fn what_lies_in_a_span_goes_and_the_rest_stays() -> Result<(), ChunkError> {
        let all = chunk(0..10);
        let range = |start_ms, end_ms| TimeRange { start_ms, end_ms };
        let kept = |deleted: &[TimeRange]| without(&all[0], deleted);
        assert_eq!(kept(&[])?, all);
        assert_eq!(kept(&[range(-5, -1), range(10, i64::MAX)])?, all);
        assert_eq!(kept(&[range(0, 9)])?, []);
        assert_eq!(kept(&[range(0, 4), range(5, 9)])?, []);
        let expected = chunk([0, 1, 5, 9].into_iter());
        assert_eq!(kept(&[range(2, 4), range(6, 8)])?, expected);
        Ok(())
    }

    proptest! {
        /// Removing the end leaves the same bytes as encoding the remaining samples.
        #[test]
        fn an_end_that_goes_leaves_what_would_be_encoded(
            samples in proptest::collection::vec((1i64..100_000, any::<u64>(), 0u32..64), 2..=120),
            part in 0.0..1.0,
        ) {
            let mut time_ms = -50_000;
            let samples: Vec<_> = samples
                .into_iter()
                .map(|(step_ms, bits, zeros)| {
                    time_ms += step_ms;
                    (time_ms, Value::Float(f64::from_bits(bits >> zeros << (zeros / 2))))
                })
                .collect();
            let kept = (samples.len() as f64 * part) as usize;
            let whole = encode(samples.iter().cloned()).remove(0);
            let gone = TimeRange { start_ms: samples[kept].0, end_ms: i64::MAX };
            let (rest, expected) = (without(&whole, &[gone])?, encode(samples.into_iter().take(kept)));
            prop_assert_eq!(rest, expected);
        }

        #[test]
        fn hostile_bytes_are_cut_or_refused(
            data in proptest::collection::vec(any::<u8>(), 0..80),
            start_ms: i64,
        ) {
            let data = data.into();
            let (encoding, min_time_ms, max_time_ms) = (Encoding::Xor, 0, i64::MAX);
            let chunk = Chunk { encoding, min_time_ms, max_time_ms, data };
            if let Ok(Some(kept)) = before(&chunk, start_ms) {
                prop_assert!(kept.max_time_ms < start_ms);
                prop_assert!(crate::chunk::samples(&kept)?.all(|sample| sample.is_ok()));
            }
        }
    }
}
