//! The alerts that are open at one point of the journal: fired, and not ended.

use crate::event::{Change, Entry, Origin};
use std::collections::HashMap;
use std::sync::Arc;
use tidepool_rules::labels::LabelSet;

#[derive(Clone, Default)]
pub(super) struct OpenAlerts(HashMap<(Origin, LabelSet), Arc<Entry>>);

impl OpenAlerts {
    pub(super) fn apply(&mut self, entry: &Arc<Entry>) {
        match entry.event.change {
            Change::Firing => {
                self.0.insert(key(entry), Arc::clone(entry));
            }
            Change::Resolved => {
                self.0.remove(&key(entry));
            }
        }
    }

    /// Whether the alert of this entry is open since the same event.
    pub(super) fn has(&self, entry: &Entry) -> bool {
        self.0.get(&key(entry)).is_some_and(|open| open.number == entry.number)
    }

    /// The events with which the alerts began, in order.
    pub(super) fn entries(&self) -> Vec<Arc<Entry>> {
        let mut entries: Vec<_> = self.0.values().cloned().collect();
        entries.sort_by_key(|entry| entry.number);
        entries
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn key(entry: &Entry) -> (Origin, LabelSet) {
    (entry.event.origin.clone(), entry.event.labels.clone())
}
