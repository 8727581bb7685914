//! The two logs of a data directory: `wal` for series and in-order samples, `wbl` for out-of-order
//! samples, as upstream keeps them.

use super::{ReplayBatch, ReplayStats, SyncPolicy, Wal, WalMonitor, WalOptions};
use crate::DataDir;
use crate::error::Result;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Series, and in-order samples.
    InOrder,
    /// Out-of-order samples, which refer to series of the other log.
    OutOfOrder,
}

/// Both logs. The out-of-order log is created with its first sample, because older versions of
/// upstream's tools fail on an empty one.
pub struct Logs {
    data: DataDir,
    options: WalOptions,
    in_order: Wal,
    out_of_order: Option<Wal>,
    /// Batch size for reading the out-of-order log ahead; `None` from the begin of its replay on.
    ahead_bytes_max: Option<u32>,
}

/// Figures of both logs. They outlive the logs and can be sent to any thread.
#[derive(Clone)]
pub struct LogsMonitor {
    pub in_order: WalMonitor,
    out_of_order: Option<WalMonitor>,
}

impl LogKind {
    /// The log's path in a data directory.
    pub(super) fn dir(self, data: &DataDir) -> PathBuf {
        match self {
            LogKind::InOrder => data.wal_path(),
            LogKind::OutOfOrder => data.out_of_order_wal_path(),
        }
    }
}

impl LogsMonitor {
    /// Figures of the replay of both logs together. Segment numbers are numbers of the log that is
    /// being read, or was read last.
    pub fn replay(&self) -> ReplayStats {
        let in_order = self.in_order.stats().replay;
        match &self.out_of_order {
            Some(out_of_order) => in_order.and_then(out_of_order.stats().replay),
            None => in_order,
        }
    }
}

impl Logs {
    /// Opens both logs for replay. No other `Logs` of the directory may exist.
    pub fn open(data: &DataDir, options: WalOptions) -> Result<Logs> {
        let in_order = Wal::open(data, options)?;
        let out_of_order = match data.has_out_of_order_wal()? {
            true => Some(Wal::open_out_of_order(data, options)?),
            false => None,
        };
        Ok(Logs { data: data.clone(), options, in_order, out_of_order, ahead_bytes_max: None })
    }

    /// Returns one of the logs, creating the out-of-order log if necessary. Both must be replayed.
    pub fn get(&mut self, log: LogKind) -> Result<&mut Wal> {
        match (log, &mut self.out_of_order) {
            (LogKind::InOrder, _) => Ok(&mut self.in_order),
            (LogKind::OutOfOrder, Some(out_of_order)) => Ok(out_of_order),
            (LogKind::OutOfOrder, none) => {
                let out_of_order = none.insert(Wal::open_out_of_order(&self.data, self.options)?);
                // A new log has nothing to replay, so this call ends the replay and allows appends.
                out_of_order.replay_batch(1)?;
                Ok(out_of_order)
            }
        }
    }

    /// Returns the figures for other threads. Includes the out-of-order log only if it existed at
    /// the start.
    pub fn monitor(&self) -> LogsMonitor {
        let out_of_order = self.out_of_order.as_ref().map(Wal::monitor);
        LogsMonitor { in_order: self.in_order.monitor(), out_of_order }
    }

    /// Returns whether all records of earlier runs in both logs could be read, as far as the logs
    /// were read so far.
    pub fn is_whole(&self) -> bool {
        let logs = [Some(&self.in_order), self.out_of_order.as_ref()];
        logs.into_iter().flatten().all(|log| log.stats().replay.is_whole())
    }

    /// Removes records from the out-of-order log: see [`Wal::drop_records`].
    pub fn drop_out_of_order_records(&mut self, is_dropped: impl Fn(&[u8]) -> bool) -> Result<u64> {
        self.out_of_order
            .as_mut()
            .map_or(Ok(0), |out_of_order| out_of_order.drop_records(is_dropped))
    }

    /// Returns the next batch of records of earlier runs: first the whole in-order log, then the
    /// out-of-order log.
    pub fn replay_batch(&mut self, bytes_max: u32) -> Result<Option<(LogKind, ReplayBatch)>> {
        if let Some(batch) = self.in_order.replay_batch(bytes_max)? {
            return Ok(Some((LogKind::InOrder, batch)));
        }
        let Some(out_of_order) = &mut self.out_of_order else { return Ok(None) };
        // Only now: two threads that read ahead would double the memory for batches.
        if let Some(bytes_max) = self.ahead_bytes_max.take() {
            out_of_order.read_ahead(bytes_max);
        }
        Ok(out_of_order.replay_batch(bytes_max)?.map(|batch| (LogKind::OutOfOrder, batch)))
    }

    /// Reads both logs ahead, one after the other: see [`Wal::read_ahead`].
    pub fn read_ahead(&mut self, bytes_max: u32) {
        self.in_order.read_ahead(bytes_max);
        self.ahead_bytes_max = Some(bytes_max);
    }

    /// Skips the replay of both logs: see [`Wal::skip_replay`].
    pub fn skip_replay(&mut self) {
        self.in_order.skip_replay();
        self.out_of_order.iter_mut().for_each(Wal::skip_replay);
    }

    /// Returns when the policy asks for the next sync; `None` while no sync is due.
    pub fn sync_due_at(&self) -> Option<Instant> {
        let out_of_order = self.out_of_order.as_ref().and_then(Wal::sync_due_at);
        self.in_order.sync_due_at().into_iter().chain(out_of_order).min()
    }

    /// Appends records to one of the logs: see [`Wal::append`].
    pub fn append<R: AsRef<[u8]>>(&mut self, log: LogKind, records: &[R]) -> Result<u32> {
        // Only if the out-of-order log may write: a write for each append would undo the buffering.
        if log == LogKind::OutOfOrder && self.get(log)?.may_write(records) {
            self.write_in_order()?;
        }
        self.get(log)?.append(records)
    }

    /// Ends a segment of one of the logs: see [`Wal::cut_segment`].
    pub fn cut_segment(&mut self, log: LogKind) -> Result<u32> {
        if log == LogKind::OutOfOrder {
            self.write_in_order()?;
        }
        self.get(log)?.cut_segment()
    }

    /// Deletes segments of the out-of-order log: see [`Wal::truncate`].
    pub fn truncate_out_of_order(&mut self, last_segment: u32) -> Result<()> {
        self.write_in_order()?;
        self.get(LogKind::OutOfOrder)?.truncate(last_segment)
    }

    /// Writes the in-order log's buffered records. Must come before the out-of-order log writes:
    /// without the series in the in-order log, readers and the next start cannot use the
    /// out-of-order samples.
    fn write_in_order(&mut self) -> Result<()> {
        self.in_order.write_gathered()
    }

    pub fn unwritten_bytes(&self) -> u64 {
        self.in_order.unwritten_bytes() + self.out_of_order.as_ref().map_or(0, Wal::unwritten_bytes)
    }

    /// Syncs if a sync is due, and returns whether it was due. If a sender waits for durable
    /// records, a sync is always due, even without new records: earlier records of the sender may
    /// be lost by a sync that failed.
    pub fn sync_if_due(&mut self, now: Instant, is_waited_for: bool) -> Result<bool> {
        let is_waited_for = is_waited_for && self.options.sync == SyncPolicy::Always;
        match is_waited_for || self.sync_due_at().is_some_and(|due_at| due_at <= now) {
            true => self.sync().map(|()| true),
            false => Ok(false),
        }
    }

    /// Makes every record appended so far survive a power cut, as far as possible.
    pub fn sync(&mut self) -> Result<()> {
        let in_order = self.in_order.sync();
        // Out-of-order samples must not become durable before the series to which they refer.
        if self.in_order.unwritten_bytes() > 0 {
            return in_order;
        }
        self.out_of_order.as_mut().map_or(Ok(()), Wal::sync).and(in_order)
    }
}
