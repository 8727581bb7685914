//! The metrics in Prometheus' text format, version 0.0.4.

use crate::sink::{Kind, Label};
use std::fmt::Write;

/// Writes families and samples as text, as node_exporter answers. What implements
/// [`Sink`](crate::Sink) hands both on to it.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    text: String,
    family: String,
}

impl Exposition {
    /// Begins a family.
    pub fn family(&mut self, name: &str, help: &str, kind: Kind) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Untyped => "untyped",
        };
        self.help(name, help);
        self.line(format_args!("# TYPE {name} {kind}"));
        name.clone_into(&mut self.family);
    }

    /// Says what a family means.
    pub fn help(&mut self, name: &str, help: &str) {
        self.line(format_args!("# HELP {name} {}", help.replace('\\', r"\\").replace('\n', r"\n")));
    }

    /// A sample of the family that began last.
    pub fn sample(&mut self, labels: &[Label<'_>], value: f64) {
        self.text.push_str(&self.family);
        for (index, (name, value)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            for character in value.chars() {
                match character {
                    '\\' => self.text.push_str(r"\\"),
                    '"' => self.text.push_str(r#"\""#),
                    '\n' => self.text.push_str(r"\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        self.line(format_args!(" {value}"));
    }

    /// A line of its own.
    pub fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    /// The text, which begins again.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format: exposition_formats.md of prometheus/docs, section "Text format details".
    #[test]
    fn texts_are_escaped() {
        let mut exposition = Exposition::default();
        exposition.family("a_total", "one\\two\nthree", Kind::Counter);
        exposition.sample(&[], 1.0);
        exposition.sample(&[("b", "\\ \" \n ü"), ("c", "")], 0.5);
        exposition.family("d", "", Kind::Untyped);
        exposition.sample(&[("e", "f")], f64::NAN);
        let expected = [
            r"# HELP a_total one\\two\nthree",
            "# TYPE a_total counter",
            "a_total 1",
            r#"a_total{b="\\ \" \n ü",c=""} 0.5"#,
            "# HELP d ",
            "# TYPE d untyped",
            r#"d{e="f"} NaN"#,
            "",
        ];
        assert_eq!(exposition.take(), expected.join("\n"));
        assert_eq!(exposition.take(), "");
    }
}
