//! Reads one segment, skipping any damage in it.
//!
//! Damage never ends reading. Reading continues at the next fragment with a correct checksum, in
//! the same page or a later page. Records continue at the next full or first fragment:
//!
//! ```text
//! page 0                            page 1                    page 2
//! ┌──────┬─────────┬──────┬────────┬────────┬───────┬────────┬──────────
//! │ full │ ✗ . . . │ full │ ✗  . . │ middle │ last  │ first  │ last …
//! └──────┴─────────┴──────┴────────┴────────┴───────┴────────┴──────────
//!        └ damaged ┘ read └──── damaged ────────────┘ read again
//! ```
//!
//! A damaged place that reaches the end of the file is a *torn tail* if a crash during a write may
//! have caused it: the file ends inside of a record, or in zeros that were never overwritten. Only
//! the reader of the whole log can judge such a tail. All other places are damage.
//!
//! Invariants: at most a window and one record, compressed and decompressed, are in memory. Every
//! byte of the file is part of a returned record, of padding, or of a damaged place that was
//! counted and reported.

use super::pack::{RECORD_BYTES_MAX, Unpacker};
use super::page::{
    Compression, DamageCause, FragmentKind, PAGE_BYTES, Parsed, find_fragment, parse,
};
use super::stats::Counters;
use crate::fs::DiskFile;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes per read: whole pages, and many of them, to suit flash and spinning disks.
const WINDOW_BYTES: usize = 16 * PAGE_BYTES;

/// Size of the smallest unit that a disk writes. A crash does not tear a unit.
const SECTOR_BYTES: u64 = 512;

/// Reads the records of one segment.
pub struct SegmentReader {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    size_bytes: u64,
    /// Whole pages, from byte `window_start` of the file on.
    window: Vec<u8>,
    window_start: u64,
    /// Offset of the next fragment.
    at: u64,
    /// Fragments of a record whose last fragment was not read yet: an unfinished record.
    parts: Vec<u8>,
    /// Offset of the unfinished record.
    begun: Option<u64>,
    damage: Option<Damage>,
    whole_end: u64,
    /// Offset of the last record that was returned.
    record_start: u64,
    /// Number of whole records so far, for log lines.
    whole_records: u64,
    /// Damaged places with a known end, until `take_damaged` takes them.
    damaged: Vec<DamagedPlace>,
    tally: DamageTally,
    counters: Arc<Counters>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The segment ends in a whole record or in padding.
    Clean,
    /// The bytes from `whole_end` on are not a record.
    Torn {
        whole_end: u64,
        /// Reason for which the bytes are not a record.
        cause: DamageCause,
    },
}

/// A sequence of bytes that was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedPlace {
    /// Offset of the first skipped byte.
    pub offset: u64,
    pub bytes: u64,
    pub cause: DamageCause,
}

/// Number and bytes of a segment's damaged places so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageTally {
    pub places: u64,
    pub bytes: u64,
    /// Whether the device could not read some of the bytes; a later attempt may succeed.
    pub is_unreadable: bool,
}

/// A damaged place whose end is not known yet.
#[derive(Clone, Copy)]
struct Damage {
    offset: u64,
    cause: DamageCause,
    was_unreadable: bool,
    /// Whether the place contains valid fragments of a record that has no beginning.
    has_fragments: bool,
}

/// A fragment whose data is a range of the window, to avoid a borrow of the window.
enum ParsedFragment {
    Fragment { kind: FragmentKind, compression: Option<Compression>, data: Range<usize>, end: u64 },
    Padding,
    Damaged(DamageCause),
}

impl SegmentReader {
    /// Begins at the start of a segment of `size_bytes`.
    pub(super) fn new(
        file: Arc<dyn DiskFile>,
        path: PathBuf,
        size_bytes: u64,
        counters: Arc<Counters>,
    ) -> SegmentReader {
        SegmentReader {
            file,
            path,
            size_bytes,
            window: Vec::new(),
            window_start: 0,
            at: 0,
            parts: Vec::new(),
            begun: None,
            damage: None,
            whole_end: 0,
            record_start: 0,
            whole_records: 0,
            damaged: Vec::new(),
            tally: DamageTally::default(),
            counters,
        }
    }

    /// Begins after the record that ends at `at`.
    pub(super) fn from(
        file: Arc<dyn DiskFile>,
        path: PathBuf,
        at: u64,
        size_bytes: u64,
        counters: Arc<Counters>,
    ) -> SegmentReader {
        let reader = SegmentReader::new(file, path, size_bytes, counters);
        SegmentReader { at, whole_end: at, ..reader }
    }

    pub(super) fn whole_end(&self) -> u64 {
        self.whole_end
    }

    /// Number of bytes that were read or skipped so far.
    pub fn position(&self) -> u64 {
        self.at.min(self.size_bytes)
    }

    /// Returns the next record; `None` at the end of the segment.
    pub fn next(&mut self, unpacker: &mut Unpacker) -> Option<Vec<u8>> {
        let mut record = Vec::new();
        self.next_onto(unpacker, &mut record).then_some(record)
    }

    /// Appends the next record to `out`; returns whether there was a record.
    pub fn next_onto(&mut self, unpacker: &mut Unpacker, out: &mut Vec<u8>) -> bool {
        while self.at < self.size_bytes {
            let page_end = (self.at / PAGE_BYTES as u64 + 1) * PAGE_BYTES as u64;
            match self.find() {
                ParsedFragment::Padding => self.at = page_end,
                ParsedFragment::Damaged(cause) => {
                    // Searched now, because the window still contains this page.
                    let next = self.find_behind();
                    self.lose(self.at, cause);
                    self.at = next.unwrap_or(page_end);
                }
                ParsedFragment::Fragment { kind, compression, data, end } => {
                    let start = self.at;
                    self.at = end;
                    if self.take(kind, compression, data, start, unpacker, out) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Returns the state of the segment's end, after [`next`](SegmentReader::next) has returned
    /// `None`. A torn tail is not counted as damage: see [`count_tail`](SegmentReader::count_tail).
    pub fn tail(&mut self) -> Tail {
        if let Some(begun) = self.begun {
            self.lose(begun, DamageCause::NoEnd);
        }
        match self.damage {
            Some(damage) if self.is_torn(&damage) => {
                Tail::Torn { whole_end: self.whole_end, cause: damage.cause }
            }
            Some(_) => {
                self.end_damage(self.size_bytes);
                Tail::Clean
            }
            None => Tail::Clean,
        }
    }

    /// Returns whether a crash during a write may have caused the damage at the end.
    fn is_torn(&self, damage: &Damage) -> bool {
        // A crash causes no read errors, and it does not remove bytes that were written before a
        // valid fragment.
        if damage.was_unreadable || damage.has_fragments {
            return false;
        }
        match damage.cause {
            DamageCause::CutShort | DamageCause::NoEnd => true,
            // Zeros: the new length of the file reached the disk, but its last sectors did not.
            _ => {
                let last_sector = (self.size_bytes - 1) / SECTOR_BYTES * SECTOR_BYTES;
                let in_window = last_sector.checked_sub(self.window_start);
                let unwritten = in_window.and_then(|start| self.window.get(start as usize..));
                last_sector > damage.offset
                    && unwritten.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
            }
        }
    }

    /// Counts a torn tail as damage. For callers that do not cut it off.
    pub fn count_tail(&mut self) {
        self.end_damage(self.size_bytes);
    }

    /// Returns the damaged places since the last call. Must be called after every record or batch.
    pub fn take_damaged(&mut self) -> Vec<DamagedPlace> {
        std::mem::take(&mut self.damaged)
    }

    /// Sums of all damage so far. A torn tail is included only if it was counted.
    pub fn damage(&self) -> DamageTally {
        self.tally
    }

    /// Offset of the record that was returned last.
    pub fn record_start(&self) -> u64 {
        self.record_start
    }

    /// Number of whole records returned so far.
    pub fn whole_records(&self) -> u64 {
        self.whole_records
    }

    /// Adds a fragment. Returns whether it completes a record, which is then appended to `out`.
    fn take(
        &mut self,
        kind: FragmentKind,
        compression: Option<Compression>,
        data: Range<usize>,
        start: u64,
        unpacker: &mut Unpacker,
        out: &mut Vec<u8>,
    ) -> bool {
        match kind {
            FragmentKind::Full | FragmentKind::First => {
                // A new record begins, so the unfinished record has lost its end.
                if let Some(begun) = self.begun {
                    self.lose(begun, DamageCause::NoEnd);
                }
                self.end_damage(start);
            }
            FragmentKind::Middle | FragmentKind::Last if self.begun.is_none() => {
                self.lose(start, DamageCause::NoBeginning);
                if let Some(damage) = &mut self.damage {
                    damage.has_fragments = true;
                }
                return false;
            }
            FragmentKind::Middle | FragmentKind::Last => {}
        }
        if kind == FragmentKind::First {
            self.begun = Some(start);
        }
        if kind != FragmentKind::Full {
            self.parts.extend_from_slice(&self.window[data.clone()]);
        }
        // A record may have any number of fragments, so their total length is limited here.
        if self.parts.len() > RECORD_BYTES_MAX {
            self.lose(start, DamageCause::Undecodable);
            return false;
        }
        if matches!(kind, FragmentKind::First | FragmentKind::Middle) {
            return false;
        }

        // A checksum does not cover the head of its fragment. So the head of the last fragment
        // decides, as in upstream.
        let begun = self.begun.take().unwrap_or(start);
        let packed = match kind {
            FragmentKind::Full => &self.window[data],
            _ => &self.parts,
        };
        let is_whole = compression.is_some_and(|how| unpacker.unpack(packed, how, out));
        self.parts.clear();
        // A record that does not decompress was written completely, so it is not a torn tail.
        self.whole_end = self.at;
        match is_whole {
            true => {
                self.record_start = begun;
                self.whole_records += 1;
            }
            false => {
                self.lose(begun, DamageCause::Undecodable);
                self.end_damage(self.at);
            }
        }
        is_whole
    }

    /// Finds the next fragment after the damage at `at` within the same page.
    fn find_behind(&self) -> Option<u64> {
        let page_start = self.at - self.at % PAGE_BYTES as u64;
        let page_at = usize::try_from(page_start.checked_sub(self.window_start)?).ok()?;
        let page = self.window.get(page_at..self.window.len().min(page_at + PAGE_BYTES))?;
        let found = find_fragment(page, (self.at - page_start) as usize + 1)?;
        Some(page_start + found as u64)
    }

    /// Reads the fragment or padding at `at`, which must be inside the file.
    fn find(&mut self) -> ParsedFragment {
        let page_start = self.at - self.at % PAGE_BYTES as u64;
        let window_end = self.window_start + self.window.len() as u64;
        if !(self.window_start..window_end).contains(&page_start) && !self.fetch(page_start) {
            return ParsedFragment::Damaged(DamageCause::Unreadable);
        }
        // Neither cast can truncate: both differences are less than the window's length.
        let page_at = (page_start - self.window_start) as usize;
        let in_page = (self.at - page_start) as usize;
        let page = &self.window[page_at..self.window.len().min(page_at + PAGE_BYTES)];
        match parse(page, in_page) {
            Parsed::Padding => ParsedFragment::Padding,
            Parsed::Damaged(cause) => ParsedFragment::Damaged(cause),
            Parsed::Fragment(fragment) => {
                let data_end = page_at + fragment.end;
                let data = data_end - fragment.data.len()..data_end;
                let end = page_start + fragment.end as u64;
                let (kind, compression) = (fragment.kind, fragment.compression);
                ParsedFragment::Fragment { kind, compression, data, end }
            }
        }
    }

    /// Fills the window from a page on; if the device cannot read that much, with that page alone.
    fn fetch(&mut self, page_start: u64) -> bool {
        self.window_start = page_start;
        [WINDOW_BYTES, PAGE_BYTES].into_iter().any(|bytes_max| {
            let bytes = (self.size_bytes - page_start).min(bytes_max as u64) as usize;
            self.window.resize(bytes, 0);
            let read = self.file.read_at(page_start, &mut self.window);
            if let Err(error) = &read {
                let (path, offset) = (self.path.display(), page_start);
                tracing::warn!(%path, offset, bytes, %error, "could not read from a WAL segment");
                // Cleared, because the window has no valid bytes of any page.
                self.window.clear();
            }
            read.is_ok()
        })
    }

    /// Begins a damaged place at `offset`, or at the unfinished record if there is one. Does
    /// nothing if a damaged place has begun already.
    fn lose(&mut self, offset: u64, cause: DamageCause) {
        let offset = self.begun.take().unwrap_or(offset);
        self.parts.clear();
        let damage = self.damage.get_or_insert(Damage {
            offset,
            cause,
            was_unreadable: false,
            has_fragments: false,
        });
        damage.was_unreadable |= cause == DamageCause::Unreadable;
    }

    fn end_damage(&mut self, end: u64) {
        let Some(Damage { offset, cause, was_unreadable, .. }) = self.damage.take() else { return };
        let bytes = end - offset;
        self.tally.places += 1;
        self.tally.bytes += bytes;
        self.tally.is_unreadable |= was_unreadable;
        self.counters.damaged_places.fetch_add(1, Relaxed);
        self.counters.damaged_bytes.fetch_add(bytes, Relaxed);
        self.damaged.push(DamagedPlace { offset, bytes, cause });
    }
}
