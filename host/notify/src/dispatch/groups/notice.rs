//! Chooses what a notification of a group has, and writes it.

use super::IsSilenced;
use super::group::{AlertKey, Group};
use crate::dispatch::terms::Terms;
use crate::event::{Change, Entry, fingerprint};
use crate::notification::{Notification, NotifiedAlert, Reason};
use std::collections::HashSet;
use std::time::Duration;
use tidepool_rules::labels::LabelSet;

/// Maximum number of alerts of a notification: more news follow in the next one.
pub const ALERTS_MAX: usize = 500;

/// Maximum size of the labels and annotations of a notification, so that a body stays well below
/// the limit of a receiver. One alert that is larger is sent alone.
pub const BYTES_MAX: usize = 256 << 10;

/// About what an alert takes besides its labels and annotations.
const ALERT_BYTES: usize = 256;

pub struct Chosen<'g> {
    /// In the order of the journal.
    pub news: Vec<Candidate<'g>>,
    /// Alerts that fire and that the receiver knows.
    pub context: Vec<Candidate<'g>>,
    pub truncated: usize,
    /// Whether news remain for a notification that follows at once.
    pub has_more: bool,
}

#[derive(Clone, Copy)]
pub struct Candidate<'g> {
    pub key: &'g AlertKey,
    pub entry: &'g Entry,
}

/// What is left of the bounds of a notification, and the label sets that it has.
struct Room<'g> {
    alerts: usize,
    bytes: usize,
    labels: HashSet<&'g LabelSet>,
}

impl<'g> Chosen<'g> {
    /// Chooses from a group that was settled. Without news there is a context only for a
    /// repetition; after a refusal there is none, and what was refused is alone.
    pub fn of(
        group: &'g Group,
        now: Duration,
        is_repeat: bool,
        is_silenced: IsSilenced<'_>,
    ) -> Chosen<'g> {
        let (mut candidates, mut refused) = (Vec::new(), Vec::new());
        for (key, alert) in &group.alerts {
            let Some(entry) = alert.news(|| is_silenced(&key.labels)) else { continue };
            match alert.refused_until() {
                None => candidates.push(Candidate { key, entry }),
                Some(until) if until <= now => refused.push(Candidate { key, entry }),
                Some(_) => {}
            }
        }
        candidates.sort_unstable_by_key(|candidate| candidate.entry.number);
        let mut chosen = Chosen {
            news: Vec::new(),
            context: Vec::new(),
            truncated: 0,
            has_more: !refused.is_empty(),
        };
        if candidates.is_empty()
            && let Some(alone) = refused.iter().min_by_key(|candidate| candidate.entry.number)
        {
            chosen.news.push(*alone);
            let queue = group.alerts.get(alone.key).map_or(0, |alert| alert.queue.len());
            chosen.has_more = refused.len() > 1 || queue > 1;
            return chosen;
        }
        let alerts = group.news_max.map_or(ALERTS_MAX, |news_max| news_max.min(ALERTS_MAX));
        let mut room = Room { alerts, bytes: BYTES_MAX, labels: HashSet::new() };
        for candidate in candidates {
            let queue = group.alerts.get(candidate.key).map_or(0, |alert| alert.queue.len());
            match !room.labels.contains(&candidate.key.labels) && room.admits(candidate) {
                true => chosen.news.push(candidate),
                false => chosen.has_more = true,
            }
            chosen.has_more |= queue > 1;
        }
        let has_context = if chosen.news.is_empty() { is_repeat } else { group.news_max.is_none() };
        if !has_context {
            return chosen;
        }
        for (key, alert) in &group.alerts {
            let Some(current) = alert.current.as_ref().filter(|current| !current.is_muted) else {
                continue;
            };
            // Of an alert whose news follow, nothing old is said.
            let has_news = !alert.queue.is_empty();
            if has_news || room.labels.contains(&key.labels) || is_silenced(&key.labels) {
                continue;
            }
            let candidate = Candidate { key, entry: &current.entry };
            match room.admits(candidate) {
                true => chosen.context.push(candidate),
                false => chosen.truncated += 1,
            }
        }
        chosen
    }

    /// Returns why there is a notification; `None` without news.
    pub fn reason(&self, group: &Group) -> Option<Reason> {
        let begins = |news: &Candidate<'_>| news.entry.event.change == Change::Firing;
        let current = || group.alerts.values().filter_map(|alert| alert.current.as_ref());
        match self.news.is_empty() {
            true => None,
            false if !self.news.iter().any(begins) => Some(Reason::Resolved),
            false if current().any(|current| !current.is_muted) => Some(Reason::NewAlerts),
            false => Some(Reason::FirstNotification),
        }
    }

    pub fn notification(
        &self,
        terms: &Terms,
        group: &LabelSet,
        reason: Reason,
        wall_ms: i64,
    ) -> Notification {
        let news = self.news.iter().map(|news| {
            let is_late = terms.is_late(&news.entry.event, wall_ms);
            NotifiedAlert { is_late, is_news: true, ..alert(terms, news.entry) }
        });
        let context = self.context.iter().map(|context| alert(terms, context.entry));
        Notification {
            receiver: terms.name.clone(),
            reason,
            group_labels: group.to_map(),
            group_key: terms.group_key(group),
            external_url: terms.links.external_url.clone(),
            alerts: news.chain(context).collect(),
            truncated_alerts: self.truncated,
        }
    }
}

impl<'g> Room<'g> {
    fn admits(&mut self, candidate: Candidate<'g>) -> bool {
        let event = &candidate.entry.event;
        let annotations = event.annotations.iter().map(|(name, text)| name.len() + text.len());
        let bytes = ALERT_BYTES + event.labels.bytes() + annotations.sum::<usize>();
        let is_first = self.labels.is_empty();
        if !is_first && (self.alerts == 0 || self.bytes < bytes) {
            return false;
        }
        self.labels.insert(&candidate.key.labels);
        (self.alerts, self.bytes) = (self.alerts - 1, self.bytes.saturating_sub(bytes));
        true
    }
}

/// An alert that is no news.
pub fn alert(terms: &Terms, entry: &Entry) -> NotifiedAlert {
    let event = &entry.event;
    let labels = terms.labels_of(&event.labels).into_owned();
    NotifiedAlert {
        id: event.id(),
        change: event.change,
        fingerprint: fingerprint(&labels),
        labels,
        annotations: event.annotations.clone(),
        starts_at_ms: event.fired_at_ms,
        ends_at_ms: (event.change == Change::Resolved).then_some(event.time_ms),
        value: event.value,
        generator_url: (terms.links.generator_url)(event),
        is_late: false,
        is_news: false,
    }
}
