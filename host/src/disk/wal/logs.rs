//! The two logs of a data directory: `wal` for series and ordered samples, `wbl` for late samples,
//! as upstream keeps them.

use super::{ReplayBatch, Wal, WalOptions};
use crate::disk::DataDir;
use crate::disk::error::Result;
use std::time::Instant;

/// Which of the two logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Series, and samples that came in order.
    Ordered,
    /// Samples that came late; they name series of the other log.
    Late,
}

/// Both logs.
pub struct Logs {
    ordered: Wal,
    late: Wal,
}

impl Logs {
    /// Opens both logs for replay. No other `Logs` of the directory may be left.
    pub fn open(data: &DataDir, options: WalOptions) -> Result<Logs> {
        Ok(Logs { ordered: Wal::open(data, options)?, late: Wal::open_late(data, options)? })
    }

    /// One of the two.
    pub fn get(&mut self, log: LogKind) -> &mut Wal {
        match log {
            LogKind::Ordered => &mut self.ordered,
            LogKind::Late => &mut self.late,
        }
    }

    /// The next batch of what earlier lives appended: all of the ordered log, then the late one.
    pub fn replay_batch(&mut self, bytes_max: u32) -> Result<Option<(LogKind, ReplayBatch)>> {
        if let Some(batch) = self.ordered.replay_batch(bytes_max)? {
            return Ok(Some((LogKind::Ordered, batch)));
        }
        Ok(self.late.replay_batch(bytes_max)?.map(|batch| (LogKind::Late, batch)))
    }

    /// When the policy asks for the next sync; `None` while it asks for none.
    pub fn sync_due_at(&self) -> Option<Instant> {
        self.ordered.sync_due_at().into_iter().chain(self.late.sync_due_at()).min()
    }

    /// Makes every record appended so far survive a power cut, as far as that can be done.
    pub fn sync(&mut self) -> Result<()> {
        let ordered = self.ordered.sync();
        self.late.sync().and(ordered)
    }
}
