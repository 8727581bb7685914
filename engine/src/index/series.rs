//! One entry of the index's series section:
//!
//! ```text
//! ┌─────────────┬───────────────────────────────────────────────────────────────┬───────┐
//! │ len uvarint │ labels uvarint │ (name uvarint, value uvarint) × labels        │ CRC32 │
//! │             │ chunks uvarint │ min varint, max-min uvarint, ref uvarint,      │       │
//! │             │                │ (min - max before uvarint, max-min uvarint,    │       │
//! │             │                │  ref - ref before varint) × (chunks - 1)       │       │
//! └─────────────┴───────────────────────────────────────────────────────────────┴───────┘
//! ```
//!
//! Names and values are symbol numbers; `len` and the checksum are for the bytes between both.
//! Entries begin at multiples of 16 bytes. Times are milliseconds.

use super::{ChunkMeta, ChunkRef};
use crate::codec::{put_uvarint, put_varint, split_uvarint, split_varint};

/// Longest entry that is accepted, in bytes: some hundred thousand chunks.
pub(crate) const SERIES_ENTRY_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A label as two symbol numbers: name, value.
pub(crate) type LabelNumbers = (u32, u32);

/// Appends the content of an entry, between `len` and the checksum.
pub(super) fn encode_entry(out: &mut Vec<u8>, labels: &[LabelNumbers], chunks: &[ChunkMeta]) {
    put_uvarint(out, labels.len() as u64);
    for (name, value) in labels {
        put_uvarint(out, u64::from(*name));
        put_uvarint(out, u64::from(*value));
    }
    put_uvarint(out, chunks.len() as u64);
    let mut before: Option<&ChunkMeta> = None;
    for chunk in chunks {
        match before {
            None => put_varint(out, chunk.min_time_ms),
            Some(before) => put_uvarint(out, distance(before.max_time_ms, chunk.min_time_ms)),
        }
        put_uvarint(out, distance(chunk.min_time_ms, chunk.max_time_ms));
        match before {
            None => put_uvarint(out, chunk.chunk_ref.0),
            Some(before) => {
                // The next chunk may have a smaller reference, so the step has a sign.
                put_varint(out, chunk.chunk_ref.0.wrapping_sub(before.chunk_ref.0) as i64);
            }
        }
        before = Some(chunk);
    }
}

/// Decodes an entry's labels into `labels`, and returns the bytes of its chunks.
pub(crate) fn decode_labels<'a>(
    entry: &'a [u8],
    labels: &mut Vec<LabelNumbers>,
) -> Result<&'a [u8], &'static str> {
    const CUT_SHORT: &str = "the series entry ends within its labels";
    let number = |bytes: &'a [u8]| -> Option<(u32, &'a [u8])> {
        let (number, rest) = split_uvarint(bytes)?;
        Some((u32::try_from(number).ok()?, rest))
    };
    labels.clear();
    let (count, mut rest) = split_uvarint(entry).ok_or(CUT_SHORT)?;
    for _ in 0..count {
        let (name, after) = number(rest).ok_or(CUT_SHORT)?;
        let (value, after) = number(after).ok_or(CUT_SHORT)?;
        // Repeated or unsorted names would break each comparison of labels.
        if labels.last().is_some_and(|(before, _)| *before >= name) {
            return Err("the series' label names do not ascend");
        }
        labels.push((name, value));
        rest = after;
    }
    Ok(rest)
}

/// Decodes the bytes that [`decode_labels`] returned.
pub(crate) fn decode_chunks(bytes: &[u8]) -> Result<Vec<ChunkMeta>, &'static str> {
    let count = split_uvarint(bytes).map_or(0, |(count, _)| count);
    // A chunk has three bytes or more, so a false count cannot allocate much memory.
    let plausible = count.min(bytes.len() as u64 / 3) as usize;
    let mut chunks = Vec::with_capacity(plausible);
    each_chunk(bytes, |chunk| chunks.push(chunk))?;
    Ok(chunks)
}

/// Calls `visit` with each chunk in the bytes that [`decode_labels`] returned.
#[inline]
pub(super) fn each_chunk(
    bytes: &[u8],
    mut visit: impl FnMut(ChunkMeta),
) -> Result<(), &'static str> {
    let (count, mut rest) =
        split_uvarint(bytes).ok_or("the series entry ends within its labels")?;
    let mut before = None;
    for _ in 0..count {
        let (chunk, after) =
            split_chunk(rest, before).ok_or("a chunk of the series entry does not decode")?;
        visit(chunk);
        (before, rest) = (Some(chunk), after);
    }
    Ok(())
}

fn split_chunk(bytes: &[u8], before: Option<ChunkMeta>) -> Option<(ChunkMeta, &[u8])> {
    let Some(before) = before else {
        let (min_time_ms, rest) = split_varint(bytes)?;
        let (length_ms, rest) = split_uvarint(rest)?;
        let (chunk_ref, rest) = split_uvarint(rest)?;
        let max_time_ms = min_time_ms.checked_add_unsigned(length_ms)?;
        return Some((
            ChunkMeta { min_time_ms, max_time_ms, chunk_ref: ChunkRef(chunk_ref) },
            rest,
        ));
    };
    let (gap_ms, rest) = split_uvarint(bytes)?;
    let (length_ms, rest) = split_uvarint(rest)?;
    let (ref_step, rest) = split_varint(rest)?;
    // Damaged bytes may hold any number: an overflow is an error.
    let min_time_ms = before.max_time_ms.checked_add_unsigned(gap_ms)?;
    let max_time_ms = min_time_ms.checked_add_unsigned(length_ms)?;
    let chunk_ref = ChunkRef(before.chunk_ref.0.wrapping_add(ref_step as u64));
    Some((ChunkMeta { min_time_ms, max_time_ms, chunk_ref }, rest))
}

/// Distance from one time to a later one; the full range of times needs all 64 bits.
fn distance(from_ms: i64, to_ms: i64) -> u64 {
    to_ms.wrapping_sub(from_ms) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_come_back(
            names in prop::collection::btree_map(any::<u32>(), any::<u32>(), 0..20),
            chunks in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40, any::<u64>()), 0..20),
            start_ms in -1i64 << 50..1 << 50,
        ) {
            let labels: Vec<LabelNumbers> = names.into_iter().collect();
            let mut time_ms = start_ms;
            let mut meta = |(gap_ms, length_ms, place): (u64, u64, u64)| {
                let min_time_ms = time_ms.saturating_add_unsigned(gap_ms);
                time_ms = min_time_ms.saturating_add_unsigned(length_ms);
                ChunkMeta { min_time_ms, max_time_ms: time_ms, chunk_ref: ChunkRef(place) }
            };
            let chunks: Vec<ChunkMeta> = chunks.into_iter().map(&mut meta).collect();
            let mut entry = Vec::new();
            encode_entry(&mut entry, &labels, &chunks);
            let mut read = Vec::new();
            let rest = decode_labels(&entry, &mut read);
            prop_assert_eq!(rest.map(decode_chunks), Ok(Ok(chunks)));
            prop_assert_eq!(read, labels);
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            if let Ok(rest) = decode_labels(&bytes, &mut Vec::new()) {
                let _ = decode_chunks(rest);
            }
            let _ = decode_chunks(&bytes);
        }
    }

    #[test]
    fn the_whole_range_of_times_fits() {
        let chunk_ref = ChunkRef(8);
        let chunks = [ChunkMeta { min_time_ms: i64::MIN, max_time_ms: i64::MAX, chunk_ref }];
        let mut entry = Vec::new();
        encode_entry(&mut entry, &[], &chunks);
        let rest = decode_labels(&entry, &mut Vec::new());
        assert_eq!(rest.map(decode_chunks), Ok(Ok(chunks.to_vec())));
    }

    #[test]
    fn false_counts_are_refused() {
        let mut entry = Vec::new();
        put_uvarint(&mut entry, u64::MAX);
        assert!(decode_labels(&entry, &mut Vec::new()).is_err());
        assert!(decode_chunks(&entry).is_err());
    }
}
