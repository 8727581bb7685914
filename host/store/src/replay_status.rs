//! The progress of the replay of the logs.

use super::Store;
use tidepool_disk::wal::ReplayStats;

/// Whether the logs are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayState {
    /// It has not begun.
    Waiting,
    /// It has begun.
    InProgress,
    /// The store is ready.
    Done,
    /// The store is ready, but has nothing of the logs, for which memory is short.
    Skipped,
}

/// How far the replay of the logs is.
#[derive(Clone, Copy, Debug)]
pub struct ReplayStatus {
    /// Whether it is done.
    pub state: ReplayState,
    /// What was read so far.
    pub figures: ReplayStats,
}

impl Store {
    /// How far the replay of the logs is.
    pub fn replay_status(&self) -> ReplayStatus {
        let is_ready = self.is_ready();
        let figures = self.replay_figures();
        let state = match &figures {
            _ if is_ready && self.shortage().is_some() => ReplayState::Skipped,
            None => ReplayState::Waiting,
            Some(_) if is_ready => ReplayState::Done,
            Some(_) => ReplayState::InProgress,
        };
        ReplayStatus { state, figures: figures.unwrap_or_default() }
    }
}

impl ReplayState {
    /// As Prometheus' documentation calls it.
    pub fn name(self) -> &'static str {
        match self {
            ReplayState::Waiting => "waiting",
            ReplayState::InProgress => "in progress",
            ReplayState::Done => "done",
            ReplayState::Skipped => "skipped",
        }
    }
}
