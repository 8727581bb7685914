//! A decoder of histogram chunks, written from `tsdb/docs/format/chunks.md` of Prometheus alone and
//! kept simple: a second opinion about the chunks that tidepool sends.
//!
//! ```text
//! samples u16 (BE) │ flags u8 │ zero threshold │ schema int │ positive, negative spans │ bounds │ …
//! int, uint: as many ones as the row says, a zero after fewer than eight, then the bits:
//!            0, 3, 6, 9, 12, 18, 25, 56, 64
//! ```
//!
//! A signed number of n bits is -(2^(n-1))+1 to 2^(n-1), as in [`xor_chunk`](crate::xor_chunk).

use super::{CUSTOM_SCHEMA, Kind, Point, Value};
use crate::proto::prometheus::histogram::{Count, ResetHint, ZeroCount};
use crate::proto::prometheus::{BucketSpan, Histogram};
use crate::series::STALE_MARKER_BITS;
use crate::xor_chunk::{Bits, ChunkError};

/// Number of bits after a prefix of 0 to 8 ones.
const WIDTHS: [u32; 9] = [0, 3, 6, 9, 12, 18, 25, 56, 64];
/// Maximum number of spans, bounds or buckets in the tests' data.
const LIST_MAX: u64 = 100_000;

/// Decodes a whole chunk of histograms of this kind.
pub fn decode(kind: Kind, data: &[u8]) -> Result<Vec<Point>, ChunkError> {
    let (header, rest) = data.split_first_chunk::<3>().ok_or(ChunkError::NoCount)?;
    let samples = u16::from_be_bytes([header[0], header[1]]);
    if samples == 0 {
        return Err(ChunkError::Empty);
    }
    let mut bits = Bits::new(rest);
    let truncated = |sample| ChunkError::Truncated { sample, samples };
    let layout = layout(&mut bits).ok_or(truncated(0))?;
    let numbers = |spans: &[BucketSpan]| spans.iter().map(|span| span.length as usize).sum();
    let mut state = State {
        kind,
        positive: vec![Track::default(); numbers(&layout.positive_spans)],
        negative: vec![Track::default(); numbers(&layout.negative_spans)],
        ..State::default()
    };
    let mut points = Vec::with_capacity(usize::from(samples));
    for number in 0..samples {
        state.read(&mut bits, number).ok_or(truncated(number))?;
        // A chunk's first sample has no known predecessor, whatever its flags say.
        let hint = match (header[2] >> 6, number) {
            (0b11, _) => ResetHint::Gauge,
            (_, 0) => ResetHint::Unknown,
            _ => ResetHint::No,
        };
        let message = Histogram { reset_hint: hint.into(), ..state.message(&layout) };
        let value = Value::of_message(&message).at_stored_resolution();
        let hint = if matches!(value, Value::Stale(_)) { ResetHint::Unknown } else { hint };
        points.push(Point { timestamp_ms: state.time.value as i64, value, hint });
    }
    match bits.left() {
        0..8 => Ok(points),
        bits => Err(ChunkError::Trailing { bits }),
    }
}

/// State of one number over the samples: the difference of steps, or the differing bits.
#[derive(Clone, Copy, Default)]
struct Track {
    value: u64,
    step: i64,
    /// Number of zeros after the significant bits, and number of significant bits.
    window: Option<(u32, u32)>,
}

#[derive(Default)]
struct State {
    kind: Kind,
    time: Track,
    count: Track,
    zero_count: Track,
    sum: Track,
    positive: Vec<Track>,
    negative: Vec<Track>,
}

impl State {
    fn read(&mut self, bits: &mut Bits<'_>, number: u16) -> Option<()> {
        let is_first = number == 0;
        match is_first {
            true => self.time.value = int(bits)? as u64,
            false => self.time.step(bits)?,
        }
        for total in [&mut self.count, &mut self.zero_count] {
            match (self.kind, is_first) {
                (Kind::Fractions, true) => total.value = bits.read(64)?,
                (Kind::Fractions, false) => total.xor(bits)?,
                (_, true) => total.value = uint(bits)?,
                (_, false) => total.step(bits)?,
            }
        }
        match is_first {
            true => self.sum.value = bits.read(64)?,
            false => self.sum.xor(bits)?,
        }
        if !is_first && self.sum.value == STALE_MARKER_BITS {
            return Some(());
        }
        for bucket in self.positive.iter_mut().chain(&mut self.negative) {
            match (self.kind, is_first) {
                (Kind::Fractions, true) => bucket.value = bits.read(64)?,
                (Kind::Fractions, false) => bucket.xor(bits)?,
                (_, true) => bucket.value = int(bits)? as u64,
                (_, false) => bucket.step(bits)?,
            }
        }
        Some(())
    }

    fn message(&self, layout: &Histogram) -> Histogram {
        let deltas = |side: &[Track]| side.iter().map(|bucket| bucket.value as i64).collect();
        let counts = |side: &[Track]| side.iter().map(|b| f64::from_bits(b.value)).collect();
        let mut message = Histogram { sum: f64::from_bits(self.sum.value), ..layout.clone() };
        if self.kind == Kind::Fractions {
            message.count = Some(Count::CountFloat(f64::from_bits(self.count.value)));
            let zero_count = f64::from_bits(self.zero_count.value);
            message.zero_count = Some(ZeroCount::ZeroCountFloat(zero_count));
            message.positive_counts = counts(&self.positive);
            message.negative_counts = counts(&self.negative);
        } else {
            message.count = Some(Count::CountInt(self.count.value));
            message.zero_count = Some(ZeroCount::ZeroCountInt(self.zero_count.value));
            message.positive_deltas = deltas(&self.positive);
            message.negative_deltas = deltas(&self.negative);
        }
        message
    }
}

impl Track {
    fn step(&mut self, bits: &mut Bits<'_>) -> Option<()> {
        self.step = self.step.wrapping_add(int(bits)?);
        self.value = self.value.wrapping_add(self.step as u64);
        Some(())
    }

    fn xor(&mut self, bits: &mut Bits<'_>) -> Option<()> {
        if bits.read(1)? == 0 {
            return Some(());
        }
        if bits.read(1)? == 1 {
            let (leading, width) = (bits.read(5)? as u32, bits.read(6)? as u32);
            let width = if width == 0 { 64 } else { width };
            self.window = Some((64u32.checked_sub(leading + width)?, width));
        }
        let (trailing, width) = self.window?;
        self.value ^= bits.read(width)? << trailing;
        Some(())
    }
}

/// Reads the part of a message that all samples of the chunk share.
fn layout(bits: &mut Bits<'_>) -> Option<Histogram> {
    let zero_threshold = match bits.read(8)? {
        0 => 0.0,
        255 => f64::from_bits(bits.read(64)?),
        // The mantissa is one half, as in Go's `math.Frexp`.
        byte => 2f64.powi(byte as i32 - 243 - 1),
    };
    let schema = i32::try_from(int(bits)?).ok()?;
    let positive_spans = spans(bits)?;
    let negative_spans = spans(bits)?;
    let mut custom_values = Vec::new();
    if schema == CUSTOM_SCHEMA {
        for _ in 0..uint(bits).filter(|number| *number <= LIST_MAX)? {
            custom_values.push(match uint(bits)? {
                0 => f64::from_bits(bits.read(64)?),
                thousandths => (thousandths - 1) as f64 / 1000.0,
            });
        }
    }
    let histogram = Histogram { schema, zero_threshold, ..Histogram::default() };
    Some(Histogram { positive_spans, negative_spans, custom_values, ..histogram })
}

fn spans(bits: &mut Bits<'_>) -> Option<Vec<BucketSpan>> {
    let number = uint(bits).filter(|number| *number <= LIST_MAX)?;
    let span = |_| {
        let length = uint(bits).filter(|length| *length <= LIST_MAX)? as u32;
        Some(BucketSpan { length, offset: i32::try_from(int(bits)?).ok()? })
    };
    (0..number).map(span).collect()
}

fn width(bits: &mut Bits<'_>) -> Option<u32> {
    let mut ones = 0;
    while ones < 8 && bits.read(1)? == 1 {
        ones += 1;
    }
    Some(WIDTHS[ones])
}

fn uint(bits: &mut Bits<'_>) -> Option<u64> {
    let width = width(bits)?;
    bits.read(width)
}

fn int(bits: &mut Bits<'_>) -> Option<i64> {
    let width = width(bits)?;
    let value = bits.read(width)?;
    let is_negative = (1..64).contains(&width) && value > 1 << (width - 1);
    Some(if is_negative { value as i64 - (1 << width) } else { value as i64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two samples by hand: t = 1, 2; count 2 (both in bucket 1), sum 0.0; schema 0, no zero
    /// bucket.
    ///
    /// After the count 2 and the flags 0: threshold `00000000`; schema 0 `0`; one positive span
    /// `10 001` of length 1 `10 001` and offset 1 `10 001`; no negative span `0`. First sample:
    /// time 1 `10 001`, count 2 `10 010`, zero count `0`, sum 64 zeros, bucket 2 `10 010`. Second:
    /// time step 1 `10 001`, count `0`, zero count `0`, sum `0`, bucket `0`.
    fn worked() -> Vec<u8> {
        let text = [
            "00000000",
            "0",
            "10001",
            "10001",
            "10001",
            "0",
            "10001",
            "10010",
            "0",
            &"0".repeat(64),
            "10010",
            "10001",
            "0",
            "0",
            "0",
            "0",
        ];
        let text = text.concat();
        let mut bytes = vec![0, 2, 0];
        for byte in text.as_bytes().chunks(8) {
            let bits = byte.iter().enumerate();
            bytes.push(bits.fold(0, |byte, (i, bit)| byte | (bit - b'0') << (7 - i)));
        }
        bytes
    }

    #[test]
    fn the_worked_example_decodes() {
        let points = decode(Kind::Whole, &worked()).expect("the example is a chunk");
        let hints: Vec<_> = points.iter().map(|p| (p.timestamp_ms, p.hint)).collect();
        assert_eq!(hints, [(1, ResetHint::Unknown), (2, ResetHint::No)]);
        for point in points {
            let Value::Histogram(histogram) = point.value else { panic!("a histogram") };
            assert_eq!((histogram.count, histogram.positive), (2, vec![(1, 2)]));
        }
    }

    #[test]
    fn every_truncation_is_noticed() {
        let whole = worked();
        for length in 0..whole.len() {
            assert!(decode(Kind::Whole, &whole[..length]).is_err(), "{length} bytes");
        }
        let longer = [whole, vec![0]].concat();
        assert!(matches!(decode(Kind::Whole, &longer), Err(ChunkError::Trailing { .. })));
    }
}
