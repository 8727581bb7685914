//! The work that a delivery run does once a second: figures, segments, limits, number of shards.

use super::ForwardError;
use super::config::BacklogOrder;
use super::dispatcher::Dispatcher;
use super::progress::Observation;
use super::reader::{BEYOND_LIMIT, Reader};
use super::resharding::UPDATE_EVERY;
use super::resources::{Resources, TIDY_EVERY};
use super::shared::Shared;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tidepool_runtime::ShardPosition;
use tidepool_store::Store;

/// Keeps a run within its limits, and publishes its figures.
pub(super) struct Housekeeper {
    tidied: Instant,
    /// Time at which delivery was last detached from the logs, so that it continues at their end.
    detached: Option<Instant>,
    /// Time at which the number of shards was last computed.
    resharded: Instant,
    /// New number of shards (queues), which is set once no row is queued.
    wanted: Option<u32>,
}

impl Housekeeper {
    /// Creates a housekeeper, whose first second begins now.
    pub fn new() -> Housekeeper {
        let now = Instant::now();
        Housekeeper { tidied: now, detached: None, resharded: now, wanted: None }
    }

    /// Returns whether the number of shards is to change once no row is queued.
    pub fn is_resharding(&self) -> bool {
        self.wanted.is_some()
    }

    /// Publishes the progress of an earlier run at once. The progress of a new destination starts
    /// at the newest stored sample, unless delivery starts at the beginning of the log.
    pub fn begin(&self, shared: &mut Shared<'_>, reader: &Reader) -> Result<(), ForwardError> {
        let positions = shared.destination.positions()?;
        let is_first = |p: &ShardPosition| p.in_order.segment == 0 && p.in_order.record == 0;
        let is_behind = !positions.iter().all(is_first);
        let Resources { store, runtime, .. } = shared.parts;
        if is_behind
            && let Ok(newest_ms) = runtime.block_on(store.newest_time_ms())
            && newest_ms > i64::MIN
        {
            shared.position.progress_mut().begin(newest_ms);
        }
        look(shared, reader).map(drop)
    }

    /// Does the work if a second has passed, or if all recalled requests have ended.
    pub fn tidy_if_due(
        &mut self,
        shared: &mut Shared<'_>,
        reader: &mut Reader,
        dispatcher: &mut Dispatcher<'_>,
    ) -> Result<(), ForwardError> {
        let is_recalled = dispatcher.is_recalling() && dispatcher.is_idle();
        if self.tidied.elapsed() < TIDY_EVERY && !is_recalled {
            return Ok(());
        }
        self.tidied = Instant::now();
        let parts = shared.parts;
        let (gap_rows, bytes_left) = look(shared, reader)?;
        reader.drop_series(shared)?;
        let positions = shared.destination.positions()?;
        shared.position.write_if_moved(&mut shared.destination, &positions)?;
        let needed = shared.position.needed();
        parts.needs.note(parts.number, needed, reader.series_base(&positions))?;
        let backlog = &parts.config.backlog;
        let is_beyond = backlog.max_bytes > 0 && bytes_left > backlog.max_bytes;
        let lags = parts.figures.lag_seconds() > backlog.newest_first_after.as_secs_f64();
        let was_detached =
            self.detached.is_some_and(|at| at.elapsed() < backlog.newest_first_after);
        // Skipping the backlog helps only if the receiver answers, and not again at once.
        let skips = backlog.order == BacklogOrder::NewestFirst
            && lags
            && dispatcher.has_delivered_within(TIDY_EVERY)
            && !was_detached;
        // Rows can be dropped only from a gap, so rows beyond the limit are moved to a gap first.
        let detaches = parts.needs.is_too_much(needed) || skips || (is_beyond && gap_rows == 0);
        // A request without an answer may have arrived. If its rows were in the gap, they would be
        // sent twice, or counted as dropped.
        if (detaches || dispatcher.is_recalling()) && dispatcher.recall() {
            self.detach(shared, reader)?;
            dispatcher.go_on();
        }
        if is_beyond && let Some(window) = shared.destination.store_window()? {
            reader.drop_window(
                shared,
                &window,
                &parts.figures.dropped.backlog_bytes,
                BEYOND_LIMIT,
            )?;
            // Due again at once, in case that dropping one window was not enough.
            self.tidied = Instant::now() - TIDY_EVERY;
        }
        self.reshard(shared, dispatcher)?;
        dispatcher.send_metadata(shared)
    }

    /// Moves undelivered rows of the logs to a gap: time ranges that are read from the store later.
    /// No request may be unanswered.
    fn detach(&mut self, shared: &mut Shared<'_>, reader: &mut Reader) -> Result<(), ForwardError> {
        self.detached = Some(Instant::now());
        let mut rows = shared.destination.detach()?;
        let in_log = &shared.parts.figures.samples_in;
        let before = in_log.load(Relaxed);
        // While detached, the engine adds rows to the gap instead of to queues.
        reader.read_logs(shared)?;
        shared.destination.attach()?;
        rows += in_log.load(Relaxed) - before;
        shared.write_position(true)?;
        tracing::info!(
            remote_name = shared.parts.config.name,
            samples = rows,
            "the WAL was truncated before delivery; the backlog will be read from blocks"
        );
        Ok(())
    }

    /// Computes every ten seconds whether more or fewer shards are needed.
    fn reshard(
        &mut self,
        shared: &mut Shared<'_>,
        dispatcher: &mut Dispatcher<'_>,
    ) -> Result<(), ForwardError> {
        let Resources { config, figures, .. } = shared.parts;
        let now = dispatcher.shard_count();
        figures.shards.store(u64::from(now), Relaxed);
        let elapsed = self.resharded.elapsed();
        if elapsed >= UPDATE_EVERY {
            self.resharded = Instant::now();
            let bounds = (config.queue.min_shards, config.queue.max_shards);
            let delay = figures.lag_seconds();
            let (wanted, desired) = shared.resharding.desired(now, bounds, delay, elapsed);
            let wanted = wanted.clamp(bounds.0, bounds.1);
            figures.shards_desired_milli.store((desired * 1000.0) as u64, Relaxed);
            // Without any delivery, requests take long with any number of shards.
            let delivers = dispatcher.has_delivered_within(UPDATE_EVERY);
            self.wanted = (wanted != now && delivers).then_some(wanted);
        }
        let Some(wanted) = self.wanted else { return Ok(()) };
        let is_idle = dispatcher.is_idle();
        if is_idle && shared.destination.reshard(wanted)? {
            tracing::info!(
                remote_name = config.name,
                from = now,
                to = wanted,
                "number of shards changed"
            );
            dispatcher.replace_shards(wanted);
            self.wanted = None;
            figures.shards.store(u64::from(wanted), Relaxed);
            shared.write_position(false)?;
        } else if is_idle && shared.destination.pending()?.iter().all(|rows| *rows == 0) {
            // The log is not read up to an earlier run's position yet. Computed again later.
            self.wanted = None;
        }
        Ok(())
    }
}

/// Updates the figures; returns the number of rows in gaps, and the bytes of all undelivered rows.
fn look(shared: &mut Shared<'_>, reader: &Reader) -> Result<(u64, u64), ForwardError> {
    let Resources { store, runtime, figures, .. } = shared.parts;
    let now = Instant::now();
    let pending: u64 = shared.destination.pending()?.iter().map(|rows| u64::from(*rows)).sum();
    let gap_rows = shared.destination.gap_rows()?;
    let rows_bytes = ((gap_rows + pending) as f64 * figures.bytes_per_sample()) as u64;
    let bytes_left = reader.bytes_left() + rows_bytes;
    figures.pending.store(pending, Relaxed);
    figures.gap_rows.store(gap_rows, Relaxed);
    figures.bytes_left.store(bytes_left, Relaxed);
    let is_unknown = shared.position.progress().delivered_ms().is_none();
    let stored_ms = runtime.block_on(stored_ms(store, is_unknown));
    if let Some((_, newest_ms)) = stored_ms {
        figures.newest_ms.store(newest_ms, Relaxed);
    }
    let (log_ended, waits) = (reader.log_ended(), pending > 0 || gap_rows > 0);
    shared.position.progress_mut().look(&Observation { now, stored_ms, log_ended, waits });
    shared.position.show_progress();
    Ok((gap_rows, bytes_left))
}

/// Returns the times of the head's oldest sample (only with `with_oldest`) and of the newest stored
/// sample; `None` if the store has no sample, or does not answer now.
pub(super) async fn stored_ms(store: &Store, with_oldest: bool) -> Option<(i64, i64)> {
    let newest_ms = store.newest_time_ms().await.ok().filter(|time_ms| *time_ms > i64::MIN)?;
    let oldest_ms = match with_oldest {
        true => store.figures().await.ok()?.head_min_time_ms,
        false => newest_ms,
    };
    Some((oldest_ms.min(newest_ms), newest_ms))
}
