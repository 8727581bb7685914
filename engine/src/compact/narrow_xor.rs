//! XOR chunks with windows chosen so that the chunk is about as short as it can be.
//!
//! A window is a range of bits; values that differ from the value before only in these bits reuse
//! it. The layout is that of `chunk/xor`, so every reader can read the result. There, as in
//! Prometheus, an unusual value opens a wide window, which lengthens all later values. Here all
//! values are known, so they are divided into spans, each with its own smallest window:
//!
//! ```text
//! bits of a span of n differences with a window of w bits: 11 + n (2 + w)
//! ```
//!
//! The cheapest division is searched from left to right. At each difference the search keeps a few
//! open spans, which the next difference may extend: the cheapest so far, and one that begins at
//! this difference. The work does not depend on the values, so the loop over the open spans
//! compiles to vector instructions.

use crate::codec::{BitWriter, put_uvarint, put_varint};
use crate::model::Sample;

/// Bits that a new window needs beyond reusing the last window.
const WINDOW_BITS: u32 = 11;

/// Bits before a value's own bits in a reused window.
const PREFIX_BITS: u32 = 2;

/// Largest number of leading zeros, which is written in five bits.
const LEADING_ZEROS_MAX: u32 = 31;

/// Number of open spans, two vectors. With 32, blocks are some 0.1 % smaller; with 4, 0.2 % larger.
const OPEN_SPANS: usize = 8;

/// Longest value, in bits, that is written together with its prefix.
const VALUE_BITS_AT_ONCE: u32 = 61;

/// Largest number of bytes that one sample can need.
const SAMPLE_BYTES_MAX: usize = 20;

/// Zero bits before and after the differing bits.
#[derive(Clone, Copy)]
struct Window {
    leading_zeros: u32,
    trailing_zeros: u32,
}

/// Open spans; each array has one property of all spans.
struct OpenSpans {
    /// Number of the first difference of each span.
    from: [u32; OPEN_SPANS],
    /// Bits before each span, including those that open its window.
    base_bits: [u32; OPEN_SPANS],
    leading_zeros: [u32; OPEN_SPANS],
    trailing_zeros: [u32; OPEN_SPANS],
    /// Bits up to the end of each span, times [`OPEN_SPANS`], plus the index of the span. So the
    /// minimum and the maximum also contain the index of their span.
    costs: [u32; OPEN_SPANS],
}

/// An encoder of chunks that reuses its buffers.
#[derive(Default)]
pub(super) struct NarrowXor {
    /// XOR of each value with the value before, except zeros.
    differences: Vec<u64>,
    /// For each difference, the start of the last span of the cheapest division up to it.
    reached_from: Vec<u32>,
    /// Starts and windows of the chosen spans, last span first.
    spans: Vec<(u32, Window)>,
    bytes: Vec<u8>,
}

impl Window {
    /// Returns the smallest window that holds all of these bits.
    fn of(differences: u64) -> Window {
        Window {
            leading_zeros: differences.leading_zeros().min(LEADING_ZEROS_MAX),
            trailing_zeros: differences.trailing_zeros(),
        }
    }

    fn width(self) -> u32 {
        64 - self.leading_zeros - self.trailing_zeros
    }
}

impl OpenSpans {
    /// Returns open spans of which only the first is usable: it has no difference and no cost.
    fn new() -> OpenSpans {
        let mut costs = [Self::UNREACHED_BITS * OPEN_SPANS as u32; OPEN_SPANS];
        // Distinct costs, so that exactly one span has the maximum.
        (0..).zip(&mut costs).for_each(|(number, cost)| *cost += number);
        costs[0] = 0;
        let base_bits = [Self::UNREACHED_BITS; OPEN_SPANS];
        let (from, zeros) = ([0; OPEN_SPANS], [0; OPEN_SPANS]);
        OpenSpans { from, base_bits, leading_zeros: zeros, trailing_zeros: zeros, costs }
    }

    /// More bits than any division needs.
    const UNREACHED_BITS: u32 = 1 << 27;

    /// Adds a difference: a span that begins with it replaces the most expensive span, and the
    /// others are extended. Returns the start of the last span of the cheapest division so far.
    ///
    /// Each step is done for all spans and without branches, so that it compiles to vectors.
    #[inline]
    fn go_on(&mut self, place: u32, difference: u64) -> u32 {
        let Window { leading_zeros, trailing_zeros } = Window::of(difference);
        let width = 64 - leading_zeros - trailing_zeros;
        let dearest = self.costs.iter().copied().fold(0, u32::max);
        let cheapest = self.costs.iter().copied().fold(u32::MAX, u32::min);
        let new_base_bits = cheapest / OPEN_SPANS as u32 + WINDOW_BITS;
        for number in 0..OPEN_SPANS {
            let is_new = self.costs[number] == dearest;
            let leading_zeros_of = self.leading_zeros[number].min(leading_zeros);
            let trailing_zeros_of = self.trailing_zeros[number].min(trailing_zeros);
            let width_of = 64 - leading_zeros_of - trailing_zeros_of;
            let bits_of = (place + 1 - self.from[number]) * (PREFIX_BITS + width_of);
            let pick = |new: u32, of: u32| if is_new { new } else { of };
            let bits = pick(PREFIX_BITS + width, bits_of);
            self.from[number] = pick(place, self.from[number]);
            self.base_bits[number] = pick(new_base_bits, self.base_bits[number]);
            self.leading_zeros[number] = pick(leading_zeros, leading_zeros_of);
            self.trailing_zeros[number] = pick(trailing_zeros, trailing_zeros_of);
            // Cannot overflow: a chunk's 65,535 differences need less than 2^23 bits.
            self.costs[number] =
                (self.base_bits[number] + bits) * OPEN_SPANS as u32 + number as u32;
        }
        let cheapest = self.costs.iter().copied().fold(u32::MAX, u32::min);
        // The remainder of a cost is the index of its span.
        self.from[cheapest as usize % OPEN_SPANS]
    }
}

impl NarrowXor {
    /// Encodes a chunk of these samples: at least one, at most 65,535, ascending in time.
    pub(super) fn encode(&mut self, samples: &[Sample]) -> &[u8] {
        self.choose_windows(samples);
        let len = 2 + samples.len() * SAMPLE_BYTES_MAX + BitWriter::SPARE_BYTES;
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        // The writer needs zeros at its position, where the buffer has bytes of an earlier chunk.
        self.bytes.iter_mut().take(BitWriter::SPARE_BYTES).for_each(|byte| *byte = 0);
        let mut writer = BitWriter::resume(&mut self.bytes, 0);
        writer.put(samples.len() as u64 & 0xffff, 16);
        let mut next_span = self.spans.pop();
        // A placeholder, because the first difference begins a span and sets the window.
        let mut window = Window::of(u64::MAX);
        let (mut before, mut step_before_ms) = (Sample { timestamp_ms: 0, value: 0.0 }, 0);
        let mut place = 0;
        for (number, sample) in samples.iter().enumerate() {
            let step_ms = sample.timestamp_ms.wrapping_sub(before.timestamp_ms);
            let value = sample.value.to_bits();
            let difference = value ^ before.value.to_bits();
            let is_steady = number > 1 && step_ms == step_before_ms;
            // A repeated time step is one zero bit, written together with the value's bits.
            let time_bits = u32::from(is_steady);
            if !is_steady {
                put_time(&mut writer, number, step_ms, step_before_ms);
            }
            (before, step_before_ms) = (*sample, step_ms);
            if number == 0 {
                writer.put(value, 64);
                continue;
            }
            if difference == 0 {
                writer.put(0, time_bits + 1);
                continue;
            }
            if let Some((_, opened)) = next_span.take_if(|(from, _)| *from == place) {
                window = opened;
                next_span = self.spans.pop();
                // Six bits hold a width of 64 as 0, as in Prometheus' format.
                let head = u64::from(opened.leading_zeros) << 6 | u64::from(opened.width() & 63);
                writer.put(0b11 << 11 | head, time_bits + 13);
                writer.put(difference >> window.trailing_zeros, window.width());
            } else if window.width() <= VALUE_BITS_AT_ONCE {
                // 61 bits, the prefix and the bit of a steady step fit into one 64-bit write.
                let bits = 0b10 << window.width() | difference >> window.trailing_zeros;
                writer.put(bits, time_bits + PREFIX_BITS + window.width());
            } else {
                writer.put(0b10, time_bits + PREFIX_BITS);
                writer.put(difference >> window.trailing_zeros, window.width());
            }
            place += 1;
        }
        let len = writer.position_bits().div_ceil(8) as usize;
        self.bytes.get(..len).unwrap_or_default()
    }

    /// Divides the differences into spans.
    fn choose_windows(&mut self, samples: &[Sample]) {
        let NarrowXor { differences, reached_from, spans, .. } = self;
        differences.clear();
        differences.extend(samples.windows(2).filter_map(|two| match two {
            [a, b] => Some(a.value.to_bits() ^ b.value.to_bits()).filter(|bits| *bits != 0),
            _ => None,
        }));
        let mut open = OpenSpans::new();
        reached_from.clear();
        let numbered = (0u32..).zip(differences.iter());
        reached_from.extend(numbered.map(|(place, difference)| open.go_on(place, *difference)));
        spans.clear();
        // Backwards, since only the start of the last span is known for each difference.
        let mut end = differences.len();
        while end > 0 {
            let from = reached_from.get(end - 1).copied().unwrap_or(0);
            let span = differences.get(from as usize..end).unwrap_or_default();
            spans.push((from, Window::of(span.iter().fold(0, |bits, more| bits | more))));
            end = from as usize;
        }
    }
}

/// Writes the time of a sample: first time and first step as varints, then changes of the step.
fn put_time(writer: &mut BitWriter<'_>, number: usize, step_ms: i64, step_before_ms: i64) {
    let change_ms = step_ms.wrapping_sub(step_before_ms);
    let low = |bits: u32| change_ms as u64 & ((1 << bits) - 1);
    let mut bytes = Vec::new();
    // The ranges are those of Prometheus' `bitRange` (`tsdb/chunkenc/xor.go`).
    match (number, change_ms) {
        (0, _) => put_varint(&mut bytes, step_ms),
        (1, _) => put_uvarint(&mut bytes, step_ms as u64),
        (_, 0) => writer.put(0, 1),
        (_, -8191..=8192) => writer.put(0b10 << 14 | low(14), 16),
        (_, -65535..=65536) => writer.put(0b110 << 17 | low(17), 20),
        (_, -524_287..=524_288) => writer.put(0b1110 << 20 | low(20), 24),
        _ => {
            writer.put(0b1111, 4);
            writer.put(change_ms as u64, 64);
        }
    }
    bytes.into_iter().for_each(|byte| writer.put(u64::from(byte), 8));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{XorAppender, XorIter};
    use proptest::prelude::*;

    fn round_trip(samples: &[Sample]) -> Option<usize> {
        let mut narrow = NarrowXor::default();
        // Memory that was used before leaves no trace.
        narrow.encode(&[Sample { timestamp_ms: i64::MIN, value: f64::NAN }; 9]);
        let bytes = narrow.encode(samples).to_vec();
        let read: Result<Vec<Sample>, _> = XorIter::new(&bytes).ok()?.collect();
        assert_eq!(read.as_deref(), Ok(samples));
        let mut appender = XorAppender::new();
        samples.iter().for_each(|sample| appender.append(sample.timestamp_ms, sample.value));
        assert!(bytes.len() <= appender.data().len(), "{} bytes", bytes.len());
        Some(bytes.len())
    }

    /// Values that repeat, walk, jump, or are arbitrary.
    fn any_value() -> impl Strategy<Value = f64> {
        prop_oneof![
            Just(1.0),
            (0u32..1000).prop_map(f64::from),
            (0u32..1000).prop_map(|n| f64::from(n) / 8.0),
            any::<u64>().prop_map(f64::from_bits),
        ]
    }

    fn any_step() -> impl Strategy<Value = i64> {
        prop_oneof![Just(15_000), 14_000i64..16_000, 1i64..1 << 21, 1i64..1 << 45]
    }

    proptest! {
        #[test]
        fn samples_come_back_and_take_no_more_than_upstreams(
            start_ms in any::<i32>(),
            rows in prop::collection::vec((any_step(), any_value()), 1..300),
        ) {
            let mut timestamp_ms = i64::from(start_ms);
            let sample = |(step_ms, value)| {
                timestamp_ms += step_ms;
                Sample { timestamp_ms, value }
            };
            let samples: Vec<Sample> = rows.into_iter().map(sample).collect();
            prop_assert!(round_trip(&samples).is_some());
        }
    }

    /// One wide difference between many narrow ones: Prometheus' encoder stays wide.
    #[test]
    fn a_window_is_not_kept_open_for_one_value() {
        let value = |i: i64| if i == 5 { 1.0 / 3.0 } else { (i % 2) as f64 };
        let samples: Vec<Sample> =
            (0..120).map(|i| Sample { timestamp_ms: i * 15_000, value: value(i) }).collect();
        let mut appender = XorAppender::new();
        samples.iter().for_each(|sample| appender.append(sample.timestamp_ms, sample.value));
        assert!(appender.data().len() > 800);
        assert!(round_trip(&samples).is_some_and(|bytes| bytes < 250));
    }
}
