//! Series in memory, with the changes that upstream's storage makes to histograms.

use super::classic;
use super::script::Load;
use super::series::Item;
use std::collections::BTreeMap;
use std::rc::Rc;
use tidepool_promql::model::{
    CounterReset, FloatPoint, Histogram, HistogramPoint, Labels, Samples, is_stale_nan,
};
use tidepool_promql::source::{Selection, SeriesSet, Source, SourceError};
use tidepool_promql::syntax::{MatchOp, Matcher};
use tidepool_relabel::Pattern;

#[derive(Clone, Debug)]
pub enum Stored {
    Float(f64),
    Histogram(Rc<Histogram>),
}

/// A sample with the start time of its counter, 0 if there is none.
#[derive(Clone, Debug)]
struct Entry {
    value: Stored,
    start_ms: i64,
}

#[derive(Clone, Default)]
pub struct Store {
    series: BTreeMap<Labels, Rc<Entries>>,
}

type Entries = BTreeMap<i64, Entry>;

impl Store {
    pub fn load(&mut self, load: &Load) {
        for series in &load.series {
            for (i, item) in series.items.iter().enumerate() {
                let time_ms = i as i64 * load.step_ms;
                let offset = series.start_offsets.get(i).copied().flatten();
                let start_ms = offset.map_or(0, |offset| time_ms + offset);
                let value = match item {
                    Item::Omitted => continue,
                    Item::Float(value) => Stored::Float(*value),
                    Item::Histogram(histogram, _) => Stored::Histogram(histogram.clone()),
                };
                self.put(&series.labels, time_ms, value, start_ms);
            }
        }
        if load.with_custom_buckets {
            for (labels, time_ms, histogram) in classic::histograms(load) {
                self.put(&labels, time_ms, Stored::Histogram(Rc::new(histogram)), 0);
            }
        }
    }

    fn put(&mut self, labels: &Labels, time_ms: i64, value: Stored, start_ms: i64) {
        let entries = Rc::make_mut(self.series.entry(labels.clone()).or_default());
        // A series of histograms ends with a stale histogram.
        let last = entries.range(..time_ms).next_back().map(|(_, entry)| &entry.value);
        let value = match (&value, last) {
            (Stored::Float(mark), Some(Stored::Histogram(_))) if is_stale_nan(*mark) => {
                Stored::Histogram(Rc::new(Histogram { sum: *mark, ..Histogram::default() }))
            }
            _ => value,
        };
        entries.insert(time_ms, Entry { value, start_ms });
    }
}

/// Adds upstream's hints: within a chunk all histograms but the first are "not reset".
fn read_back(entries: &Entries) -> Vec<(i64, Entry)> {
    let mut previous: Option<Rc<Histogram>> = None;
    let mut out = Vec::with_capacity(entries.len());
    for (time_ms, entry) in entries {
        let mut entry = entry.clone();
        match &mut entry.value {
            Stored::Float(_) => previous = None,
            Stored::Histogram(histogram) => {
                let goes_on = previous.as_ref().is_some_and(|it| is_one_chunk(it, histogram));
                previous = Some(histogram.clone());
                let hint = match histogram.counter_reset {
                    CounterReset::Gauge => CounterReset::Gauge,
                    _ if goes_on => CounterReset::NotReset,
                    _ => CounterReset::Unknown,
                };
                Rc::make_mut(histogram).counter_reset = hint;
            }
        }
        out.push((*time_ms, entry));
    }
    out
}

fn is_one_chunk(previous: &Histogram, next: &Histogram) -> bool {
    let is_gauge = |histogram: &Histogram| histogram.counter_reset == CounterReset::Gauge;
    if is_gauge(previous) || is_gauge(next) {
        return is_gauge(previous) && is_gauge(next);
    }
    let is_stale = |histogram: &Histogram| is_stale_nan(histogram.sum);
    if is_stale(previous) || is_stale(next) {
        return is_stale(next);
    }
    next.counter_reset != CounterReset::Reset
        && previous.schema == next.schema
        && previous.zero_threshold == next.zero_threshold
        && previous.custom_values == next.custom_values
        && !next.detect_reset(previous)
}

struct SelectedSeries {
    rest: std::vec::IntoIter<(Labels, Rc<Entries>)>,
    current: Option<Rc<Entries>>,
    start_ms: i64,
    end_ms: i64,
    start_times: bool,
}

impl Source for Store {
    fn select(&self, selection: &Selection) -> Result<Box<dyn SeriesSet>, SourceError> {
        let mut tests = Vec::new();
        for Matcher { name, op, value } in &selection.matchers {
            let pattern = match op {
                MatchOp::Regex | MatchOp::NotRegex => {
                    Some(Pattern::new(value).map_err(|text| SourceError { text })?)
                }
                _ => None,
            };
            tests.push((name, value, matches!(op, MatchOp::Equal | MatchOp::Regex), pattern));
        }
        let fits = |labels: &Labels| {
            tests.iter().all(|(name, value, wanted, pattern)| {
                let found = labels.get(name);
                let holds = match pattern {
                    Some(pattern) => pattern.is_match(found),
                    None => found == value.as_str(),
                };
                holds == *wanted
            })
        };
        let found = self.series.iter().filter(|(labels, _)| fits(labels));
        let found: Vec<_> = found.map(|(labels, all)| (labels.clone(), all.clone())).collect();
        Ok(Box::new(SelectedSeries {
            rest: found.into_iter(),
            current: None,
            start_ms: selection.start_ms,
            end_ms: selection.end_ms,
            start_times: selection.hints.start_times,
        }))
    }
}

impl SeriesSet for SelectedSeries {
    fn next(&mut self) -> Result<Option<Labels>, SourceError> {
        let Some((labels, entries)) = self.rest.next() else { return Ok(None) };
        self.current = Some(entries);
        Ok(Some(labels))
    }

    fn read(&mut self, samples: &mut Samples) -> Result<bool, SourceError> {
        let Some(entries) = self.current.take() else { return Ok(false) };
        for (time_ms, entry) in read_back(&entries) {
            if !(self.start_ms..=self.end_ms).contains(&time_ms) {
                continue;
            }
            match entry.value {
                Stored::Float(value) => {
                    samples.floats.push(FloatPoint { time_ms, value });
                    samples.float_starts.extend(self.start_times.then_some(entry.start_ms));
                }
                Stored::Histogram(histogram) => {
                    samples.histograms.push(HistogramPoint { time_ms, histogram });
                    samples.histogram_starts.extend(self.start_times.then_some(entry.start_ms));
                }
            }
        }
        Ok(true)
    }
}
