//! Gaps: rows that were not delivered before their log was truncated. They are read from the store
//! (blocks and head) instead, in windows of time, oldest first.
//!
//! ```text
//! in-order rows of a series      delivered ……│ from ……… in the gap ………… upto │…… in the log
//! out-of-order rows outside of the span          × × points
//! ```
//!
//! Out-of-order rows that are written later may lie in the span of a gap, too. The store returns
//! such a row with the others if the row was stored before its window was begun. So each window
//! keeps the end that the out-of-order log had then: rows before that end are not sent again.
//!
//! Invariants: the store's rows of a series in (from, upto], and at the series' points, are not
//! delivered; each row of a gap lies in one of the gap's windows.

use super::row::RowPosition;
use crate::codec::{put_uvarint, put_varint, split_uvarint, split_varint};
use crate::model::Labels;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Length of a window in milliseconds. A window is sent series by series, so it is shorter than the
/// hour within which some receivers accept older samples.
pub const WINDOW_MS: i64 = 30 * 60 * 1000;

/// Largest number of out-of-order rows that a gap stores one by one.
const POINTS_MAX: usize = 1024 * 1024;

/// Position of a row in the store; ordered by window, then labels, then time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlace {
    /// Start of the window in milliseconds since the epoch.
    pub window_ms: i64,
    /// Labels of the series as they are stored.
    pub labels: Labels,
    /// Time of the row, in milliseconds since the epoch.
    pub time_ms: i64,
}

/// Undelivered rows of truncated logs, by hashes of series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// Span (from, upto] of each series, by the hash of its labels.
    spans: FxHashMap<u64, (i64, i64)>,
    points: FxHashSet<(u64, i64)>,
    /// Number of rows in each window.
    windows: BTreeMap<i64, u64>,
    /// Windows that were begun, with the end that the out-of-order log had then as a mark. A window
    /// that was given up before has the start of the log.
    begun: BTreeMap<i64, RowPosition>,
}

impl Default for StorePlace {
    fn default() -> StorePlace {
        StorePlace { window_ms: i64::MIN, labels: Labels::default(), time_ms: i64::MIN }
    }
}

impl Ord for StorePlace {
    fn cmp(&self, other: &StorePlace) -> Ordering {
        let by_window = self.window_ms.cmp(&other.window_ms);
        by_window
            .then_with(|| self.labels.cmp(&other.labels))
            .then_with(|| self.time_ms.cmp(&other.time_ms))
    }
}

impl PartialOrd for StorePlace {
    fn partial_cmp(&self, other: &StorePlace) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the start of the window that contains a time.
pub fn window_of(time_ms: i64) -> i64 {
    time_ms.div_euclid(WINDOW_MS).saturating_mul(WINDOW_MS)
}

impl Gap {
    /// Adds a row of the in-order log.
    pub fn add_in_order(&mut self, hash: u64, time_ms: i64) {
        let from_ms = time_ms.saturating_sub(1);
        let span = self.spans.entry(hash).or_insert((from_ms, time_ms));
        *span = (span.0.min(from_ms), span.1.max(time_ms));
        *self.windows.entry(window_of(time_ms)).or_default() += 1;
    }

    /// Adds a row of the out-of-order log; returns false if the gap has no room.
    pub fn add_out_of_order(&mut self, hash: u64, time_ms: i64) -> bool {
        if self.in_span(hash, time_ms) {
            return true;
        }
        if self.points.len() >= POINTS_MAX {
            return false;
        }
        // The store keeps one sample per time, so a repeated row is counted once.
        if self.points.insert((hash, time_ms)) {
            *self.windows.entry(window_of(time_ms)).or_default() += 1;
        }
        true
    }

    fn in_span(&self, hash: u64, time_ms: i64) -> bool {
        self.spans
            .get(&hash)
            .is_some_and(|(from_ms, upto_ms)| *from_ms < time_ms && time_ms <= *upto_ms)
    }

    /// Returns a function that returns whether the gap has a row of the series at a time.
    pub fn of(&self, hash: u64) -> impl Fn(i64) -> bool {
        let (from_ms, upto_ms) = self.spans.get(&hash).copied().unwrap_or((i64::MAX, i64::MIN));
        let points = (!self.points.is_empty()).then_some(&self.points);
        move |time_ms| {
            (from_ms < time_ms && time_ms <= upto_ms)
                || points.is_some_and(|points| points.contains(&(hash, time_ms)))
        }
    }

    /// Returns whether an out-of-order row of the log was or will be read from the store.
    pub fn gives(&self, hash: u64, time_ms: i64, place: RowPosition) -> bool {
        let window_ms = window_of(time_ms);
        let in_window = match self.begun.get(&window_ms) {
            Some(out_of_order_end) => place < *out_of_order_end,
            None => self.windows.contains_key(&window_ms),
        };
        in_window && self.in_span(hash, time_ms)
    }

    /// Begins the oldest window, with the current end of the out-of-order log as its mark.
    pub fn begin_window(&mut self, out_of_order_end: RowPosition) {
        if let Some(window_ms) = self.windows.keys().next() {
            // A window that is begun again keeps its mark: later rows are sent from the log.
            self.begun.entry(*window_ms).or_insert(out_of_order_end);
        }
    }

    /// Returns whether any window was begun or given up. Then no row may be added: it might open an
    /// ended window again, with rows that are delivered or dropped.
    pub fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Returns whether all windows have ended and the out-of-order log was read past their marks.
    pub fn is_over(&self, out_of_order: RowPosition) -> bool {
        self.windows.is_empty()
            && self.begun.values().all(|out_of_order_end| *out_of_order_end <= out_of_order)
    }

    /// Returns the oldest window and the number of its rows.
    pub fn first_window(&self) -> Option<(i64, u64)> {
        self.windows.first_key_value().map(|(window_ms, rows)| (*window_ms, *rows))
    }

    /// Ends the oldest window; returns its start and the number of its rows.
    pub fn end_window(&mut self) -> Option<(i64, u64)> {
        let (window_ms, rows) = self.windows.pop_first()?;
        // A window that was given up before it began skips no row of the log.
        self.begun.entry(window_ms).or_default();
        Some((window_ms, rows))
    }

    /// Number of rows in all windows.
    pub fn rows(&self) -> u64 {
        self.windows.values().sum()
    }

    /// Adds the rows of another gap. Rows between the two gaps, and out-of-order rows of windows
    /// that were begun, may be sent twice.
    pub fn join(&mut self, other: Gap) {
        // Begun windows get more rows, so they must be read again from their beginning.
        self.begun.clear();
        for (hash, (from_ms, upto_ms)) in other.spans {
            let span = self.spans.entry(hash).or_insert((from_ms, upto_ms));
            *span = (span.0.min(from_ms), span.1.max(upto_ms));
        }
        self.points.extend(other.points);
        for (window_ms, rows) in other.windows {
            *self.windows.entry(window_ms).or_default() += rows;
        }
    }

    /// Appends the gap as bytes, for [`Gap::decode`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_uvarint(out, self.begun.len() as u64);
        for (window_ms, RowPosition { segment, record, row }) in &self.begun {
            put_varint(out, *window_ms);
            [segment, record, row].into_iter().for_each(|part| put_uvarint(out, u64::from(*part)));
        }
        put_uvarint(out, self.windows.len() as u64);
        for (window_ms, rows) in &self.windows {
            put_varint(out, *window_ms);
            put_uvarint(out, *rows);
        }
        put_uvarint(out, self.spans.len() as u64);
        for (hash, (from_ms, upto_ms)) in &self.spans {
            out.extend_from_slice(&hash.to_be_bytes());
            put_varint(out, *from_ms);
            put_varint(out, *upto_ms);
        }
        put_uvarint(out, self.points.len() as u64);
        for (hash, time_ms) in &self.points {
            out.extend_from_slice(&hash.to_be_bytes());
            put_varint(out, *time_ms);
        }
    }

    /// Decodes a gap; returns it with the remaining bytes, or `None` if the bytes are damaged.
    pub fn decode(bytes: &[u8]) -> Option<(Gap, &[u8])> {
        let (mut gap, mut rest) = (Gap::default(), bytes);
        for _ in 0..take(&mut rest, split_uvarint)? {
            let window_ms = take(&mut rest, split_varint)?;
            let mut part = || u32::try_from(take(&mut rest, split_uvarint)?).ok();
            let place = RowPosition { segment: part()?, record: part()?, row: part()? };
            gap.begun.insert(window_ms, place);
        }
        for _ in 0..take(&mut rest, split_uvarint)? {
            let window_ms = take(&mut rest, split_varint)?;
            gap.windows.insert(window_ms, take(&mut rest, split_uvarint)?);
        }
        for _ in 0..take(&mut rest, split_uvarint)? {
            let hash = take(&mut rest, split_hash)?;
            let from_ms = take(&mut rest, split_varint)?;
            gap.spans.insert(hash, (from_ms, take(&mut rest, split_varint)?));
        }
        for _ in 0..take(&mut rest, split_uvarint)? {
            let hash = take(&mut rest, split_hash)?;
            gap.points.insert((hash, take(&mut rest, split_varint)?));
        }
        Some((gap, rest))
    }
}

fn split_hash(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*head), rest))
}

fn take<'a, T>(
    rest: &mut &'a [u8],
    split: impl FnOnce(&'a [u8]) -> Option<(T, &'a [u8])>,
) -> Option<T> {
    let (value, after) = split(rest)?;
    *rest = after;
    Some(value)
}
