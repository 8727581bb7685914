//! Requests for tasks that change or copy blocks: deletions, cleaning of tombstones, snapshots.
//! They wait in a queue, and the compactor thread does them one by one.

use super::{Store, StoreError};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use tidepool_protocol::prom::selection::SelectionCount;
use tidepool_runtime::{Damage, Deletion, Matcher, TimeRange};
use tokio::sync::oneshot;

/// Maximum number of waiting tasks. Further requests are refused, and can be retried.
const TASKS_MAX: usize = 16;

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A task of the compactor thread.
pub(super) enum Task {
    Delete {
        selectors: Vec<Vec<Matcher>>,
        range: TimeRange,
        reply: Reply<Deletion>,
    },
    CleanTombstones {
        reply: Reply<Vec<Damage>>,
    },
    Snapshot {
        with_head: bool,
        reply: Reply<String>,
    },
    /// Wakes the thread, so that it notices that the store is stopping.
    Wake,
}

/// Sends tasks to the compactor thread.
pub(super) struct TaskSender(SyncSender<Task>);

/// Receives the tasks of the compactor thread.
pub(super) struct TaskQueue {
    receiver: Receiver<Task>,
    /// Tasks received during work that only deletions may interrupt.
    waiting: VecDeque<Task>,
}

pub(super) fn task_queue() -> (TaskSender, TaskQueue) {
    let (sender, receiver) = sync_channel(TASKS_MAX);
    (TaskSender(sender), TaskQueue { receiver, waiting: VecDeque::new() })
}

impl TaskSender {
    pub fn send(&self, task: Task) -> Result<(), StoreError> {
        self.0.try_send(task).map_err(|error| match error {
            TrySendError::Full(_) => StoreError::Overloaded,
            TrySendError::Disconnected(_) => StoreError::Stopped,
        })
    }

    async fn run<T>(&self, task: impl FnOnce(Reply<T>) -> Task) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(task(reply))?;
        answer.await.map_err(|_| StoreError::Stopped)?
    }
}

impl TaskQueue {
    /// Returns the next task; `None` if no task arrives within this time.
    pub fn next(&mut self, wait: Duration) -> Option<Task> {
        self.waiting.pop_front().or_else(|| self.receiver.recv_timeout(wait).ok())
    }

    /// Returns the next deletion; `None` if no deletion has arrived.
    pub fn next_deletion(&mut self) -> Option<Task> {
        // The limit applies to tasks moved here, because the channel no longer counts them.
        while self.waiting.len() < TASKS_MAX {
            match self.receiver.try_recv().ok()? {
                deletion @ Task::Delete { .. } => return Some(deletion),
                other => self.waiting.push_back(other),
            }
        }
        None
    }
}

impl Store {
    /// Deletes samples in a time range of all series that at least one selector selects. After
    /// success the deletion is durable.
    pub async fn delete(
        &self,
        selectors: Vec<Vec<Matcher>>,
        range: TimeRange,
    ) -> Result<Deletion, StoreError> {
        self.shared.head.check_ready()?;
        self.shared.check_replayed()?;
        SelectionCount::check(&selectors)?;
        self.shared.tasks.run(|reply| Task::Delete { selectors, range, reply }).await
    }

    /// Rewrites blocks that have deleted samples; returns the failed ones, with reasons.
    pub async fn clean_tombstones(&self) -> Result<Vec<Damage>, StoreError> {
        self.shared.head.check_ready()?;
        self.shared.tasks.run(|reply| Task::CleanTombstones { reply }).await
    }

    /// Makes a snapshot of all blocks and, if requested, of the head; returns the snapshot's name.
    pub async fn snapshot(&self, with_head: bool) -> Result<String, StoreError> {
        self.shared.head.check_ready()?;
        // A head without the samples of the log would make an incomplete snapshot.
        if with_head {
            self.shared.check_replayed()?;
        }
        self.shared.tasks.run(|reply| Task::Snapshot { with_head, reply }).await
    }
}
