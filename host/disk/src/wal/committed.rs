//! Tells readers in the same process up to which position the writer has written a log.
//!
//! A failed write is undone by cutting the file back, and a segment whose name cannot be made
//! durable is removed again. So neither the length of a file nor a listed name proves that bytes
//! will stay. The committed position proves it, and never moves back while the process runs.
//!
//! ```text
//! segments   of earlier runs  │ ended by this run │ the open one │ being created
//! readable   the whole file   │ the whole file    │ its length   │ nothing
//! ```

use super::LogKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The committed positions of both logs of a data directory; clones share them.
#[derive(Clone, Debug, Default)]
pub struct CommittedLogs {
    in_order: Committed,
    out_of_order: Committed,
}

/// The committed position of one log. `None` before a writer begins: then nothing is being written,
/// and the lengths of the files apply.
#[derive(Clone, Debug, Default)]
pub(super) struct Committed(Arc<Mutex<Option<State>>>);

#[derive(Clone, Copy, Debug)]
struct State {
    /// The first segment that the writer may create.
    first: u32,
    /// Number of the open segment, and the number of its bytes that are written.
    open: Option<(u32, u64)>,
}

impl CommittedLogs {
    pub(super) fn of(&self, log: LogKind) -> &Committed {
        match log {
            LogKind::InOrder => &self.in_order,
            LogKind::OutOfOrder => &self.out_of_order,
        }
    }
}

impl Committed {
    /// Notes that a writer begins, whose first segment is `first`.
    pub fn begin(&self, first: u32) {
        *self.lock() = Some(State { first, open: None });
    }

    /// Notes that `bytes` of `segment` are written. All earlier segments have ended.
    pub fn publish(&self, segment: u32, bytes: u64) {
        if let Some(state) = &mut *self.lock() {
            state.open = Some((segment, bytes));
        }
    }

    /// Number of readable bytes in a segment whose file has `file_bytes`.
    pub fn bytes_of(&self, segment: u32, file_bytes: u64) -> u64 {
        match *self.lock() {
            // `min`, because the file's length may have been read before the latest write.
            Some(State { first, open }) if segment >= first => match open {
                Some((open, bytes)) if segment == open => file_bytes.min(bytes),
                Some((open, _)) if segment < open => file_bytes,
                _ => 0,
            },
            _ => file_bytes,
        }
    }

    pub fn is_open(&self, segment: u32) -> bool {
        self.lock().and_then(|state| state.open).is_some_and(|(open, _)| open == segment)
    }

    /// Number of the last readable segment; `last_listed` is the last one in the directory.
    pub fn last_of(&self, last_listed: u32) -> Option<u32> {
        match *self.lock() {
            // The writer has no open segment, so only segments of earlier runs are readable.
            Some(State { first, open: None }) => Some(last_listed).min(first.checked_sub(1)),
            Some(State { open: Some((open, _)), .. }) => Some(last_listed.min(open)),
            None => Some(last_listed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_writer_the_files_say_all() {
        let committed = Committed::default();
        committed.publish(3, 10);
        assert_eq!((committed.bytes_of(3, 50), committed.last_of(9)), (50, Some(9)));
    }

    #[test]
    fn of_what_is_being_written_only_what_is_whole_may_be_read() {
        let committed = Committed::default();
        committed.begin(4);
        let lengths = |bytes| [3, 4, 5].map(|segment| committed.bytes_of(segment, bytes));
        assert_eq!((lengths(50), committed.last_of(4)), ([50, 0, 0], Some(3)));
        committed.publish(4, 0);
        assert_eq!((lengths(50), committed.last_of(5)), ([50, 0, 0], Some(4)));
        committed.publish(4, 20);
        assert_eq!(lengths(50), [50, 20, 0]);
        assert_eq!(lengths(10), [10, 10, 0]);
        committed.publish(5, 30);
        assert_eq!((lengths(50), committed.last_of(5)), ([50, 50, 30], Some(5)));
        // A new life, of which nothing is there yet.
        committed.begin(0);
        assert_eq!((lengths(50), committed.last_of(0)), ([0, 0, 0], None));
    }
}
