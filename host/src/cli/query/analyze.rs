//! `tidepool query analyze`: counts populated buckets of histograms, as `promtool query analyze`
//! does (`cmd/promtool/analyze.go` in prometheus/prometheus). For a selector, promtool prints the
//! classic histograms in random order; here they are sorted by name.

use super::go::duration_text;
use super::print::{NAME, label_set, metric};
use super::time::Time;
use super::value::{Stream, Value};
use super::{Failure, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;
use tidepool_model::number::fixed;

const HEADER: &str = "\
Bucket stats for each histogram series over time
------------------------------------------------
First the min, avg, and max number of populated buckets, followed by the total
number of buckets (only if different from the max number of populated buckets
which is typical for classic but not native histograms).

";

const FOOTER: &str = "
Aggregated bucket stats
-----------------------
Each line shows min/avg/max over the series above.
";

/// Numbers of populated buckets of one histogram over time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Statistics {
    /// Smallest number of populated buckets at a time.
    populated_min: i64,
    populated_avg: f64,
    populated_max: i64,
    /// Number of distinct buckets over all times.
    total: i64,
}

/// Minimum, mean and maximum of a set of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Distribution {
    min: i64,
    max: i64,
    count: i64,
    avg: f64,
}

/// Distributions of the statistics over all histograms of one type.
#[derive(Clone, Debug, Default)]
struct Aggregated {
    populated_min: Distribution,
    populated_avg: Distribution,
    populated_max: Distribution,
    total: Distribution,
}

/// Analyzes the histograms of each selector over a duration that ends at a time.
pub fn analyze(
    source: &mut Source,
    selectors: &[String],
    duration_nanos: i64,
    time: Time,
    out: &mut impl Write,
) -> Result<(), Failure> {
    out.write_all(HEADER.as_bytes())?;
    let (mut native, mut classic) = (Aggregated::default(), Aggregated::default());
    for selector in selectors {
        let range = format!("{selector}[{}]", duration_text(duration_nanos));
        let Value::Matrix(matrix) = source.instant(&range, time)? else {
            let why = "query of buckets resulted in non-Matrix";
            return Err(Failure::Exchange(why.to_owned()));
        };
        let mut histograms = BTreeMap::<String, Vec<Stream>>::new();
        for stream in matrix {
            // A series has one type of samples. Floats are a bucket of a classic histogram.
            if !stream.values.is_empty() {
                if let Some(key) = classic_key(&stream) {
                    histograms.entry(key).or_default().push(stream);
                }
            } else if let Some(statistics) = of_native(&stream) {
                writeln!(out, "- {} (native): {statistics}", metric(&stream.metric))?;
                native.add(statistics);
            }
        }
        for (key, mut buckets) in histograms {
            if let Some(statistics) = of_classic(&mut buckets)? {
                writeln!(out, "- {key} (classic): {statistics}")?;
                classic.add(statistics);
            }
        }
    }
    out.write_all(FOOTER.as_bytes())?;
    for (kind, aggregated) in [("Native", native), ("Classic", classic)] {
        if aggregated.total.count > 0 {
            writeln!(out, "\n{kind} {aggregated}")?;
        }
    }
    Ok(out.flush()?)
}

/// Returns the key that all buckets of a classic histogram share: its labels without `le`.
fn classic_key(stream: &Stream) -> Option<String> {
    let mut labels = stream.metric.0.clone();
    labels.remove("le")?;
    let name = labels.remove(NAME).filter(|name| name.ends_with("_bucket"))?;
    Some(name + &label_set(&labels))
}

/// Counts the populated buckets of a classic histogram; `None` if it has fewer than two samples.
fn of_classic(buckets: &mut [Stream]) -> Result<Option<Statistics>, Failure> {
    let bound = |stream: &Stream| {
        let le = stream.metric.0.get("le").and_then(|le| le.parse::<f64>().ok());
        le.unwrap_or_default()
    };
    // The sort is stable, so that buckets with equal bounds keep their order.
    buckets.sort_by(|one, other| {
        bound(one).partial_cmp(&bound(other)).unwrap_or(std::cmp::Ordering::Equal)
    });
    let samples = buckets.first().map_or(0, |bucket| bucket.values.len());
    if samples < 2 {
        return Ok(None);
    }
    let mut populated = Vec::with_capacity(samples);
    for at in 0..samples {
        let mut before = None;
        let mut count = 0;
        for bucket in &*buckets {
            // If a bucket has no more samples, it and all larger buckets are treated as empty.
            let Some((time, value)) = bucket.values.get(at) else { break };
            let below = match before {
                Some((time_before, _)) if time_before != *time => {
                    let why = "matrix result is not time aligned";
                    return Err(Failure::Exchange(why.to_owned()));
                }
                Some((_, below)) => below,
                None => 0.0,
            };
            // Buckets are cumulative: one that differs from the next smaller has observations.
            count += i64::from((value.0 - below) as i64 != 0);
            before = Some((*time, value.0));
        }
        populated.push(count);
    }
    Ok(Some(Statistics::of(&populated, buckets.len())))
}

/// Counts the populated buckets of a native histogram; `None` if it has fewer than two samples.
fn of_native(stream: &Stream) -> Option<Statistics> {
    if stream.histograms.len() < 2 {
        return None;
    }
    let buckets = stream.histograms.iter().map(|(_, histogram)| histogram.buckets.as_deref());
    let buckets: Vec<_> = buckets.map(Option::unwrap_or_default).collect();
    let bounds = buckets.iter().copied().flatten();
    // Bounds are compared by their bits, because floats have no total order.
    let bounds = bounds.map(|bucket| (bucket.0, bucket.1.0.to_bits(), bucket.2.0.to_bits()));
    let populated: Vec<i64> = buckets.iter().map(|buckets| buckets.len() as i64).collect();
    Some(Statistics::of(&populated, bounds.collect::<BTreeSet<_>>().len()))
}

impl Statistics {
    fn of(populated: &[i64], total: usize) -> Statistics {
        Statistics {
            populated_min: populated.iter().copied().min().unwrap_or(i64::MAX),
            populated_avg: populated.iter().sum::<i64>() as f64 / populated.len() as f64,
            populated_max: populated.iter().copied().max().unwrap_or_default(),
            total: total as i64,
        }
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let avg = fixed(self.populated_avg, 3);
        write!(f, "{}/{avg}/{}", self.populated_min, self.populated_max)?;
        if self.populated_max == self.total { Ok(()) } else { write!(f, "/{}", self.total) }
    }
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution { min: i64::MAX, max: 0, count: 0, avg: 0.0 }
    }
}

impl Distribution {
    fn add(&mut self, number: i64) {
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        self.count += 1;
        // A running mean as in upstream's `distribution.update`, so that rounding is the same.
        let count = self.count as f64;
        self.avg += number as f64 / count - self.avg / count;
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.min, fixed(self.avg, 3), self.max)
    }
}

impl Aggregated {
    fn add(&mut self, statistics: Statistics) {
        self.populated_min.add(statistics.populated_min);
        // Truncated, as in upstream's `metaStatistics.update`.
        self.populated_avg.add(statistics.populated_avg as i64);
        self.populated_max.add(statistics.populated_max);
        self.total.add(statistics.total);
    }
}

impl fmt::Display for Aggregated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "histogram series ({} in total):\n- min populated: {}\n- avg populated: {}\n\
             - max populated: {}",
            self.total.count, self.populated_min, self.populated_avg, self.populated_max
        )?;
        let is_full = self.populated_max == self.total;
        if is_full { Ok(()) } else { write!(f, "\n- total: {}", self.total) }
    }
}
