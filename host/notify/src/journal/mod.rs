//! The journal of alerts: every event with its number, durable within limits of size and age.
//!
//! ```text
//! append ─▶ memory, numbered ─▶ thread: write, sync ─▶ DIR/journal/
//!             │                                        ├── 00000001   named by its first event
//!             └──────────▶ scan ◀──────────────────────├── 00000731   the newest one grows
//!                                 damaged files ─▶ DIR/set-aside/000001-journal-00000001
//! ```
//!
//! Invariants:
//!
//! - numbers ascend, over restarts and damage; they skip numbers where a crash or damage was;
//! - an event is readable from the call of `append` on, whatever the disk does;
//! - a segment begins with all alerts that are open then, so that dropping the ones before it loses
//!   no open alert;
//! - damage costs what is damaged;
//! - without events nothing is written.
//!
//! Read on in `format` (bytes), `reader`, `segment`, `replay` (reading in order), `open` (start and
//! repair), `state` (what is in memory, limits), `writer` (the thread).

mod error;
mod format;
mod open;
mod open_alerts;
mod quarantine;
mod reader;
mod replay;
mod segment;
mod state;
mod writer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use error::JournalError;
pub use open::{Damage, read_dir};
pub use replay::Item;
pub use state::UNWRITTEN_EVENTS_MAX;
pub use writer::JournalThread;

use crate::event::{Entry, Event};
use reader::{Piece, Place};
use replay::Replay;
use segment::Segment;
use state::State;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tidepool_disk::fs::Disk;
use tokio::sync::watch;

/// Name of the directory of the segments in the directory of alerts.
pub const JOURNAL_DIR: &str = "journal";

pub const BYTES_MAX_DEFAULT: u64 = 4 << 20;
pub const AGE_MS_MAX_DEFAULT: i64 = 14 * 24 * 3_600_000;

/// Limits of what is kept. Whole segments are dropped, the oldest first; the newest one stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBounds {
    pub bytes_max: u64,
    pub age_ms_max: i64,
}

/// Milliseconds since the epoch; `None` while the clock is doubted, when nothing is too old.
pub type NowMs = Arc<dyn Fn() -> Option<i64> + Send + Sync>;

/// A journal; clones share it.
#[derive(Clone)]
pub struct Journal(Arc<Shared>);

struct Shared {
    disk: Arc<dyn Disk>,
    /// Directory of alerts, which has the quarantine.
    parent: PathBuf,
    dir: PathBuf,
    now: NowMs,
    state: Mutex<State>,
    /// Something for the thread to do, or done by it.
    changed: Condvar,
    newest: watch::Sender<u64>,
    durable: watch::Sender<u64>,
    oldest: watch::Sender<u64>,
}

/// Totals are those since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalFigures {
    /// Of all segments.
    pub bytes: u64,
    pub segments: u64,
    /// Alerts that fired and did not end.
    pub open: u64,
    /// Events that are in memory only.
    pub unwritten: u64,
    pub failed_writes_total: u64,
    /// Places of damage, and segments that could not be read.
    pub damaged_total: u64,
    /// Events that the limits dropped.
    pub dropped_total: u64,
    /// Events that were never written: too many while the disk took none, or too long.
    pub lost_total: u64,
    /// Why the last write failed; `None` once one has succeeded.
    pub last_error: Option<String>,
}

impl Default for JournalBounds {
    fn default() -> JournalBounds {
        JournalBounds { bytes_max: BYTES_MAX_DEFAULT, age_ms_max: AGE_MS_MAX_DEFAULT }
    }
}

impl Journal {
    /// Blocking. Reads the journal in `dir`, repairs what is damaged, and starts its thread. The
    /// directory is made by the first event. New events have at least the number `number_min`,
    /// which the caller knows from positions: one more than any number that was given out.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        bounds: JournalBounds,
        number_min: u64,
        now: NowMs,
    ) -> (Journal, JournalThread) {
        let (parent, dir) = (dir.clone(), dir.join(JOURNAL_DIR));
        let found = open::load(&*disk, &parent, &dir);
        let state = State::new(bounds, found, number_min);
        let (newest, oldest) = (state.newest, state.oldest());
        let shared = Arc::new(Shared {
            disk,
            parent,
            dir,
            now,
            state: Mutex::new(state),
            changed: Condvar::new(),
            newest: watch::Sender::new(newest),
            durable: watch::Sender::new(newest),
            oldest: watch::Sender::new(oldest),
        });
        (Journal(Arc::clone(&shared)), JournalThread::start(shared))
    }

    pub fn set_bounds(&self, bounds: JournalBounds) {
        let mut state = self.0.lock();
        if state.bounds != bounds {
            (state.bounds, state.are_bounds_new) = (bounds, true);
            drop(state);
            self.0.changed.notify_all();
        }
    }

    /// Numbers events and makes them readable. Does not wait for the disk.
    pub fn append(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut state = self.0.lock();
        for event in events {
            state.append(event);
        }
        self.0.publish(&state);
        drop(state);
        self.0.changed.notify_all();
    }

    /// Number of the newest event, also if it is not there any more; 0 if there was none.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.0.newest.subscribe()
    }

    /// Number of the newest event that is synced or, while the disk takes none, of the newest one.
    /// What is delivered before it is synced may be unknown after a crash, and would never end.
    pub fn durable(&self) -> watch::Receiver<u64> {
        self.0.durable.subscribe()
    }

    /// Number of the oldest event that is there; if there is none, that of the next event.
    pub fn oldest(&self) -> u64 {
        *self.0.oldest.borrow()
    }

    /// Changes of [`Journal::oldest`].
    pub fn watch_oldest(&self) -> watch::Receiver<u64> {
        self.0.oldest.subscribe()
    }

    /// Blocking. Visits the alerts that were open before the event `from`, or before the oldest
    /// event that is there if that is newer; then the events from there on, in order. An alert
    /// whose event is lost is visited as an open one between events, where the journal knows of it.
    pub fn scan(&self, from: u64, visit: &mut dyn FnMut(Item<'_>)) {
        let state = self.0.lock();
        let segments = Vec::from(state.segments.clone());
        let unwritten: Vec<_> =
            state.unwritten.iter().map(|unwritten| Arc::clone(&unwritten.entry)).collect();
        drop(state);
        let mut troubled: Vec<u64> = Vec::new();
        Replay::new(&*self.0.disk, &self.0.dir, from, visit).run(
            &segments,
            &unwritten,
            &mut |segment, piece| {
                if !segment.is_damage_known && !troubled.contains(&segment.first) {
                    troubled.push(segment.first);
                    self.report(segment, &piece);
                }
            },
        );
    }

    /// Alerts that fired and did not end, as of the newest event, in the order of their numbers.
    pub fn open_alerts(&self) -> Vec<Entry> {
        let open = self.0.lock().open.entries();
        open.iter().map(|entry| Entry::clone(entry)).collect()
    }

    pub fn figures(&self) -> JournalFigures {
        self.0.lock().figures()
    }

    /// Blocking. Waits until all events are on disk, or a write fails.
    pub fn flush(&self) {
        let mut state = self.0.lock();
        // The failure of a write that has begun already says nothing of the next one.
        let begun = state.attempts;
        state.is_hurried = true;
        self.0.changed.notify_all();
        let is_busy = |state: &mut State| {
            let is_done = state.is_idle && state.unwritten.is_empty() && !state.are_bounds_new;
            !is_done && !state.is_stopped && state.failed_attempt <= begun
        };
        let waited = self.0.changed.wait_while(state, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Counts and logs damage that came after the start. The next start repairs it.
    fn report(&self, segment: &Segment, piece: &Piece) {
        let mut state = self.0.lock();
        let known = state.segments.iter_mut().find(|known| known.first == segment.first);
        let Some(known) = known.filter(|known| !known.is_damage_known) else { return };
        known.is_damage_known = true;
        state.damaged_total += 1;
        drop(state);
        let path = segment::path_of(&self.0.dir, segment.first);
        let path = path.display();
        match piece {
            Piece::Damage(Place { offset, bytes }) | Piece::Torn(Place { offset, bytes }) => {
                tracing::error!(
                    %path, offset, bytes,
                    "alert journal damaged: the events there are lost; check the disk"
                );
            }
            Piece::Unreadable { offset, source } => tracing::error!(
                %path, offset, error = %source,
                "could not read the alert journal: its events from there on are not delivered; \
                 check the disk"
            ),
            Piece::Record(_) => {}
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who wait which events are there.
    fn publish(&self, state: &State) {
        // Oldest first: a reader that sees a new event must not take it for a dropped one.
        let oldest = state.oldest();
        self.oldest.send_if_modified(|known| std::mem::replace(known, oldest) != oldest);
        self.newest
            .send_if_modified(|known| std::mem::replace(known, state.newest) != state.newest);
        let durable = state.durable();
        self.durable.send_if_modified(|known| std::mem::replace(known, durable) != durable);
    }
}
