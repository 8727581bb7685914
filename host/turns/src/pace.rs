//! Turns on a thread that many tasks share: a task works for some milliseconds at most before
//! others run, and at that point it can be dropped at its timeout.

use std::time::{Duration, Instant};

/// Longest turn. The clock is read only between short steps.
pub(crate) const TURN: Duration = Duration::from_millis(2);

/// Bytes of work that one call does; its caller calls again after other tasks had their turn.
pub const STEP_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub struct Pace {
    began: Instant,
}

impl Pace {
    pub fn begin() -> Pace {
        Pace { began: Instant::now() }
    }

    /// Lets other tasks run if this turn was long enough. Call it after each step, where the work
    /// may be dropped.
    pub async fn step(&mut self) {
        if self.began.elapsed() >= TURN {
            tokio::task::yield_now().await;
            self.began = Instant::now();
        }
    }
}
