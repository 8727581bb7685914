//! Go's text templates, as upstream expands them in labels and annotations of alerts.
//!
//! ```text
//! text ─▶ syntax: tokens, tree ─▶ evaluate ─▶ output
//!                                  │    └─▶ functions ─▶ format: `printf`
//!                                  └─ Data, Source; or a notification
//! ```
//!
//! Templates of notifications have Alertmanager's data and functions, which `notification` lists.
//!
//! Invariant: work, output, nesting and memory are bounded by [`Limits`] and constants here.
//! Templates written for other bounds fail; nothing is cut short.
//!
//! Differences from upstream: texts are UTF-8, so that bytes of a part of a character become
//! U+FFFD; there are no complex numbers, and no fields or methods of a native histogram but its
//! text; times are UTC and have no zones; `sortByLabel` does not change its argument; a list of
//! samples prints the samples, not their addresses.
//!
//! Sources: prometheus/prometheus 3.16, `template/template.go` and its tests; the documentation and
//! behaviour of Go's `text/template` and `fmt`. `tests/templates.rs` compares with upstream.

mod budget;
mod data;
mod error;
mod evaluate;
mod format;
mod functions;
mod notification;
mod number;
mod syntax;
mod time;
mod value;

pub use budget::{Allowance, Limits};
pub use data::{Data, Sample, SampleValue, Source};
pub use error::{ExpansionError, Reason, TemplateError};
pub use notification::{AlertData, NotificationData, NotificationView};

pub(crate) use format::quoted;
pub(crate) use syntax::unquoted;
pub(crate) use time::duration_text;

use budget::Budget;
use evaluate::State;
use functions::Dialect;
use std::sync::Arc;
use value::Value;

/// Maximum length of a template, in bytes.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// Variables that upstream defines before the text of an alert. Columns in errors count them.
const PRELUDE: &str = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}\
                       {{$externalURL := .ExternalURL}}{{$value := .Value}}";

/// A template that is parsed.
#[derive(Debug)]
pub struct Template {
    name: String,
    text: String,
    parsed: syntax::Parsed,
}

impl Template {
    /// Parses a template; errors give this name. Unknown functions are errors here.
    pub fn parse(name: &str, text: &str) -> Result<Template, TemplateError> {
        Template::parse_in(Dialect::Rule, name, text)
    }

    fn parse_in(dialect: Dialect, name: &str, text: &str) -> Result<Template, TemplateError> {
        if text.len() > TEXT_BYTES_MAX {
            let (name, bytes) = (name.to_owned(), text.len());
            return Err(TemplateError::TooLong { name, bytes, bytes_max: TEXT_BYTES_MAX });
        }
        let parsed = syntax::parse(dialect, name, text)?;
        Ok(Template { name: name.to_owned(), text: text.to_owned(), parsed })
    }

    /// Parses the template of a label or annotation of an alert, which has the variables
    /// `$labels`, `$externalLabels`, `$externalURL` and `$value`.
    pub fn of_alert(alert: &str, text: &str) -> Result<Template, TemplateError> {
        Template::parse(&format!("__alert_{alert}"), &format!("{PRELUDE}{text}"))
    }

    /// Expands the template. Upstream puts `<error expanding template: …>` with the error in place
    /// of a text that fails.
    pub fn expand(
        &self,
        data: &Data,
        source: &dyn Source,
        limits: &Limits,
    ) -> Result<String, TemplateError> {
        self.expand_within(data, source, limits, &Allowance::new(u64::MAX))
    }

    /// Expands the template within what several expansions may use together.
    pub fn expand_within(
        &self,
        data: &Data,
        source: &dyn Source,
        limits: &Limits,
        allowance: &Allowance,
    ) -> Result<String, TemplateError> {
        let data = Arc::new(data.clone());
        let budget = Budget::new(*limits, allowance);
        let state = State::new(self, &data.external_url, source, budget);
        state.run(Value::Data(data.clone()))
    }
}

#[cfg(test)]
mod tests;
