//! Decodes a whole XOR chunk at once. Faster than the iterator, as the state stays in registers and
//! most samples need one load. Chunks that do not decode are left to the iterator, for its error.

use super::XorIter;
use crate::chunk::ChunkError;
use crate::model::TimeRange;

/// Smallest number of valid bits that [`load`] returns, at any bit position.
const LOAD_BITS: u32 = 57;

/// Most bits before those of a value: one of the time, 13 of prefix and window.
const HEAD_BITS_MAX: u32 = 1 + 13;

/// Appends the samples of an XOR chunk in a range, or all, each converted by `make` from its time
/// in milliseconds and its value. Samples before an error are appended; samples after the range are
/// not read.
pub fn read_floats<T: Copy>(
    data: &[u8],
    range: Option<TimeRange>,
    make: impl Fn(i64, f64) -> T,
    out: &mut Vec<T>,
) -> Result<(), ChunkError> {
    let begin = out.len();
    let mut samples = XorIter::new(data)?;
    // The first two samples have layouts of their own, which `Rest` does not decode.
    one_by_one(samples.by_ref().take(2), range, &make, out)?;
    let left = usize::from(samples.count - samples.next);
    let rest = Rest::of(&samples, data);
    // A sample has at least two bits, so a count above that is false.
    if left > rest.left_bits() / 2 {
        return one_by_one(samples, range, &make, out);
    }
    let kept = out.len();
    // Slots instead of `push`, which would check the capacity for each sample.
    out.resize(kept + left, make(0, 0.0));
    let slots = out.get_mut(kept..).unwrap_or_default();
    let found = match range {
        None => {
            rest.read::<T, true>(TimeRange { start_ms: i64::MIN, end_ms: i64::MAX }, &make, slots)
        }
        Some(range) => rest.read::<T, false>(range, &make, slots),
    };
    match found {
        Some(found) => {
            out.truncate(kept + found);
            Ok(())
        }
        None => {
            // The iterator finds the same fault and appends the samples before it.
            out.truncate(begin);
            one_by_one(XorIter::new(data)?, range, &make, out)
        }
    }
}

fn one_by_one<T>(
    samples: impl Iterator<Item = Result<crate::model::Sample, ChunkError>>,
    range: Option<TimeRange>,
    make: impl Fn(i64, f64) -> T,
    out: &mut Vec<T>,
) -> Result<(), ChunkError> {
    for sample in samples {
        let sample = sample?;
        if range.is_none_or(|range| range.contains(sample.timestamp_ms)) {
            out.push(make(sample.timestamp_ms, sample.value));
        }
    }
    Ok(())
}

/// Decoder of the samples after a chunk's first two.
struct Rest<'a> {
    data: &'a [u8],
    /// Position of the next bit.
    at: usize,
    time_ms: i64,
    step_ms: u64,
    value_bits: u64,
    /// Window of value bits: the zeros before it, and its width.
    leading_zeros: u32,
    width: u32,
}

impl<'a> Rest<'a> {
    fn of(samples: &XorIter<'_>, data: &'a [u8]) -> Rest<'a> {
        Rest {
            data,
            at: 8 * data.len() - samples.left_bits(),
            time_ms: samples.timestamp_ms,
            step_ms: samples.step_ms,
            value_bits: samples.value_bits,
            leading_zeros: samples.leading_zeros.into(),
            width: samples.value_width.into(),
        }
    }

    fn left_bits(&self) -> usize {
        8 * self.data.len() - self.at
    }

    /// Reads a sample for each slot, or up to the end of the range, and writes the samples in the
    /// range (all if `ALL`) into the first slots. Returns how many were written; `None` if a sample
    /// does not decode. Not inlined: the state between two samples just fits into the registers.
    #[inline(never)]
    fn read<T, const ALL: bool>(
        self,
        range: TimeRange,
        make: &impl Fn(i64, f64) -> T,
        slots: &mut [T],
    ) -> Option<usize> {
        let Rest { data, mut at, mut time_ms, mut step_ms, mut value_bits, .. } = self;
        let Rest { mut leading_zeros, mut width, .. } = self;
        let (count, mut found) = (slots.len(), 0);
        let mut slots = slots.iter_mut();
        for _ in 0..count {
            let mut window = load(data, at);
            if window >> 63 == 0 {
                window <<= 1;
                at += 1;
            } else {
                let (change_ms, bits) = step_change(data, at, window);
                step_ms = step_ms.wrapping_add(change_ms as u64);
                at += bits;
                window = load(data, at);
            }
            time_ms = time_ms.wrapping_add(step_ms as i64);
            if window >> 63 == 0 {
                at += 1;
            } else {
                let mut head = 2;
                if window >> 62 == 0b11 {
                    head = HEAD_BITS_MAX - 1;
                    leading_zeros = (window >> 57) as u32 & 31;
                    width = (window >> 51) as u32 & 63;
                    if width == 0 {
                        width = 64;
                    }
                    if leading_zeros + width > 64 {
                        return None;
                    }
                }
                // The rest of the load has all bits of a narrow value; a wide one is loaded.
                window = match width <= LOAD_BITS - HEAD_BITS_MAX {
                    true => window << head,
                    false => load_wide(data, at + head as usize),
                };
                at += (head + width) as usize;
                value_bits ^= window >> (64 - width) << (64 - width - leading_zeros);
            }
            if !ALL {
                if time_ms > range.end_ms {
                    // Samples ascend in time, so none after this one is in the range.
                    break;
                }
                if time_ms < range.start_ms {
                    continue;
                }
            }
            if let Some(slot) = slots.next() {
                *slot = make(time_ms, f64::from_bits(value_bits));
            }
            found += usize::from(!ALL);
        }
        let found = if ALL { count } else { found };
        // Zeros after the end decode as samples, so the position is checked once at the end.
        (at <= 8 * data.len()).then_some(found)
    }
}

/// Returns at least [`LOAD_BITS`] bits from `at` on, topmost first, with zeros after the end.
#[inline]
fn load(data: &[u8], at: usize) -> u64 {
    match data.get(at / 8..at / 8 + 8).and_then(<[u8]>::first_chunk::<8>) {
        Some(bytes) => u64::from_be_bytes(*bytes) << (at % 8),
        None => load_at_end(data, at),
    }
}

#[cold]
fn load_at_end(data: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    let rest = data.get(at / 8..).unwrap_or_default();
    bytes.iter_mut().zip(rest).for_each(|(byte, rest)| *byte = *rest);
    u64::from_be_bytes(bytes) << (at % 8)
}

/// Like [`load`], but all 64 bits are valid.
#[inline]
fn load_wide(data: &[u8], at: usize) -> u64 {
    load(data, at) & (u64::MAX << 32) | load(data, at + 32) >> 32
}

/// Decodes a change of the step that begins with a one; returns it and its number of bits.
#[inline]
fn step_change(data: &[u8], at: usize, window: u64) -> (i64, usize) {
    let (prefix, width) = match window.leading_ones() {
        1 => (2, 14),
        2 => (3, 17),
        3 => (4, 20),
        _ => return (load_wide(data, at + 4) as i64, 68),
    };
    let bits = window << prefix >> (64 - width);
    // Unlike in two's complement, the topmost bit alone is the largest positive number.
    let is_negative = bits > 1 << (width - 1);
    (bits as i64 - (i64::from(is_negative) << width), prefix + width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::XorAppender;
    use proptest::prelude::*;

    /// Returns the samples and the error that the iterator gives for a range.
    fn expected(
        data: &[u8],
        range: Option<TimeRange>,
    ) -> (Vec<(i64, u64)>, Result<(), ChunkError>) {
        let mut out = Vec::new();
        let read = XorIter::new(data).and_then(|samples| {
            one_by_one(samples, range, |time_ms, value| (time_ms, value.to_bits()), &mut out)
        });
        (out, read)
    }

    fn found(data: &[u8], range: Option<TimeRange>) -> (Vec<(i64, u64)>, Result<(), ChunkError>) {
        let mut out = Vec::new();
        let read = read_floats(data, range, |time_ms, value| (time_ms, value.to_bits()), &mut out);
        (out, read)
    }

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            any::<i32>().prop_map(f64::from),
            (0..4u8).prop_map(f64::from),
        ]
    }

    proptest! {
        #[test]
        fn samples_in_a_range_are_those_of_the_iterator(
            first_ms in -1_000_000..1_000_000i64,
            samples in prop::collection::vec((prop_oneof![Just(15u64), 1..40_000_000u64], value()), 0..200),
            start in 0..200usize,
            end in 0..200usize,
        ) {
            let mut appender = XorAppender::new();
            let (mut time_ms, mut times) = (first_ms, vec![first_ms]);
            for (step_ms, value) in samples {
                appender.append(time_ms, value);
                time_ms += step_ms as i64;
                times.push(time_ms);
            }
            let data = appender.to_chunk().map_or(vec![0, 0], |chunk| chunk.data.to_vec());
            let time = |at: usize| times[at.min(times.len() - 1)];
            let range = TimeRange { start_ms: time(start), end_ms: time(end) };
            for range in [None, Some(range)] {
                prop_assert_eq!(found(&data, range), expected(&data, range));
            }
        }

        #[test]
        fn any_bytes_give_what_the_iterator_gives(
            mut data: Vec<u8>,
            count in 0..300u16,
        ) {
            if let Some(header) = data.first_chunk_mut::<2>() {
                *header = count.to_be_bytes();
            }
            prop_assert_eq!(found(&data, None), expected(&data, None));
        }

        #[test]
        fn a_chunk_that_is_cut_short_gives_what_the_iterator_gives(
            values in prop::collection::vec(value(), 1..100),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut appender = XorAppender::new();
            for (number, value) in values.iter().enumerate() {
                appender.append(number as i64 * 15_000, *value);
            }
            let data = appender.to_chunk().map_or(vec![0, 0], |chunk| chunk.data.to_vec());
            let data = &data[..cut.index(data.len())];
            prop_assert_eq!(found(data, None), expected(data, None));
        }
    }
}
