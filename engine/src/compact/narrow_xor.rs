//! XOR chunks with the windows chosen so that the chunk is about as short as it can be.
//!
//! The layout is that of `chunk/xor.rs`; every reader takes what is written here. There, a value's
//! differing bits go into the window that is open if they fit, as upstream does, which knows only
//! the past: one unusual value opens a wide window that all later ones then pay for. Here all
//! values are known, so the run of differences is cut into spans, each with the smallest window
//! that holds all of its own:
//!
//! ```text
//! bits of a span of n differences with a window of w bits: 11 + n (2 + w)
//! ```
//!
//! The cheapest cut is found by going from left to right, keeping the cheapest way to each place
//! and the spans that may still become part of the answer. A span is given up when it is 11 bits
//! dearer than the best way to its end, since a new one from there never does worse; when a later
//! one has the same window and is no dearer; and, so that work is bounded, when it is the dearest
//! of too many.

use crate::codec::{BitWriter, put_uvarint, put_varint};
use crate::model::Sample;

/// Bits that a new window costs beyond one that goes on.
const WINDOW_BITS: u32 = 11;

/// Bits before a value's own in a window that goes on.
const PREFIX_BITS: u32 = 2;

/// Largest count of leading zeros that the five bits for it can say.
const LEADING_ZEROS_MAX: u32 = 31;

/// Spans that are kept open at a time. With 32 of them, bytes kept are fewer by some 0.2 % and a
/// merge takes a third more CPU time.
const OPEN_SPANS_MAX: usize = 3;

/// Most bytes that one sample can need.
const SAMPLE_BYTES_MAX: usize = 20;

/// Zero bits before and after the bits that differ.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Window {
    leading_zeros: u32,
    trailing_zeros: u32,
}

/// The cheapest way to a place between two differences.
struct Reached {
    bits: u32,
    /// Where its last span begins.
    from: usize,
}

/// A span that can go on.
struct Span {
    from: usize,
    count: u32,
    /// All until here, and what was before it.
    bits: u32,
    base: u32,
    window: Window,
}

/// Compresses runs of samples; kept for its memory.
#[derive(Default)]
pub(super) struct NarrowXor {
    /// Of each value that differs from the one before.
    windows: Vec<Window>,
    /// How to come to the end of each.
    reached: Vec<Reached>,
    open: Vec<Span>,
    /// Where spans begin, and their windows, last one first.
    spans: Vec<(usize, Window)>,
    bytes: Vec<u8>,
}

impl Window {
    fn of(difference: u64) -> Window {
        Window {
            leading_zeros: difference.leading_zeros().min(LEADING_ZEROS_MAX),
            trailing_zeros: difference.trailing_zeros(),
        }
    }

    fn around(self, other: Window) -> Window {
        Window {
            leading_zeros: self.leading_zeros.min(other.leading_zeros),
            trailing_zeros: self.trailing_zeros.min(other.trailing_zeros),
        }
    }

    fn width(self) -> u32 {
        64 - self.leading_zeros - self.trailing_zeros
    }
}

impl NarrowXor {
    /// The data of a chunk of these samples: at least one, at most 65,535, ascending in time.
    pub(super) fn encode(&mut self, samples: &[Sample]) -> &[u8] {
        self.choose_windows(samples);
        let len = 2 + samples.len() * SAMPLE_BYTES_MAX + BitWriter::SPARE_BYTES;
        self.bytes.clear();
        self.bytes.resize(len, 0);
        let mut writer = BitWriter::resume(&mut self.bytes, 0);
        writer.put(samples.len() as u64 & 0xffff, 16);
        let (mut before, mut step_before_ms) = (Sample { timestamp_ms: 0, value: 0.0 }, 0);
        let (mut window, mut difference_number) = (None, 0);
        for (place, sample) in samples.iter().enumerate() {
            let step_ms = sample.timestamp_ms.wrapping_sub(before.timestamp_ms);
            put_time(&mut writer, place, step_ms, step_before_ms);
            let value = sample.value.to_bits();
            let difference = value ^ before.value.to_bits();
            if place == 0 {
                writer.put(value, 64);
            } else if difference == 0 {
                writer.put(0, 1);
            } else {
                let opens = self.spans.pop_if(|(from, _)| *from == difference_number);
                difference_number += 1;
                if let Some((_, opened)) = opens {
                    let head =
                        u64::from(opened.leading_zeros) << 6 | u64::from(opened.width() & 63);
                    writer.put(0b11 << 11 | head, 13);
                    window = Some(opened);
                } else {
                    writer.put(0b10, PREFIX_BITS);
                }
                let Window { trailing_zeros, .. } = window.unwrap_or(Window::of(difference));
                let width = window.unwrap_or(Window::of(difference)).width();
                writer.put(difference >> trailing_zeros, width);
            }
            (before, step_before_ms) = (*sample, step_ms);
        }
        let len = writer.position_bits().div_ceil(8) as usize;
        self.bytes.get(..len).unwrap_or_default()
    }

    /// Cuts the differences into spans.
    fn choose_windows(&mut self, samples: &[Sample]) {
        let NarrowXor { windows, reached, open, spans, .. } = self;
        let differences = samples.windows(2).map(|two| match two {
            [a, b] => a.value.to_bits() ^ b.value.to_bits(),
            _ => 0,
        });
        windows.clear();
        windows.extend(differences.filter(|difference| *difference != 0).map(Window::of));
        reached.clear();
        open.clear();
        let mut bits_before = 0;
        for (place, window) in windows.iter().enumerate() {
            open.push(Span { from: place, count: 0, bits: 0, base: bits_before, window: *window });
            let mut best = Reached { bits: u32::MAX, from: 0 };
            for span in open.iter_mut() {
                span.window = span.window.around(*window);
                span.count += 1;
                span.bits =
                    span.base + WINDOW_BITS + span.count * (PREFIX_BITS + span.window.width());
                if span.bits < best.bits {
                    best = Reached { bits: span.bits, from: span.from };
                }
            }
            let bits_best = best.bits;
            reached.push(best);
            give_up(open, bits_best + WINDOW_BITS);
            bits_before = bits_best;
        }
        spans.clear();
        let mut end = windows.len();
        while end > 0 {
            let from = reached.get(end - 1).map_or(0, |place| place.from);
            let span = windows.get(from..end).unwrap_or_default();
            spans.extend(span.iter().copied().reduce(Window::around).map(|window| (from, window)));
            end = from;
        }
    }
}

/// Drops spans that cannot be part of the answer, of which each began before the next.
fn give_up(open: &mut Vec<Span>, bits_max: u32) {
    let mut kept: usize = 0;
    for next in 0..open.len() {
        let Some(span) = open.get(next) else { break };
        if span.bits >= bits_max {
            continue;
        }
        let (bits, window) = (span.bits, span.window);
        // Windows of spans that began earlier are as wide or wider, so equal ones are neighbours.
        while let Some(before) = kept.checked_sub(1).and_then(|last| open.get(last))
            && before.window == window
            && before.bits >= bits
        {
            kept -= 1;
        }
        open.swap(kept, next);
        kept += 1;
    }
    open.truncate(kept);
    if open.len() > OPEN_SPANS_MAX
        && let Some((dearest, _)) = open.iter().enumerate().max_by_key(|(_, span)| span.bits)
    {
        open.remove(dearest);
    }
}

/// Writes a sample's time: the first and its distance to the second as whole bytes, then how much
/// the step changes.
fn put_time(writer: &mut BitWriter<'_>, place: usize, step_ms: i64, step_before_ms: i64) {
    let change_ms = step_ms.wrapping_sub(step_before_ms);
    let low = |bits: u32| change_ms as u64 & ((1 << bits) - 1);
    let mut bytes = Vec::new();
    match (place, change_ms) {
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

    /// Values that repeat, walk, jump, and are anything.
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

    /// One wide difference between many narrow ones: upstream's encoder stays wide.
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
