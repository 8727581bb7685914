//! Reads samples that are no longer in the WAL from blocks and head, oldest time window first.

use super::ForwardError;
use super::tail::Feeding;
use bytes::{Buf as _, Bytes};
use std::time::{Duration, Instant};
use tidepool_runtime::{StoreWindow, TimeRange};
use tidepool_store::{ReadFormat, ReadPart, ReadQuery, Store, StoreError};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;

/// Maximum wait for the next part of a read, so that live samples are not delayed.
const WAIT: Duration = Duration::from_millis(20);

/// Duration of full queues after which the read of the store is closed.
const STUCK: Duration = Duration::from_secs(1);

/// A store window that is being read.
pub(super) struct Window {
    start_ms: i64,
    parts: Option<Receiver<Result<ReadPart, StoreError>>>,
    part: Bytes,
    /// Whether the store has returned all parts.
    has_ended: bool,
    /// Time since which the queues have been full.
    stuck: Option<Instant>,
}

/// Limits the number of samples that are read from the store in a second.
pub(super) struct Pace {
    per_second: u64,
    room: f64,
    looked: Instant,
}

impl Pace {
    pub fn new(per_second: u64) -> Pace {
        Pace { per_second, room: 0.0, looked: Instant::now() }
    }

    /// Returns whether the limit allows more samples now.
    pub fn has_room(&mut self) -> bool {
        if self.per_second == 0 {
            return true;
        }
        let rate = self.per_second as f64;
        // After a pause, the unused allowance is at most that of one second.
        self.room = (self.room + self.looked.elapsed().as_secs_f64() * rate).min(rate);
        self.looked = Instant::now();
        self.room > 0.0
    }

    pub fn took(&mut self, samples: u64) {
        self.room -= samples as f64;
    }
}

impl Window {
    /// Opens or reopens a window. After reopening, the engine skips rows that it has queued before.
    pub fn open(
        store: &Store,
        runtime: &Handle,
        window: &StoreWindow,
    ) -> Result<Window, ForwardError> {
        let range = TimeRange { start_ms: window.start_ms, end_ms: window.end_ms };
        let query = ReadQuery { matchers: Vec::new(), range };
        let reading = store.read(vec![query], ReadFormat::CHUNKED_SERIES, Vec::new());
        let parts = Some(runtime.block_on(reading)?);
        let (start_ms, part) = (window.start_ms, Bytes::new());
        Ok(Window { start_ms, parts, part, has_ended: false, stuck: None })
    }

    pub fn start_ms(&self) -> i64 {
        self.start_ms
    }

    /// Returns whether the queues have been full for longer than `STUCK`.
    pub fn is_stuck(&self) -> bool {
        self.stuck.is_some_and(|since| since.elapsed() > STUCK)
    }

    /// Returns whether all rows of the window have been queued.
    pub fn has_ended(&self) -> bool {
        self.has_ended && self.part.is_empty()
    }

    /// Queues rows of the next part; returns their number, or `None` if no row could be queued.
    pub fn step(
        &mut self,
        to: &mut Feeding<'_>,
        runtime: &Handle,
    ) -> Result<Option<u64>, ForwardError> {
        if self.part.is_empty() {
            let Some(parts) = &mut self.parts else { return Ok(None) };
            let next = runtime.block_on(async { tokio::time::timeout(WAIT, parts.recv()).await });
            match next {
                Err(_) => return Ok(None),
                Ok(Some(Ok(ReadPart::Bytes(bytes)))) => self.part = bytes,
                Ok(Some(Ok(ReadPart::End))) => {
                    self.has_ended = true;
                    self.parts = None;
                    return Ok(Some(0));
                }
                Ok(Some(Err(error))) => return Err(error.into()),
                Ok(None) => {
                    let cut = "a read of what is missing in the log ended before its end";
                    return Err(StoreError::Runtime(cut.into()).into());
                }
            }
        }
        let fed = to.destination.feed_store(&self.part, to.capacity)?;
        // Clamped, as every number that the guest returns: advancing beyond the end would panic.
        self.part.advance((fed.bytes as usize).min(self.part.len()));
        to.resharding.came_in(fed.rows);
        // The queues are not stuck as long as they have room for some rows of each part.
        if fed.bytes == 0 && fed.is_full {
            self.stuck.get_or_insert_with(Instant::now);
            return Ok(None);
        }
        self.stuck = None;
        Ok(Some(fed.rows + fed.dropped))
    }
}
