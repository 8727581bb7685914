//! Reads the logs for a delivery run, and the store for rows that are no longer in the logs.

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

/// Pause after reading the log to its end, so that new samples are read together.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Number of log reads between two checks for answers.
const STEPS: usize = 16;

/// Number of reads of damaged data before it is dropped: the device may succeed at a retry.
const DAMAGE_ATTEMPTS: u32 = 3;

/// Interval of log lines about repeated failures.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Reason for dropping a window that is too old or beyond the size limit.
pub(super) const BEYOND_LIMIT: &str = "sample_age_limit and backlog.max_bytes say so";

/// Reads rows from the logs and, for time windows missing there, from the store.
pub(super) struct Reader {
    tails: Tails,
    /// Time at which the log was last read to its end; `None` if there may be more to read.
    log_ended: Option<Instant>,
    /// The window of the store that is being read.
    window: Option<Window>,
    /// Start time of the window that was opened last.
    last_window: Option<i64>,
    /// Rows of that window not read yet; `None` if an earlier run has read some of them.
    rows_left: Option<u64>,
    /// Whether an earlier run may have delivered rows of the first window.
    has_resumed_window: bool,
    pace: Pace,
    /// Number of failed reads of the store since the last read that returned a row.
    store_failures: u32,
    /// Time at which such a failure was last logged.
    store_failure_logged: Option<Instant>,
}

impl Reader {
    /// Continues at the position of the tails. Reads at most `samples_per_second` samples from the
    /// store; 0 means no limit.
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

    /// Returns the time at which the log was last read to its end, if nothing is unread now.
    pub fn log_ended(&self) -> Option<Instant> {
        self.log_ended.filter(|_| !self.tails.is_stuck())
    }

    /// Returns the unread bytes of both logs.
    pub fn bytes_left(&self) -> u64 {
        self.tails.bytes_left()
    }

    /// Drops series that a new checkpoint no longer has, once all older records are read.
    pub fn drop_series(&mut self, shared: &mut Shared<'_>) -> Result<(), ForwardError> {
        self.tails.drop_series(&mut shared.destination)
    }

    /// Returns the newest checkpoint with all series of undelivered rows, if there is one.
    pub fn series_base(&mut self, positions: &[ShardPosition]) -> Option<u32> {
        self.tails.series_base(positions)
    }

    /// Returns whether all of the open window has been read from the store.
    pub fn has_ended_window(&self) -> bool {
        self.window.as_ref().is_some_and(Window::has_ended)
    }

    /// Reads the logs to their end, even if the queues are full.
    pub fn read_logs(&mut self, shared: &mut Shared<'_>) -> Result<(), ForwardError> {
        // Reading may join gaps and so change the window, so a read of the store starts over.
        self.window = None;
        // The first cycle stops at the end that the out-of-order log had when the cycle began.
        for _ in 0..2 {
            while self.tails.step(&mut shared.feeding(u32::MAX))? == Read::Some {}
        }
        Ok(())
    }

    /// Reads a bounded part of the logs and the store; returns whether any row was read.
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
            // An open read keeps the head from truncating, so it is opened only if there is room.
            None if is_any_full(shared)? => return Ok(false),
            None => {
                // The end is read before the store: later out-of-order rows come from the log.
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
            // The window ends only when its queued rows are delivered.
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
        // Half of each queue is left to new samples.
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
                // An open read that waits for long would keep the head from truncating.
                self.window = (!open.is_stuck()).then_some(open);
                Ok(rows.is_some())
            }
            Err(error) => self.store_failed(shared, &window, error),
        }
    }

    /// Handles a failed read of the store, which is retried from the same row. Damaged data is
    /// dropped after a few attempts, so that it does not block the rest.
    fn store_failed(
        &mut self,
        shared: &mut Shared<'_>,
        window: &StoreWindow,
        error: ForwardError,
    ) -> Result<bool, ForwardError> {
        let is_damage = match &error {
            ForwardError::Store(StoreError::Refused(error)) => is_damage(error),
            ForwardError::Call(CallError::Refused(error)) if is_damage(error) => true,
            // The destination's own instance failed, and the run with it.
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
        // Pauses, so that the store is not asked without a break. A stop signal ends the pause.
        parts.is_stopping_within(LOOK_EVERY);
        Ok(false)
    }

    /// Drops a window, and adds its undelivered rows to `dropped`.
    pub fn drop_window(
        &mut self,
        shared: &mut Shared<'_>,
        window: &StoreWindow,
        dropped: &AtomicU64,
        why: &str,
    ) -> Result<(), ForwardError> {
        // Rows of the window that are already in queues are still sent, so they are not dropped.
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

/// Returns whether a queue is at least half full, and so has no room for rows of the store.
fn is_any_full(shared: &mut Shared<'_>) -> Result<bool, ForwardError> {
    let capacity = shared.parts.config.queue.room();
    Ok(shared.destination.pending()?.iter().any(|rows| *rows >= (capacity / 2).max(1)))
}

/// Returns whether the error is damaged data, so that retries are likely to fail.
fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt(_) | Error::Malformed(_))
}
