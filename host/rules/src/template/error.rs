//! Why a template is refused, or expands to nothing.

use super::format::quoted;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The template does not parse. `reason` is Go's text, except for bounds that Go does not have.
    #[error("template: {name}:{line}: {reason}")]
    Syntax { name: String, line: usize, reason: String },
    #[error("template: {name}: it has {bytes} bytes, the limit is {bytes_max}")]
    TooLong { name: String, bytes: usize, bytes_max: usize },
    #[error("error executing template {}: {}", .0.name, .0)]
    Expansion(Box<ExpansionError>),
}

/// Where and why an expansion failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "template: {name}:{line}:{column}: executing {} at <{context}>: {reason}",
    quoted(executing)
)]
pub struct ExpansionError {
    /// Name of the template that was parsed.
    pub name: String,
    /// From 1.
    pub line: usize,
    /// Bytes before the place on its line, as Go counts.
    pub column: usize,
    /// Name of the template that was evaluated.
    pub executing: String,
    /// The part that was evaluated, as Go writes it.
    pub context: String,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("{0}")]
    Failed(String),
    #[error("it takes more than {steps_max} steps")]
    Steps { steps_max: u64 },
    /// All expansions together may take no more.
    #[error("the templates of this rule take too many steps")]
    Allowance,
    #[error("a text has more than {bytes_max} bytes")]
    Output { bytes_max: usize },
    #[error("templates and values nest more than {nesting_max} deep")]
    Nesting { nesting_max: usize },
}

impl From<String> for Reason {
    fn from(reason: String) -> Reason {
        Reason::Failed(reason)
    }
}

impl From<&str> for Reason {
    fn from(reason: &str) -> Reason {
        Reason::Failed(reason.to_owned())
    }
}
