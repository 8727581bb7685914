//! The threads that answer reads, and instances that wait for the next one: to start a thread and
//! to make an instance takes longer than a small read does.
//!
//! A thread waits a while for more work when its own is done, and ends then. An instance is kept if
//! its read ended well, closed all it had opened but for blocks, and needed little memory; any
//! other is dropped. So are those that wait when a block came or went or its tombstones were
//! replaced: they have blocks open, whose files would take space, and whose tombstones they do not
//! read again.

use super::{StoreError, spawn};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidepool_lifecycle::priority::lower_priority;
use tidepool_runtime::Instance;

/// Threads, and instances, that wait.
const WAITING_MAX: usize = 2;

/// How long.
const WAIT: Duration = Duration::from_secs(10);

/// Most linear memory of an instance that waits.
const MEMORY_BYTES_MAX: usize = 4 << 20;

type Work = Box<dyn FnOnce() + Send>;

/// All of them.
#[derive(Default)]
pub(super) struct Readers(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// The ways to threads without work, and numbers that tell them apart.
    threads: Vec<(u64, SyncSender<Work>)>,
    next_number: u64,
    /// Instances without work, and the number of changes to blocks before they had theirs.
    instances: Vec<(u64, Instance)>,
    is_closed: bool,
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs work on a thread that does nothing else meanwhile.
    pub fn run(self: &Arc<Readers>, work: Work) -> Result<(), StoreError> {
        let thread = self.lock().threads.pop();
        let work = match thread {
            None => work,
            // It always has room: what waits has no work.
            Some((_, thread)) => match thread.try_send(work) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => work,
            },
        };
        let readers = Arc::clone(self);
        // Not one of the runtime's: the priority of a thread cannot be raised again.
        spawn("read", move || {
            lower_priority();
            let mut next = Some(work);
            while let Some(work) = next {
                work();
                next = readers.wait();
            }
        })?;
        Ok(())
    }

    /// The next work of a thread; nothing if it is to end.
    fn wait(&self) -> Option<Work> {
        let (sender, receiver) = sync_channel(1);
        let number = {
            let mut waiting = self.lock();
            if waiting.is_closed || waiting.threads.len() >= WAITING_MAX {
                return None;
            }
            waiting.next_number += 1;
            let number = waiting.next_number;
            waiting.threads.push((number, sender));
            number
        };
        match receiver.recv_timeout(WAIT) {
            Ok(work) => Some(work),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let mut waiting = self.lock();
                let listed = waiting.threads.extract_if(.., |(other, _)| *other == number);
                // If it was taken from the list, its work is on the way.
                let is_needed = listed.count() == 0;
                // No more instances wait than threads.
                let threads = waiting.threads.len();
                let unused = match waiting.instances.len() > threads && !is_needed {
                    true => waiting.instances.split_off(threads),
                    false => Vec::new(),
                };
                drop(waiting);
                drop(unused);
                if is_needed { receiver.recv().ok() } else { None }
            }
        }
    }

    /// An instance that waits, if there is one that knows of all changes to blocks until now, which
    /// are so many.
    pub fn instance(&self, changes: u64) -> Option<Instance> {
        self.drop_outdated(changes);
        self.lock().instances.pop().map(|(_, instance)| instance)
    }

    /// Keeps an instance whose read ended well, if it is fit for another. When its read began there
    /// were so many changes to blocks.
    pub fn keep(&self, changes: u64, mut instance: Instance) {
        if instance.memory_bytes() > MEMORY_BYTES_MAX || !instance.rest() {
            return;
        }
        let mut waiting = self.lock();
        if !waiting.is_closed && waiting.instances.len() < WAITING_MAX {
            waiting.instances.push((changes, instance));
        }
    }

    /// Drops instances that wait since before the last of so many changes to blocks.
    pub fn drop_outdated(&self, changes: u64) {
        let outdated: Vec<_> =
            self.lock().instances.extract_if(.., |(known, _)| *known != changes).collect();
        drop(outdated);
    }

    /// Drops all instances that wait.
    pub fn drop_instances(&self) {
        let dropped = std::mem::take(&mut self.lock().instances);
        drop(dropped);
    }

    /// Nothing waits from now on.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        let dropped =
            (std::mem::take(&mut waiting.threads), std::mem::take(&mut waiting.instances));
        drop(waiting);
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, mpsc};
    use std::thread::{self, ThreadId};
    use std::time::Instant;

    /// Runs work, and tells by which thread once that waits.
    fn run(readers: &Arc<Readers>) -> ThreadId {
        let (done, is_done) = mpsc::channel();
        let work = move || done.send(thread::current().id()).expect("somebody waits");
        readers.run(Box::new(work)).expect("a thread");
        is_done.recv().expect("it has run")
    }

    /// Waits until so many threads wait.
    fn wait_for(readers: &Readers, threads: usize) {
        let begun = Instant::now();
        while readers.lock().threads.len() != threads {
            assert!(begun.elapsed() < WAIT / 2, "{} wait", readers.lock().threads.len());
            thread::yield_now();
        }
    }

    #[test]
    fn a_thread_that_waits_runs_the_next_work() {
        let readers = Arc::<Readers>::default();
        let first = run(&readers);
        wait_for(&readers, 1);
        assert_eq!(run(&readers), first);
        wait_for(&readers, 1);
    }

    #[test]
    fn few_wait_and_none_once_it_is_closed() {
        let readers = Arc::<Readers>::default();
        let together = Arc::new(Barrier::new(WAITING_MAX + 3));
        for _ in 0..WAITING_MAX + 3 {
            let together = Arc::clone(&together);
            // All at the same time, so each has a thread.
            let work = move || {
                together.wait();
            };
            readers.run(Box::new(work)).expect("a thread");
        }
        wait_for(&readers, WAITING_MAX);
        readers.close();
        let first = run(&readers);
        assert_ne!(run(&readers), first);
        assert_eq!(readers.lock().threads.len(), 0);
    }
}
