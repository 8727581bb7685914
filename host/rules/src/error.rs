//! Why the evaluation of a rule failed. Texts are those of upstream where it has the error.

use crate::engine::{NotAVector, Refusal};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("{0}")]
    Query(String),
    #[error(transparent)]
    NotAVector(#[from] NotAVector),
    #[error("vector contains metrics with the same labelset after applying rule labels")]
    SameSeries,
    #[error("vector contains metrics with the same labelset after applying alert labels")]
    SameAlertLabels,
    /// The limit of the group.
    #[error("exceeded limit of {limit} with {found} {of}")]
    Limit {
        limit: usize,
        found: usize,
        /// `alerts` or `series`.
        of: &'static str,
    },
    #[error(
        "{alerts} alerts, {alerts_max} are left for this rule; let the expression find fewer, \
         or raise --alerts-max"
    )]
    AlertsMax { alerts: usize, alerts_max: usize },
    #[error(
        "the templates take too long for {alerts} alerts, or give texts of more than {bytes_max} \
         bytes; let the expression find fewer, or make the templates simpler"
    )]
    Templates { alerts: usize, bytes_max: usize },
    #[error("the rule took longer than {0:?} (--query-timeout)")]
    Timeout(Duration),
    /// The evaluation was stopped, as at a reload.
    #[error("the evaluation was stopped")]
    Stopped,
    /// None of the samples was stored.
    #[error("{0}")]
    Append(String),
    /// The last one of the samples that were not stored. Others were.
    #[error(transparent)]
    Refused(#[from] Refusal),
}
