//! A run's reader of the logs, and of the store where the logs have no more.

use super::ForwardError;
use super::backlog::{Pace, Window};
use super::config::{BacklogOrder, DestinationConfig};
use super::resources::LOOK_EVERY;
use super::shared::Shared;
use super::tail::{Read, Tails};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_runtime::{CallError, Error, ShardPosition, StoreWindow};
use tidepool_store::StoreError;

/// Pause after the end of the log was read: samples that come meanwhile are read together.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Resources of the log that are read between two checks for answers.
const STEPS: usize = 16;

/// Reads of damaged data before it is given up: the device may give it another time.
const DAMAGE_ATTEMPTS: u32 = 3;

/// Interval of log lines about repeated failures.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Reason for dropping a window that is too old, or beyond the limit.
pub(super) const BEYOND_LIMIT: &str = "sample_age_limit and backlog.max_bytes say so";

/// Reads the logs, and the store where they have no more.
pub(super) struct Reader {
    tails: Tails,
    /// Moment at which the log had no more.
    log_ended: Option<Instant>,
    /// The open read of the store.
    window: Option<Window>,
    /// Start of the window that was opened last.
    last_window: Option<i64>,
    /// Rows of that window that were not taken yet; `None` if an earlier run began it.
    rows_left: Option<u64>,
    /// Whether an earlier run may have delivered some of the first window.
    has_resumed_window: bool,
    pace: Pace,
    /// Failed reads of the store since the last that gave a row.
    store_failures: u32,
    /// Moment at which that was last logged.
    store_failure_logged: Option<Instant>,
}

impl Reader {
    /// Goes on where the tails stand; takes at most this many samples a second from the store, or
    /// any number with 0.
    pub fn new(tails: Tails, has_resumed_window: bool, samples_per_second: u64) -> Reader {
        Reader {
            tails,
            log_ended: None,
            window: None,
            last_window: None,
            rows_left: None,
            has_resumed_window,
            pace: Pace::new(samples_per_second),
            store_failures: 0,
            store_failure_logged: None,
        }
    }

    /// Returns the moment at which all of the log was read, if nothing of it is left now.
    pub fn log_ended(&self) -> Option<Instant> {
        self.log_ended.filter(|_| !self.tails.is_stuck())
    }

    /// Returns the unread bytes of both logs.
    pub fn bytes_left(&self) -> u64 {
        self.tails.bytes_left()
    }

    /// Drops series that a new checkpoint lacks, once everything before it was read.
    pub fn drop_series(&mut self, shared: &mut Shared<'_>) -> Result<(), ForwardError> {
        self.tails.drop_series(&mut shared.destination)
    }

    /// Returns the newest checkpoint that knows all series of undelivered rows, if there is one.
    pub fn series_base(&mut self, positions: &[ShardPosition]) -> Option<u32> {
        self.tails.series_base(positions)
    }

    /// Returns whether the store has given all of the open window.
    pub fn has_ended_window(&self) -> bool {
        self.window.as_ref().is_some_and(Window::has_ended)
    }

    /// Reads the logs to their end, however many rows wait.
    pub fn read_logs(&mut self, shared: &mut Shared<'_>) -> Result<(), ForwardError> {
        // Gaps may be joined, so a read of the store starts over.
        self.window = None;
        // The first cycle reads only what was there when it began.
        for _ in 0..2 {
            while self.tails.step(&mut shared.feeding(u32::MAX))? == Read::Some {}
        }
        Ok(())
    }

    /// Reads some of the logs and of the store; returns whether there was anything.
    pub fn read(&mut self, shared: &mut Shared<'_>) -> Result<bool, ForwardError> {
        let DestinationConfig { backlog, queue, .. } = &shared.parts.config;
        let order = backlog.order;
        let has_window = self.window.is_some() || shared.destination.store_window()?.is_some();
        let mut has_read = false;
        let is_due = self.log_ended.is_none_or(|at| at.elapsed() >= LOOK_AGAIN);
        if is_due && (order == BacklogOrder::NewestFirst || !has_window) {
            self.log_ended = None;
            for _ in 0..STEPS {
                match self.tails.step(&mut shared.feeding(queue.room()))? {
                    Read::Some => has_read = true,
                    Read::Full => break,
                    Read::End => {
                        self.log_ended = Some(Instant::now());
                        break;
                    }
                }
            }
        }
        if has_window {
            has_read |= self.read_window(shared)?;
        }
        Ok(has_read)
    }

    fn read_window(&mut self, shared: &mut Shared<'_>) -> Result<bool, ForwardError> {
        let parts = shared.parts;
        let Some(window) = shared.destination.store_window()? else {
            self.window = None;
            return Ok(false);
        };
        if window.end_ms < parts.not_before_ms() {
            let too_old = &parts.figures.dropped.too_old;
            self.drop_window(shared, &window, too_old, BEYOND_LIMIT)?;
            return Ok(true);
        }
        if !self.pace.has_room() {
            return Ok(false);
        }
        let mut open = match self.window.take().filter(|open| open.start_ms() == window.start_ms) {
            Some(open) => open,
            // An open read keeps the head from truncating, so none is opened that could not go on.
            None if is_any_full(shared)? => return Ok(false),
            None => {
                // Before the store is read: later out-of-order samples are sent from the log.
                let out_of_order_end = self.tails.out_of_order_end()?;
                shared.destination.begin_store_window(out_of_order_end)?;
                shared.write_position(true)?;
                if self.last_window.replace(window.start_ms) != Some(window.start_ms) {
                    self.rows_left = (!self.has_resumed_window).then_some(window.rows);
                    self.has_resumed_window = false;
                }
                let opened = Window::open(&parts.store, &parts.runtime, &window);
                match opened {
                    Ok(open) => open,
                    Err(error) => return self.store_failed(shared, &window, error),
                }
            }
        };
        if open.has_ended() {
            // The window counts its rows until they are delivered.
            if !shared.destination.has_store_rows()? {
                if let Some(samples) = self.rows_left.filter(|samples| *samples > 0) {
                    parts.figures.dropped.not_stored.fetch_add(samples, Relaxed);
                    tracing::warn!(
                        remote_name = parts.config.name,
                        samples,
                        from_ms = window.start_ms,
                        to_ms = window.end_ms,
                        "samples of the backlog were deleted or dropped by retention before they \
                         were sent"
                    );
                }
                self.last_window = None;
                shared.destination.end_store_window()?;
                shared.write_position(true)?;
                return Ok(true);
            }
            self.window = Some(open);
            return Ok(false);
        }
        let capacity = parts.config.queue.room();
        // Half of the room is left to live samples.
        let capacity = match parts.config.backlog.order {
            BacklogOrder::OldestFirst => capacity,
            BacklogOrder::NewestFirst => (capacity / 2).max(1),
        };
        match open.step(&mut shared.feeding(capacity), &parts.runtime) {
            Ok(rows) => {
                let taken = rows.unwrap_or(0);
                self.pace.took(taken);
                if taken > 0 {
                    self.store_failures = 0;
                }
                self.rows_left = self.rows_left.map(|left| left.saturating_sub(taken));
                // A read that waits for long would keep the head from truncating as well.
                self.window = (!open.is_stuck()).then_some(open);
                Ok(rows.is_some())
            }
            Err(error) => self.store_failed(shared, &window, error),
        }
    }

    /// Handles a failed read of the store, which is retried from where it ended. Damaged data stays
    /// damaged, and must not block the rest.
    fn store_failed(
        &mut self,
        shared: &mut Shared<'_>,
        window: &StoreWindow,
        error: ForwardError,
    ) -> Result<bool, ForwardError> {
        let is_damage = match &error {
            ForwardError::Store(StoreError::Refused(error)) => is_damage(error),
            ForwardError::Call(CallError::Refused(error)) if is_damage(error) => true,
            // The destination's own instance failed, so the run ends.
            ForwardError::Call(_) => return Err(error),
            _ => false,
        };
        let parts = shared.parts;
        self.window = None;
        self.store_failures += 1;
        if is_damage && self.store_failures >= DAMAGE_ATTEMPTS {
            self.store_failures = 0;
            let why = format!("the block that has them is damaged: {error}");
            self.drop_window(shared, window, &parts.figures.dropped.damaged, &why)?;
            return Ok(true);
        }
        if self.store_failure_logged.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
            self.store_failure_logged = Some(Instant::now());
            tracing::warn!(
                remote_name = parts.config.name,
                %error,
                failures = self.store_failures,
                "could not read the backlog from the store; it will be retried"
            );
        }
        // A pause that a stop ends: the store must not be asked without a break.
        parts.is_stopping_within(LOOK_EVERY);
        Ok(false)
    }

    /// Drops a window, and counts its rows.
    pub fn drop_window(
        &mut self,
        shared: &mut Shared<'_>,
        window: &StoreWindow,
        dropped: &AtomicU64,
        why: &str,
    ) -> Result<(), ForwardError> {
        // Rows of the window that are in queues are sent all the same.
        let is_begun = self.last_window == Some(window.start_ms);
        let samples = self.rows_left.filter(|_| is_begun).unwrap_or(window.rows);
        self.window = None;
        dropped.fetch_add(samples, Relaxed);
        tracing::warn!(
            remote_name = shared.parts.config.name,
            samples,
            from_ms = window.start_ms,
            to_ms = window.end_ms,
            why,
            "backlog dropped"
        );
        self.last_window = None;
        shared.destination.end_store_window()?;
        shared.write_position(true)
    }
}

/// Returns whether a queue has no room for rows of the store beside live ones.
fn is_any_full(shared: &mut Shared<'_>) -> Result<bool, ForwardError> {
    let capacity = shared.parts.config.queue.room();
    Ok(shared.destination.pending()?.iter().any(|rows| *rows >= (capacity / 2).max(1)))
}

/// Returns whether a retry would end in the same error.
fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt(_) | Error::Malformed(_))
}
