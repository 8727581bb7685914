//! A life's reading: of the logs, and of what they have no more.

use super::ForwardError;
use super::backlog::Window;
use super::config::BacklogOrder;
use super::life::{LOOK_EVERY, Life};
use super::tail::{Feeding, Read};
use crate::wasm::StoreWindow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Parts of the log that are read between two looks at answers.
const STEPS: usize = 16;

/// Where rows go that are read: parts of a life that are borrowed at the same time as others.
macro_rules! feeding {
    ($life:expr, $capacity:expr) => {
        Feeding {
            destination: &mut $life.destination,
            capacity: $capacity,
            figures: &$life.parts.figures,
            resharding: &mut $life.resharding,
        }
    };
}
pub(super) use feeding;

impl Life<'_> {
    /// Reads some of the logs and of what they have no more; gives whether there was anything.
    pub fn read(&mut self) -> Result<bool, ForwardError> {
        if self.wanted.is_some() {
            return Ok(false);
        }
        let order = self.parts.config.backlog.order;
        let has_window = self.window.is_some() || self.destination.store_window()?.is_some();
        let mut has_read = false;
        if order == BacklogOrder::NewestFirst || !has_window {
            for _ in 0..STEPS {
                let mut feeding = feeding!(self, self.parts.config.queue.capacity);
                match self.tails.step(&mut feeding)? {
                    Read::Some => has_read = true,
                    Read::End | Read::Full => break,
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
            self.drop_window(&window, &self.parts.figures.dropped.too_old)?;
            return Ok(true);
        }
        if !self.pace.has_room() {
            return Ok(false);
        }
        let mut open = match self.window.take().filter(|open| open.start_ms() == window.start_ms) {
            Some(open) => open,
            // An open read keeps the head from forgetting: none is opened that could not go on.
            None if self.is_any_full()? => return Ok(false),
            None => {
                // Before the store is read: what comes late meanwhile is sent from the log.
                let late_end = self.tails.late_end()?;
                self.destination.begin_store_window(late_end)?;
                self.write_position(true)?;
                if self.last_window.replace(window.start_ms) != Some(window.start_ms) {
                    self.rows_left = (!self.has_resumed_window).then_some(window.rows);
                    self.has_resumed_window = false;
                }
                let opened = Window::open(&self.parts.store, &self.parts.runtime, &window);
                match opened {
                    Ok(open) => open,
                    Err(error) => return self.store_failed(&error),
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
                        "samples that waited to be forwarded are not in the store any more: they \
                         were deleted, or dropped by retention"
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
        let capacity = self.parts.config.queue.capacity;
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
                self.rows_left = self.rows_left.map(|left| left.saturating_sub(taken));
                // Nor does one stay open that waits for long.
                self.window = (!open.is_stuck()).then_some(open);
                Ok(rows.is_some())
            }
            Err(ForwardError::Call(error)) => Err(error.into()),
            Err(error) => self.store_failed(&error),
        }
    }

    fn is_any_full(&mut self) -> Result<bool, ForwardError> {
        let capacity = self.parts.config.queue.capacity;
        Ok(self.destination.pending()?.iter().any(|rows| *rows >= (capacity / 2).max(1)))
    }

    /// The store could not be read: it is tried again, from where that ended.
    fn store_failed(&mut self, error: &ForwardError) -> Result<bool, ForwardError> {
        tracing::debug!(%error, "what is missing in the log could not be read; trying again");
        self.window = None;
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
            "samples that waited to be forwarded are dropped, as sample_age_limit and \
             backlog.max_bytes say"
        );
        self.last_window = None;
        self.destination.end_store_window()?;
        self.write_position(true)
    }
}
