//! Reads both logs for one destination. The order ensures that no series is missing: an
//! out-of-order record is read after all in-order records that were written before it.
//!
//! ```text
//! look where the out-of-order log ends ─▶ read the in-order log ─▶ read the out-of-order log to there ─┐
//!        ▲                                                                                             │
//!        └─────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```

use super::ForwardError;
use super::figures::Figures;
use super::resharding::Resharding;
use std::sync::atomic::Ordering::Relaxed;
use tidepool_disk::DataDir;
use tidepool_disk::wal::{Followed, LogFollower, LogKind, Records, SeriesFiles};
use tidepool_runtime::{Destination, Fed, Place, ShardPosition};

/// Bytes of records read at a time.
const READ_BYTES: usize = 128 * 1024;

/// Reader of one log, and records that did not fit into the queues yet.
struct Tail {
    log: LogKind,
    follower: LogFollower,
    waiting: Option<Waiting>,
}

struct Waiting {
    segment: u32,
    first: u32,
    records: Records,
    /// Number of records, and of their bytes, that were queued.
    taken: (usize, usize),
}

pub(super) struct Tails {
    data: DataDir,
    in_order: Tail,
    out_of_order: Tail,
    has_observed: bool,
    series: SeriesBase,
    /// The last checkpoint for which series were dropped.
    dropped_before: Option<u32>,
}

/// Finds the newest checkpoint with all series of undelivered out-of-order rows. A new row refers
/// to a series in the newest checkpoint or in a later segment. So once all rows before a look at
/// the log are delivered, the newest checkpoint at that look suffices.
#[derive(Default)]
struct SeriesBase {
    /// The newest checkpoint when the current read cycle began.
    looked: Option<Option<u32>>,
    /// End of the out-of-order log after that cycle (segment, record), and that checkpoint.
    awaited: Option<((u32, u32), Option<u32>)>,
    found: Option<u32>,
}

/// Result of one step of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Some,
    /// The log has no unread record for now.
    End,
    Full,
}

impl Tail {
    fn new(data: &DataDir, log: LogKind, segment: u32) -> Tail {
        Tail { log, follower: LogFollower::new(data, log, segment), waiting: None }
    }

    fn step(&mut self, to: &mut Feeding<'_>) -> Result<Read, ForwardError> {
        let waiting = match self.waiting.take() {
            Some(waiting) => waiting,
            None => match self.follower.next(READ_BYTES)? {
                Followed::Records { segment, first, records } => {
                    Waiting { segment, first, records, taken: (0, 0) }
                }
                Followed::End { segment } => {
                    to.destination.end_segment(self.log, segment)?;
                    return Ok(Read::Some);
                }
                Followed::Nothing => return Ok(Read::End),
            },
        };
        let Waiting { segment, first, records, taken: (count, offset) } = waiting;
        let lengths = records.lengths.get(count..).unwrap_or_default();
        let bytes = records.bytes.get(offset..).unwrap_or_default();
        let number = first.saturating_add(count as u32);
        let fed = to.destination.feed(self.log, segment, number, bytes, lengths, to.capacity)?;
        to.count(&fed);
        let newly = fed.records as usize;
        if newly < lengths.len() {
            let newly_bytes: usize = lengths.iter().take(newly).map(|len| *len as usize).sum();
            let taken = (count + newly, offset + newly_bytes);
            self.waiting = Some(Waiting { segment, first, records, taken });
            return Ok(Read::Full);
        }
        Ok(Read::Some)
    }
}

/// The target for rows that are read, and its counters.
pub(super) struct Feeding<'a> {
    pub destination: &'a mut Destination,
    pub capacity: u32,
    pub figures: &'a Figures,
    pub resharding: &'a mut Resharding,
}

impl Feeding<'_> {
    pub fn count(&mut self, fed: &Fed) {
        let dropped = &self.figures.dropped;
        self.figures.samples_in.fetch_add(fed.rows + fed.dropped, Relaxed);
        dropped.dropped_series.fetch_add(fed.dropped, Relaxed);
        dropped.unknown_series.fetch_add(fed.unknown, Relaxed);
        dropped.backlog_out_of_order.fetch_add(fed.no_room, Relaxed);
        self.figures.exemplars_dropped.fetch_add(fed.exemplars_dropped, Relaxed);
        if fed.is_full {
            self.figures.enqueue_retries.fetch_add(1, Relaxed);
        }
        self.resharding.came_in(fed.rows + fed.dropped);
        self.resharding.dropped(fed.dropped);
        if fed.newest_ms > i64::MIN {
            self.figures.newest_ms.fetch_max(fed.newest_ms, Relaxed);
        }
    }
}

impl Tails {
    /// Continues from a position. The series of all older segments are read first.
    pub fn open(
        data: &DataDir,
        positions: &[ShardPosition],
        destination: &mut Destination,
    ) -> Result<Tails, ForwardError> {
        let (in_order, out_of_order) = segments(positions);
        SeriesFiles::before(data, in_order)?
            .each(READ_BYTES, |segment, records| destination.note_series(segment, &records))?;
        Ok(Tails {
            data: data.clone(),
            in_order: Tail::new(data, LogKind::InOrder, in_order),
            out_of_order: Tail::new(data, LogKind::OutOfOrder, out_of_order),
            has_observed: false,
            series: SeriesBase::default(),
            dropped_before: None,
        })
    }

    /// Reads the next part of the logs.
    pub fn step(&mut self, to: &mut Feeding<'_>) -> Result<Read, ForwardError> {
        // The end of the out-of-order log is read first, as the drawing above shows.
        if !self.has_observed {
            if self.series.awaited.is_none() {
                self.series.looked = Some(SeriesFiles::newest_checkpoint_number(&self.data)?);
            }
            self.out_of_order.follower.observe()?;
            self.has_observed = true;
        }
        match self.in_order.step(to)? {
            Read::End => {}
            read => return Ok(read),
        }
        let read = self.out_of_order.step(to)?;
        if read == Read::End {
            self.has_observed = false;
            if let Some(checkpoint) = self.series.looked.take() {
                self.series.awaited = Some((self.out_of_order.follower.place(), checkpoint));
            }
        }
        Ok(read)
    }

    /// Returns the newest checkpoint with all series of undelivered rows, if there is one.
    pub fn series_base(&mut self, positions: &[ShardPosition]) -> Option<u32> {
        let delivered = positions
            .iter()
            .map(|shard| (shard.out_of_order.segment, shard.out_of_order.record))
            .min();
        let is_delivered = |(end, _): &(_, _)| delivered >= Some(*end);
        if let Some((_, checkpoint)) = self.series.awaited.filter(is_delivered) {
            self.series = SeriesBase { found: checkpoint, ..SeriesBase::default() };
        }
        self.series.found
    }

    /// Returns the current end of the out-of-order log; its place counts records in the segment.
    pub fn out_of_order_end(&self) -> Result<Place, ForwardError> {
        end_behind(&self.data, LogKind::OutOfOrder, self.out_of_order.follower.place().0)
    }

    /// Drops series that a new checkpoint no longer has, once all older records are read.
    pub fn drop_series(&mut self, destination: &mut Destination) -> Result<(), ForwardError> {
        let Some((number, files)) = SeriesFiles::newest_checkpoint(&self.data)? else {
            return Ok(());
        };
        // Unread records before the checkpoint may refer to the series.
        if self.has_observed
            || self.dropped_before >= Some(number)
            || self.in_order.follower.place().0 <= number
        {
            return Ok(());
        }
        // Noted again first, so that only series that the checkpoint does not have are dropped.
        files.each(READ_BYTES, |segment, records| destination.note_series(segment, &records))?;
        destination.drop_series(number)?;
        self.dropped_before = Some(number);
        Ok(())
    }

    /// Returns whether a log has bytes that cannot be read now.
    pub fn is_stuck(&self) -> bool {
        self.in_order.follower.is_stuck() || self.out_of_order.follower.is_stuck()
    }

    /// Returns the unread bytes of both logs.
    pub fn bytes_left(&self) -> u64 {
        self.in_order.follower.bytes_left() + self.out_of_order.follower.bytes_left()
    }
}

/// Returns the current end of a log as a segment and a number of records.
pub(super) fn end_of(data: &DataDir, log: LogKind) -> Result<Place, ForwardError> {
    let last = LogFollower::new(data, log, 0).last_segment()?;
    end_behind(data, log, last.unwrap_or(0))
}

/// Returns the same end, if `segment` or a later segment exists.
fn end_behind(data: &DataDir, log: LogKind, segment: u32) -> Result<Place, ForwardError> {
    let mut follower = LogFollower::new(data, log, segment);
    loop {
        if let Followed::Nothing = follower.next(READ_BYTES)? {
            let (segment, record) = follower.place();
            return Ok(Place { segment, record, row: 0 });
        }
    }
}

/// Returns the size of both logs from the position on, in whole segments.
pub(super) fn bytes_behind(data: &DataDir, positions: &[ShardPosition]) -> u64 {
    let (in_order, out_of_order) = segments(positions);
    let behind = |log, segment| LogFollower::new(data, log, segment).bytes_left();
    behind(LogKind::InOrder, in_order) + behind(LogKind::OutOfOrder, out_of_order)
}

/// Returns the first segment of each log that is not delivered completely.
pub(super) fn segments(positions: &[ShardPosition]) -> (u32, u32) {
    let first = |of: fn(&ShardPosition) -> u32| positions.iter().map(of).min().unwrap_or(0);
    (first(|position| position.in_order.segment), first(|position| position.out_of_order.segment))
}
