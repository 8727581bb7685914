//! Runs promtool and reads the lines of its `tsdb dump`.
//!
//! A dump has one sample a line: `{name="value", …} value timestamp`. Names that are not plain are
//! quoted like values (as Go string literals); a metric name may also stand in quotes alone. A dump
//! prints every NaN as `NaN`, so [`clear_nan_bits`] makes both sides comparable.

use crate::peers::{MissingPeer, Release};
use crate::series::{Labels, ORDINARY_NAN_BITS, Sample, Series};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Result of a tool such as promtool.
#[derive(Clone, Debug)]
pub struct Output {
    /// Whether the exit code was 0.
    pub success: bool,
    /// Exit code; `None` if a signal ended the tool.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Reason why promtool returned no result.
#[derive(Debug, thiserror::Error)]
pub enum PromtoolError {
    #[error(transparent)]
    Missing(#[from] MissingPeer),
    #[error("promtool did not run")]
    Run(#[from] io::Error),
    /// A line of a dump cannot be parsed.
    #[error("line {number} of the dump cannot be read: {line}")]
    Line {
        /// Number of the line, counted from one.
        number: usize,
        line: String,
    },
}

pub fn run(
    release: Release,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    input: Stdio,
) -> Result<Output, PromtoolError> {
    Ok(Command::new(release.promtool()?).args(arguments).stdin(input).output()?.into())
}

/// promtool's complaint about some of Prometheus' own metrics, which are listed below.
const OF_UPSTREAM: &str = " metric name should not include type 'histogram'";
const UPSTREAMS: [&str; 2] = [
    "prometheus_engine_query_duration_histogram_seconds",
    "prometheus_target_scrapes_exceeded_native_histogram_bucket_limit_total",
];

/// Returns the complaints of `check metrics` about a page of metrics.
pub fn check_metrics(release: Release, page: &[u8]) -> Result<Vec<String>, PromtoolError> {
    let mut input = tempfile::tempfile()?;
    input.write_all(page)?;
    input.rewind()?;
    let output = run(release, ["check", "metrics"], input.into())?;
    let is_of_upstream =
        |line: &str| line.strip_suffix(OF_UPSTREAM).is_some_and(|name| UPSTREAMS.contains(&name));
    let lines = output.stderr.lines().filter(|line| !is_of_upstream(line));
    Ok(lines.chain(output.stdout.lines()).map(str::to_owned).collect())
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Output {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let (success, code) = (output.status.success(), output.status.code());
        Output { success, code, stdout, stderr }
    }
}

/// Runs `promtool tsdb COMMAND DIR …`, which must succeed, and returns its output.
#[track_caller]
pub fn tsdb(release: Release, command: &str, data_dir: &Path, more: &[&str]) -> String {
    let mut arguments = vec![OsStr::new("tsdb"), OsStr::new(command), data_dir.as_os_str()];
    arguments.extend(more.iter().map(OsStr::new));
    let output = run(release, arguments, Stdio::null())
        .unwrap_or_else(|error| panic!("{release:?} tsdb {command}: {error}"));
    assert!(output.success, "{release:?} tsdb {command}: {}{}", output.stdout, output.stderr);
    output.stdout
}

/// Parses a dump into series, each once, in label order.
pub fn parse_dump(text: &str) -> Result<Vec<Series>, PromtoolError> {
    let mut series: BTreeMap<Labels, Vec<Sample>> = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let unreadable = || PromtoolError::Line { number: index + 1, line: line.to_string() };
        let (labels, sample) = parse_line(line).ok_or_else(unreadable)?;
        series.entry(labels).or_default().push(sample);
    }
    Ok(series.into_iter().map(|(labels, samples)| Series { labels, samples }).collect())
}

/// Replaces every NaN by the ordinary one.
pub fn clear_nan_bits(series: &[Series]) -> Vec<Series> {
    let mut series = series.to_vec();
    for sample in series.iter_mut().flat_map(|s| &mut s.samples) {
        if sample.value.is_nan() {
            sample.value = f64::from_bits(ORDINARY_NAN_BITS);
        }
    }
    series
}

fn parse_line(line: &str) -> Option<(Labels, Sample)> {
    let mut rest = line.strip_prefix('{')?;
    let mut pairs = Vec::new();
    while !rest.starts_with('}') {
        let (name, after_name) = match rest.starts_with('"') {
            true => go_string(rest)?,
            false => {
                let (name, _) = rest.split_once('=')?;
                (name.to_string(), &rest[name.len()..])
            }
        };
        match after_name.strip_prefix('=') {
            Some(quoted) => {
                let (value, after_value) = go_string(quoted)?;
                pairs.push((name, value));
                rest = after_value;
            }
            None => {
                pairs.push(("__name__".to_string(), name));
                rest = after_name;
            }
        }
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start_matches(' ');
    }
    let (value, timestamp) = rest.strip_prefix("} ")?.split_once(' ')?;
    let value = match value {
        "NaN" => f64::from_bits(ORDINARY_NAN_BITS),
        number => number.parse().ok()?,
    };
    Some((Labels::from_pairs(pairs), Sample { timestamp_ms: timestamp.parse().ok()?, value }))
}

/// Reads a quoted Go string at the start of the text; returns it and the rest.
fn go_string(text: &str) -> Option<(String, &str)> {
    let mut chars = text.strip_prefix('"')?.char_indices();
    let rest = &text[1..];
    let mut bytes = Vec::new();
    let mut utf8 = [0; 4];
    loop {
        let (position, char) = chars.next()?;
        match char {
            '"' => return Some((String::from_utf8(bytes).ok()?, &rest[position + 1..])),
            '\\' => match chars.next()?.1 {
                'a' => bytes.push(7),
                'b' => bytes.push(8),
                'f' => bytes.push(12),
                'n' => bytes.push(b'\n'),
                'r' => bytes.push(b'\r'),
                't' => bytes.push(b'\t'),
                'v' => bytes.push(11),
                'x' => bytes.push(u8::try_from(hexadecimal(&mut chars, 2)?).ok()?),
                kind @ ('u' | 'U') => {
                    let digits = if kind == 'u' { 4 } else { 8 };
                    let char = char::from_u32(hexadecimal(&mut chars, digits)?)?;
                    bytes.extend_from_slice(char.encode_utf8(&mut utf8).as_bytes());
                }
                char @ ('\\' | '"' | '\'') => bytes.push(char as u8),
                _ => return None,
            },
            char => bytes.extend_from_slice(char.encode_utf8(&mut utf8).as_bytes()),
        }
    }
}

fn hexadecimal(chars: &mut std::str::CharIndices<'_>, digits: usize) -> Option<u32> {
    (0..digits).try_fold(0, |value, _| Some(value << 4 | chars.next()?.1.to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_kind_can_be_read() {
        let dump = concat!(
            "{__name__=\"up\", job=\"a \\\"b\\\"\\n\"} +Inf 1000\n",
            "{\"dotted.name\", \"a.b\"=\"\\u00e9\\x7f\", c=\"}, \"} -0 -5\n",
            "{__name__=\"up\", job=\"a \\\"b\\\"\\n\"} NaN 2000\n",
            "{} 1e+100 3\n",
        );
        let series = parse_dump(dump).expect("every line is a dump's");
        let nan = f64::from_bits(ORDINARY_NAN_BITS);
        let up = Series::new(
            &[("__name__", "up"), ("job", "a \"b\"\n")],
            &[(1000, f64::INFINITY), (2000, nan)],
        );
        let dotted = [("__name__", "dotted.name"), ("a.b", "é\u{7f}"), ("c", "}, ")];
        assert_eq!(
            series,
            [Series::new(&[], &[(3, 1e100)]), Series::new(&dotted, &[(-5, -0.0)]), up,]
        );
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = parse_dump("{} 1 1\n{a=\"} 1 1\n").expect_err("the second line is broken");
        assert!(matches!(error, PromtoolError::Line { number: 2, .. }));
    }
}
