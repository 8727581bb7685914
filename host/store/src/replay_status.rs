//! The progress of the replay of the logs.

use super::Store;
use tidepool_disk::wal::ReplayStats;

/// State of the replay of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayState {
    Waiting,
    InProgress,
    Done,
    /// The store is ready without the data of the logs, because memory is too short for them.
    Skipped,
}

/// Progress of the replay of the logs.
#[derive(Clone, Copy, Debug)]
pub struct ReplayStatus {
    pub state: ReplayState,
    /// Figures of the logs so far.
    pub figures: ReplayStats,
}

impl Store {
    /// Returns the progress of the replay of the logs.
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
    /// Returns the name in Prometheus' documentation.
    pub fn name(self) -> &'static str {
        match self {
            ReplayState::Waiting => "waiting",
            ReplayState::InProgress => "in progress",
            ReplayState::Done => "done",
            ReplayState::Skipped => "skipped",
        }
    }
}
