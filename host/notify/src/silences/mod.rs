//! Silences: which alerts are not notified of, and until when.
//!
//! ```text
//! api ─▶ set, expire ─▶ draft (the rules of updates) ─▶ file, synced ─▶ memory ─▶ answer
//! dispatch ─▶ silencing ─▶ memory ◀─ timeline: a clock that is doubted, or was set
//! ```
//!
//! Invariants: what was answered is on the disk; a reader never waits for the disk; a failed write
//! changes nothing in memory. A directory without silences is never written to.
//!
//! Reading order: [`silence`] for the type, [`draft`] for the rules of updates, [`timeline`] for
//! clocks, [`mod@file`] for the format, [`api`] for JSON.

pub mod api;
mod draft;
mod file;
mod json;
mod silence;
#[cfg(test)]
mod tests;
mod timeline;

pub use draft::Wanted;
pub use silence::{Silence, SilenceId, SilenceState};
pub use timeline::{Clock, Now};

use draft::Draft;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidepool_disk::DiskError;
use tidepool_disk::fs::Disk;
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_rules::labels::LabelSet;
use tidepool_telemetry::MetricsText;
use timeline::Timeline;

/// Default of `--silences-max`.
pub const SILENCES_MAX: usize = 1000;

/// Maximum size of a silence as it is stored.
pub const SILENCE_BYTES_MAX: usize = 64 * 1024;

/// Maximum memory of the compiled expressions of all silences.
pub const EXPRESSIONS_BYTES_MAX: usize = 16 << 20;

/// How long an expired silence is kept: Alertmanager's default.
const RETENTION_MS: i64 = 120 * 60 * 60 * 1000;

/// Interval of [`Silences::keep`].
const KEEP_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum SilenceError {
    #[error("silence not found")]
    NotFound,
    #[error("invalid silence: {0}")]
    Invalid(String),
    #[error("Failed to create silence: start time must be before end time")]
    Order,
    #[error("Failed to create silence: end time can't be in the past")]
    Past,
    #[error("exceeded maximum number of silences: {count} (limit: {silences_max})")]
    TooMany { count: usize, silences_max: usize },
    #[error("silence exceeded maximum size: {bytes} bytes (limit: {SILENCE_BYTES_MAX} bytes)")]
    TooLarge { bytes: usize },
    #[error(
        "the regular expressions of all silences exceed {EXPRESSIONS_BYTES_MAX} bytes; write \
         shorter ones, or expire silences"
    )]
    Expressions,
    #[error("the system has no random bytes for the identifier of a silence")]
    NoId,
    #[error("the silence could not be stored, and nothing has changed: {0}")]
    Disk(#[from] DiskError),
}

type Map = BTreeMap<SilenceId, Arc<Silence>>;

/// A handle to all silences; clones share them.
#[derive(Clone)]
pub struct Silences(Arc<Shared>);

struct Shared {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    silences_max: usize,
    clock: Clock,
    /// Held during a change, until the disk has it. Always taken before `state`.
    writing: Mutex<()>,
    /// Held for moments only.
    state: Mutex<State>,
}

struct State {
    silences: Arc<Map>,
    timeline: Timeline,
    /// Number of times at which a clock moved silences.
    moves_total: u64,
    /// Whether the file lacks something that memory has.
    is_dirty: bool,
    failed_writes_total: u64,
    damaged_total: u64,
}

impl Silences {
    /// Reads the silences of a directory, which is created by the first write. Blocking. Damaged
    /// silences are left out, and the file with them is kept beside the new one.
    pub fn open(disk: Arc<dyn Disk>, dir: PathBuf, silences_max: usize, clock: Clock) -> Silences {
        let now = clock();
        let stored = file::read(&*disk, &dir, now.monotonic);
        let mut state = State {
            silences: Arc::new(stored.silences),
            timeline: Timeline::new(now, stored.judged_ms),
            moves_total: 0,
            is_dirty: stored.damaged > 0,
            failed_writes_total: 0,
            damaged_total: stored.damaged,
        };
        state.observe(now);
        let silences = Silences(Arc::new(Shared {
            disk,
            dir,
            silences_max,
            clock,
            writing: Mutex::default(),
            state: Mutex::new(state),
        }));
        let all = silences.list();
        if !all.is_empty() {
            let active = all.iter().filter(|(_, state)| *state == SilenceState::Active).count();
            tracing::info!(silences = all.len(), active, "silences read");
        }
        // Writes only if something was damaged, or moved with the clock.
        silences.maintain();
        silences
    }

    /// Creates a silence, or changes the one that is named. Returns the identifier, which is a new
    /// one if the change would rewrite the past. Blocking: the silence is on the disk then.
    pub fn set(&self, wanted: &Wanted) -> Result<SilenceId, SilenceError> {
        let new = SilenceId::random().ok_or(SilenceError::NoId)?;
        let id = self.change(|draft| draft.set(wanted, new))?;
        let (matchers, created_by) = (&wanted.matchers, &wanted.created_by);
        tracing::info!(silence = %id, %matchers, created_by, "silence set");
        Ok(id)
    }

    /// Ends a silence; one that has ended stays as it is. Blocking.
    pub fn expire(&self, id: SilenceId) -> Result<(), SilenceError> {
        self.change(|draft| draft.expire(id))?;
        tracing::info!(silence = %id, "silence expired");
        Ok(())
    }

    /// Returns an active silence that matches these labels.
    pub fn silencing(&self, labels: &LabelSet) -> Option<SilenceId> {
        let (silences, judged_ms) = self.now();
        let mut active = silences.values().filter(|silence| silence.is_active(judged_ms));
        active.find(|silence| silence.matchers.matches(labels)).map(|silence| silence.id)
    }

    pub fn get(&self, id: SilenceId) -> Option<(Arc<Silence>, SilenceState)> {
        let (silences, judged_ms) = self.now();
        let silence = silences.get(&id)?;
        Some((Arc::clone(silence), silence.state(judged_ms)))
    }

    /// Returns all silences in Alertmanager's order: active, pending and expired ones; of these
    /// first what ends next, what begins next, and what ended last.
    pub fn list(&self) -> Vec<(Arc<Silence>, SilenceState)> {
        let (silences, judged_ms) = self.now();
        let with_state = |silence: &Arc<Silence>| (Arc::clone(silence), silence.state(judged_ms));
        let mut all: Vec<_> = silences.values().map(with_state).collect();
        all.sort_by_key(|(silence, state)| match state {
            SilenceState::Active => (0, silence.ends_at_ms),
            SilenceState::Pending => (1, silence.starts_at_ms),
            SilenceState::Expired => (2, silence.ends_at_ms.saturating_neg()),
        });
        all
    }

    /// Removes silences that expired long ago, and writes what the clock has moved. Blocking.
    pub fn maintain(&self) {
        let _turn = self.turn();
        loop {
            let now = (self.0.clock)();
            let (silences, judged_ms, moves_total) = {
                let mut state = self.state();
                state.observe(now);
                // A doubted clock must not end the retention.
                if !now.is_doubted {
                    let judged_ms = state.timeline.judged_ms();
                    remove_expired(&mut state.silences, judged_ms);
                }
                if !state.is_dirty {
                    return;
                }
                (Arc::clone(&state.silences), state.timeline.judged_ms(), state.moves_total)
            };
            let written = self.write(&silences, judged_ms);
            let mut state = self.state();
            match written {
                Err(error) => {
                    tracing::warn!(%error, "could not write silences; the next attempt follows");
                    return;
                }
                Ok(()) if state.moves_total == moves_total => {
                    state.is_dirty = false;
                    return;
                }
                Ok(()) => {}
            }
        }
    }

    /// Calls [`Silences::maintain`] each minute until the stop signal, and then once more.
    pub async fn keep(self, mut shutdown: Shutdown) {
        loop {
            let is_last = tokio::select! {
                () = shutdown.wait() => true,
                () = tokio::time::sleep(KEEP_INTERVAL) => false,
            };
            let silences = self.clone();
            let kept = tokio::task::spawn_blocking(move || silences.maintain()).await;
            if let Err(error) = kept {
                tracing::error!(%error, "keeping silences panicked");
            }
            if is_last {
                return;
            }
        }
    }

    pub fn show(&self, text: &mut MetricsText) {
        let (silences, judged_ms) = self.now();
        let count =
            |wanted| silences.values().filter(|silence| silence.state(judged_ms) == wanted).count();
        text.gauges(
            "tidepool_silences",
            "Silences by state.",
            &[
                ("state=\"active\"", count(SilenceState::Active)),
                ("state=\"pending\"", count(SilenceState::Pending)),
                ("state=\"expired\"", count(SilenceState::Expired)),
            ],
        );
        let state = self.state();
        text.counter(
            "tidepool_silences_failed_writes_total",
            "Writes of silences that failed.",
            state.failed_writes_total,
        );
        text.counter(
            "tidepool_silences_damaged_total",
            "Damaged silences that the start left out.",
            state.damaged_total,
        );
        text.counter(
            "tidepool_silences_clock_moves_total",
            "Times at which the clock was set and the times of active silences were moved with it.",
            state.moves_total,
        );
    }

    /// Applies a change to a copy, writes it, and only then makes it visible.
    fn change<T>(
        &self,
        edit: impl Fn(&mut Draft) -> Result<T, SilenceError>,
    ) -> Result<T, SilenceError> {
        let _turn = self.turn();
        loop {
            let now = (self.0.clock)();
            let (mut draft, moves_total) = {
                let mut state = self.state();
                state.observe(now);
                let silences = Map::clone(&state.silences);
                let judged_ms = state.timeline.judged_ms();
                (Draft::new(silences, self.0.silences_max, judged_ms, now), state.moves_total)
            };
            let done = edit(&mut draft)?;
            if !draft.is_changed {
                return Ok(done);
            }
            let written = self.write(&draft.silences, draft.judged_ms);
            let mut state = self.state();
            if let Err(error) = written {
                tracing::warn!(%error, "could not write silences");
                // The write may have failed after the rename, so the file may have the change.
                state.is_dirty = true;
                return Err(error.into());
            }
            // The clock may have moved silences meanwhile: then the change begins again with them.
            if state.moves_total == moves_total {
                state.silences = Arc::new(draft.silences);
                state.is_dirty = false;
                return Ok(done);
            }
        }
    }

    fn write(&self, silences: &Map, judged_ms: i64) -> Result<(), DiskError> {
        let written = file::write(&*self.0.disk, &self.0.dir, silences, judged_ms);
        if written.is_err() {
            self.state().failed_writes_total += 1;
        }
        written
    }

    /// Returns all silences, and the time by which their states are judged.
    fn now(&self) -> (Arc<Map>, i64) {
        let now = (self.0.clock)();
        let mut state = self.state();
        state.observe(now);
        (Arc::clone(&state.silences), state.timeline.judged_ms())
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.0.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Moves silences with a clock that was set.
    fn observe(&mut self, now: Now) {
        let Some(step) = self.timeline.observe(now) else { return };
        let moved = step.moved(&self.silences);
        if moved.is_empty() {
            return;
        }
        let step_ms = step.step_ms();
        tracing::warn!(silences = moved.len(), step_ms, "the clock was set: silences are moved");
        Arc::make_mut(&mut self.silences).extend(moved);
        self.moves_total += 1;
        self.is_dirty = true;
    }
}

fn remove_expired(silences: &mut Arc<Map>, judged_ms: i64) {
    let is_old = |silence: &Silence| silence.ends_at_ms.saturating_add(RETENTION_MS) <= judged_ms;
    // Checked first, because a change copies the map.
    if silences.values().any(|silence| is_old(silence)) {
        Arc::make_mut(silences).retain(|_, silence| !is_old(silence));
    }
}
