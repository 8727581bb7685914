//! Rows read from blocks and head instead of the logs: gaps, and the windows that fill them.

use super::gap::{Gap, StorePlace, WINDOW_MS};
use super::place::Mark;
use super::row::{Row, RowPosition, SOURCES, Source};
use super::series::{labels_hash, shard_of};
use super::{Fed, ForwardError, Forwarder};
use crate::chunk::values;
use crate::model::Value;
use crate::wire::split_chunked_series;

/// Largest number of gaps; beyond it, the oldest two are joined.
const GAPS_MAX: usize = 16;

impl Forwarder {
    /// Starts to note rows of the logs in a gap. Queued rows of the logs move to the gap as well,
    /// including rows in flight. Returns the number of moved rows.
    pub fn detach(&mut self) -> u64 {
        self.is_detached = true;
        // A begun gap must not grow; a gap that grew over queued rows would repeat them.
        let extends = self.gaps.back().is_some_and(|gap| !gap.has_begun()) && !self.has_queued;
        if !extends {
            self.gaps.push_back(Gap::default());
            if self.gaps.len() > GAPS_MAX
                && let Some(oldest) = self.gaps.pop_front()
                && let Some(next) = self.gaps.front_mut()
            {
                next.join(oldest);
                // Series that were read already may have more rows in the joined gap.
                self.store_tail = StorePlace::default();
            }
        }
        self.has_queued = false;
        let Some(gap) = self.gaps.back_mut() else { return 0 };
        let mut moved = 0;
        for shard in &mut self.shards {
            shard.in_flight = 0;
            let queue = std::mem::take(&mut shard.queue);
            // Rows that stay get new ordinals, so that no exemplar finds another row.
            shard.left += queue.len() as u64;
            shard.counts = [0; SOURCES];
            // In-order rows first: their spans then include out-of-order rows between them.
            for row in queue.iter().filter(|row| row.source() == Source::InOrder) {
                let Some(series) = self.series.get(row.series) else { continue };
                gap.add_in_order(series.hash, row.time_ms);
            }
            for row in queue {
                let hash = self.series.get(row.series).map_or(0, |series| series.hash);
                // Rows of the store belong to an older gap, whose window is still open.
                let goes = match row.source() {
                    Source::InOrder => true,
                    Source::OutOfOrder => gap.add_out_of_order(hash, row.time_ms),
                    Source::Store => false,
                };
                if goes {
                    moved += 1;
                    self.extras.free(&row);
                    self.series.release(row.series);
                } else {
                    shard.push(row);
                }
            }
        }
        moved
    }

    /// Ends [`Forwarder::detach`]: rows of the logs are queued again.
    pub fn attach(&mut self) {
        self.is_detached = false;
        self.end_gaps();
        self.prune_marks();
    }

    /// Queues the rows in `chunked-series` frames of the store that belong to the oldest window,
    /// until a queue holds `capacity` rows. Series that were read before are skipped.
    pub fn feed_store(&mut self, frames: &[u8], capacity: usize) -> Result<Fed, ForwardError> {
        let mut fed = Fed { newest_ms: i64::MIN, ..Fed::default() };
        let gap_at = self.gaps.iter().position(|gap| gap.first_window().is_some());
        let Some((window_ms, _)) = self.store_window() else {
            fed.bytes = frames.len() as u64;
            return Ok(fed);
        };
        let window_end_ms = window_ms.saturating_add(WINDOW_MS);
        let mut rest = frames;
        while !rest.is_empty() {
            fed.is_full = self.is_full(capacity);
            if fed.is_full {
                break;
            }
            let (stored, after) = split_chunked_series(rest)?;
            rest = after;
            let place = StorePlace { window_ms, labels: stored.labels, time_ms: i64::MIN };
            if self.was_fed(&place) {
                continue;
            }
            let hash = labels_hash(&place.labels);
            let shard_at = shard_of(hash, self.shards.len());
            let has = gap_at.and_then(|at| self.gaps.get(at)).map(|gap| gap.of(hash));
            let (Some(has), Some(shard)) = (has, self.shards.get_mut(shard_at)) else { continue };
            let mut at = None;
            let mut row_count = 0u64;
            for chunk in &stored.chunks {
                // Chunks are whole and may lie outside of the window; such chunks are not decoded.
                if chunk.max_time_ms < window_ms || chunk.min_time_ms >= window_end_ms {
                    continue;
                }
                let damaged = |error: crate::chunk::ChunkError| ForwardError::Chunk {
                    series: place.labels.to_string(),
                    reason: error.to_string(),
                };
                for row in values(chunk).map_err(damaged)? {
                    let (time_ms, value) = row.map_err(damaged)?;
                    if time_ms < window_ms || time_ms >= window_end_ms || !has(time_ms) {
                        continue;
                    }
                    if place.window_ms == shard.resume_store.window_ms
                        && (&place.labels, time_ms)
                            < (&shard.resume_store.labels, shard.resume_store.time_ms)
                    {
                        continue;
                    }
                    let histogram = match &value {
                        Value::Float(_) => None,
                        _ if !self.settings.histograms => continue,
                        histogram => Some(histogram.clone()),
                    };
                    let at =
                        *at.get_or_insert_with(|| self.series.note_stored(&place.labels, hash));
                    let Some(series) = self.series.get_mut(at) else { continue };
                    if series.labels.is_empty() {
                        fed.dropped += 1;
                        continue;
                    }
                    let number = self.numbers[Source::Store as usize] + row_count;
                    let mut row = Row::new(Source::Store, number, time_ms, at);
                    match (histogram, value) {
                        (None, Value::Float(value)) => row.value = value,
                        (histogram, _) => {
                            if let Some(extra) = self.extras.of(&mut row) {
                                extra.histogram = histogram;
                            }
                        }
                    }
                    series.queued += 1;
                    shard.push(row);
                    row_count += 1;
                    fed.rows += 1;
                    fed.newest_ms = fed.newest_ms.max(time_ms);
                }
            }
            // Without a queued row, `release` would never drop the series.
            if let Some(at) = at {
                self.series.drop_if_unused(at);
            }
            if row_count > 0 {
                let first_number = self.numbers[Source::Store as usize];
                self.store_marks.push_back(Mark { first_number, place: place.clone() });
                self.numbers[Source::Store as usize] += row_count;
            }
            // `i64::MAX` means for `was_fed` that the series was read to its end.
            self.store_tail = StorePlace { time_ms: i64::MAX, ..place };
        }
        fed.bytes = (frames.len() - rest.len()) as u64;
        Ok(fed)
    }

    /// Returns whether a series was read; the host may restart the read of a window at any time.
    fn was_fed(&self, place: &StorePlace) -> bool {
        let StorePlace { window_ms, labels, time_ms } = &self.store_tail;
        *window_ms == place.window_ms && *time_ms == i64::MAX && place.labels <= *labels
    }

    /// Returns the start of the oldest window in the gaps, and the expected number of its rows.
    pub fn store_window(&self) -> Option<(i64, u64)> {
        self.gaps.iter().find_map(Gap::first_window)
    }

    /// Begins the oldest window. Out-of-order rows before `out_of_order_end` may be in the store.
    pub fn begin_store_window(&mut self, out_of_order_end: RowPosition) {
        if let Some(gap) = self.active_gap() {
            gap.begin_window(out_of_order_end);
        }
    }

    /// Ends the oldest window, all of whose rows were delivered or given up.
    pub fn end_store_window(&mut self) {
        if let Some(gap) = self.active_gap() {
            gap.end_window();
        }
        self.end_gaps();
        // The next window may be older, in another gap, so the position may also go back.
        let window_ms = self.store_window().map_or(i64::MIN, |(window_ms, _)| window_ms);
        self.store_tail = StorePlace { window_ms, ..StorePlace::default() };
        for shard in &mut self.shards {
            shard.resume_store = StorePlace::default();
        }
    }

    fn active_gap(&mut self) -> Option<&mut Gap> {
        self.gaps.iter_mut().find(|gap| gap.first_window().is_some())
    }

    fn end_gaps(&mut self) {
        let out_of_order = self.tails[1];
        let is_skipping = self.shards.iter().any(|shard| shard.resume[1] > out_of_order);
        self.gaps.retain(|gap| is_skipping || !gap.is_over(out_of_order));
    }

    /// Returns whether rows of the store are queued.
    pub fn has_store_rows(&self) -> bool {
        self.shards.iter().any(|shard| shard.counts[Source::Store as usize] > 0)
    }

    /// Number of rows in the windows of all gaps.
    pub fn gap_rows(&self) -> u64 {
        self.gaps.iter().map(Gap::rows).sum()
    }

    /// Encodes the gaps for [`Forwarder::resume`].
    pub fn encode_gaps(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.gaps.iter().for_each(|gap| gap.encode(&mut out));
        out
    }
}
