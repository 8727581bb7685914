//! What a run does once a second: figures, segments, limits, and the number of shards.

use super::ForwardError;
use super::config::BacklogOrder;
use super::delivery::{Delivery, Shard, TIDY_EVERY};
use super::progress::Look;
use super::reading::{BEYOND_LIMIT, feeding};
use super::resharding::UPDATE_EVERY;
use super::tail::{Feeding, Read, segments};
use super::worker::Parts;
use crate::store::Store;
use crate::wasm::ShardPosition;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl Delivery<'_> {
    /// What is done once a second.
    pub fn tidy(&mut self) -> Result<(), ForwardError> {
        let parts = self.parts;
        let (gap_rows, bytes_left) = self.look()?;
        self.tails.drop_series(&mut self.destination)?;
        // Reading moves it, too, where nothing of what is read is sent.
        let is_timed = self.is_timed || self.progress.delivered_ms().is_none();
        let positions = self.destination.positions()?;
        let has_moved = segments(&positions) != self.needed;
        if self.is_unwritten || has_moved || !is_timed {
            self.write_position(false)?;
        }
        let needed = self.needed;
        parts.needs.note(parts.number, needed, self.tails.series_base(&positions))?;
        let backlog = &parts.config.backlog;
        let is_beyond = backlog.max_bytes > 0 && bytes_left > backlog.max_bytes;
        let lags = parts.figures.lag_seconds() > backlog.newest_first_after.as_secs_f64();
        let is_recent = |at: Option<Instant>, within| at.is_some_and(|at| at.elapsed() < within);
        let skips = backlog.order == BacklogOrder::NewestFirst
            && lags
            && is_recent(self.delivered, TIDY_EVERY)
            && !is_recent(self.detached, backlog.newest_first_after);
        if parts.needs.is_too_much(needed) || skips || (is_beyond && gap_rows == 0) {
            self.detach()?;
        }
        if is_beyond && let Some(window) = self.destination.store_window()? {
            self.drop_window(&window, &parts.figures.dropped.backlog_bytes, BEYOND_LIMIT)?;
            // The next one at once, if that is not enough.
            self.tidied = Instant::now() - TIDY_EVERY;
        }
        self.reshard()?;
        self.send_metadata()
    }

    /// Shows at once how far an earlier run had come; a destination that is new begins behind what is
    /// stored now, unless it has the log from its beginning.
    pub fn begin(&mut self) -> Result<(), ForwardError> {
        let positions = self.destination.positions()?;
        let is_first = |p: &ShardPosition| p.in_order.segment == 0 && p.in_order.record == 0;
        let is_behind = !positions.iter().all(is_first);
        if is_behind
            && let Ok(newest_ms) = self.parts.runtime.block_on(self.parts.store.newest_time_ms())
            && newest_ms > i64::MIN
        {
            self.progress.begin(newest_ms);
        }
        self.look().map(drop)
    }

    /// Takes and shows figures; gives rows in gaps, and bytes of all that waits.
    fn look(&mut self) -> Result<(u64, u64), ForwardError> {
        let Parts { store, runtime, figures, .. } = self.parts;
        let now = Instant::now();
        let pending: u64 = self.destination.pending()?.iter().map(|rows| u64::from(*rows)).sum();
        let gap_rows = self.destination.gap_rows()?;
        let rows_bytes = ((gap_rows + pending) as f64 * figures.bytes_per_sample()) as u64;
        let bytes_left = self.tails.bytes_left() + rows_bytes;
        figures.pending.store(pending, Relaxed);
        figures.gap_rows.store(gap_rows, Relaxed);
        figures.bytes_left.store(bytes_left, Relaxed);
        let is_unknown = self.progress.delivered_ms().is_none();
        let stored_ms = runtime.block_on(stored_ms(store, is_unknown));
        if let Some((_, newest_ms)) = stored_ms {
            figures.newest_ms.store(newest_ms, Relaxed);
        }
        let waits = pending > 0 || gap_rows > 0;
        self.progress.look(&Look { now, stored_ms, log_ended: self.log_ended, waits });
        self.show_progress();
        Ok((gap_rows, bytes_left))
    }

    /// Shows how far delivery has come.
    pub fn show_progress(&self) {
        let delivered_ms = self.progress.delivered_ms().unwrap_or(0);
        self.parts.figures.delivered_ms.store(delivered_ms, Relaxed);
    }

    /// Leaves what was not delivered of the logs to be taken from the store.
    fn detach(&mut self) -> Result<(), ForwardError> {
        self.abort();
        // Gaps may be joined: a read of the store begins anew.
        self.window = None;
        self.detached = Some(Instant::now());
        let mut rows = self.destination.detach()?;
        let in_log = &self.parts.figures.samples_in;
        let before = in_log.load(Relaxed);
        // Each cycle reads what was there when it began.
        for _ in 0..2 {
            loop {
                let mut feeding = feeding!(self, u32::MAX);
                if self.tails.step(&mut feeding)? != Read::Some {
                    break;
                }
            }
        }
        self.destination.attach()?;
        rows += in_log.load(Relaxed) - before;
        self.write_position(true)?;
        tracing::info!(
            remote_name = self.parts.config.name,
            samples = rows,
            "the WAL was truncated before delivery; the backlog will be read from blocks"
        );
        Ok(())
    }

    /// Looks every ten seconds whether more or fewer shards are wanted.
    fn reshard(&mut self) -> Result<(), ForwardError> {
        let now = self.shards.len() as u32;
        let figures = &self.parts.figures;
        figures.shards.store(u64::from(now), Relaxed);
        let elapsed = self.resharded.elapsed();
        if elapsed >= UPDATE_EVERY {
            self.resharded = Instant::now();
            let queue = &self.parts.config.queue;
            let bounds = (queue.min_shards, queue.max_shards);
            let delay = figures.lag_seconds();
            let (wanted, desired) = self.resharding.desired(now, bounds, delay, elapsed);
            let wanted = wanted.clamp(bounds.0, bounds.1);
            figures.shards_desired_milli.store((desired * 1000.0) as u64, Relaxed);
            // Not while nothing is delivered: what takes long then is not the number's fault.
            let delivers = self.delivered.is_some_and(|at| at.elapsed() < UPDATE_EVERY);
            self.wanted = (wanted != now && delivers).then_some(wanted);
        }
        let Some(wanted) = self.wanted else { return Ok(()) };
        let is_idle = self.shards.iter().all(|shard| shard.on_its_way.is_none());
        if is_idle && self.destination.reshard(wanted)? {
            tracing::info!(
                remote_name = self.parts.config.name,
                from = now,
                to = wanted,
                "number of shards changed"
            );
            self.generation += 1;
            self.shards = (0..wanted).map(|_| Shard::default()).collect();
            self.wanted = None;
            self.parts.figures.shards.store(u64::from(wanted), Relaxed);
            self.write_position(false)?;
        } else if is_idle && self.destination.pending()?.iter().all(|rows| *rows == 0) {
            // An earlier run delivered some of what is still to be read: not yet.
            self.wanted = None;
        }
        Ok(())
    }
}

/// Times of the oldest sample of the head, if that is asked for, and of the newest one stored; nothing
/// without any, or if the store does not tell now.
pub(super) async fn stored_ms(store: &Store, with_oldest: bool) -> Option<(i64, i64)> {
    let newest_ms = store.newest_time_ms().await.ok().filter(|time_ms| *time_ms > i64::MIN)?;
    let oldest_ms = match with_oldest {
        true => store.figures().await.ok()?.head_min_time_ms,
        false => newest_ms,
    };
    Some((oldest_ms.min(newest_ms), newest_ms))
}
