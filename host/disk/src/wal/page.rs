//! Framing: splits records into fragments of pages, and reads fragments back.
//!
//! A segment is a run of 32 KiB pages, a page a run of fragments, a record one or more fragments:
//!
//! ```text
//! ┌────────┬─────────┬───────────┬────────┐
//! │ head 1 │ len 2   │ CRC-32C 4 │ data   │   × n, big endian, CRC of the data alone
//! └────────┴─────────┴───────────┴────────┘
//! head:  7 6 5        4      3        2 1 0
//!        reserved 0   zstd   snappy   0 padding · 1 full · 2 first · 3 middle · 4 last
//! ```
//!
//! - No fragment crosses a page. A record that does not fit is split into a first, any number of
//!   middle and a last fragment. A first fragment is empty if only its header fits.
//! - If fewer than 7 bytes are left in a page, they are zeros. A zero head anywhere means that
//!   zeros fill the rest of the page.
//! - A file may end anywhere; its last page counts as padded with zeros.
//!
//! Source: `tsdb/docs/format/wal.md` and `tsdb/wlog` in prometheus/prometheus.

pub const PAGE_BYTES: usize = 32 * 1024;
/// Length of a fragment's header.
pub const HEADER_BYTES: usize = 7;

/// Maximum number of bytes that are checksummed when searching one page for a fragment after
/// damage. That is a few milliseconds of work, and several times what random bytes need.
const SEARCH_BYTES_MAX: usize = 16 * 1024 * 1024;

const KIND_MASK: u8 = 0b0000_0111;
const FLAG_SNAPPY: u8 = 0b0000_1000;
const FLAG_ZSTD: u8 = 0b0001_0000;
const RESERVED_MASK: u8 = 0b1110_0000;

/// Compression of a record. `None` is also written if compression does not make the record shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    None,
    /// Snappy's block format: cheap, and upstream's default.
    #[default]
    Snappy,
    /// A Zstandard frame: smaller, at more CPU.
    Zstd,
}

/// The part of a record that is in a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentKind {
    Full,
    /// The beginning of a longer record.
    First,
    Middle,
    /// The end of a longer record.
    Last,
}

/// Result of reading at an offset of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    Fragment(Fragment<'a>),
    Padding,
    Damaged(DamageCause),
}

/// A fragment that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    pub kind: FragmentKind,
    /// Compression of the record; `None` if the head has flags that this version does not know.
    pub compression: Option<Compression>,
    pub data: &'a [u8],
    /// Offset in the page at which the next fragment begins.
    pub end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DamageCause {
    /// The head has an unknown kind.
    #[error("unknown fragment kind {0}")]
    UnknownKind(u8),
    /// By its length the fragment would end after its page.
    #[error("a fragment longer than its page")]
    TooLong,
    #[error("a fragment that is cut off by the end of the file")]
    CutShort,
    #[error("a wrong checksum")]
    Checksum,
    #[error("padding that is not zero")]
    Padding,
    /// A middle or last fragment without a first fragment before it.
    #[error("a record without its beginning")]
    NoBeginning,
    #[error("a record without its end")]
    NoEnd,
    /// The device returned a read error.
    #[error("a read error")]
    Unreadable,
    /// The record is whole, but its compression is unknown or decompression fails.
    #[error("a record that does not decompress")]
    Undecodable,
}

impl Compression {
    fn flag(self) -> u8 {
        match self {
            Compression::None => 0,
            Compression::Snappy => FLAG_SNAPPY,
            Compression::Zstd => FLAG_ZSTD,
        }
    }

    fn from_head(head: u8) -> Option<Compression> {
        match head & !KIND_MASK {
            0 => Some(Compression::None),
            FLAG_SNAPPY => Some(Compression::Snappy),
            FLAG_ZSTD => Some(Compression::Zstd),
            _ => None,
        }
    }
}

/// Appends one compressed record as fragments. `base` is the offset in its page of the first byte
/// of `out`. The page in which the record begins must have room for at least a header.
pub fn put_record(out: &mut Vec<u8>, base: usize, packed: &[u8], compression: Compression) {
    let mut rest = packed;
    let mut is_first = true;
    loop {
        let room = PAGE_BYTES - (base + out.len()) % PAGE_BYTES;
        debug_assert!(room >= HEADER_BYTES, "a full page was not padded");
        let (part, after) = rest.split_at(rest.len().min(room - HEADER_BYTES));
        let kind: u8 = match (is_first, after.is_empty()) {
            (true, true) => 1,
            (true, false) => 2,
            (false, false) => 3,
            (false, true) => 4,
        };
        out.push(kind | compression.flag());
        // The cast cannot truncate: a part is shorter than a page of 32 KiB.
        out.extend_from_slice(&(part.len() as u16).to_be_bytes());
        out.extend_from_slice(&crc32c::crc32c(part).to_be_bytes());
        out.extend_from_slice(part);

        let left = room - HEADER_BYTES - part.len();
        // Readers treat fewer bytes than a header at the end of a page as padding.
        if left < HEADER_BYTES {
            out.resize(out.len() + left, 0);
        }
        if after.is_empty() {
            return;
        }
        rest = after;
        is_first = false;
    }
}

/// Reads the fragment or padding at offset `at` of a page, which is shorter than [`PAGE_BYTES`]
/// only at the end of a file.
pub fn parse(page: &[u8], at: usize) -> Parsed<'_> {
    let rest = &page[at..];
    let kind = match rest.first().map_or(0, |head| head & KIND_MASK) {
        0 => {
            // All bytes are checked, because a head of kind zero with flags is not padding.
            let zeros = rest.iter().all(|byte| *byte == 0);
            return if zeros { Parsed::Padding } else { Parsed::Damaged(DamageCause::Padding) };
        }
        1 => FragmentKind::Full,
        2 => FragmentKind::First,
        3 => FragmentKind::Middle,
        4 => FragmentKind::Last,
        other => return Parsed::Damaged(DamageCause::UnknownKind(other)),
    };
    // `end` is the end of the fragment in a page of full length.
    let too_long = |end: usize| match end <= PAGE_BYTES {
        true => Parsed::Damaged(DamageCause::CutShort),
        // The fragment exceeds even a full page, so its length must be wrong.
        false => Parsed::Damaged(DamageCause::TooLong),
    };
    let Some((&[head, len0, len1, crc0, crc1, crc2, crc3], body)) = rest.split_first_chunk() else {
        return too_long(at + HEADER_BYTES);
    };
    let len = usize::from(u16::from_be_bytes([len0, len1]));
    let Some(data) = body.get(..len) else {
        return too_long(at + HEADER_BYTES + len);
    };
    if crc32c::crc32c(data) != u32::from_be_bytes([crc0, crc1, crc2, crc3]) {
        return Parsed::Damaged(DamageCause::Checksum);
    }
    // An unknown flag does not damage the framing: the reader reports an undecodable record.
    let compression = match head & RESERVED_MASK {
        0 => Compression::from_head(head),
        _ => None,
    };
    Parsed::Fragment(Fragment { kind, compression, data, end: at + HEADER_BYTES + len })
}

/// Finds the next fragment after damage: the first from `from` on that has data and a correct
/// checksum. Empty fragments are not accepted, since seven bytes of any record may look like one.
pub fn find_fragment(page: &[u8], from: usize) -> Option<usize> {
    let mut bytes_left = SEARCH_BYTES_MAX;
    for at in from..page.len().saturating_sub(HEADER_BYTES) {
        let is_head = matches!(page[at] & KIND_MASK, 1..=4) && page[at] & RESERVED_MASK == 0;
        let len = usize::from(u16::from_be_bytes([page[at + 1], page[at + 2]]));
        if !is_head || len == 0 || at + HEADER_BYTES + len > page.len() {
            continue;
        }
        // Overlapping candidates could otherwise need checksums of the square of the page's length.
        bytes_left = bytes_left.checked_sub(len)?;
        if matches!(parse(page, at), Parsed::Fragment(_)) {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_bytes() {
        // "123456789" has the well-known CRC-32C e3069283.
        let mut out = Vec::new();
        put_record(&mut out, 0, b"123456789", Compression::Snappy);
        assert_eq!(out, b"\x09\x00\x09\xe3\x06\x92\x83123456789");
        let data = &b"123456789"[..];
        let (kind, compression) = (FragmentKind::Full, Some(Compression::Snappy));
        let expected = Fragment { kind, compression, data, end: out.len() };
        assert_eq!(parse(&out, 0), Parsed::Fragment(expected));
    }

    #[test]
    fn a_header_alone_may_end_a_page_and_less_is_padded() {
        for left in 0..2 * HEADER_BYTES {
            let first = PAGE_BYTES - HEADER_BYTES - left;
            let mut out = Vec::new();
            put_record(&mut out, 0, &vec![1; first], Compression::None);
            let padded = if left < HEADER_BYTES { PAGE_BYTES } else { PAGE_BYTES - left };
            assert_eq!(out.len(), padded, "{left} bytes left");
            put_record(&mut out, 0, b"abcdefghij", Compression::None);
            match left {
                // The first fragment is empty: only its header found room.
                7 => assert_eq!(out[PAGE_BYTES - 7..PAGE_BYTES], [2, 0, 0, 0, 0, 0, 0]),
                8..14 => assert_eq!(out[PAGE_BYTES - left], 2),
                _ => assert_eq!(out[PAGE_BYTES], 1),
            }
        }
    }

    #[test]
    fn anything_at_all_is_survived() {
        for seed in 0..2000u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let page: Vec<u8> = (0..seed % 64)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 59) as u8
                })
                .collect();
            for at in 0..=page.len() {
                let _ = parse(&page, at);
                let _ = find_fragment(&page, at);
            }
        }
    }
}
