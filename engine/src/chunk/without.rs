//! A chunk without some of its values.

use super::{Chunk, ChunkError, encode, values};
use crate::model::TimeRange;

/// The values of a chunk that lie in none of these spans of time, as chunks. One that is not
/// touched stays as it is.
pub fn without(chunk: &Chunk, deleted: &[TimeRange]) -> Result<Vec<Chunk>, ChunkError> {
    let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
    if !deleted.iter().any(|range| range.overlaps(&span)) {
        return Ok(vec![chunk.clone()]);
    }
    if deleted.iter().any(|range| range.covers(&span)) {
        return Ok(Vec::new());
    }
    let mut kept = Vec::new();
    let mut follows_gap = false;
    for next in values(chunk)? {
        let (time_ms, value) = next?;
        if deleted.iter().any(|range| range.contains(time_ms)) {
            follows_gap = true;
            continue;
        }
        // What a histogram says of the one before it does not hold for an earlier one.
        let value = if follows_gap { value.without_reset_hint() } else { value };
        follows_gap = false;
        kept.push((time_ms, value));
    }
    Ok(encode(kept.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

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
}
