//! The XOR2 chunk: floats, some of them with start timestamps.
//!
//! Owns the layout that upstream's `tsdb/docs/format/chunks.md` ("XOR2 chunk data") gives; the
//! start timestamps between the samples are those of `starts.rs`.
//!
//! ```text
//! ┌───────────┬─────────────┬───────────┬────────────┬─────────┬───────────────┬──────────┬────────┬───
//! │ count u16 │ starts byte │ t0 varint │ v0 float64 │ start 0 │ t1-t0 uvarint │ v1 value │ start 1│ …
//! └───────────┴─────────────┴───────────┴────────────┴─────────┴───────────────┴──────────┴────────┴───
//!   big-endian                            big-endian                             bits from here
//!
//! sample 2 and later: how much the step between times differs from the step before, and the value
//!   0                               the same step, the same value
//!   10    + changed value           the same step
//!   110   + 13 bits + value         -4096 ..= 4095
//!   1110  + 20 bits + value         -524288 ..= 524287
//!   11110 + 64 bits + value         anything
//!   11111                           the same step, the stale marker
//!
//! value: its bits XORed with those of the last value that was no stale marker
//!   0                               no difference
//!   10    + the window's bits       all differing bits lie in the window of the value before
//!   110   + window + the bits       5 bits leading zeros, 6 bits width (0 is 64)
//!   111                             the stale marker
//!
//! changed value:  0 + the window's bits, or 1 + window + the bits
//! ```
//!
//! Unlike in `xor`, step changes are two's complement. The bytes equal upstream's.

use super::SAMPLES_PER_CHUNK_MAX;
use super::starts::StartWriter;
use super::varbit::BitBuffer;
use crate::codec::put_uvarint;
use crate::model::Sample;
use crate::model::histogram::is_stale_nan;

/// Bytes of the sample count and the start-timestamp header.
pub(super) const HEADER_BYTES: usize = 3;

const LEADING_ZEROS_MAX: u32 = 31;

struct Writer {
    out: BitBuffer,
    starts: StartWriter,
    count: u16,
    time_ms: i64,
    step_ms: i64,
    /// Bits of the last value that was not a stale marker.
    value_bits: u64,
    /// Numbers of zeros before and after the current window of value bits, if there is one.
    window: Option<(u32, u32)>,
}

/// Encodes samples with their start timestamps (0 if unknown), up to the largest chunk count.
pub(super) fn encode_xor2(samples: impl Iterator<Item = (Sample, i64)>) -> Vec<u8> {
    let mut writer = Writer {
        out: BitBuffer::default(),
        starts: StartWriter::default(),
        count: 0,
        time_ms: 0,
        step_ms: 0,
        value_bits: 0,
        window: None,
    };
    // Room for the header, which is known only after the last sample.
    writer.out.put(0, 8 * HEADER_BYTES as u32);
    for (sample, start_ms) in samples.take(usize::from(SAMPLES_PER_CHUNK_MAX)) {
        writer.put(sample, start_ms);
    }
    let header = writer.starts.header();
    if let Some(place) = writer.out.data_mut().first_chunk_mut::<HEADER_BYTES>() {
        let [high, low] = writer.count.to_be_bytes();
        *place = [high, low, header];
    }
    writer.out.data().to_vec()
}

impl Writer {
    fn put(&mut self, Sample { timestamp_ms, value }: Sample, start_ms: i64) {
        let step_ms = timestamp_ms.wrapping_sub(self.time_ms);
        match self.count {
            0 => {
                self.out.put_varint(timestamp_ms);
                self.out.put(value.to_bits(), 64);
            }
            1 => {
                let mut bytes = Vec::with_capacity(10);
                put_uvarint(&mut bytes, step_ms as u64);
                bytes.into_iter().for_each(|byte| self.out.put(u64::from(byte), 8));
                self.put_value(value);
                self.step_ms = step_ms;
            }
            _ => {
                self.put_joint(step_ms.wrapping_sub(self.step_ms), value);
                self.step_ms = step_ms;
            }
        }
        // A stale marker has its own code; as a base it would make the next difference wide.
        if !is_stale_nan(value) {
            self.value_bits = value.to_bits();
        }
        // A start timestamp refers to the previous sample's time, so `time_ms` changes only now.
        self.starts.put(&mut self.out, self.count, (timestamp_ms, self.time_ms), start_ms);
        self.time_ms = timestamp_ms;
        // Cannot overflow: the encoder takes no more samples than a `u16` counts.
        self.count += 1;
    }

    fn put_joint(&mut self, change_ms: i64, value: f64) {
        let low = |bits: u32| change_ms as u64 & ((1 << bits) - 1);
        match change_ms {
            0 if is_stale_nan(value) => return self.out.put(0b11111, 5),
            0 => {
                let difference = value.to_bits() ^ self.value_bits;
                return match difference {
                    0 => self.out.put(0, 1),
                    _ => {
                        // The value differs for certain, so its prefix saves a bit.
                        self.out.put(0b10, 2);
                        self.put_difference(difference, (0, 1), (1, 1));
                    }
                };
            }
            -4096..=4095 => self.out.put(0b110 << 13 | low(13), 16),
            -524_288..=524_287 => self.out.put(0b1110 << 20 | low(20), 24),
            _ => {
                self.out.put(0b11110, 5);
                self.out.put(change_ms as u64, 64);
            }
        }
        self.put_value(value);
    }

    fn put_value(&mut self, value: f64) {
        match value.to_bits() ^ self.value_bits {
            _ if is_stale_nan(value) => self.out.put(0b111, 3),
            0 => self.out.put(0, 1),
            difference => self.put_difference(difference, (0b10, 2), (0b110, 3)),
        }
    }

    /// Writes a difference after the prefix for the same or a new window, each with its width.
    fn put_difference(&mut self, difference: u64, same: (u64, u32), new: (u64, u32)) {
        let leading_zeros = difference.leading_zeros().min(LEADING_ZEROS_MAX);
        let trailing_zeros = difference.trailing_zeros();
        let (leading_zeros, trailing_zeros) = match self.window {
            Some((leading, trailing)) if leading_zeros >= leading && trailing_zeros >= trailing => {
                self.out.put(same.0, same.1);
                (leading, trailing)
            }
            _ => {
                self.window = Some((leading_zeros, trailing_zeros));
                let width = 64 - leading_zeros - trailing_zeros;
                let window = u64::from(leading_zeros) << 6 | u64::from(width & 63);
                self.out.put(new.0 << 11 | window, new.1 + 11);
                (leading_zeros, trailing_zeros)
            }
        };
        self.out.put(difference >> trailing_zeros, 64 - leading_zeros - trailing_zeros);
    }
}
