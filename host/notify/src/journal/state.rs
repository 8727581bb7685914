//! What the journal has in memory: its segments, events that are not on disk yet, open alerts.
//!
//! ```text
//! append ─▶ unwritten ─▶ written and synced ─▶ in the newest segment
//!   │          └─ too many: the oldest are lost    │
//!   └▶ open: as of the newest event                └▶ settled: as of the last one that left
//! ```
//!
//! Invariants: an event is in memory until it is synced. `settled` is what was open before the
//! oldest unwritten event, which is the snapshot of a segment that begins with that event.

use super::format::{NUMBER_MAX, PAYLOAD_BYTES_MAX, payload_bytes_bound};
use super::open::Found;
use super::open_alerts::OpenAlerts;
use super::segment::Segment;
use super::{JournalBounds, JournalFigures};
use crate::event::{Entry, Event};
use std::collections::VecDeque;
use std::sync::Arc;
use tidepool_rules::file::Labels;

/// Events that are kept in memory while the disk takes none.
pub const UNWRITTEN_EVENTS_MAX: usize = 10_000;
/// Their memory, which few long events reach first.
const UNWRITTEN_BYTES_MAX: usize = 16 << 20;

/// Number of segments, which many failed writes reach first.
const SEGMENTS_MAX: usize = 1000;

const SEGMENT_BYTES_MIN: u64 = 64 * 1024;
/// Parts of the limits that one segment has, and that are dropped at once.
const PARTS: u64 = 8;

/// Length of an annotation of an event that is too long for a record.
const ANNOTATION_BYTES_MAX: usize = 1024;

pub(super) struct State {
    pub(super) bounds: JournalBounds,
    pub(super) segments: VecDeque<Segment>,
    pub(super) unwritten: VecDeque<Unwritten>,
    unwritten_bytes: usize,
    /// Number of the last event that is being written, and how many of these are not in memory any
    /// more.
    in_flight: u64,
    in_flight_gone: u64,
    pub(super) open: OpenAlerts,
    settled: OpenAlerts,
    pub(super) newest: u64,
    newest_time_ms: i64,
    /// Number of writes that were begun, and of the last one that failed.
    pub(super) attempts: u64,
    pub(super) failed_attempt: u64,
    pub(super) failed_writes_total: u64,
    pub(super) damaged_total: u64,
    dropped_total: u64,
    lost_total: u64,
    pub(super) last_error: Option<String>,
    pub(super) are_bounds_new: bool,
    pub(super) is_hurried: bool,
    pub(super) is_idle: bool,
    pub(super) is_stopping: bool,
    pub(super) is_stopped: bool,
}

pub(super) struct Unwritten {
    pub(super) entry: Arc<Entry>,
    bytes: usize,
}

/// Events to write at once.
pub(super) struct Batch {
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) target: Target,
}

pub(super) enum Target {
    /// The newest segment.
    Append { first: u64, bytes: u64 },
    /// A new segment, with the alerts that are open when it begins.
    Begin { opens: Vec<Arc<Entry>> },
}

/// What was written.
pub(super) struct Done {
    pub(super) bytes: u64,
    /// Of the file, if it is new.
    pub(super) snapshot_end: u64,
    /// Events that are too long for a record.
    pub(super) too_long: u64,
}

impl JournalBounds {
    fn segment_bytes(self) -> u64 {
        (self.bytes_max / PARTS).max(SEGMENT_BYTES_MIN)
    }

    fn segment_age_ms(self) -> i64 {
        (self.age_ms_max / PARTS as i64).max(1)
    }
}

impl State {
    pub(super) fn new(bounds: JournalBounds, found: Found, number_min: u64) -> State {
        State {
            bounds,
            segments: found.segments.into(),
            unwritten: VecDeque::new(),
            unwritten_bytes: 0,
            in_flight: 0,
            in_flight_gone: 0,
            open: found.open.clone(),
            settled: found.open,
            newest: found.newest.max(number_min.min(NUMBER_MAX).saturating_sub(1)),
            newest_time_ms: found.newest_time_ms,
            attempts: 0,
            failed_attempt: 0,
            failed_writes_total: 0,
            damaged_total: found.damaged,
            dropped_total: 0,
            lost_total: 0,
            last_error: None,
            // The limits may be others than before.
            are_bounds_new: true,
            is_hurried: false,
            is_idle: false,
            is_stopping: false,
            is_stopped: false,
        }
    }

    pub(super) fn append(&mut self, event: Event) {
        let event = shortened(event);
        self.newest = self.newest.saturating_add(1).min(NUMBER_MAX);
        self.newest_time_ms = event.time_ms;
        let bytes = payload_bytes_bound(&event);
        let entry = Arc::new(Entry { number: self.newest, event });
        self.open.apply(&entry);
        self.unwritten.push_back(Unwritten { entry, bytes });
        self.unwritten_bytes += bytes;
        while self.unwritten.len() > UNWRITTEN_EVENTS_MAX
            || (self.unwritten_bytes > UNWRITTEN_BYTES_MAX && self.unwritten.len() > 1)
        {
            match self.settle_first() {
                Some(number) if number <= self.in_flight => self.in_flight_gone += 1,
                _ => self.lost_total += 1,
            }
        }
    }

    /// Number of the newest event that no crash takes, or of the newest one if the disk takes none.
    pub(super) fn durable(&self) -> u64 {
        match self.unwritten.front() {
            Some(first) if self.last_error.is_none() && !self.is_stopped => {
                first.entry.number.saturating_sub(1)
            }
            _ => self.newest,
        }
    }

    /// Takes the oldest unwritten event out of memory; returns its number.
    fn settle_first(&mut self) -> Option<u64> {
        let Unwritten { entry, bytes } = self.unwritten.pop_front()?;
        self.unwritten_bytes -= bytes;
        self.settled.apply(&entry);
        Some(entry.number)
    }

    /// The next events to write, and where to.
    pub(super) fn batch(&mut self) -> Option<Batch> {
        let front = &self.unwritten.front()?.entry;
        let newest = self.segments.back().filter(|segment| self.takes(segment, front));
        let (target, room) = match newest {
            Some(newest) => {
                let room = self.room(newest.snapshot_end).saturating_sub(newest.bytes);
                (Target::Append { first: newest.first, bytes: newest.bytes }, room)
            }
            None => (Target::Begin { opens: self.settled.entries() }, self.bounds.segment_bytes()),
        };
        let begin_ms =
            newest.and_then(|newest| newest.first_time_ms).unwrap_or(front.event.time_ms);
        let (mut bytes, mut entries) = (0, Vec::new());
        for unwritten in &self.unwritten {
            if bytes >= room || self.is_of_next_segment(begin_ms, &unwritten.entry) {
                break;
            }
            bytes += unwritten.bytes as u64;
            entries.push(Arc::clone(&unwritten.entry));
        }
        self.in_flight = entries.last()?.number;
        self.attempts += 1;
        Some(Batch { entries, target })
    }

    /// Whether the newest segment takes this event.
    fn takes(&self, newest: &Segment, event: &Entry) -> bool {
        let begin_ms = newest.first_time_ms.unwrap_or(event.event.time_ms);
        !newest.is_sealed
            && newest.bytes < self.room(newest.snapshot_end)
            && !self.is_of_next_segment(begin_ms, event)
    }

    /// Whether a segment whose first event has this time is too old for another event. Otherwise
    /// it would keep events of months, where few happen.
    fn is_of_next_segment(&self, begin_ms: i64, entry: &Entry) -> bool {
        entry.event.time_ms.saturating_sub(begin_ms) >= self.bounds.segment_age_ms()
    }

    /// Length at which a segment is full. At least half of it are events, however long its
    /// snapshot is: so snapshots at most double what is written.
    fn room(&self, snapshot_end: u64) -> u64 {
        self.bounds.segment_bytes().max(snapshot_end).saturating_add(snapshot_end)
    }

    pub(super) fn written(&mut self, batch: &Batch, done: &Done) {
        if let (Target::Begin { .. }, Some(first)) = (&batch.target, batch.entries.first()) {
            self.segments.push_back(Segment {
                bytes: 0,
                snapshot_end: done.snapshot_end,
                is_snapshot_whole: true,
                ..Segment::new(first.number)
            });
        }
        if let Some(segment) = self.segments.back_mut() {
            segment.bytes += done.bytes;
            for entry in &batch.entries {
                segment.add_event(entry.number, entry.event.time_ms);
            }
        }
        self.lost_total += done.too_long;
        while self.unwritten.front().is_some_and(|front| front.entry.number <= self.in_flight) {
            self.settle_first();
        }
        (self.in_flight, self.in_flight_gone) = (0, 0);
    }

    /// A write failed. The segment takes no more: what it has of the batch is not known, and its
    /// place on the device may be bad. The next attempt begins another one with all of the batch.
    pub(super) fn failed(&mut self, batch: &Batch, error: String) {
        if let (Target::Append { .. }, Some(segment)) = (&batch.target, self.segments.back_mut()) {
            segment.is_sealed = true;
        }
        self.failed_attempt = self.attempts;
        self.failed_writes_total += 1;
        self.last_error = Some(error);
        self.lost_total += self.in_flight_gone;
        (self.in_flight, self.in_flight_gone) = (0, 0);
    }

    /// Number of the oldest segment if the limits drop it. The newest one always stays.
    pub(super) fn surplus(&self, now_ms: Option<i64>) -> Option<u64> {
        let oldest = self.segments.front().filter(|_| self.segments.len() > 1)?;
        let is_large = self.bytes() > self.bounds.bytes_max || self.segments.len() > SEGMENTS_MAX;
        (is_large || self.is_old(now_ms)).then_some(oldest.first)
    }

    /// Whether the oldest segment is old, both by the clock and by the newest event: a clock that
    /// was set forward by mistake says little, and so does an event from that time.
    fn is_old(&self, now_ms: Option<i64>) -> bool {
        let Some(now_ms) = now_ms else { return false };
        let min_ms = now_ms.min(self.newest_time_ms).saturating_sub(self.bounds.age_ms_max);
        // A segment without a time, because it cannot be read, is as old as the next one.
        let older = self.segments.iter().take(self.segments.len() - 1);
        older.filter_map(|segment| segment.newest_time_ms).next().is_some_and(|time| time < min_ms)
    }

    pub(super) fn drop_oldest(&mut self) {
        if let Some(segment) = self.segments.pop_front() {
            self.dropped_total += segment.events;
        }
    }

    pub(super) fn oldest(&self) -> u64 {
        let on_disk = self.segments.iter().find_map(|segment| segment.oldest);
        let in_memory = || self.unwritten.front().map(|front| front.entry.number);
        on_disk.or_else(in_memory).unwrap_or(self.newest + 1)
    }

    fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    pub(super) fn figures(&self) -> JournalFigures {
        JournalFigures {
            bytes: self.bytes(),
            segments: self.segments.len() as u64,
            open: self.open.len() as u64,
            unwritten: self.unwritten.len() as u64,
            failed_writes_total: self.failed_writes_total,
            damaged_total: self.damaged_total,
            dropped_total: self.dropped_total,
            lost_total: self.lost_total,
            last_error: self.last_error.clone(),
        }
    }
}

/// Makes an event fit into a record: first its annotations are truncated, then dropped. Labels that
/// are too long by themselves stay; such an event is never written.
fn shortened(mut event: Event) -> Event {
    if payload_bytes_bound(&event) <= PAYLOAD_BYTES_MAX {
        return event;
    }
    let alert = event.labels.get("alertname");
    tracing::warn!(alert, "the annotations of an alert are truncated: they are too long");
    let short = event.annotations.iter().map(|(name, value)| {
        (name.clone(), value[..value.floor_char_boundary(ANNOTATION_BYTES_MAX)].to_owned())
    });
    event.annotations = Arc::new(short.collect());
    if payload_bytes_bound(&event) > PAYLOAD_BYTES_MAX {
        event.annotations = Arc::new(Labels::new());
    }
    event
}
