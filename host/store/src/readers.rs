//! Threads that answer reads, and instances that wait for the next read: starting a thread and
//! making an instance takes longer than a small read does.
//!
//! A thread without work waits a while for more, and ends then. An instance is kept if its read
//! ended well, closed everything but blocks, and needed little memory; any other is dropped.
//! Waiting instances are dropped when a block comes or goes or its tombstones are replaced: they
//! have blocks open, whose files would take space, and whose tombstones they do not read again.

use super::{StoreError, spawn};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidepool_lifecycle::priority::lower_priority;
use tidepool_runtime::Instance;

/// Maximum number of waiting threads, and of waiting instances.
const WAITING_MAX: usize = 2;

/// Time after which a waiting thread ends.
const WAIT: Duration = Duration::from_secs(10);

/// Maximum linear memory of a waiting instance.
const MEMORY_BYTES_MAX: usize = 4 << 20;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(super) struct Readers(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// Channels to waiting threads, and numbers that tell them apart.
    threads: Vec<(u64, SyncSender<Work>)>,
    next_number: u64,
    /// Waiting instances, and the number of changes of blocks before their last read.
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
            // Never full: a thread that waits has no work.
            Some((_, thread)) => match thread.try_send(work) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => work,
            },
        };
        let readers = Arc::clone(self);
        // Not one of the runtime's threads: the priority of a thread cannot be raised again.
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

    /// Waits for the next work of a thread; returns `None` if the thread is to end.
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
                // Dropping instances takes a while, so the lock is released first.
                drop(waiting);
                drop(unused);
                if is_needed { receiver.recv().ok() } else { None }
            }
        }
    }

    /// Returns a waiting instance that knows all of `changes`, the changes of blocks until now.
    pub fn instance(&self, changes: u64) -> Option<Instance> {
        self.drop_outdated(changes);
        self.lock().instances.pop().map(|(_, instance)| instance)
    }

    /// Keeps an instance whose read ended well, if it is fit for another. `changes` counts the
    /// changes of blocks when the read began.
    pub fn keep(&self, changes: u64, mut instance: Instance) {
        if instance.memory_bytes() > MEMORY_BYTES_MAX || !instance.rest() {
            return;
        }
        let mut waiting = self.lock();
        if !waiting.is_closed && waiting.instances.len() < WAITING_MAX {
            waiting.instances.push((changes, instance));
        }
    }

    /// Drops waiting instances that do not know the last of `changes` changes of blocks.
    pub fn drop_outdated(&self, changes: u64) {
        // Collected first, so that the lock is not held while they are dropped.
        let outdated: Vec<_> =
            self.lock().instances.extract_if(.., |(known, _)| *known != changes).collect();
        drop(outdated);
    }

    /// Drops all instances that wait.
    pub fn drop_instances(&self) {
        let dropped = std::mem::take(&mut self.lock().instances);
        drop(dropped);
    }

    /// Ends waiting threads, and drops waiting instances from now on.
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

    /// Runs work, and returns the thread that ran it.
    fn run(readers: &Arc<Readers>) -> ThreadId {
        let (done, is_done) = mpsc::channel();
        let work = move || done.send(thread::current().id()).expect("somebody waits");
        readers.run(Box::new(work)).expect("a thread");
        is_done.recv().expect("it has run")
    }

    /// Waits until this number of threads wait.
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
