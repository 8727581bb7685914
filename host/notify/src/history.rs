//! Pages of the journal for people, the newest events first.

use crate::event::Entry;
use crate::journal::{Item, Journal};
use std::collections::VecDeque;

/// Events of a page, at most.
pub const PAGE_EVENTS_MAX: usize = 1000;

/// What a page is to have.
pub struct HistoryRequest<'a> {
    /// Times of events, both ends included.
    pub start_ms: i64,
    pub end_ms: i64,
    /// Number of the event before which the page ends; `None` for the newest.
    pub before: Option<u64>,
    pub limit: usize,
    pub takes: &'a dyn Fn(&Entry) -> bool,
}

#[derive(Debug, Default)]
pub struct HistoryPage {
    /// The newest first.
    pub entries: Vec<Entry>,
    /// Where the next page begins, if there is more.
    pub before: Option<u64>,
    /// Time of the oldest event that the journal has.
    pub oldest_ms: Option<i64>,
}

/// Reads a page. Blocks while files are read, with the memory of a page and a segment.
pub fn page(journal: &Journal, request: &HistoryRequest<'_>) -> HistoryPage {
    let limit = request.limit.clamp(1, PAGE_EVENTS_MAX);
    let mut last: VecDeque<Entry> = VecDeque::new();
    let mut page = HistoryPage::default();
    journal.scan(0, &mut |item| {
        let Item::Event(entry) = item else { return };
        page.oldest_ms.get_or_insert(entry.event.time_ms);
        let is_before = request.before.is_none_or(|before| entry.number < before);
        let is_within = (request.start_ms..=request.end_ms).contains(&entry.event.time_ms);
        if is_before && is_within && (request.takes)(entry) {
            last.push_back(entry.clone());
            // One more shows whether there is another page.
            if last.len() > limit + 1 {
                last.pop_front();
            }
        }
    });
    if last.len() > limit {
        last.pop_front();
        page.before = last.front().map(|entry| entry.number);
    }
    page.entries = last.into_iter().rev().collect();
    page
}
