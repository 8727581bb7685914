//! The XOR chunk and its appender.
//!
//! Owns the layout that upstream's `tsdb/docs/format/chunks.md` ("XOR chunk data") gives:
//!
//! ```text
//! ┌───────────┬───────────┬────────────┬────────────────┬──────────┬────────────┬──────────┬───
//! │ count u16 │ t0 varint │ v0 float64 │ t1-t0 uvarint  │ v1 value │ t2 dod bits│ v2 value │ …
//! └───────────┴───────────┴────────────┴────────────────┴──────────┴────────────┴──────────┴───
//!   big-endian              big-endian   ends on a byte   bits from here, zero-padded at the end
//!
//! dod: how much the step between times differs from the step before
//!   0                               the same step
//!   10   + 14 bits                  -8191 ..= 8192
//!   110  + 17 bits                  -65535 ..= 65536
//!   1110 + 20 bits                  -524287 ..= 524288
//!   1111 + 64 bits                  anything
//!
//! value: its bits XORed with those of the value before
//!   0                               no difference
//!   10   + the window's bits        all differing bits lie in the window of the value before
//!   11   + 5 bits leading zeros + 6 bits width (0 is 64) + the bits   a new window
//! ```
//!
//! Invariants: the count is up to date after every append, so the bytes so far are a valid chunk.
//! Times may jump in any direction (upstream's arithmetic wraps), but callers append in order. The
//! bytes equal upstream's for the same samples.

mod state;

use super::{Chunk, Encoding};
use crate::codec::{put_uvarint, put_varint, split_varint};

/// Largest sample count that a chunk's header can hold.
pub const SAMPLES_PER_CHUNK_MAX: u16 = u16::MAX;

const HEADER_BYTES: usize = 2;

/// Bytes of a page; with its link and the allocator's header it takes 64 bytes on wasm32.
const PAGE_BYTES: usize = 56;

/// Bits of a page: a multiple of 64, since bits are written by words.
const PAGE_BITS: usize = 8 * PAGE_BYTES;

/// Largest number of leading zeros that five bits can express.
const LEADING_ZEROS_MAX: u32 = 31;

/// Compresses samples of one series into a chunk.
///
/// Each series of the head has an appender, and all series grow at the same pace. Buffers that move
/// when they grow would leave holes that fit no other buffer, so data is in pages that never move.
#[derive(Debug)]
pub struct XorAppender {
    last_timestamp_ms: i64,
    last_step_ms: u64,
    last_value: f64,
    /// Full pages, the latest first.
    pages: Option<Box<Page>>,
    page_count: u16,
    count: u16,
    /// Position of the next bit in the tail, below [`PAGE_BITS`].
    tail_bits: u16,
    /// Whether a window of value bits is set: `leading_zeros` before and `trailing_zeros` after.
    has_window: bool,
    leading_zeros: u8,
    trailing_zeros: u8,
    /// Bytes that fill no page yet.
    tail: [u8; PAGE_BYTES],
}

/// State of an appender while it writes, held in registers until [`Pen::keep`] stores it.
struct Pen<'a> {
    appender: &'a mut XorAppender,
    last_timestamp_ms: i64,
    last_step_ms: u64,
    last_value_bits: u64,
    has_window: bool,
    leading_zeros: u32,
    trailing_zeros: u32,
    /// Offset in the tail of the word being filled.
    word_at: usize,
    /// The word being filled: its bits from the top, then zeros.
    word: u64,
    /// Number of bits in the word, at most 63.
    word_bits: u32,
}

#[derive(Debug)]
struct Page {
    before: Option<Box<Page>>,
    bytes: [u8; PAGE_BYTES],
}

impl Default for XorAppender {
    fn default() -> XorAppender {
        XorAppender::new()
    }
}

impl XorAppender {
    /// Creates an appender of an empty chunk.
    pub fn new() -> XorAppender {
        XorAppender {
            last_timestamp_ms: 0,
            last_step_ms: 0,
            last_value: 0.0,
            pages: None,
            page_count: 0,
            count: 0,
            tail_bits: 8 * HEADER_BYTES as u16,
            has_window: false,
            leading_zeros: 0,
            trailing_zeros: 0,
            tail: [0; PAGE_BYTES],
        }
    }

    /// Adds a sample, which must be later than the one before.
    ///
    /// # Panics
    ///
    /// If the chunk holds [`SAMPLES_PER_CHUNK_MAX`] samples; callers begin a new chunk before.
    #[inline]
    pub fn append(&mut self, timestamp_ms: i64, value: f64) {
        self.append_all(&[(timestamp_ms, value)]);
    }

    /// Adds samples, each later than the one before.
    ///
    /// # Panics
    ///
    /// If the chunk would hold more than [`SAMPLES_PER_CHUNK_MAX`] samples.
    #[inline]
    pub fn append_all(&mut self, samples: &[(i64, f64)]) {
        let room = usize::from(SAMPLES_PER_CHUNK_MAX - self.count);
        assert!(samples.len() <= room, "a chunk counts at most 65535 samples");
        let mut pen = Pen::of(self);
        let mut rest = samples;
        // The first two samples have layouts of their own; the loop below stays free of that check.
        while pen.appender.count < 2
            && let [(timestamp_ms, value), after @ ..] = rest
        {
            pen.put_early(*timestamp_ms, *value);
            rest = after;
        }
        for (timestamp_ms, value) in rest {
            pen.put(*timestamp_ms, *value);
        }
        // Cannot overflow: the assertion above bounds the length.
        pen.appender.count += rest.len() as u16;
        pen.keep();
    }

    #[cold]
    fn turn_page(&mut self) {
        self.pages = Some(Box::new(Page { bytes: self.tail, before: self.pages.take() }));
        self.page_count += 1;
    }

    /// Number of samples appended so far.
    #[inline]
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Returns the bytes of the chunk so far, which are valid at any time.
    pub fn data(&self) -> Vec<u8> {
        let mut data = vec![0; self.data_bytes()];
        self.copy_data(&mut data);
        // The page with the header may be deep in the list, so the count is in a field instead.
        if let Some(header) = data.first_chunk_mut::<HEADER_BYTES>() {
            *header = self.count.to_be_bytes();
        }
        data
    }

    fn data_bytes(&self) -> usize {
        usize::from(self.page_count) * PAGE_BYTES + usize::from(self.tail_bits.div_ceil(8))
    }

    /// Fills [`XorAppender::data_bytes`] bytes with the chunk, except for the sample count.
    fn copy_data(&self, data: &mut [u8]) {
        let (pages, tail) = data.split_at_mut(usize::from(self.page_count) * PAGE_BYTES);
        tail.copy_from_slice(&self.tail[..tail.len()]);
        // Pages are linked from the last to the first, so `pages` is filled from its end.
        let from_the_last = std::iter::successors(self.pages.as_deref(), |p| p.before.as_deref());
        for (place, page) in pages.rchunks_exact_mut(PAGE_BYTES).zip(from_the_last) {
            place.copy_from_slice(&page.bytes);
        }
    }

    /// Returns the chunk so far; `None` while it is empty.
    pub fn to_chunk(&self) -> Option<Chunk> {
        let data = self.data();
        let (min_time_ms, _) = split_varint(data.get(HEADER_BYTES..)?)?;
        let max_time_ms = self.last_timestamp_ms;
        Some(Chunk { encoding: Encoding::Xor, min_time_ms, max_time_ms, data: data.into() })
    }

    /// Returns the time of the first sample.
    pub fn first_timestamp_ms(&self) -> Option<i64> {
        let all = std::iter::successors(self.pages.as_deref(), |page| page.before.as_deref());
        let start = all.last().map_or(&self.tail[..], |first| &first.bytes);
        let first = split_varint(start.get(HEADER_BYTES..)?).map(|(timestamp_ms, _)| timestamp_ms);
        // The zeros of an empty tail would decode as time 0.
        first.filter(|_| self.count > 0)
    }

    /// Returns the time of the last sample.
    #[inline]
    pub fn last_timestamp_ms(&self) -> Option<i64> {
        (self.count > 0).then_some(self.last_timestamp_ms)
    }

    /// Returns the value of the last sample.
    #[inline]
    pub fn last_value(&self) -> Option<f64> {
        (self.count > 0).then_some(self.last_value)
    }
}

impl<'a> Pen<'a> {
    #[inline(always)]
    fn of(appender: &'a mut XorAppender) -> Pen<'a> {
        let word_at = usize::from(appender.tail_bits) / 64 * 8;
        let word_bits = u32::from(appender.tail_bits) % 64;
        let held = appender.tail.get(word_at..).and_then(|rest| rest.first_chunk());
        // Bits after the last written one are remains of an earlier page.
        let word = u64::from_be_bytes(*held.unwrap_or(&[0; 8])) & !(u64::MAX >> word_bits);
        Pen {
            last_timestamp_ms: appender.last_timestamp_ms,
            last_step_ms: appender.last_step_ms,
            last_value_bits: appender.last_value.to_bits(),
            has_window: appender.has_window,
            leading_zeros: u32::from(appender.leading_zeros),
            trailing_zeros: u32::from(appender.trailing_zeros),
            word_at,
            word,
            word_bits,
            appender,
        }
    }

    #[inline(always)]
    fn keep(mut self) {
        self.store_word();
        let appender = self.appender;
        appender.last_timestamp_ms = self.last_timestamp_ms;
        appender.last_step_ms = self.last_step_ms;
        appender.last_value = f64::from_bits(self.last_value_bits);
        appender.tail_bits = (8 * self.word_at) as u16 + self.word_bits as u16;
        appender.has_window = self.has_window;
        appender.leading_zeros = self.leading_zeros as u8;
        appender.trailing_zeros = self.trailing_zeros as u8;
    }

    #[inline(always)]
    fn store_word(&mut self) {
        if let Some(place) = self.appender.tail.get_mut(self.word_at..)
            && let Some(place) = place.first_chunk_mut()
        {
            *place = self.word.to_be_bytes();
        }
    }

    /// Writes the low `width` bits (1 to 64) of `bits`, whose other bits are zero.
    #[inline(always)]
    fn put_bits(&mut self, bits: u64, width: u32) {
        let free = 64 - self.word_bits;
        if width < free {
            self.word |= bits << (free - width);
            self.word_bits += width;
        } else {
            self.put_over(bits, width - free);
        }
    }

    /// Writes bits that fill the word; the last `over` bits (at most 63) begin the next word.
    #[inline]
    fn put_over(&mut self, bits: u64, over: u32) {
        self.word |= bits >> over;
        self.store_word();
        self.word_at += 8;
        if self.word_at == PAGE_BYTES {
            self.appender.turn_page();
            self.word_at = 0;
        }
        // Two shifts, since a single shift by 64 would overflow.
        self.word = bits << 1 << (63 - over);
        self.word_bits = over;
    }

    /// Writes the first or second sample, whose time takes whole bytes.
    #[cold]
    fn put_early(&mut self, timestamp_ms: i64, value: f64) {
        let step_ms = timestamp_ms.wrapping_sub(self.last_timestamp_ms) as u64;
        let is_first = self.appender.count == 0;
        let mut bytes = Vec::with_capacity(10);
        if is_first {
            put_varint(&mut bytes, timestamp_ms);
        } else {
            put_uvarint(&mut bytes, step_ms);
            self.last_step_ms = step_ms;
        }
        for byte in bytes {
            self.put_bits(u64::from(byte), 8);
        }
        if is_first {
            self.put_bits(value.to_bits(), 64);
            self.last_value_bits = value.to_bits();
        } else {
            self.put_value(0, 0, value);
        }
        self.last_timestamp_ms = timestamp_ms;
        self.appender.count += 1;
    }

    /// Writes the third or a later sample.
    #[inline(always)]
    fn put(&mut self, timestamp_ms: i64, value: f64) {
        let step_ms = timestamp_ms.wrapping_sub(self.last_timestamp_ms) as u64;
        let (bits, width) = self.put_step(step_ms);
        self.put_value(bits, width, value);
        self.last_step_ms = step_ms;
        self.last_timestamp_ms = timestamp_ms;
    }

    /// Returns the bits of the step, to be written with the first bits of the value. The rare
    /// escape of 68 bits is written at once, and no bits are returned.
    #[inline(always)]
    fn put_step(&mut self, step_ms: u64) -> (u64, u32) {
        let change_ms = step_ms.wrapping_sub(self.last_step_ms) as i64;
        let low = |bits: u32| change_ms as u64 & ((1 << bits) - 1);
        match change_ms {
            0 => (0, 1),
            -8191..=8192 => (0b10 << 14 | low(14), 16),
            -65535..=65536 => (0b110 << 17 | low(17), 20),
            -524_287..=524_288 => (0b1110 << 20 | low(20), 24),
            _ => {
                self.put_bits(0b1111, 4);
                self.put_bits(change_ms as u64, 64);
                (0, 0)
            }
        }
    }

    /// Writes the `width` bits (at most 24) of the time, then the value.
    #[inline(always)]
    fn put_value(&mut self, mut bits: u64, mut width: u32, value: f64) {
        let difference = value.to_bits() ^ self.last_value_bits;
        if difference == 0 {
            return self.put_bits(bits << 1, width + 1);
        }
        self.last_value_bits = value.to_bits();
        let leading_zeros = difference.leading_zeros().min(LEADING_ZEROS_MAX);
        let trailing_zeros = difference.trailing_zeros();
        // Like upstream, a window that fits is reused however wide it is; the bytes depend on it.
        let fits = self.has_window
            && leading_zeros >= self.leading_zeros
            && trailing_zeros >= self.trailing_zeros;
        if fits {
            (bits, width) = (bits << 2 | 0b10, width + 2);
        } else {
            let significant_bits = 64 - leading_zeros - trailing_zeros;
            // Six bits cannot express 64; since no window is empty, 0 stands for 64.
            let window = u64::from(leading_zeros) << 6 | u64::from(significant_bits & 63);
            (bits, width) = (bits << 13 | 0b11 << 11 | window, width + 13);
            self.has_window = true;
            self.leading_zeros = leading_zeros;
            self.trailing_zeros = trailing_zeros;
        }
        let value_width = 64 - self.leading_zeros - self.trailing_zeros;
        let value_bits = difference >> self.trailing_zeros;
        // Most samples need one write; with wide values the bits may exceed a word.
        if width + value_width <= 64 {
            self.put_bits(bits << value_width | value_bits, width + value_width);
        } else {
            self.put_bits(bits, width);
            self.put_bits(value_bits, value_width);
        }
    }
}

impl Drop for XorAppender {
    /// Frees page after page: recursion over a long chain would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.pages.take();
        while let Some(mut page) = next {
            next = page.before.take();
        }
    }
}
