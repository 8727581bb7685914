//! Turns on a thread that many share: one works for some milliseconds at most before others have
//! their turn, and can be dropped there at its timeout.

use std::time::{Duration, Instant};

/// Longest turn. Short steps come between two looks at the clock.
pub(crate) const TURN: Duration = Duration::from_millis(2);

/// Work that one call hands out: its caller asks for the next step when others had their turn.
pub const STEP_BYTES: usize = 16 * 1024;

/// The turns of one task.
#[derive(Debug)]
pub struct Pace {
    began: Instant,
}

impl Pace {
    /// Begins a turn.
    pub fn begin() -> Pace {
        Pace { began: Instant::now() }
    }

    /// Lets others have their turn if this one was long enough. To be called after each step, where
    /// the work may be dropped.
    pub async fn step(&mut self) {
        if self.began.elapsed() >= TURN {
            tokio::task::yield_now().await;
            self.began = Instant::now();
        }
    }
}
