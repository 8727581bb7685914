//! Texts that several results have.

use crate::file::{Labels, NameValidation};
use crate::template::{duration_text, quoted};

/// Labels as Prometheus prints them: `{a="b", "c.d"="e"}`.
pub fn labels_text(labels: &Labels) -> String {
    let label = |(name, value): (&String, &String)| {
        let is_plain = NameValidation::Legacy.is_label_name(name);
        let name = if is_plain { name.clone() } else { quoted(name) };
        format!("{name}={}", quoted(value))
    };
    format!("{{{}}}", labels.iter().map(label).collect::<Vec<_>>().join(", "))
}

/// Indents the lines behind the first one.
pub fn indented(text: &str, indent: &str) -> String {
    text.replace('\n', &format!("\n{indent}"))
}

/// A time as Go prints a duration, such as `1m30s`.
pub fn time_text(time_ms: i64) -> String {
    duration_text(time_ms.saturating_mul(1_000_000))
}
