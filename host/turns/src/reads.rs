//! Turns of reading from a connection: without them, a reader that always finds bytes holds the
//! thread for as long as its peer sends.

use crate::pace::TURN;
use std::task::Context;
use std::time::Instant;

#[derive(Debug, Default)]
pub struct ReadTurns {
    /// Start of the current run of reads that found bytes at once.
    began: Option<Instant>,
}

impl ReadTurns {
    /// Returns whether other tasks have their turn now. If so, the reader returns pending; it is
    /// woken at once.
    pub fn is_over(&mut self, context: &Context<'_>) -> bool {
        let is_over = self.began.get_or_insert_with(Instant::now).elapsed() >= TURN;
        if is_over {
            self.began = None;
            // The socket is not polled this time, so no readiness would wake the reader.
            context.waker().wake_by_ref();
        }
        is_over
    }

    /// Ends the turn, because a read found nothing and other tasks run anyway.
    pub fn end(&mut self) {
        self.began = None;
    }
}
