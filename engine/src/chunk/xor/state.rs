//! State of an appender, from which a later process continues (`engine/docs/format/head.md`).

use super::{LEADING_ZEROS_MAX, PAGE_BITS, PAGE_BYTES, Page, SAMPLES_PER_CHUNK_MAX, XorAppender};

/// Bytes of a state before the bytes of the chunk.
const STATE_BYTES: usize = 33;

/// Most bits of a sample, by which tails that earlier versions saved may exceed a page.
const SAMPLE_BITS_MAX: usize = 145;

impl XorAppender {
    /// Appends the state: [`STATE_BYTES`] bytes, then the bytes of the chunk.
    pub fn put_state(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.last_timestamp_ms.to_le_bytes());
        out.extend_from_slice(&self.last_step_ms.to_le_bytes());
        out.extend_from_slice(&self.last_value.to_bits().to_le_bytes());
        for number in [self.count, self.page_count, self.tail_bits] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend([u8::from(self.has_window), self.leading_zeros, self.trailing_zeros]);
        let start = out.len();
        out.resize(start + self.data_bytes(), 0);
        self.copy_data(&mut out[start..]);
    }

    /// Takes a state off the front; `None` if no appender can have this state.
    pub fn split_state(bytes: &[u8]) -> Option<(XorAppender, &[u8])> {
        let (state, bytes) = bytes.split_first_chunk::<STATE_BYTES>()?;
        let word = |at: usize| Some(u64::from_le_bytes(*state.get(at..)?.first_chunk()?));
        let short = |at: usize| Some(u16::from_le_bytes(*state.get(at..)?.first_chunk()?));
        let (count, page_count, tail_bits) = (short(24)?, short(26)?, short(28)?);
        let (has_window, leading_zeros, trailing_zeros) = (state[30] == 1, state[31], state[32]);
        // Earlier versions saved tails longer than a page; the full page is split off here.
        let turned = usize::from(tail_bits) / PAGE_BITS;
        let data_bytes = usize::from(page_count) * PAGE_BYTES + usize::from(tail_bits.div_ceil(8));
        // The bytes may be damaged: these bounds keep every later shift and slice in range.
        let is_possible = (1..=SAMPLES_PER_CHUNK_MAX).contains(&count)
            && usize::from(tail_bits) < PAGE_BITS + SAMPLE_BITS_MAX
            && data_bytes > super::HEADER_BYTES
            && state[30] <= 1
            && u32::from(leading_zeros) <= LEADING_ZEROS_MAX
            && trailing_zeros < 64 - leading_zeros;
        let (data, rest) = bytes.split_at_checked(data_bytes).filter(|_| is_possible)?;
        // `turned` is at most 1, as the tail is shorter than two pages.
        let page_count = page_count.checked_add(turned as u16)?;
        let tail_bits = tail_bits - (turned * PAGE_BITS) as u16;
        let (full, last) = data.split_at(usize::from(page_count) * PAGE_BYTES);
        let (full, _) = full.as_chunks::<PAGE_BYTES>();
        let pages = full.iter().fold(None, |before, bytes| {
            let bytes = *bytes;
            Some(Box::new(Page { before, bytes }))
        });
        let mut tail = [0; PAGE_BYTES];
        tail[..last.len()].copy_from_slice(last);
        let appender = XorAppender {
            last_timestamp_ms: word(0)? as i64,
            last_step_ms: word(8)?,
            last_value: f64::from_bits(word(16)?),
            pages,
            page_count,
            count,
            tail_bits,
            has_window,
            leading_zeros,
            trailing_zeros,
            tail,
        };
        Some((appender, rest))
    }
}
