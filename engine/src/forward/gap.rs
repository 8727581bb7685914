//! Gaps: what a log held undelivered when it was truncated. These samples are read from the store
//! instead, in windows of time, oldest first.
//!
//! ```text
//! in-order rows of a series      delivered ……│ from ……… in the gap ………… upto │…… in the log
//! out-of-order rows outside of that              × × points
//! ```
//!
//! An out-of-order row that was written later may lie in the span of a gap, too. The store gives it
//! with the others if it was there when its window was begun, so each window keeps where the
//! out-of-order log ended then: what the out-of-order log has of it before that place is not sent
//! once more.
//!
//! Invariants: what a series has in the store in (from, upto], and at its points, is what was not
//! delivered of it; each row of a gap lies in one of its windows.

use super::row::Place;
use crate::codec::{put_uvarint, put_varint, split_uvarint, split_varint};
use crate::model::Labels;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Length of a window in milliseconds. Series follow each other in a window, so a receiver that
/// takes nothing older than an hour behind its newest sample must be able to take all of it.
pub const WINDOW_MS: i64 = 30 * 60 * 1000;

/// Out-of-order rows that a gap can hold one by one.
const POINTS_MAX: usize = 1024 * 1024;

/// A row's place among those of a store, as windows and label order have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlace {
    /// Beginning of the window.
    pub window_ms: i64,
    /// The series.
    pub labels: Labels,
    /// The row's time, included.
    pub time_ms: i64,
}

/// A gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// By the hash of a series' labels: (from, upto].
    spans: FxHashMap<u64, (i64, i64)>,
    points: FxHashSet<(u64, i64)>,
    /// Rows by window.
    windows: BTreeMap<i64, u64>,
    /// Windows that were begun, and where the out-of-order log ended then; its beginning for those
    /// that were given up before.
    begun: BTreeMap<i64, Place>,
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

/// The window in which a time lies.
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

    /// Adds a row of the out-of-order log; returns whether there was room.
    pub fn add_out_of_order(&mut self, hash: u64, time_ms: i64) -> bool {
        if self.in_span(hash, time_ms) {
            return true;
        }
        if self.points.len() >= POINTS_MAX {
            return false;
        }
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

    /// What it has of a series: a span, and a test for its points; `None` if it has nothing.
    pub fn of(&self, hash: u64) -> impl Fn(i64) -> bool {
        let (from_ms, upto_ms) = self.spans.get(&hash).copied().unwrap_or((i64::MAX, i64::MIN));
        let points = (!self.points.is_empty()).then_some(&self.points);
        move |time_ms| {
            (from_ms < time_ms && time_ms <= upto_ms)
                || points.is_some_and(|points| points.contains(&(hash, time_ms)))
        }
    }

    /// Whether an out-of-order row was or will be taken from the store with the others.
    pub fn gives(&self, hash: u64, time_ms: i64, place: Place) -> bool {
        let window_ms = window_of(time_ms);
        let in_window = match self.begun.get(&window_ms) {
            Some(out_of_order_end) => place < *out_of_order_end,
            None => self.windows.contains_key(&window_ms),
        };
        in_window && self.in_span(hash, time_ms)
    }

    /// Begins the oldest window; the out-of-order log ends here.
    pub fn begin_window(&mut self, out_of_order_end: Place) {
        if let Some(window_ms) = self.windows.keys().next() {
            self.begun.entry(*window_ms).or_insert(out_of_order_end);
        }
    }

    /// Whether any window was begun, or given up: no row may be added any more, or its window might
    /// come again, with rows that are delivered or dropped.
    pub fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Whether nothing is left to be taken, nor of the out-of-order log, read to here, to be left
    /// out.
    pub fn is_over(&self, out_of_order: Place) -> bool {
        self.windows.is_empty()
            && self.begun.values().all(|out_of_order_end| *out_of_order_end <= out_of_order)
    }

    /// The oldest window and the number of its rows.
    pub fn first_window(&self) -> Option<(i64, u64)> {
        self.windows.first_key_value().map(|(window_ms, rows)| (*window_ms, *rows))
    }

    /// Ends the oldest window; returns how many rows it had.
    pub fn end_window(&mut self) -> Option<(i64, u64)> {
        let (window_ms, rows) = self.windows.pop_first()?;
        self.begun.entry(window_ms).or_default();
        Some((window_ms, rows))
    }

    /// Rows in all windows.
    pub fn rows(&self) -> u64 {
        self.windows.values().sum()
    }

    /// Takes over what another gap has. Rows between the two may come twice, and out-of-order rows
    /// of windows that were begun.
    pub fn join(&mut self, other: Gap) {
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

    /// Writes it down, for [`Gap::decode`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_uvarint(out, self.begun.len() as u64);
        for (window_ms, Place { segment, record, row }) in &self.begun {
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

    /// Reads what [`Gap::encode`] wrote, and returns what follows it.
    pub fn decode(bytes: &[u8]) -> Option<(Gap, &[u8])> {
        let (mut gap, mut rest) = (Gap::default(), bytes);
        for _ in 0..take(&mut rest, split_uvarint)? {
            let window_ms = take(&mut rest, split_varint)?;
            let mut part = || u32::try_from(take(&mut rest, split_uvarint)?).ok();
            let place = Place { segment: part()?, record: part()?, row: part()? };
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
