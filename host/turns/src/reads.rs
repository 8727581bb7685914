//! Turns of reading from a connection: what reads on as long as there are bytes holds the thread
//! for as long as its peer sends.

use crate::pace::TURN;
use std::task::Context;
use std::time::Instant;

/// The turns of one reader.
#[derive(Debug, Default)]
pub struct ReadTurns {
    /// When the first of the reads that found bytes at once began.
    began: Option<Instant>,
}

impl ReadTurns {
    /// Whether others have their turn now: the reader is woken, and has nothing to read until then.
    pub fn is_over(&mut self, context: &Context<'_>) -> bool {
        let is_over = self.began.get_or_insert_with(Instant::now).elapsed() >= TURN;
        if is_over {
            self.began = None;
            context.waker().wake_by_ref();
        }
        is_over
    }

    /// A read has found nothing: others have their turn as it is.
    pub fn end(&mut self) {
        self.began = None;
    }
}
