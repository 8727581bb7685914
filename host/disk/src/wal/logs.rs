//! The two logs of a data directory: `wal` for series and ordered samples, `wbl` for late samples,
//! as upstream keeps them.

use super::{ReplayBatch, ReplayStats, SyncPolicy, Wal, WalMonitor, WalOptions};
use crate::DataDir;
use crate::error::Result;
use std::time::Instant;

/// Which of the two logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Series, and samples that came in order.
    Ordered,
    /// Samples that came late; they name series of the other log.
    Late,
}

/// Both logs. The one of late samples is made when the first of them comes: older versions of
/// upstream's tools stumble over an empty one.
pub struct Logs {
    data: DataDir,
    options: WalOptions,
    ordered: Wal,
    late: Option<Wal>,
    /// Until the late log is read: whether and how it is read ahead.
    ahead_bytes_max: Option<u32>,
}

/// A view of both logs' figures that outlives them and can go to any thread.
#[derive(Clone)]
pub struct LogsMonitor {
    /// The log of ordered samples.
    pub ordered: WalMonitor,
    late: Option<WalMonitor>,
}

impl LogsMonitor {
    /// What reading both logs back found. The segments' numbers are those of the log that is being
    /// read, or was read last.
    pub fn replay(&self) -> ReplayStats {
        let ordered = self.ordered.stats().replay;
        match &self.late {
            Some(late) => ordered.and_then(late.stats().replay),
            None => ordered,
        }
    }
}

impl Logs {
    /// Opens both logs for replay. No other `Logs` of the directory may be left.
    pub fn open(data: &DataDir, options: WalOptions) -> Result<Logs> {
        let ordered = Wal::open(data, options)?;
        let late = match data.has_late_wal()? {
            true => Some(Wal::open_late(data, options)?),
            false => None,
        };
        Ok(Logs { data: data.clone(), options, ordered, late, ahead_bytes_max: None })
    }

    /// One of the two. Everything must have been replayed.
    pub fn get(&mut self, log: LogKind) -> Result<&mut Wal> {
        match (log, &mut self.late) {
            (LogKind::Ordered, _) => Ok(&mut self.ordered),
            (LogKind::Late, Some(late)) => Ok(late),
            (LogKind::Late, none) => {
                let late = none.insert(Wal::open_late(&self.data, self.options)?);
                // It is new: there is nothing to replay but the end.
                late.replay_batch(1)?;
                Ok(late)
            }
        }
    }

    /// A view of the figures for other threads. That of the late log is in it if there was one at
    /// the start.
    pub fn monitor(&self) -> LogsMonitor {
        let late = self.late.as_ref().map(Wal::monitor);
        LogsMonitor { ordered: self.ordered.monitor(), late }
    }

    /// Whether all that earlier lives appended to either could be read, as far as is known now.
    pub fn is_whole(&self) -> bool {
        let logs = [Some(&self.ordered), self.late.as_ref()];
        logs.into_iter().flatten().all(|log| log.stats().replay.is_whole())
    }

    /// Takes records out of the log of late samples: see [`Wal::drop_records`].
    pub fn drop_late_records(&mut self, is_dropped: impl Fn(&[u8]) -> bool) -> Result<u64> {
        self.late.as_mut().map_or(Ok(0), |late| late.drop_records(is_dropped))
    }

    /// The next batch of what earlier lives appended: all of the ordered log, then the late one.
    pub fn replay_batch(&mut self, bytes_max: u32) -> Result<Option<(LogKind, ReplayBatch)>> {
        if let Some(batch) = self.ordered.replay_batch(bytes_max)? {
            return Ok(Some((LogKind::Ordered, batch)));
        }
        let Some(late) = &mut self.late else { return Ok(None) };
        if let Some(bytes_max) = self.ahead_bytes_max.take() {
            late.read_ahead(bytes_max);
        }
        Ok(late.replay_batch(bytes_max)?.map(|batch| (LogKind::Late, batch)))
    }

    /// Reads both logs ahead, one after the other: see [`Wal::read_ahead`].
    pub fn read_ahead(&mut self, bytes_max: u32) {
        self.ordered.read_ahead(bytes_max);
        self.ahead_bytes_max = Some(bytes_max);
    }

    /// Takes both logs for read to their ends: see [`Wal::skip_replay`].
    pub fn skip_replay(&mut self) {
        self.ordered.skip_replay();
        self.late.iter_mut().for_each(Wal::skip_replay);
    }

    /// When the policy asks for the next sync; `None` while it asks for none.
    pub fn sync_due_at(&self) -> Option<Instant> {
        let late = self.late.as_ref().and_then(Wal::sync_due_at);
        self.ordered.sync_due_at().into_iter().chain(late).min()
    }

    /// Bytes of records that only this process's memory has.
    pub fn unwritten_bytes(&self) -> u64 {
        self.ordered.unwritten_bytes() + self.late.as_ref().map_or(0, Wal::unwritten_bytes)
    }

    /// Syncs if it is time to. If somebody waits for what they sent to be safe, that is now, although
    /// nothing may be new in it: what they sent before may still hang on a sync that failed. Gives
    /// whether it was time.
    pub fn sync_if_due(&mut self, now: Instant, is_waited_for: bool) -> Result<bool> {
        let is_waited_for = is_waited_for && self.options.sync == SyncPolicy::Always;
        match is_waited_for || self.sync_due_at().is_some_and(|due_at| due_at <= now) {
            true => self.sync().map(|()| true),
            false => Ok(false),
        }
    }

    /// Makes every record appended so far survive a power cut, as far as that can be done.
    pub fn sync(&mut self) -> Result<()> {
        let ordered = self.ordered.sync();
        self.late.as_mut().map_or(Ok(()), Wal::sync).and(ordered)
    }
}
