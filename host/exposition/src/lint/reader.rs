//! Reads the classic text into families, as strictly as `expfmt.TextParser` does.

use super::LintError;
use super::families::{BUCKET_LABEL, Families, Pairs, QUANTILE_LABEL};
use super::scanner::{NameKind, Scanner, Wrong};
use crate::limits::LINE_BYTES_MAX;
use crate::metric::{METRIC_NAME, MetricType};
use crate::names::NameValidation;
use crate::number::parse_value;
use crate::quote::{quoted, quoted_byte};
use std::collections::HashSet;
use std::io::{BufRead, Read as _};

/// Maximum size of a text in bytes.
pub const TEXT_BYTES_MAX: u64 = 1 << 30;

/// The validation scheme for names, and the families read so far.
struct Reader {
    names: NameValidation,
    families: Families,
}

/// Family of a sample, and the role of the sample in it.
#[derive(Clone, Copy)]
struct Named {
    family: usize,
    part: Part,
}

/// Role of a sample in a histogram or summary, by the suffix of its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Any other sample, including buckets and quantiles, which their labels identify.
    Other,
    Count,
    Sum,
}

/// Labels of a sample that is being read.
#[derive(Default)]
struct Labels {
    /// Labels that identify the series.
    pairs: Pairs,
    names: HashSet<String>,
    /// Bound of the bucket, or the quantile.
    bound: Option<f64>,
}

impl Families {
    /// Reads a text. A name that `names` does not allow is an error.
    pub fn read(mut input: impl BufRead, names: NameValidation) -> Result<Families, LintError> {
        let mut reader = Reader { names, families: Families::default() };
        let (mut line, mut number, mut bytes) = (Vec::new(), 0, 0);
        loop {
            line.clear();
            // One byte more than the limit reveals a long line without reading its rest.
            let most = LINE_BYTES_MAX as u64 + 1;
            bytes += input.by_ref().take(most).read_until(b'\n', &mut line)? as u64;
            if line.is_empty() {
                return Ok(reader.families);
            }
            if bytes > TEXT_BYTES_MAX {
                return Err(LintError::TooLong);
            }
            number += 1;
            let read = match line.len() > LINE_BYTES_MAX {
                true => Err(format!("it is longer than {LINE_BYTES_MAX} bytes")),
                false => reader.line(Scanner::new(&line)),
            };
            read.map_err(|what| LintError::Line { line: number, what })?;
        }
    }
}

impl Reader {
    fn line(&mut self, mut line: Scanner<'_>) -> Result<(), Wrong> {
        match line.skip_blanks() {
            // The error is the missing line break, which is allowed in a blank last line.
            Err(_) | Ok(b'\n') => Ok(()),
            Ok(b'#') => self.comment(line),
            Ok(first) => self.sample(line, first == b'{'),
        }
    }

    fn comment(&mut self, mut line: Scanner<'_>) -> Result<(), Wrong> {
        if line.skip()? == b'\n' {
            return Ok(());
        }
        let keyword = line.word()?;
        if line.byte()? == b'\n' {
            return Ok(());
        }
        if !matches!(keyword, b"HELP" | b"TYPE") {
            return line.skip_rest();
        }
        line.skip_blanks()?;
        let name = line.name(NameKind::Metric)?;
        match line.byte()? {
            b'\n' => return Ok(()),
            b' ' | b'\t' => {}
            _ => return Err("invalid metric name in comment".into()),
        }
        let family = self.named(&name)?.family;
        // Upstream ignores a keyword and a name without a text after them.
        if line.skip_blanks()? == b'\n' {
            return Ok(());
        }
        let family = self.families.at(family);
        let shown = quoted(family.name.as_bytes());
        if keyword == b"HELP" {
            if family.has_help {
                return Err(format!("second HELP line for metric name {shown}"));
            }
            family.has_help = true;
            return line.skip_help();
        }
        // The first sample sets an unknown type, so a `TYPE` line after it is refused as well.
        if family.kind.is_some() {
            return Err(format!(
                "second TYPE line for metric name {shown}, or TYPE reported after samples"
            ));
        }
        let text = line.rest()?;
        let kind = kind(&text).ok_or_else(|| format!("unknown metric type {}", quoted(&text)))?;
        family.kind = Some(kind);
        Ok(())
    }

    fn sample(&mut self, mut line: Scanner<'_>, is_braced: bool) -> Result<(), Wrong> {
        let mut labels = Labels::default();
        let mut named = None;
        if !is_braced {
            let name = line.name(NameKind::Metric)?;
            if name.is_empty() {
                return Err("invalid metric name".into());
            }
            named = Some(self.begun(&name)?);
            line.skip_blanks()?;
        }
        if line.byte()? == b'{' {
            self.labels(&mut line, is_braced, &mut named, &mut labels)?;
        }
        let named = named.ok_or("invalid metric name")?;
        let word = line.word()?;
        let value = std::str::from_utf8(word).ok().and_then(parse_value);
        let value =
            value.ok_or_else(|| format!("expected float as value, got {}", quoted(word)))?;
        self.add(named, labels, value)?;
        if line.byte()? == b'\n' {
            return Ok(());
        }
        line.skip_blanks()?;
        let word = line.word()?;
        let time = std::str::from_utf8(word).ok().and_then(|text| text.parse::<i64>().ok());
        if time.is_none() {
            return Err(format!("expected integer as timestamp, got {}", quoted(word)));
        }
        match line.rest()? {
            rest if rest.is_empty() => Ok(()),
            rest => Err(format!("spurious string after timestamp: {}", quoted(&rest))),
        }
    }

    /// Reads labels, from the opening brace to the first byte of the value. If `is_braced`, the
    /// metric name may be among the labels.
    fn labels(
        &mut self,
        line: &mut Scanner<'_>,
        is_braced: bool,
        named: &mut Option<Named>,
        labels: &mut Labels,
    ) -> Result<(), Wrong> {
        loop {
            if line.skip()? == b'}' {
                break;
            }
            let name = line.name(NameKind::Label)?;
            if name.is_empty() {
                return Err(format!("invalid label name for metric {}", self.shown(*named)));
            }
            match line.skip_blanks()? {
                b'=' => {}
                byte if !is_braced => {
                    let found = quoted_byte(byte);
                    return Err(format!("expected '=' after label name, found {found}"));
                }
                _ if named.is_some() => {
                    return Err(format!("multiple metric names for metric {}", self.shown(*named)));
                }
                byte @ (b',' | b'}') => {
                    *named = Some(self.begun(&name)?);
                    // The name determines whether labels before it, read as ordinary, are bounds.
                    for (name, value) in std::mem::take(&mut labels.pairs) {
                        self.label(*named, name, value, labels)?;
                    }
                    match byte {
                        b',' => continue,
                        _ => break,
                    }
                }
                byte => {
                    return Err(format!("unexpected end of metric name {}", quoted_byte(byte)));
                }
            }
            let name = self.label_name(name)?;
            // Bounds are not labels of the series, so upstream allows repeated bounds.
            if !self.is_bound(*named, &name) && !labels.names.insert(name.clone()) {
                return Err(format!("duplicate label names for metric {}", self.shown(*named)));
            }
            match line.skip()? {
                b'"' => {}
                byte => {
                    let found = quoted_byte(byte);
                    return Err(format!("expected '\"' at start of label value, found {found}"));
                }
            }
            let value = String::from_utf8(line.label_value()?)
                .map_err(|error| format!("invalid label value {}", quoted(error.as_bytes())))?;
            let shown = quoted(value.as_bytes());
            self.label(*named, name, value, labels)?;
            match line.skip_blanks()? {
                b',' => {}
                b'}' => break,
                _ => return Err(format!("unexpected end of label value {shown}")),
            }
        }
        line.skip()?;
        Ok(())
    }

    fn label_name(&self, name: Vec<u8>) -> Result<String, Wrong> {
        if name == METRIC_NAME.as_bytes() {
            return Err(format!("label name {} is reserved", quoted(&name)));
        }
        let text = std::str::from_utf8(&name).ok();
        match text.filter(|text| self.names.is_label_name(text)) {
            Some(text) => Ok(text.to_owned()),
            None => Err(format!("invalid label name {}", quoted(&name))),
        }
    }

    /// Returns whether a label is a bucket's bound or a quantile, not part of the series.
    fn is_bound(&mut self, named: Option<Named>, name: &str) -> bool {
        let family = named.map(|named| self.families.at(named.family));
        family.is_some_and(|family| match name {
            BUCKET_LABEL => family.is_histogram(),
            QUANTILE_LABEL => family.is_summary(),
            _ => false,
        })
    }

    /// Adds a label to the series, or parses it as a bound.
    fn label(
        &mut self,
        named: Option<Named>,
        name: String,
        value: String,
        labels: &mut Labels,
    ) -> Result<(), Wrong> {
        if !self.is_bound(named, &name) {
            labels.pairs.push((name, value));
            return Ok(());
        }
        let bound = parse_value(&value).ok_or_else(|| {
            let value = quoted(value.as_bytes());
            format!("expected float as value for '{name}' label, got {value}")
        })?;
        labels.bound = Some(bound);
        Ok(())
    }

    fn add(&mut self, named: Named, labels: Labels, value: f64) -> Result<(), Wrong> {
        let family = self.families.at(named.family);
        // Upstream represents an absent bound by NaN, so a bound that is NaN counts as absent.
        let is_part = labels.bound.is_some_and(|bound| !bound.is_nan());
        let is_part = is_part && named.part == Part::Other;
        if family.is_histogram() && value < 0.0 {
            let name = quoted(family.name.as_bytes());
            match named.part {
                Part::Count => return Err(format!("negative count for histogram {name}")),
                Part::Other if is_part => {
                    return Err(format!("negative bucket population for histogram {name}"));
                }
                // The sum of negative observations is negative.
                Part::Sum | Part::Other => {}
            }
        }
        family.add_sample(labels.pairs, is_part);
        Ok(())
    }

    /// Returns the family of a sample; without a `TYPE` line before it, its type becomes unknown.
    fn begun(&mut self, name: &[u8]) -> Result<Named, Wrong> {
        let named = self.named(name)?;
        self.families.at(named.family).kind.get_or_insert(MetricType::Unknown);
        Ok(named)
    }

    /// Returns the family of a name: its own, or the histogram or summary that it belongs to.
    fn named(&mut self, name: &[u8]) -> Result<Named, Wrong> {
        let text = std::str::from_utf8(name).ok().filter(|text| self.names.is_metric_name(text));
        let text = text.ok_or_else(|| format!("invalid metric name {}", quoted(name)))?;
        // The whole name is tried first: `x_count` may be a metric besides the summary `x`.
        if let Some(family) = self.families.find(text) {
            return Ok(Named { family, part: Part::Other });
        }
        for (suffix, part) in
            [("_count", Part::Count), ("_sum", Part::Sum), ("_bucket", Part::Other)]
        {
            let Some(base) = text.strip_suffix(suffix).filter(|base| !base.is_empty()) else {
                continue;
            };
            let is_whole = match self.families.kind_of(base) {
                Some(MetricType::Summary) => suffix != "_bucket",
                Some(MetricType::Histogram | MetricType::Gaugehistogram) => true,
                _ => false,
            };
            if let Some(family) = self.families.find(base).filter(|_| is_whole) {
                return Ok(Named { family, part });
            }
        }
        Ok(Named { family: self.families.add(text), part: Part::Other })
    }

    fn shown(&mut self, named: Option<Named>) -> String {
        let name = named.map(|named| self.families.at(named.family).name.clone());
        quoted(name.unwrap_or_default().as_bytes())
    }
}

fn kind(text: &[u8]) -> Option<MetricType> {
    // Upstream accepts types in upper and lower case.
    let text = std::str::from_utf8(text).ok()?.to_uppercase();
    Some(match text.as_str() {
        "COUNTER" => MetricType::Counter,
        "GAUGE" => MetricType::Gauge,
        "SUMMARY" => MetricType::Summary,
        "UNTYPED" => MetricType::Unknown,
        "HISTOGRAM" => MetricType::Histogram,
        "GAUGE_HISTOGRAM" | "GAUGEHISTOGRAM" => MetricType::Gaugehistogram,
        _ => return None,
    })
}
