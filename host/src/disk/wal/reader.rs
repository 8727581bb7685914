//! Reading one segment back, around whatever is damaged in it.
//!
//! Damage never ends reading. After it, reading goes on at the next page boundary, and records
//! begin again at the next full or first fragment:
//!
//! ```text
//! page 0                          page 1                        page 2
//! ┌──────┬──────┬───────────────┬─────────────────┬───────────┬──────────
//! │ full │ full │ ✗ . . . . . . │ middle │ last   │ first     │ last …
//! └──────┴──────┴───────────────┴─────────────────┴───────────┴──────────
//!               └────── damaged place ────────────┘ read again
//! ```
//!
//! A damaged place that reaches the end of the file is a *tail*. What a tail means (a crash, or
//! damage) depends on the segment, so whoever reads the log decides.
//!
//! Invariants: at most a window and one record, packed and not, are in memory; every byte of the file lies in a
//! record that was given out, in padding, or in a damaged place that was counted and told of.

use super::pack::{RECORD_BYTES_MAX, Unpacker};
use super::page::{Compression, DamageCause, FragmentKind, PAGE_BYTES, Parsed, parse};
use super::stats::Counters;
use crate::disk::fs::DiskFile;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes fetched by one read: whole pages, and enough of them for flash and spinning disks.
const WINDOW_BYTES: usize = 16 * PAGE_BYTES;

/// Reads the records of one segment.
pub struct SegmentReader {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    size_bytes: u64,
    /// A run of pages that begins at `window_start`.
    window: Vec<u8>,
    window_start: u64,
    /// Where the next fragment begins.
    at: u64,
    /// Fragments of a record whose last one has not come yet.
    parts: Vec<u8>,
    /// Where that record begins.
    begun: Option<u64>,
    damage: Option<Damage>,
    /// The end of the last whole record.
    whole_end: u64,
    /// Where the last record that was given out begins.
    record_start: u64,
    /// Whole records so far, for the log lines.
    whole_records: u64,
    /// Damaged places whose ends were found, until they are taken.
    damaged: Vec<DamagedPlace>,
    counters: Arc<Counters>,
}

/// What is at the end of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// A whole record, or padding.
    Clean,
    /// Bytes that are no record, from `whole_end` on.
    Torn {
        /// The end of the last whole record.
        whole_end: u64,
        /// What is wrong with the bytes.
        cause: DamageCause,
    },
}

/// Bytes of a segment that were skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedPlace {
    /// Where they begin.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
    /// What is wrong with them.
    pub cause: DamageCause,
}

/// A damaged place whose end was not found yet.
#[derive(Clone, Copy)]
struct Damage {
    offset: u64,
    cause: DamageCause,
    was_unreadable: bool,
}

/// A fragment by its place in the window, so that nothing stays borrowed.
enum Found {
    Fragment { kind: FragmentKind, compression: Option<Compression>, data: Range<usize>, end: u64 },
    Padding,
    Damaged(DamageCause),
}

impl SegmentReader {
    /// Begins at the front of a segment of this length.
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
            counters,
        }
    }

    /// Where reading has come to, in bytes.
    pub fn position(&self) -> u64 {
        self.at.min(self.size_bytes)
    }

    /// The next record; `None` at the end of the segment.
    pub fn next(&mut self, unpacker: &mut Unpacker) -> Option<Vec<u8>> {
        while self.at < self.size_bytes {
            let page_end = (self.at / PAGE_BYTES as u64 + 1) * PAGE_BYTES as u64;
            match self.find() {
                Found::Padding => self.at = page_end,
                Found::Damaged(cause) => {
                    self.lose(self.at, cause);
                    self.at = page_end;
                }
                Found::Fragment { kind, compression, data, end } => {
                    let start = self.at;
                    self.at = end;
                    let record = self.take(kind, compression, data, start, unpacker);
                    if record.is_some() {
                        return record;
                    }
                }
            }
        }
        None
    }

    /// What is at the end, once [`next`](SegmentReader::next) has given `None`. A tail that is
    /// torn is not counted yet: see [`count_tail`](SegmentReader::count_tail).
    pub fn tail(&mut self) -> Tail {
        if let Some(begun) = self.begun {
            self.lose(begun, DamageCause::NoEnd);
        }
        match self.damage {
            Some(damage) if damage.was_unreadable => self.end_damage(self.size_bytes),
            Some(Damage { cause, .. }) => return Tail::Torn { whole_end: self.whole_end, cause },
            None => {}
        }
        Tail::Clean
    }

    /// Counts a torn tail as damage that stays where it is.
    pub fn count_tail(&mut self) {
        self.end_damage(self.size_bytes);
    }

    /// Damaged places found since this was last asked. Ask after every record or batch of them.
    pub fn take_damaged(&mut self) -> Vec<DamagedPlace> {
        std::mem::take(&mut self.damaged)
    }

    /// Where the record that was given out last begins.
    pub fn record_start(&self) -> u64 {
        self.record_start
    }

    /// Whole records given out so far.
    pub fn whole_records(&self) -> u64 {
        self.whole_records
    }

    /// Takes in a fragment; gives the record that it completes.
    fn take(
        &mut self,
        kind: FragmentKind,
        compression: Option<Compression>,
        data: Range<usize>,
        start: u64,
        unpacker: &mut Unpacker,
    ) -> Option<Vec<u8>> {
        match kind {
            FragmentKind::Full | FragmentKind::First => {
                if let Some(begun) = self.begun {
                    self.lose(begun, DamageCause::NoEnd);
                }
                self.end_damage(start);
            }
            FragmentKind::Middle | FragmentKind::Last if self.begun.is_none() => {
                self.lose(start, DamageCause::NoBeginning);
                return None;
            }
            FragmentKind::Middle | FragmentKind::Last => {}
        }
        if kind == FragmentKind::First {
            self.begun = Some(start);
        }
        if kind != FragmentKind::Full {
            self.parts.extend_from_slice(&self.window[data.clone()]);
        }
        if self.parts.len() > RECORD_BYTES_MAX {
            self.lose(start, DamageCause::Undecodable);
            return None;
        }
        if matches!(kind, FragmentKind::First | FragmentKind::Middle) {
            return None;
        }

        // A fragment's checksum does not cover its head, so the last head speaks for all, as
        // upstream has it.
        let begun = self.begun.take().unwrap_or(start);
        let packed = match kind {
            FragmentKind::Full => &self.window[data],
            _ => &self.parts,
        };
        let record = compression.and_then(|how| unpacker.unpack(packed, how));
        self.parts.clear();
        // Even one that does not unpack was written whole: no crash has torn it.
        self.whole_end = self.at;
        match record {
            Some(_) => {
                self.record_start = begun;
                self.whole_records += 1;
            }
            None => {
                self.lose(begun, DamageCause::Undecodable);
                self.end_damage(self.at);
            }
        }
        record
    }

    /// What lies at `at`, which is inside the file.
    fn find(&mut self) -> Found {
        let page_start = self.at - self.at % PAGE_BYTES as u64;
        let window_end = self.window_start + self.window.len() as u64;
        if !(self.window_start..window_end).contains(&page_start) && !self.fetch(page_start) {
            return Found::Damaged(DamageCause::Unreadable);
        }
        // Both differences are below the window's length.
        let page_at = (page_start - self.window_start) as usize;
        let in_page = (self.at - page_start) as usize;
        let page = &self.window[page_at..self.window.len().min(page_at + PAGE_BYTES)];
        match parse(page, in_page) {
            Parsed::Padding => Found::Padding,
            Parsed::Damaged(cause) => Found::Damaged(cause),
            Parsed::Fragment(fragment) => {
                let data_end = page_at + fragment.end;
                let data = data_end - fragment.data.len()..data_end;
                let end = page_start + fragment.end as u64;
                let (kind, compression) = (fragment.kind, fragment.compression);
                Found::Fragment { kind, compression, data, end }
            }
        }
    }

    /// Fills the window from a page on. If the device will not read that much, the page alone.
    fn fetch(&mut self, page_start: u64) -> bool {
        self.window_start = page_start;
        [WINDOW_BYTES, PAGE_BYTES].into_iter().any(|bytes_max| {
            let bytes = (self.size_bytes - page_start).min(bytes_max as u64) as usize;
            self.window.resize(bytes, 0);
            let read = self.file.read_at(page_start, &mut self.window);
            if let Err(error) = &read {
                let (path, offset) = (self.path.display(), page_start);
                tracing::warn!(%path, offset, bytes, %error, "could not read from a WAL segment");
                self.window.clear();
            }
            read.is_ok()
        })
    }

    /// Opens a damaged place here, or where the unfinished record begins, unless one is open.
    fn lose(&mut self, offset: u64, cause: DamageCause) {
        let offset = self.begun.take().unwrap_or(offset);
        self.parts.clear();
        let damage = self.damage.get_or_insert(Damage { offset, cause, was_unreadable: false });
        damage.was_unreadable |= cause == DamageCause::Unreadable;
    }

    fn end_damage(&mut self, end: u64) {
        let Some(Damage { offset, cause, .. }) = self.damage.take() else { return };
        let bytes = end - offset;
        self.counters.damaged_places.fetch_add(1, Relaxed);
        self.counters.damaged_bytes.fetch_add(bytes, Relaxed);
        self.damaged.push(DamagedPlace { offset, bytes, cause });
    }
}
