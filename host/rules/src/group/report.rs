//! What an evaluation is given besides its slot, and what it tells.

use crate::alert::{Bounds, Notice, Transition};
use crate::clock::Trust;
use crate::engine::Refusal;
use crate::error::RuleError;
use crate::template::Limits;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub trust: Trust,
    /// Time after a restoration or a jump of the clock in which the absence of an alert does not
    /// end it. The longest usual interval of scrapes.
    pub settle_ms: i64,
    /// After which time receivers are told again of an alert.
    pub resend_delay_ms: i64,
    /// Maximum number of alerts of a rule.
    pub rule_alerts_max: usize,
    /// Maximum number of pending and firing alerts of all groups.
    pub alerts_max: usize,
    /// Number of pending and firing alerts of the other groups.
    pub alerts_elsewhere: usize,
    /// Of each label and annotation.
    pub template: Limits,
    /// Of all labels and annotations of a rule, in one evaluation.
    pub templates: Limits,
    /// Maximum duration of the evaluation of a rule; a query that runs then is waited for.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            trust: Trust::Trusted,
            settle_ms: 60_000,
            resend_delay_ms: 60_000,
            rule_alerts_max: 10_000,
            alerts_max: 10_000,
            alerts_elsewhere: 0,
            template: Limits::default(),
            templates: Limits { steps_max: 20_000_000, output_bytes_max: 16 << 20 },
            timeout: Duration::from_secs(120),
        }
    }
}

impl Options {
    /// Bounds of the texts of a rule.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { text: self.template, texts: self.templates, timeout: self.timeout }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order of the rules; fewer if the engine was stopping.
    pub rules: Vec<RuleReport>,
    /// Number of samples that the rules gave, refused ones included.
    pub samples: usize,
    /// Whether no alert could change its state, because of the clock.
    pub is_held: bool,
    /// Why markers of removed rules were not written; they are tried again.
    pub markers: Option<String>,
}

#[derive(Clone, Debug)]
pub struct RuleReport {
    /// Number of samples that the rule gave.
    pub result: Result<usize, RuleError>,
    /// Samples that were not stored. If there are any, the rule is not healthy.
    pub refused: RefusedCounts,
    /// Why a marker was not stored, unless its series went on in another rule.
    pub marker: Option<Refusal>,
    /// Labels and annotations that have an error in place of their text.
    pub template_failures: usize,
    pub transitions: Vec<Transition>,
    pub notices: Vec<Notice>,
    pub took: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedCounts {
    pub out_of_order: usize,
    pub too_old: usize,
    pub duplicate: usize,
    pub other: usize,
}

impl RefusedCounts {
    pub(crate) fn count(&mut self, refusal: &Refusal) {
        let count = match refusal {
            Refusal::OutOfOrder => &mut self.out_of_order,
            Refusal::TooOld => &mut self.too_old,
            Refusal::Duplicate => &mut self.duplicate,
            Refusal::Other(_) => &mut self.other,
        };
        *count += 1;
    }
}
