//! Queries the usage of mounts in threads, because `statfs(2)` never returns, and cannot be
//! interrupted, on a mount whose server does not answer.
//!
//! One thread queries all mounts as long as they answer. If a mount takes longer than [`PATIENCE`],
//! another thread continues with the remaining mounts. A mount without an answer at the end of a
//! round is stuck: until it answers, later rounds report it as timed out at once. Each stuck mount
//! blocks a thread. At [`THREADS_MAX`], mounts without a free thread are reported as stuck as well.

use super::Usage;
use rustix::io::{Errno, Result};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const THREADS_MAX: usize = 16;
/// Stack size that is enough for a system call.
const STACK_BYTES: usize = 128 << 10;
/// Upper bound of the timeout, above any sensible setting.
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);
/// Time that a mount may take before another thread continues with the remaining mounts.
const PATIENCE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    Usage(Usage),
    Error(Errno),
    TimedOut,
}

type Ask = dyn Fn(&Path) -> Result<Usage> + Send + Sync;

pub(super) struct Asker {
    shared: Arc<Shared>,
    /// Time limit of a whole round.
    timeout: Duration,
    patience: Duration,
}

struct Shared {
    state: Mutex<State>,
    /// Signals that the queue is not empty, or that the threads should end.
    work: Condvar,
    /// Signals that all mounts of a round have answered.
    done: Condvar,
    ask: Box<Ask>,
}

#[derive(Default)]
struct State {
    round: u64,
    /// Mounts of this round that have not been queried yet.
    queue: VecDeque<(usize, PathBuf)>,
    /// Queries without an answer, of this and earlier rounds.
    asked: Vec<Question>,
    answers: Vec<Option<Answer>>,
    /// Number of all threads; `idle` is the number of threads that wait for work.
    threads: usize,
    idle: usize,
    is_closed: bool,
}

struct Question {
    round: u64,
    path: PathBuf,
}

impl Asker {
    pub(super) fn new(
        timeout: Duration,
        ask: impl Fn(&Path) -> Result<Usage> + Send + Sync + 'static,
    ) -> Asker {
        let shared = Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            ask: Box::new(ask),
        };
        let timeout = timeout.min(TIMEOUT_MAX);
        Asker { shared: Arc::new(shared), timeout, patience: PATIENCE }
    }

    /// Returns one answer for each path. Fails if there is no thread and none can be started.
    pub(super) fn ask(&self, paths: Vec<PathBuf>) -> io::Result<Vec<Answer>> {
        let deadline = Instant::now() + self.timeout;
        let mut state = self.shared.lock();
        state.begin(paths);
        loop {
            if state.is_done() {
                break;
            }
            let now = Instant::now();
            // If all threads are blocked by stuck mounts, waiting is useless.
            if now >= deadline || (state.idle == 0 && state.are_all_held()) {
                break;
            }
            // Without another thread, no mount of this round would be queried.
            if state.idle == 0 && state.has_no_free_thread() {
                self.start_thread(&mut state)?;
            }
            self.shared.work.notify_one();
            let answered = state.answered();
            // Cannot underflow, because the deadline has not passed.
            let wait = self.patience.min(deadline - now);
            let waited = self.shared.done.wait_timeout(state, wait);
            let (waited, result) = waited.unwrap_or_else(PoisonError::into_inner);
            state = waited;
            // No mount answered during the wait, so another thread continues with the queue.
            let is_blocked = result.timed_out() && state.answered() == answered;
            let may_start = state.idle == 0 && state.threads < THREADS_MAX;
            if is_blocked && may_start && !state.queue.is_empty() {
                // If it cannot be started, the queue waits for the existing threads.
                let _started = self.start_thread(&mut state);
            }
        }
        Ok(state.end())
    }

    fn start_thread(&self, state: &mut State) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("statfs".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || shared.work())?;
        state.threads += 1;
        Ok(())
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        // The threads are not joined, because a thread on a stuck mount never ends.
        self.shared.lock().is_closed = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                break;
            }
            let Some((index, path)) = state.queue.pop_front() else {
                // One waiting thread is enough as long as all mounts answer.
                if state.idle > 0 {
                    break;
                }
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            let round = state.round;
            // Recorded before the call, so that later rounds know that the mount may be stuck.
            state.asked.push(Question { round, path: path.clone() });
            // The lock is released, because the call may never return.
            drop(state);
            let answer = match (self.ask)(&path) {
                Ok(usage) => Answer::Usage(usage),
                Err(error) => Answer::Error(error),
            };
            state = self.lock();
            state.asked.retain(|asked| asked.round != round || asked.path != path);
            // After the end of the round, the index would be that of another mount.
            if state.round == round {
                if let Some(slot) = state.answers.get_mut(index) {
                    *slot = Some(answer);
                }
                if state.is_done() {
                    self.done.notify_one();
                }
            }
        }
        state.threads -= 1;
    }
}

impl State {
    /// Starts a round. Stuck mounts are answered as timed out at once.
    fn begin(&mut self, paths: Vec<PathBuf>) {
        self.round += 1;
        self.answers.clear();
        self.queue.clear();
        for (index, path) in paths.into_iter().enumerate() {
            let is_stuck = self.asked.iter().any(|asked| asked.path == path);
            self.answers.push(is_stuck.then_some(Answer::TimedOut));
            if !is_stuck {
                self.queue.push_back((index, path));
            }
        }
    }

    fn end(&mut self) -> Vec<Answer> {
        self.queue.clear();
        // Answers after this point are ignored, since they are of an older round.
        self.round += 1;
        self.answers.drain(..).map(|answer| answer.unwrap_or(Answer::TimedOut)).collect()
    }

    fn is_done(&self) -> bool {
        self.answers.iter().all(Option::is_some)
    }

    fn answered(&self) -> usize {
        self.answers.iter().flatten().count()
    }

    /// Returns the number of threads that are blocked by mounts of earlier rounds.
    fn held(&self) -> usize {
        self.asked.iter().filter(|asked| asked.round != self.round).count()
    }

    fn are_all_held(&self) -> bool {
        self.held() >= THREADS_MAX
    }

    fn has_no_free_thread(&self) -> bool {
        self.threads <= self.held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_secs(2);

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    fn size(size: f64) -> Answer {
        Answer::Usage(Usage { size, ..Usage::default() })
    }

    /// Paths that begin with `stuck` are stuck until the sender is dropped; others have the length
    /// of their path as size.
    fn asker(timeout: Duration) -> (Asker, mpsc::Sender<()>) {
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(Some(released));
        let gate: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let opened = Arc::clone(&gate);
        let receiver = released.lock().expect("not poisoned").take().expect("a receiver");
        thread::spawn(move || {
            let _closed = receiver.recv();
            *opened.0.lock().expect("not poisoned") = true;
            opened.1.notify_all();
        });
        let ask = move |path: &Path| {
            if path.starts_with("stuck") {
                let is_open = gate.0.lock().expect("not poisoned");
                let _open = gate.1.wait_while(is_open, |is_open| !*is_open).expect("not poisoned");
            }
            match path.to_str() {
                Some("error") => Err(Errno::STALE),
                path => Ok(Usage { size: path.map_or(0, str::len) as f64, ..Usage::default() }),
            }
        };
        let mut asker = Asker::new(timeout, ask);
        asker.patience = Duration::from_millis(1);
        (asker, release)
    }

    #[test]
    fn one_thread_answers_for_all_that_answer() {
        let (mut asker, _release) = asker(LONG);
        // On a busy machine a thread may be slow without being stuck.
        asker.patience = LONG;
        for _ in 0..3 {
            let answers = asker.ask(paths(&["a", "error", "abc"])).expect("a thread");
            assert_eq!(answers, [size(1.0), Answer::Error(Errno::STALE), size(3.0)]);
        }
        assert_eq!(asker.shared.lock().threads, 1);
        assert_eq!(asker.ask(Vec::new()).expect("no thread needed"), []);
    }

    #[test]
    fn stuck_mounts_hold_up_no_other_and_only_one_round() {
        let (mut asker, release) = asker(SHORT);
        let all = ["stuck/1", "a", "stuck/2", "ab"];
        let expected = [Answer::TimedOut, size(1.0), Answer::TimedOut, size(2.0)];
        assert_eq!(asker.ask(paths(&all)).expect("threads"), expected);
        // No round waits any more: a timeout would take a minute.
        asker.timeout = LONG;
        for _ in 0..10 {
            assert_eq!(asker.ask(paths(&all)).expect("threads"), expected);
        }
        drop(release);
        let begin = Instant::now();
        let recovered = [size(7.0), size(1.0), size(7.0), size(2.0)];
        while asker.ask(paths(&all)).expect("threads") != recovered {
            assert!(begin.elapsed() < LONG, "they answer");
            thread::yield_now();
        }
    }

    #[test]
    fn as_many_threads_as_are_allowed_and_no_more() {
        let (mut asker, release) = asker(SHORT);
        let names: Vec<String> =
            (0..3 * THREADS_MAX).map(|number| format!("stuck/{number}")).collect();
        let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
        all.push("a");
        let answers = asker.ask(paths(&all)).expect("threads");
        assert_eq!(answers, vec![Answer::TimedOut; all.len()]);
        assert_eq!(asker.shared.lock().threads, THREADS_MAX);
        // No thread is free for the last mount, and no round waits.
        asker.timeout = LONG;
        assert_eq!(asker.ask(paths(&["a"])).expect("threads"), [Answer::TimedOut]);
        drop(release);
        let begin = Instant::now();
        while asker.ask(paths(&["a"])).expect("threads") != [size(1.0)] {
            assert!(begin.elapsed() < LONG, "they answer");
            thread::yield_now();
        }
    }
}
