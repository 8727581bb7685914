//! Which alerts a receiver gets, and how they are grouped.

use crate::config::{GroupBy, Grouping, ReceiverConfig};
use crate::event::Event;
use crate::matchers::Matchers;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tidepool_rules::labels::{ALERT_NAME, LabelSet};

/// What an event waits by configuration is not late, and neither is an evaluation's usual delay.
const LATE_AFTER: Duration = Duration::from_secs(300);

/// Floor of the interval between two looks at a group.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub struct Terms {
    /// Of the receiver.
    pub name: String,
    /// All must match.
    pub matchers: Vec<Matchers>,
    pub send_resolved: bool,
    pub grouping: Grouping,
    /// Of one delivery, whatever the receiver does. Longer than the receiver's own timeout, whose
    /// message says more.
    pub deadline: Duration,
    pub links: Links,
}

/// What notifications say of the node.
#[derive(Clone)]
pub struct Links {
    pub external_url: String,
    /// Labels of the node. Alerts have them, too, if they have none of the same name.
    pub external_labels: LabelSet,
    /// Address of the rule of an event.
    pub generator_url: Arc<dyn Fn(&Event) -> String + Send + Sync>,
}

impl Terms {
    pub fn of(config: &ReceiverConfig, deadline: Duration, links: Links) -> Terms {
        Terms {
            name: config.name.clone(),
            matchers: config.matchers.clone(),
            send_resolved: config.send_resolved,
            grouping: config.grouping.clone(),
            deadline,
            links,
        }
    }

    /// Returns the labels of an alert as receivers, matchers, groups and silences see them.
    pub fn labels_of<'a>(&self, labels: &'a LabelSet) -> Cow<'a, LabelSet> {
        let external = &self.links.external_labels;
        match external.is_empty() {
            true => Cow::Borrowed(labels),
            false => Cow::Owned(external.with(labels.iter())),
        }
    }

    /// Returns whether an event is for this receiver. Events of rules that ship with the program
    /// and that the configuration does not name are only for receivers that ask for them by name.
    pub fn wants(&self, event: &Event) -> bool {
        let asks = || self.matchers.iter().any(|matchers| matchers.asks_for(ALERT_NAME));
        let labels = self.labels_of(&event.labels);
        let matches = self.matchers.iter().all(|matchers| matchers.matches(&labels));
        matches && (!event.is_unnamed || asks())
    }

    /// Returns the labels of the group that alerts with these labels are in.
    pub fn group_of(&self, labels: &LabelSet) -> LabelSet {
        let labels = self.labels_of(labels);
        match &self.grouping.by {
            GroupBy::EachAlert => labels.into_owned(),
            GroupBy::Labels(names) => {
                let is_named = |name: &str| names.iter().any(|named| named == name);
                LabelSet::sorted(labels.iter().filter(|(name, _)| is_named(name)))
            }
        }
    }

    /// Returns the key of a group as Alertmanager writes one: the route, a colon, the labels.
    pub fn group_key(&self, group: &LabelSet) -> String {
        let lists = self.matchers.iter().map(|matchers| {
            let text = matchers.to_string();
            let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            inner.unwrap_or(&text).to_owned()
        });
        let lists: Vec<String> = lists.filter(|list| !list.is_empty()).collect();
        match lists.as_slice() {
            [] => format!("{{}}:{group}"),
            lists => format!("{{}}/{{{}}}:{group}", lists.join(",")),
        }
    }

    pub fn is_late(&self, event: &Event, wall_ms: i64) -> bool {
        let after = self.grouping.wait.saturating_add(LATE_AFTER).as_millis();
        let age_ms = wall_ms.saturating_sub(event.time_ms);
        u128::try_from(age_ms).is_ok_and(|age_ms| age_ms > after)
    }

    /// Returns the group interval, with a floor so that a look at a group always ends.
    pub(super) fn tick(&self) -> Duration {
        self.grouping.interval.max(INTERVAL_MIN)
    }
}
