//! Turns on a thread that many tasks share. A task works for a few milliseconds at most before it
//! yields to other tasks. While it yields, a timeout can drop it.

use std::time::{Duration, Instant};

/// Longest turn. The time is checked only between short steps.
pub(crate) const TURN: Duration = Duration::from_millis(2);

/// Number of bytes that one step processes; the caller yields between steps if needed.
pub const STEP_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub struct Pace {
    began: Instant,
}

impl Pace {
    pub fn begin() -> Pace {
        Pace { began: Instant::now() }
    }

    /// Yields to other tasks if the turn has lasted long enough. Call it after each step, at a
    /// point where dropping the task is safe.
    pub async fn step(&mut self) {
        if self.began.elapsed() >= TURN {
            tokio::task::yield_now().await;
            self.began = Instant::now();
        }
    }
}
