//! Samples with start timestamps: the blocks that upstream's own packages make of them
//! (`tests/peers/tsdb`), and the samples that these packages find in a directory.
//!
//! The functions here are assertions: they panic if a program fails.

use crate::peers::built;
use crate::series::{Labels, ORDINARY_NAN_BITS, Random, STALE_MARKER_BITS, Sample, Series};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A value and the start timestamp of its counter in milliseconds, 0 if it is not known.
pub type StartedValue = (i64, f64);

/// Series with a sample at every scrape.
#[derive(Clone, Debug)]
pub struct StartedData {
    /// Label sets in ascending order.
    pub labels: Vec<Labels>,
    /// Times in milliseconds, and a value for each series.
    pub scrapes: Vec<(i64, Vec<StartedValue>)>,
}

impl StartedData {
    /// Makes counters that are reset now and then, with stale markers and edge-case values; every
    /// fourth series has no start timestamps.
    pub fn generate(
        seed: u64,
        series: usize,
        scrapes: usize,
        first_ms: i64,
        interval_ms: i64,
    ) -> StartedData {
        let labels = (0..series).map(|number| {
            Labels::from_pairs([
                ("__name__", "requests_total".to_string()),
                ("series", format!("{number:05}")),
            ])
        });
        let mut random = Random::new(seed, 0);
        let mut last = vec![(0, 0.0); series];
        let scrape = |number: usize| {
            let time_ms = first_ms + number as i64 * interval_ms;
            for (place, (start_ms, value)) in last.iter_mut().enumerate() {
                *value += random.below(50) as f64 / [1.0, 4.0, 3.0][place % 3];
                if number == 0 || random.one_in(90) {
                    *start_ms = time_ms - random.below(3_600_000) as i64;
                    *value = 0.0;
                }
                match place % 4 {
                    0 => *start_ms = 0,
                    1 => *start_ms = time_ms - interval_ms,
                    _ => {}
                }
            }
            let odd = [STALE_MARKER_BITS, ORDINARY_NAN_BITS, 1, u64::MAX];
            let values = last.iter().map(|(start_ms, value)| match random.one_in(40) {
                true => (*start_ms, f64::from_bits(random.pick(&odd))),
                false => (*start_ms, *value),
            });
            (time_ms, values.collect())
        };
        StartedData { labels: labels.collect(), scrapes: (0..scrapes).map(scrape).collect() }
    }

    /// Returns the series without start timestamps.
    pub fn series(&self) -> Vec<Series> {
        let series = |(place, labels): (usize, &Labels)| Series {
            labels: labels.clone(),
            samples: self
                .scrapes
                .iter()
                .map(|(timestamp_ms, values)| Sample {
                    timestamp_ms: *timestamp_ms,
                    value: values[place].1,
                })
                .collect(),
        };
        self.labels.iter().enumerate().map(series).collect()
    }

    /// Returns the output of [`lines_in`] for samples of which this holds.
    pub fn lines(&self, holds: impl Fn(&Labels, i64) -> bool) -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        for (time_ms, values) in &self.scrapes {
            for (labels, (start_ms, value)) in self.labels.iter().zip(values) {
                if holds(labels, *time_ms) {
                    let bits = value.to_bits();
                    lines.insert(format!("{labels} {time_ms} {start_ms} f {bits:x}"));
                }
            }
        }
        lines
    }

    /// Writes a block for each aligned span, as a server that keeps start timestamps does.
    #[track_caller]
    pub fn write_blocks(&self, data_dir: &Path, span_ms: i64) {
        std::fs::create_dir_all(data_dir).expect("a directory");
        self.feed(upstream().arg("starts").arg(data_dir).arg(span_ms.to_string()));
    }

    /// Fills a directory as a server that keeps start timestamps leaves it: blocks of these spans,
    /// before and after merges, and a log. At the time `cut_ms` the server cuts and merges
    /// everything that is due; later samples are only in the log. Each scrape has a histogram, too.
    #[track_caller]
    pub fn write_server(&self, data_dir: &Path, span_ms: i64, merged_ms: i64, cut_ms: i64) {
        let numbers = [span_ms, merged_ms, cut_ms].map(|number| number.to_string());
        self.feed(upstream().arg("server").arg(data_dir).args(numbers));
    }

    #[track_caller]
    fn feed(&self, command: &mut Command) {
        let mut child = command.stdin(Stdio::piped()).spawn().expect("go-tsdb starts");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(&self.encoded()).expect("go-tsdb reads");
        drop(input);
        assert!(child.wait().expect("go-tsdb ends").success());
    }

    /// Encodes the samples in the format that `tests/peers/tsdb` describes.
    fn encoded(&self) -> Vec<u8> {
        let mut out = (self.labels.len() as u32).to_le_bytes().to_vec();
        for labels in &self.labels {
            out.extend((labels.pairs().len() as u32).to_le_bytes());
            for text in labels.pairs().iter().flat_map(|(name, value)| [name, value]) {
                out.extend((text.len() as u32).to_le_bytes());
                out.extend(text.as_bytes());
            }
        }
        for (time_ms, values) in &self.scrapes {
            out.extend(time_ms.to_le_bytes());
            for (start_ms, value) in values {
                out.extend(start_ms.to_le_bytes());
                out.extend(value.to_le_bytes());
            }
        }
        out
    }
}

/// Returns a line for each sample in the blocks of a directory that no server uses: labels, time,
/// start timestamp, kind and value.
#[track_caller]
pub fn lines_in(data_dir: &Path) -> BTreeSet<String> {
    let output = upstream().arg("read").arg(data_dir).output().expect("go-tsdb read");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().map(str::to_owned).collect()
}

/// Returns the number of chunks of each encoding in the blocks of a directory, by the number of the
/// encoding (`tsdb/docs/format/chunks.md`).
#[track_caller]
pub fn encodings_in(data_dir: &Path) -> [usize; 256] {
    let mut found = [0; 256];
    for block in crate::data_dir::blocks(data_dir).expect("blocks") {
        for file in std::fs::read_dir(block.path.join("chunks")).expect("chunk files") {
            let bytes = std::fs::read(file.expect("a name").path()).expect("a chunk file");
            let mut rest = &bytes[8..];
            while !rest.is_empty() {
                let (mut length, mut shift) = (0, 0);
                while let [byte, after @ ..] = rest {
                    length |= usize::from(byte & 0x7f) << shift;
                    (rest, shift) = (after, shift + 7);
                    if *byte < 0x80 {
                        break;
                    }
                }
                found[usize::from(rest[0])] += 1;
                // Encoding, data and checksum.
                rest = &rest[1 + length + 4..];
            }
        }
    }
    found
}

fn upstream() -> Command {
    Command::new(built("go-tsdb").unwrap_or_else(|error| panic!("{error}")))
}
