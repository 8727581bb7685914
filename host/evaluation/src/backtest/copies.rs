//! Copies of stored series, with their staleness markers, as write requests.

use std::collections::HashMap;
use tidepool_runtime::{FrameFormat, Instance, Matcher, Selection, TimeRange};
use tidepool_store::StoreError;

/// Size of a part of an answer.
const PART_BYTES: u32 = 256 * 1024;

/// Size of a write request after which the next one begins.
const REQUEST_BYTES: usize = 1024 * 1024;

/// Times of which series were copied, by their matchers.
#[derive(Default)]
pub struct Copies(HashMap<String, (i64, i64)>);

impl Copies {
    /// Returns what is still to be copied of a range, and takes it for copied. The range has to
    /// reach to the one before.
    pub fn missing(&mut self, matchers: &[Matcher], start_ms: i64, end_ms: i64) -> Vec<TimeRange> {
        let range = |start_ms: i64, end_ms: i64| TimeRange { start_ms, end_ms };
        let known = self.0.get_mut(&format!("{matchers:?}"));
        let Some((first_ms, last_ms)) = known else {
            self.0.insert(format!("{matchers:?}"), (start_ms, end_ms));
            return vec![range(start_ms, end_ms)];
        };
        let mut missing = Vec::new();
        if start_ms < *first_ms {
            missing.push(range(start_ms, first_ms.saturating_sub(1)));
            *first_ms = start_ms;
        }
        if end_ms > *last_ms {
            missing.push(range(last_ms.saturating_add(1), end_ms));
            *last_ms = end_ms;
        }
        missing
    }
}

/// Selects samples, and hands them over as write requests of version 1. An answer of remote read
/// and such a request have the same fields (`prometheus.QueryResult` and `prometheus.WriteRequest`,
/// field 1). A series may take `bytes_max`.
pub fn copied(
    instance: &mut Instance,
    matchers: &[Matcher],
    range: TimeRange,
    bytes_max: usize,
    mut hand_over: impl FnMut(&[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let selection = Selection {
        matchers: matchers.to_vec(),
        range,
        format: FrameFormat::Samples,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external_labels: Vec::new(),
    };
    let cursor = instance.select(&selection)?;
    let (mut bytes, mut whole) = (Vec::new(), 0);
    loop {
        let part = instance.next_frames(cursor, PART_BYTES)?;
        let is_end = part.is_empty();
        bytes.extend(part);
        // A long series continues in the next part.
        while let Some(length) = bytes.get(whole..).and_then(field_length)
            && whole + length <= bytes.len()
        {
            whole += length;
        }
        if whole >= REQUEST_BYTES || is_end && whole > 0 {
            hand_over(&bytes[..whole])?;
            bytes.drain(..whole);
            whole = 0;
        }
        if is_end {
            return Ok(instance.close_cursor(cursor)?);
        }
        if bytes.len() - whole > bytes_max {
            return Err(StoreError::NeedsTooMuchMemory);
        }
    }
}

/// Returns the length of a field with its tag of one byte and its length.
fn field_length(bytes: &[u8]) -> Option<usize> {
    let (mut length, mut shift) = (0usize, 0);
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        length |= usize::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return length.checked_add(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_copied() {
        let mut copies = Copies::default();
        let mut missing = |start_ms, end_ms| -> Vec<(i64, i64)> {
            let found = copies.missing(&[], start_ms, end_ms).into_iter();
            found.map(|range| (range.start_ms, range.end_ms)).collect()
        };
        assert_eq!(missing(10, 20), [(10, 20)]);
        assert_eq!(missing(12, 30), [(21, 30)]);
        assert_eq!(missing(5, 40), [(5, 9), (31, 40)]);
        assert_eq!(missing(5, 40), []);
    }

    /// Lengths by protobuf's encoding of fields.
    #[test]
    fn fields_are_measured() {
        assert_eq!(field_length(&[]), None);
        assert_eq!(field_length(&[0x0a]), None);
        assert_eq!(field_length(&[0x0a, 0x00]), Some(2));
        assert_eq!(field_length(&[0x0a, 0x05, 1, 2]), Some(7));
        assert_eq!(field_length(&[0x0a, 0xac]), None);
        assert_eq!(field_length(&[0x0a, 0xac, 0x02]), Some(303));
    }
}
