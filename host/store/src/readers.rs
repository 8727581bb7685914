//! Keeps threads and instances for the next reads, because starting a thread and making an instance
//! takes longer than a small read.
//!
//! A thread without work waits for a while, and then ends. An instance is kept if its read
//! succeeded, closed everything except block files, and needed little memory; otherwise it is
//! dropped. Waiting instances are dropped when a block is added or deleted or its tombstones are
//! replaced: their open files would use disk space, and they would not read the tombstones again.

use super::{StoreError, spawn};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidepool_lifecycle::priority::lower_priority;
use tidepool_runtime::Instance;

/// Maximum number of waiting threads, and also of waiting instances.
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
    /// Channels to the waiting threads, each with a number that identifies the thread.
    threads: Vec<(u64, SyncSender<Work>)>,
    next_number: u64,
    /// Waiting instances, each with the number of block changes before its last read.
    instances: Vec<(u64, Instance)>,
    is_closed: bool,
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs work on a thread that does nothing else at the same time.
    pub fn run(self: &Arc<Readers>, work: Work) -> Result<(), StoreError> {
        let thread = self.lock().threads.pop();
        let work = match thread {
            None => work,
            // The channel is never full, because a waiting thread has no work.
            Some((_, thread)) => match thread.try_send(work) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => work,
            },
        };
        let readers = Arc::clone(self);
        // Not a thread of the async runtime: a lowered priority of a thread cannot be raised again.
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

    /// Waits for the next work of a thread; returns `None` if the thread must end.
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
                // If the thread is no longer in the list, work is being sent to it.
                let is_needed = listed.count() == 0;
                // At most as many instances as threads wait.
                let threads = waiting.threads.len();
                let unused = match waiting.instances.len() > threads && !is_needed {
                    true => waiting.instances.split_off(threads),
                    false => Vec::new(),
                };
                // Dropping instances takes time, so the lock is released first.
                drop(waiting);
                drop(unused);
                if is_needed { receiver.recv().ok() } else { None }
            }
        }
    }

    /// Returns a waiting instance that has seen all block changes; `changes` is their number.
    pub fn instance(&self, changes: u64) -> Option<Instance> {
        self.drop_outdated(changes);
        self.lock().instances.pop().map(|(_, instance)| instance)
    }

    /// Keeps an instance whose read succeeded, if another read can use it. `changes` is the number
    /// of block changes when its read began.
    pub fn keep(&self, changes: u64, mut instance: Instance) {
        if instance.memory_bytes() > MEMORY_BYTES_MAX || !instance.rest() {
            return;
        }
        let mut waiting = self.lock();
        if !waiting.is_closed && waiting.instances.len() < WAITING_MAX {
            waiting.instances.push((changes, instance));
        }
    }

    /// Drops waiting instances whose last read began before the last of `changes` block changes.
    pub fn drop_outdated(&self, changes: u64) {
        // Collected first, so that the lock is released before instances are dropped.
        let outdated: Vec<_> =
            self.lock().instances.extract_if(.., |(known, _)| *known != changes).collect();
        drop(outdated);
    }
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
