//! What this module needs of the journal.

use crate::event::Entry;
use tokio::sync::watch;

/// Access to the journal of events, by number.
pub trait Events: Send + Sync {
    /// Number of the newest event; 0 without any.
    fn newest(&self) -> watch::Receiver<u64>;

    /// Number of the oldest event that is still there; one above the newest without any.
    fn oldest(&self) -> u64;

    /// Blocking. Calls `visit` for the beginnings of alerts that were open before the oldest event,
    /// then for each event from the number `from` on, in order.
    fn scan(&self, from: u64, visit: &mut dyn FnMut(&Entry));
}
