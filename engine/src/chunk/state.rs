//! State of an appender of any encoding, from which a later process can continue the chunk.

use super::{Encoding, HistogramAppender, ValueAppender, XorAppender};

impl ValueAppender {
    /// Appends the complete state of the appender.
    pub fn put_state(&self, out: &mut Vec<u8>) {
        // The bytes of a histogram chunk imply its appender's state; those of an XOR chunk do not.
        let data = match self {
            ValueAppender::Float(appender) => return appender.put_state(out),
            ValueAppender::Histogram(appender) => appender.data(),
            ValueAppender::FloatHistogram(appender) => appender.data(),
        };
        out.extend_from_slice(&(data.len() as u32).to_le_bytes());
        out.extend_from_slice(data);
    }

    /// Takes a state of this encoding off the front; `None` if no appender can have this state.
    #[inline]
    pub fn split_state(encoding: Encoding, bytes: &[u8]) -> Option<(ValueAppender, &[u8])> {
        if encoding == Encoding::Xor {
            let (appender, rest) = XorAppender::split_state(bytes)?;
            return Some((ValueAppender::Float(appender), rest));
        }
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (data, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        let appender = match encoding {
            Encoding::FloatHistogram => {
                ValueAppender::FloatHistogram(Box::new(HistogramAppender::resume(data)?))
            }
            Encoding::Histogram => {
                ValueAppender::Histogram(Box::new(HistogramAppender::resume(data)?))
            }
            // Encodings that no appender makes.
            Encoding::Xor | Encoding::Xor2 => return None,
            Encoding::HistogramSt | Encoding::FloatHistogramSt => return None,
        };
        Some((appender, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;
    use crate::model::histogram::testing::any_histogram;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            (0u64..3).prop_map(|bits| f64::from_bits(bits).into()),
            any::<u64>().prop_map(|bits| f64::from_bits(bits).into()),
            any_histogram::<u64>().prop_map(Value::from),
            any_histogram::<f64>().prop_map(Value::from),
        ]
    }

    proptest! {
        /// An appender rebuilt from its state after each value makes the same chunks.
        #[test]
        fn a_chunk_goes_on_where_it_was(
            rows in prop::collection::vec((value(), 1i64..9, 1usize..30), 1..40),
        ) {
            let mut time_ms = 0;
            let mut both: Option<(ValueAppender, ValueAppender)> = None;
            for (value, step_ms, times) in rows {
                for _ in 0..times {
                    time_ms += step_ms;
                    both = Some(match both.take() {
                        None => {
                            let new = || ValueAppender::new(time_ms, &value, None);
                            (new(), new())
                        }
                        Some((mut kept, mut resumed)) => {
                            let next = (kept.append(time_ms, &value), resumed.append(time_ms, &value));
                            match next {
                                (Some(kept), Some(resumed)) => (kept, resumed),
                                (kept_next, resumed_next) => {
                                    prop_assert!(kept_next.is_none() && resumed_next.is_none());
                                    (kept, resumed)
                                }
                            }
                        }
                    });
                    let Some((kept, resumed)) = &mut both else { continue };
                    let mut state = Vec::new();
                    resumed.put_state(&mut state);
                    state.push(7);
                    let taken = ValueAppender::split_state(resumed.encoding(), &state);
                    let Some((taken, rest)) = taken else {
                        return Err(TestCaseError::fail("the state is not understood"));
                    };
                    prop_assert_eq!(rest, [7]);
                    *resumed = taken;
                    prop_assert_eq!(kept.to_chunk(), resumed.to_chunk());
                    prop_assert_eq!(kept.first_timestamp_ms(), resumed.first_timestamp_ms());
                    prop_assert_eq!(kept.last_timestamp_ms(), resumed.last_timestamp_ms());
                }
            }
        }

        #[test]
        fn any_state_is_survived(
            bytes: Vec<u8>,
            value in value(),
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let appender = ValueAppender::new(5, &value, None);
            let mut state = Vec::new();
            appender.put_state(&mut state);
            for (place, byte) in flips {
                let place = place.index(state.len());
                state[place] = byte;
            }
            for bytes in [bytes, state] {
                for encoding in [Encoding::Xor, Encoding::Histogram, Encoding::FloatHistogram] {
                    let taken = ValueAppender::split_state(encoding, &bytes);
                    let Some((mut taken, _)) = taken else { continue };
                    for time_ms in 6..200 {
                        taken = match taken.is_full() {
                            true => ValueAppender::new(time_ms, &value, Some(&taken)),
                            false => taken.append(time_ms, &value).unwrap_or(taken),
                        };
                        let _ = taken.to_chunk();
                    }
                }
            }
        }
    }
}
