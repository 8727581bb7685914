//! Prometheus' text format, version 0.0.4.

use crate::sink::{Kind, Label};
use std::borrow::Cow;
use std::fmt::Write;

/// Writes families and samples of a [`Sink`](crate::Sink) as text, like node_exporter does.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    text: String,
    family: String,
}

impl Exposition {
    pub fn family(&mut self, name: &str, help: &str, kind: Kind) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Untyped => "untyped",
        };
        self.head(name, help, kind);
        name.clone_into(&mut self.family);
    }

    /// Writes the lines before the samples of a family. The name is quoted if it has characters
    /// other than letters, digits, underscores and colons.
    pub fn head(&mut self, name: &str, help: &str, kind: &str) {
        let name = written(name);
        self.line(format_args!("# HELP {name} {}", help.replace('\\', r"\\").replace('\n', r"\n")));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// Writes a sample of the last family that was started.
    pub fn sample(&mut self, labels: &[Label<'_>], value: f64) {
        let mut separator = '{';
        // As in Prometheus 3, a quoted name is written inside the braces.
        if is_plain(&self.family) {
            self.text.push_str(&self.family);
        } else {
            self.text.push('{');
            quote(&self.family, &mut self.text);
            separator = ',';
        }
        for (name, value) in labels {
            self.text.push(separator);
            self.text.push_str(name);
            self.text.push('=');
            quote(value, &mut self.text);
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        self.line(format_args!(" {value}"));
    }

    /// Appends lines with samples unchanged. Each line must end with a line feed.
    pub fn lines(&mut self, lines: &str) {
        self.text.push_str(lines);
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    /// Returns the text written so far, and starts a new text.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

/// Returns a metric name, quoted if necessary.
fn written(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        return Cow::Borrowed(name);
    }
    let mut quoted = String::new();
    quote(name, &mut quoted);
    Cow::Owned(quoted)
}

fn is_plain(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte == b':';
    name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

fn quote(text: &str, to: &mut String) {
    to.push('"');
    for character in text.chars() {
        match character {
            '\\' => to.push_str(r"\\"),
            '"' => to.push_str(r#"\""#),
            '\n' => to.push_str(r"\n"),
            other => to.push(other),
        }
    }
    to.push('"');
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
        exposition.family("g.h\"", "i", Kind::Gauge);
        exposition.sample(&[], 1.0);
        exposition.sample(&[("e", "f")], 2.0);
        let expected = [
            r"# HELP a_total one\\two\nthree",
            "# TYPE a_total counter",
            "a_total 1",
            r#"a_total{b="\\ \" \n ü",c=""} 0.5"#,
            "# HELP d ",
            "# TYPE d untyped",
            r#"d{e="f"} NaN"#,
            r#"# HELP "g.h\"" i"#,
            r#"# TYPE "g.h\"" gauge"#,
            r#"{"g.h\""} 1"#,
            r#"{"g.h\"",e="f"} 2"#,
            "",
        ];
        assert_eq!(exposition.take(), expected.join("\n"));
        assert_eq!(exposition.take(), "");
    }
}
