//! Reads files of the textfile collector as node_exporter does (`collector/textfile.go`). A file
//! with an error or a timestamp is refused as a whole. If two files have different help or types
//! for a family, the later file's family is left out. A family without help gets the help of an
//! earlier file, or a text that names its file.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use tidepool_exposition::{Format, HistogramOptions, Item, MetricType, Parser, Sample};
use tidepool_node_metrics::{Exposition, TextFile, TextFileOutcome};

/// State of the files in this round, and their faults in the round before.
#[derive(Default)]
pub(super) struct TextFiles {
    /// Families of this round by name, from all files so far.
    known: HashMap<String, Known>,
    /// Faults of this round by path. A fault is logged unless the round before had it, too.
    faults: HashMap<String, String>,
    faults_before: HashMap<String, String>,
}

struct Known {
    help: String,
    /// Whether the help was generated because no file had one.
    is_help_made: bool,
    kind: MetricType,
    series: HashSet<String>,
}

#[derive(Default)]
struct Family {
    /// Position among the families of the file.
    number: usize,
    help: Option<String>,
    kind: MetricType,
    /// Text of each series, and its value.
    samples: Vec<(String, f64)>,
}

#[derive(Default)]
struct Families(HashMap<String, Family>);

impl TextFiles {
    pub fn begin(&mut self) {
        self.known.clear();
        self.faults_before = std::mem::take(&mut self.faults);
    }

    /// Writes the families of a file to the exposition.
    pub fn add(&mut self, file: &TextFile<'_>, exposition: &mut Exposition) -> TextFileOutcome {
        let families = match parse(file.content) {
            Ok(families) => families,
            Err(fault) => {
                self.fault(file.path, fault);
                return TextFileOutcome::Refused;
            }
        };
        let mut outcome = TextFileOutcome::Taken;
        for (name, family) in families.in_order() {
            if let Some(fault) = self.write(file.path, &name, family, exposition) {
                self.fault(file.path, fault);
                outcome = TextFileOutcome::TakenInPart;
            }
        }
        outcome
    }

    /// Writes a family of a file, and returns its fault. A family with different help or type is
    /// left out. Of a repeated series, only the first sample is written.
    fn write(
        &mut self,
        path: &str,
        name: &str,
        family: Family,
        exposition: &mut Exposition,
    ) -> Option<String> {
        let Family { help, kind, samples, .. } = family;
        let known = self.known.entry(name.to_owned()).or_insert_with(|| Known {
            help: help.clone().unwrap_or_else(|| format!("Metric read from {path}")),
            is_help_made: help.is_none(),
            kind,
            series: HashSet::new(),
        });
        // A generated help is no statement, so a later file may have its own.
        let has_other = help.is_some_and(|help| help != known.help) && !known.is_help_made;
        let differs = match (has_other, kind == known.kind) {
            (true, _) => Some("help text"),
            (_, false) => Some("type"),
            (false, true) => None,
        };
        if let Some(what) = differs {
            return Some(format!(
                "the metric {name} has another {what} in an earlier file: its samples are left \
                 out; make them equal"
            ));
        }
        let mut lines = String::new();
        let mut repeated = None;
        for (series, value) in samples {
            // A second sample of a series would count as a duplicate in the scrape.
            if known.series.contains(&series) {
                repeated.get_or_insert(series);
                continue;
            }
            lines.push_str(&format!("{series} {value}\n"));
            known.series.insert(series);
        }
        let kind = match kind {
            // The classic format calls an unknown type `untyped`.
            MetricType::Unknown => "untyped",
            kind => kind.as_str(),
        };
        exposition.head(name, &known.help, kind);
        exposition.lines(&lines);
        repeated.map(|series| format!("the series {series} is there already: it is left out"))
    }

    fn fault(&mut self, path: &str, fault: String) {
        if self.faults_before.get(path) != Some(&fault) {
            tracing::warn!(path, fault, "a file of --collector.textfile.directory is not taken");
        }
        self.faults.insert(path.to_owned(), fault);
    }
}

fn parse(content: &[u8]) -> Result<Families, String> {
    if content.last().is_some_and(|last| *last != b'\n') {
        // A file that is being written may end within a number, which would be read truncated.
        return Err("its last line has no line feed: write the file elsewhere, then move it".into());
    }
    let mut parser = Parser::new(Format::Prometheus, HistogramOptions::default());
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        // Split into lines, because `with_small_type` works on one line.
        parser.feed(&with_small_type(line));
    }
    parser.end();
    let mut families = Families::default();
    while let Some(item) = parser.next().map_err(|error| error.to_string())? {
        match item {
            Item::Type { family, kind } => families.of(&family).kind = kind,
            Item::Help { family, help } => {
                families.of(&family).help = Some(help.into_owned());
            }
            Item::Sample(sample) => families.add(&sample)?,
            // The classic format has no other items.
            _ => {}
        }
    }
    Ok(families)
}

/// Lowers the case of the type in a `# TYPE` line. Upstream's parser of these files ignores case,
/// its parser of scrapes does not (`readingType` in `expfmt/text_parse.go` of prometheus/common).
fn with_small_type(line: &[u8]) -> Cow<'_, [u8]> {
    if !line.starts_with(b"# TYPE ") {
        return Cow::Borrowed(line);
    }
    let end = line.trim_ascii_end().len();
    let word = line[..end].iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
    let mut small = line.to_owned();
    small[word..end].make_ascii_lowercase();
    Cow::Owned(small)
}

impl Families {
    fn of(&mut self, name: &str) -> &mut Family {
        let number = self.0.len();
        self.0.entry(name.to_owned()).or_insert_with(|| Family { number, ..Family::default() })
    }

    /// Returns the families that have samples, in the order of the file.
    fn in_order(self) -> Vec<(String, Family)> {
        let has_samples = |(_, family): &(String, Family)| !family.samples.is_empty();
        let mut all: Vec<_> = self.0.into_iter().filter(has_samples).collect();
        all.sort_unstable_by_key(|(_, family)| family.number);
        all
    }

    fn add(&mut self, sample: &Sample<'_>) -> Result<(), String> {
        let series = sample.series;
        if sample.timestamp_ms.is_some() {
            return Err(format!("the sample {} has a timestamp: leave it out", series.text()));
        }
        let labels = series.labels().map_err(|error| error.to_string())?;
        let name = labels.iter().find(|(name, _)| name == "__name__").map(|(_, name)| name);
        let name = name.map(String::as_str).unwrap_or_default();
        let family = self.family_of(name);
        self.of(&family).samples.push((series.text().to_string(), sample.value));
        Ok(())
    }

    /// Returns the name of the family that samples with this name belong to.
    fn family_of(&self, name: &str) -> String {
        // A gauge may be named `x_count`, so a suffix counts only for a histogram or summary.
        let parts = ["_bucket", "_sum", "_count"].into_iter();
        let mut owners = parts.filter_map(|part| name.strip_suffix(part));
        let is_owner = |owner: &&str| {
            let kind = self.0.get(*owner).map(|family| family.kind);
            matches!(kind, Some(MetricType::Histogram | MetricType::Summary))
        };
        owners.find(is_owner).unwrap_or(name).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(files: &mut TextFiles, path: &str, content: &str) -> (TextFileOutcome, String) {
        let mut exposition = Exposition::default();
        let file = TextFile { path, content: content.as_bytes() };
        let outcome = files.add(&file, &mut exposition);
        (outcome, exposition.take())
    }

    /// Upstream: files of `collector/fixtures/textfile` in node_exporter.
    #[test]
    fn files_are_taken_as_upstream_takes_them() {
        let mut files = TextFiles::default();
        files.begin();
        let histogram = "# HELP h A histogram.\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 3\nh_sum 2\nh_count 3\n";
        let (outcome, text) = add(&mut files, "a.prom", histogram);
        assert_eq!((outcome, text.trim_end()), (TextFileOutcome::Taken, histogram.trim_end()));
        let (outcome, text) = add(&mut files, "b.prom", "x{a=\"b\"} 1\nx 2\n");
        let expected = "# HELP x Metric read from b.prom\n# TYPE x untyped\nx{a=\"b\"} 1\nx 2";
        assert_eq!((outcome, text.trim_end()), (TextFileOutcome::Taken, expected));
        for refused in ["x 1 1234\n", "x\n", "x{a=\"1\",a=\"2\"} 1\n", "{}\n", "y 1\nx 2"] {
            let (outcome, text) = add(&mut files, "c.prom", refused);
            assert_eq!((outcome, text.as_str()), (TextFileOutcome::Refused, ""), "{refused}");
        }
        // Without a help, too: each has named its own file, and all but the first were left out.
        let (outcome, text) = add(&mut files, "b2.prom", "x{a=\"c\"} 1\n");
        let expected = "# HELP x Metric read from b.prom\n# TYPE x untyped\nx{a=\"c\"} 1";
        assert_eq!((outcome, text.trim_end()), (TextFileOutcome::Taken, expected));
        let (outcome, text) = add(&mut files, "b3.prom", "# HELP x Said.\nx{a=\"d\"} 1\nx 2\n");
        assert!(text.ends_with("\nx{a=\"d\"} 1\n"), "{text}");
        assert_eq!(outcome, TextFileOutcome::TakenInPart, "x is there already");
        let (outcome, _) = add(&mut files, "b4.prom", "# TYPE x gauge\nx{a=\"e\"} 1\n");
        assert_eq!(outcome, TextFileOutcome::TakenInPart, "another type");
        // Another help than before: that family is left out.
        let (outcome, text) = add(
            &mut files,
            "d.prom",
            "# HELP h Other.\n# TYPE h histogram\nh_count{a=\"1\"} 3\ny 4\n",
        );
        let expected = "# HELP y Metric read from d.prom\n# TYPE y untyped\ny 4";
        assert_eq!((outcome, text.trim_end()), (TextFileOutcome::TakenInPart, expected));
        // Names of any characters are quoted: one of them took all metrics of the machine away.
        let odd = "# HELP \"my.name\" Dots.\n# TYPE \"my.name\" counter\n{\"my.name\"} 1\n\
                   {\"a \\\"b\\\\c\\nd\",\"e.f\"=\"g\"} 2\n";
        let (outcome, text) = add(&mut files, "e.prom", odd);
        assert_eq!(outcome, TextFileOutcome::Taken);
        let again = parse(text.as_bytes()).expect("it reads again");
        let again = again.in_order();
        let names: Vec<&str> = again.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["my.name", "a \"b\\c\nd"]);
        assert_eq!(again[0].1.help.as_deref(), Some("Dots."));
        let (_, text) = add(&mut files, "f.prom", "# TYPE big GAUGE\nbig 1\n");
        assert!(text.contains("# TYPE big gauge\nbig 1\n"), "{text}");
        // In the next round, it is first.
        files.begin();
        let (outcome, _) = add(&mut files, "d.prom", "# HELP x Other.\nx 3\ny 4\n");
        assert_eq!(outcome, TextFileOutcome::Taken);
    }
}
