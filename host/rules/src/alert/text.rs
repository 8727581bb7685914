//! Values of labels and annotations of an alert.

use crate::template::{Allowance, Data, Limits, Source, Template};

/// A value, compiled once.
#[derive(Debug)]
pub enum Text {
    /// A text without actions, which expands to itself.
    Plain(String),
    Template(Template),
    /// What each alert gets in place of a template that does not parse.
    Broken(String),
}

impl Text {
    pub fn compile(alert: &str, text: &str) -> Text {
        if !is_template(text) {
            return Text::Plain(text.to_owned());
        }
        match Template::of_alert(alert, text) {
            Ok(template) => Text::Template(template),
            Err(error) => {
                Text::Broken(failed(&format!("error parsing template __alert_{alert}: {error}")))
            }
        }
    }

    /// Expands the text. A failure gives a text, too, and is counted.
    pub fn expand(
        &self,
        data: &Data,
        source: &dyn Source,
        limits: &Limits,
        allowance: &Allowance,
        failures: &mut usize,
    ) -> String {
        match self {
            Text::Plain(text) => text.clone(),
            Text::Broken(text) => {
                *failures += 1;
                text.clone()
            }
            Text::Template(template) => {
                let expanded = template.expand_within(data, source, limits, allowance);
                expanded.unwrap_or_else(|error| {
                    *failures += 1;
                    failed(&error.to_string())
                })
            }
        }
    }
}

/// Whether a text has an action, so that each alert has a value of its own.
pub fn is_template(text: &str) -> bool {
    text.contains("{{")
}

fn failed(error: &str) -> String {
    format!("<error expanding template: {error}>")
}
