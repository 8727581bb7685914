//! Analyses a block: the labels that make it large, and the sizes of its chunks.
//!
//! Memory: 12 bytes for each selected series, and the lists of the report. Memory does not grow
//! with the number of label values, since each list of postings is read on its own.

use crate::block::{BlockError, BlockReader, SeriesRef};
use crate::chunk::{sample_count, values};
use crate::error::{Error, Result};
use crate::model::histogram::Count;
use crate::model::{LABEL_NAME, Matcher, MatcherSpec, NativeHistogram, Value};
use crate::storage::Blocks;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

const SERIES_PER_SLICE: usize = 1000;

/// Selection of series, and limits of the report.
#[derive(Clone, Debug)]
pub struct AnalysisOptions {
    /// Matchers that must all hold; none means all series.
    pub matchers: Vec<MatcherSpec>,
    /// Largest number of entries of each list in the answer.
    pub items_max: u32,
    /// Whether chunks are analysed, too, which reads all of them.
    pub chunks: bool,
}

/// Number of occurrences of each number.
pub type Distribution = BTreeMap<u64, u64>;

/// Names and their numbers, largest number first.
pub type Ranking = Vec<(String, u64)>;

/// Figures of a block, like those of `promtool tsdb analyze`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnalysisReport {
    /// Number of distinct label names.
    pub label_names: u64,
    /// Number of series that were selected.
    pub series: u64,
    /// Number of distinct labels, as name and value.
    pub label_pairs: u64,
    /// Number of labels of all series together.
    pub label_pair_entries: u64,
    /// Labels by churn: the time that their series miss, added up, in lengths of the block.
    pub pairs_by_churn: Ranking,
    /// Label names by churn, as for `pairs_by_churn`.
    pub names_by_churn: Ranking,
    /// Labels by the number of their series.
    pub pairs_by_series: Ranking,
    /// Label names by the length of all their values, in bytes.
    pub names_by_value_bytes: Ranking,
    /// Label names by the number of their values.
    pub names_by_values: Ranking,
    /// Metric names by the number of their series.
    pub metrics_by_series: Ranking,
    /// Figures of chunks, if the options request them.
    pub chunks: Option<ChunkFigures>,
}

/// Distributions of the sizes of chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkFigures {
    /// Number of samples in a chunk of floats.
    pub float_samples: Distribution,
    /// Number of bytes of a chunk of floats.
    pub float_bytes: Distribution,
    /// Number of samples in a chunk of histograms.
    pub histogram_samples: Distribution,
    /// Number of bytes of a chunk of histograms.
    pub histogram_bytes: Distribution,
    /// Number of buckets of all histograms in a chunk.
    pub histogram_buckets: Distribution,
}

/// Progress after a slice, with the report at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnalysisStep {
    /// Work done so far, in no particular unit.
    pub done: u64,
    /// All of the work, in the same unit.
    pub total: u64,
    /// The figures; `None` until all work is done.
    pub report: Option<AnalysisReport>,
}

/// The analysis of one block, a slice at a time.
pub struct Analysis {
    block: BlockReader,
    items_max: usize,
    has_matchers: bool,
    refs: Vec<SeriesRef>,
    /// Time of the block that lies outside of each series' samples, in milliseconds.
    uncovered_ms: Vec<u64>,
    names: Vec<String>,
    names_done: usize,
    report: AnalysisReport,
    rankings: Rankings,
}

struct Rankings {
    pairs_by_churn: Top,
    names_by_churn: Top,
    pairs_by_series: Top,
    names_by_value_bytes: Top,
    names_by_values: Top,
    metrics_by_series: Top,
}

/// The entries with the largest numbers; of entries with equal numbers, the first by name.
struct Top {
    items_max: usize,
    items: BinaryHeap<Reverse<(u64, Reverse<String>)>>,
}

impl Top {
    fn new(items_max: usize) -> Top {
        Top { items_max, items: BinaryHeap::new() }
    }

    fn add(&mut self, number: u64, name: impl FnOnce() -> String) {
        let least = self.items.peek().map(|Reverse((least, _))| *least);
        // The name is only made for entries that stay: most labels are not among the largest.
        if self.items.len() >= self.items_max && least.is_none_or(|least| number < least) {
            return;
        }
        self.items.push(Reverse((number, Reverse(name()))));
        if self.items.len() > self.items_max {
            self.items.pop();
        }
    }

    fn into_ranking(self) -> Ranking {
        let sorted = self.items.into_sorted_vec().into_iter();
        sorted.map(|Reverse((number, Reverse(name)))| (name, number)).collect()
    }
}

impl Analysis {
    /// Opens a block and selects its series.
    pub fn new(blocks: &dyn Blocks, block: &str, options: &AnalysisOptions) -> Result<Analysis> {
        let block = BlockReader::open(blocks, block)?;
        let matchers = options.matchers.iter().map(Matcher::new);
        let matchers = matchers.collect::<std::result::Result<Vec<_>, _>>()?;
        let refs = block.select(&matchers)?;
        let items_max = options.items_max as usize;
        let top = || Top::new(items_max);
        let report = AnalysisReport {
            series: refs.len() as u64,
            chunks: options.chunks.then(ChunkFigures::default),
            ..AnalysisReport::default()
        };
        Ok(Analysis {
            items_max,
            has_matchers: !matchers.is_empty(),
            uncovered_ms: Vec::with_capacity(refs.len()),
            refs,
            names: block.label_names().map(str::to_owned).collect(),
            names_done: 0,
            report,
            rankings: Rankings {
                pairs_by_churn: top(),
                names_by_churn: top(),
                pairs_by_series: top(),
                names_by_value_bytes: top(),
                names_by_values: top(),
                metrics_by_series: top(),
            },
            block,
        })
    }

    /// Analyses the next series or the next label name.
    pub fn step(&mut self) -> Result<AnalysisStep> {
        let series_done = self.uncovered_ms.len();
        if series_done < self.refs.len() {
            let end = self.refs.len().min(series_done + SERIES_PER_SLICE);
            for at in series_done..end {
                self.look_at_series(self.refs[at])?;
            }
        } else if let Some(name) = self.names.get(self.names_done).cloned() {
            self.look_at_name(&name)?;
            self.names_done += 1;
        } else {
            return Ok(AnalysisStep { report: Some(self.finish()), ..self.progress() });
        }
        Ok(self.progress())
    }

    fn progress(&self) -> AnalysisStep {
        let series = self.refs.len() as u64;
        let (names, names_done) = (self.names.len() as u64, self.names_done as u64);
        // Looking at names is assumed to cost about as much as looking at series.
        let done = self.uncovered_ms.len() as u64 + series * names_done / names.max(1);
        AnalysisStep { done, total: 2 * series, report: None }
    }

    fn look_at_series(&mut self, series: SeriesRef) -> Result<()> {
        let (labels, metas) = self.block.series(series)?;
        self.report.label_pair_entries += labels.iter().count() as u64;
        let span_ms = match (metas.first(), metas.last()) {
            // Unsigned, so that the longest range of times fits.
            (Some(first), Some(last)) => last.max_time_ms.wrapping_sub(first.min_time_ms) as u64,
            _ => 0,
        };
        // A chunk may reach beyond the block; the number then wraps, as in Prometheus.
        self.uncovered_ms.push(self.block_ms().wrapping_sub(span_ms));
        let Some(figures) = &mut self.report.chunks else { return Ok(()) };
        for meta in &metas {
            let chunk = self.block.chunk(meta)?;
            let damaged = |source| Error::Chunk { series: labels.to_string(), source };
            let samples = u64::from(sample_count(&chunk).map_err(damaged)?);
            let bytes = chunk.data.len() as u64;
            // Floats need not be decoded, because the header of the chunk has their number.
            if chunk.encoding.is_floats() {
                *figures.float_samples.entry(samples).or_default() += 1;
                *figures.float_bytes.entry(bytes).or_default() += 1;
                continue;
            }
            let mut buckets = 0;
            for value in values(&chunk).map_err(damaged)? {
                buckets += bucket_count(&value.map_err(damaged)?.1);
            }
            *figures.histogram_samples.entry(samples).or_default() += 1;
            *figures.histogram_bytes.entry(bytes).or_default() += 1;
            *figures.histogram_buckets.entry(buckets).or_default() += 1;
        }
        Ok(())
    }

    fn block_ms(&self) -> u64 {
        let meta = self.block.meta();
        meta.max_time_ms.wrapping_sub(meta.min_time_ms) as u64
    }

    /// Looks at each value of a label name.
    fn look_at_name(&mut self, name: &str) -> Result<()> {
        let Analysis { refs, uncovered_ms, rankings, has_matchers, .. } = self;
        let block_ms = self.block.meta().max_time_ms.wrapping_sub(self.block.meta().min_time_ms);
        // In whole lengths of the block, as in Prometheus.
        let churn = |uncovered_ms: u64| (uncovered_ms as f64 / block_ms as u64 as f64) as u64;
        let (mut values, mut value_bytes, mut name_uncovered_ms) = (0u64, 0u64, 0u64);
        let visited = self.block.index().each_postings(name, |value, listed| {
            let (mut series, mut pair_uncovered_ms) = (0u64, 0u64);
            for listed in listed {
                // `refs` ascends, so a binary search shows whether the series is selected.
                if let Ok(at) = refs.binary_search(listed) {
                    series += 1;
                    pair_uncovered_ms = pair_uncovered_ms.wrapping_add(uncovered_ms[at]);
                }
            }
            // With matchers, labels of other series are no part of the answer.
            if series == 0 && *has_matchers {
                return;
            }
            values += 1;
            value_bytes += value.len() as u64;
            name_uncovered_ms = name_uncovered_ms.wrapping_add(pair_uncovered_ms);
            let pair = || format!("{name}={value}");
            rankings.pairs_by_churn.add(churn(pair_uncovered_ms), pair);
            rankings.pairs_by_series.add(series, pair);
            if name == LABEL_NAME {
                rankings.metrics_by_series.add(series, || value.to_owned());
            }
        });
        visited.map_err(BlockError::from)?;
        if values > 0 {
            let owned = || name.to_owned();
            rankings.names_by_churn.add(churn(name_uncovered_ms), owned);
            rankings.names_by_value_bytes.add(value_bytes, owned);
            rankings.names_by_values.add(values, owned);
            self.report.label_names += 1;
            self.report.label_pairs += values;
        }
        Ok(())
    }

    fn finish(&mut self) -> AnalysisReport {
        let mut report = std::mem::take(&mut self.report);
        let items_max = self.items_max;
        // The lists are replaced, since they cannot be moved out of a borrowed analysis.
        let take = |top: &mut Top| std::mem::replace(top, Top::new(items_max)).into_ranking();
        let rankings = &mut self.rankings;
        report.pairs_by_churn = take(&mut rankings.pairs_by_churn);
        report.names_by_churn = take(&mut rankings.names_by_churn);
        report.pairs_by_series = take(&mut rankings.pairs_by_series);
        report.names_by_value_bytes = take(&mut rankings.names_by_value_bytes);
        report.names_by_values = take(&mut rankings.names_by_values);
        report.metrics_by_series = take(&mut rankings.metrics_by_series);
        report
    }
}

fn bucket_count(value: &Value) -> u64 {
    fn of<C: Count>(histogram: &Rc<NativeHistogram<C>>) -> u64 {
        (histogram.positive_buckets.len() + histogram.negative_buckets.len()) as u64
    }
    match value {
        Value::Float(_) => 0,
        Value::Histogram(histogram) => of(histogram),
        Value::FloatHistogram(histogram) => of(histogram),
    }
}
