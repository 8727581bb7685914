//! Limits how long a task reads from a connection without a break. A reader that always finds bytes
//! would otherwise block the thread for as long as its peer sends.

use crate::pace::TURN;
use std::task::Context;
use std::time::Instant;

#[derive(Debug, Default)]
pub struct ReadTurns {
    /// Start of the current run of reads that found bytes at once.
    began: Option<Instant>,
}

impl ReadTurns {
    /// Returns whether other tasks should run now. If so, the reader must return `Pending`; it is
    /// woken again at once.
    pub fn is_over(&mut self, context: &Context<'_>) -> bool {
        let is_over = self.began.get_or_insert_with(Instant::now).elapsed() >= TURN;
        if is_over {
            self.began = None;
            // The reader does not poll the socket, so the socket would not wake it.
            context.waker().wake_by_ref();
        }
        is_over
    }

    /// Ends the turn when a read found no bytes: then other tasks run anyway.
    pub fn end(&mut self) {
        self.began = None;
    }
}
