//! What receivers of alerts are to be told after an evaluation.

use crate::alert::{Alert, AlertingRule, State};
use crate::file::Labels;
use crate::labels::LabelSet;
use std::sync::Arc;

/// An alert that fires or has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    pub labels: LabelSet,
    pub annotations: Arc<Labels>,
    pub starts_at_ms: i64,
    /// When it ended; until then, when receivers may take it for ended.
    pub ends_at_ms: i64,
    pub is_resolved: bool,
}

/// Intervals, or delays until it is sent again, for which receivers believe that an alert fires.
/// Two evaluations or deliveries may fail.
const VALID_INTERVALS: i64 = 4;

impl AlertingRule {
    /// Takes the notices that are due after a successful evaluation, and takes them for sent. An
    /// alert is due when it changed, and each `resend_delay_ms` while it is kept.
    pub(crate) fn take_notices(
        &mut self,
        slot_ms: i64,
        resend_delay_ms: i64,
        interval_ms: i64,
    ) -> Vec<Notice> {
        let valid_ms = interval_ms.max(resend_delay_ms).saturating_mul(VALID_INTERVALS);
        let due = self.alerts.values_mut().filter(|alert| alert.is_due(slot_ms, resend_delay_ms));
        let notices = due.map(|alert| {
            let valid_until_ms = slot_ms.saturating_add(valid_ms);
            alert.last_sent_ms = Some(slot_ms);
            alert.valid_until_ms = Some(valid_until_ms);
            Notice {
                labels: alert.labels.clone(),
                annotations: alert.annotations.clone(),
                starts_at_ms: alert.fired_at_ms.unwrap_or(alert.active_at_ms),
                ends_at_ms: alert.resolved_at_ms.unwrap_or(valid_until_ms),
                is_resolved: alert.resolved_at_ms.is_some(),
            }
        });
        notices.collect()
    }
}

impl Alert {
    fn is_due(&self, slot_ms: i64, resend_delay_ms: i64) -> bool {
        if self.state == State::Pending || self.is_shared() {
            return false;
        }
        let Some(sent_ms) = self.last_sent_ms else { return true };
        let is_news = self.resolved_at_ms.is_some_and(|resolved_ms| resolved_ms > sent_ms);
        is_news || sent_ms.saturating_add(resend_delay_ms) < slot_ms
    }
}
