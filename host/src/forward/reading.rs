//! A run's reading: of the logs, and of what they have no more.

use super::ForwardError;
use super::backlog::Window;
use super::config::BacklogOrder;
use super::delivery::{Delivery, LOOK_EVERY};
use super::tail::{Feeding, Read};
use crate::store::StoreError;
use crate::wasm::{CallError, Error, StoreWindow};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How soon the log is looked at again that had no more: what comes meanwhile is read together.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Parts of the log that are read between two looks at answers.
const STEPS: usize = 16;

/// How often what is damaged is read before it is given up: the device may give it another time.
const DAMAGE_ATTEMPTS: u32 = 3;

/// How often failures in a row are told.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Why a window is given up that is too old, or too much.
pub(super) const BEYOND_LIMIT: &str = "sample_age_limit and backlog.max_bytes say so";

/// Where rows go that are read: parts of a run that are borrowed at the same time as others.
macro_rules! feeding {
    ($run:expr, $capacity:expr) => {
        Feeding {
            destination: &mut $run.destination,
            capacity: $capacity,
            figures: &$run.parts.figures,
            resharding: &mut $run.resharding,
        }
    };
}
pub(super) use feeding;

impl Delivery<'_> {
    /// Reads some of the logs and of what they have no more; gives whether there was anything.
    pub fn read(&mut self) -> Result<bool, ForwardError> {
        if self.wanted.is_some() {
            return Ok(false);
        }
        let order = self.parts.config.backlog.order;
        let has_window = self.window.is_some() || self.destination.store_window()?.is_some();
        let mut has_read = false;
        let is_due = self.log_ended.is_none_or(|at| at.elapsed() >= LOOK_AGAIN);
        if is_due && (order == BacklogOrder::NewestFirst || !has_window) {
            self.log_ended = None;
            for _ in 0..STEPS {
                let mut feeding = feeding!(self, self.parts.config.queue.room());
                match self.tails.step(&mut feeding)? {
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
            has_read |= self.read_window()?;
        }
        Ok(has_read)
    }

    fn read_window(&mut self) -> Result<bool, ForwardError> {
        let Some(window) = self.destination.store_window()? else {
            self.window = None;
            return Ok(false);
        };
        if self.is_window_too_old(&window) {
            let too_old = &self.parts.figures.dropped.too_old;
            self.drop_window(&window, too_old, BEYOND_LIMIT)?;
            return Ok(true);
        }
        if !self.pace.has_room() {
            return Ok(false);
        }
        let mut open = match self.window.take().filter(|open| open.start_ms() == window.start_ms) {
            Some(open) => open,
            // An open read keeps the head from truncating: none is opened that could not go on.
            None if self.is_any_full()? => return Ok(false),
            None => {
                // Before the store is read: what comes out of order meanwhile is sent from the log.
                let out_of_order_end = self.tails.out_of_order_end()?;
                self.destination.begin_store_window(out_of_order_end)?;
                self.write_position(true)?;
                if self.last_window.replace(window.start_ms) != Some(window.start_ms) {
                    self.rows_left = (!self.has_resumed_window).then_some(window.rows);
                    self.has_resumed_window = false;
                }
                let opened = Window::open(&self.parts.store, &self.parts.runtime, &window);
                match opened {
                    Ok(open) => open,
                    Err(error) => return self.store_failed(&window, error),
                }
            }
        };
        if open.has_ended() {
            // Its rows are counted by the window until they are delivered.
            if !self.destination.has_store_rows()? {
                if let Some(samples) = self.rows_left.filter(|samples| *samples > 0) {
                    self.parts.figures.dropped.not_stored.fetch_add(samples, Relaxed);
                    tracing::warn!(
                        remote_name = self.parts.config.name,
                        samples,
                        from_ms = window.start_ms,
                        to_ms = window.end_ms,
                        "samples of the backlog were deleted or dropped by retention before they \
                         were sent"
                    );
                }
                self.last_window = None;
                self.destination.end_store_window()?;
                self.write_position(true)?;
                return Ok(true);
            }
            self.window = Some(open);
            return Ok(false);
        }
        let capacity = self.parts.config.queue.room();
        // Live samples find room beside these.
        let capacity = match self.parts.config.backlog.order {
            BacklogOrder::OldestFirst => capacity,
            BacklogOrder::NewestFirst => (capacity / 2).max(1),
        };
        let mut feeding = feeding!(self, capacity);
        match open.step(&mut feeding, &self.parts.runtime) {
            Ok(rows) => {
                let taken = rows.unwrap_or(0);
                self.pace.took(taken);
                if taken > 0 {
                    self.store_failures = 0;
                }
                self.rows_left = self.rows_left.map(|left| left.saturating_sub(taken));
                // Nor does one stay open that waits for long.
                self.window = (!open.is_stuck()).then_some(open);
                Ok(rows.is_some())
            }
            Err(error) => self.store_failed(&window, error),
        }
    }

    fn is_any_full(&mut self) -> Result<bool, ForwardError> {
        let capacity = self.parts.config.queue.room();
        Ok(self.destination.pending()?.iter().any(|rows| *rows >= (capacity / 2).max(1)))
    }

    /// The store could not be read: it is tried again, from where that ended. What is damaged stays so,
    /// and must not hold up what is not.
    fn store_failed(
        &mut self,
        window: &StoreWindow,
        error: ForwardError,
    ) -> Result<bool, ForwardError> {
        let is_damage = match &error {
            ForwardError::Store(StoreError::Refused(error)) => is_damage(error),
            ForwardError::Call(CallError::Refused(error)) if is_damage(error) => true,
            ForwardError::Call(_) => return Err(error),
            _ => false,
        };
        self.window = None;
        self.store_failures += 1;
        if is_damage && self.store_failures >= DAMAGE_ATTEMPTS {
            self.store_failures = 0;
            let why = format!("the block that has them is damaged: {error}");
            self.drop_window(window, &self.parts.figures.dropped.damaged, &why)?;
            return Ok(true);
        }
        if self.store_failure_told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
            self.store_failure_told = Some(Instant::now());
            tracing::warn!(
                remote_name = self.parts.config.name,
                %error,
                failures = self.store_failures,
                "could not read the backlog from the store; it will be retried"
            );
        }
        self.parts.is_stopping_within(LOOK_EVERY);
        Ok(false)
    }

    fn is_window_too_old(&self, window: &StoreWindow) -> bool {
        window.end_ms < self.not_before_ms()
    }

    /// Gives up a window.
    pub fn drop_window(
        &mut self,
        window: &StoreWindow,
        dropped: &AtomicU64,
        why: &str,
    ) -> Result<(), ForwardError> {
        // What of it waits in queues is sent all the same.
        let is_begun = self.last_window == Some(window.start_ms);
        let samples = self.rows_left.filter(|_| is_begun).unwrap_or(window.rows);
        self.window = None;
        dropped.fetch_add(samples, Relaxed);
        tracing::warn!(
            remote_name = self.parts.config.name,
            samples,
            from_ms = window.start_ms,
            to_ms = window.end_ms,
            why,
            "backlog dropped"
        );
        self.last_window = None;
        self.destination.end_store_window()?;
        self.write_position(true)
    }
}

/// Whether it would be the same another time.
fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt(_) | Error::Malformed(_))
}
