//! A store in memory, whose queries a test writes down.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidepool_rules::alert::StoredSample;
use tidepool_rules::engine::{
    Answer, Engine, Moment, NewSample, NewValue, Origin, Query, Reads, Refusal, Sample, Value,
};
use tidepool_rules::file::{self, Checks, Options as FileOptions, RuleFile};
use tidepool_rules::group::{AlertSnapshot, Defaults, Group, KindSnapshot, Options, RuleSnapshot};
use tidepool_rules::labels::LabelSet;

pub const MINUTE: i64 = 60_000;

/// A native histogram: its text, and something that only the store knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(pub &'static str, pub u32);

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

pub type Vector = Vec<Sample<Histogram>>;

type Rows = BTreeMap<LabelSet, BTreeMap<i64, NewValue<Histogram>>>;

type Queries = dyn Fn(&Query<'_>, &Rows) -> Result<Answer<Histogram>, String>;

pub struct Memory {
    pub rows: Rows,
    pub queries: Box<Queries>,
    /// What an append answers in place of storing.
    pub broken: Option<String>,
    pub stopping_after: usize,
    /// Which series each query reads.
    pub reads: fn(&str) -> Reads,
    pub now: Moment,
    pub appends: usize,
}

impl Memory {
    pub fn new(
        queries: impl Fn(&Query<'_>, &Rows) -> Result<Answer<Histogram>, String> + 'static,
    ) -> Memory {
        let queries = Box::new(queries);
        let (rows, broken, now) = (Rows::new(), None, Moment::default());
        let (stopping_after, reads) = (usize::MAX, |_: &str| Reads::Anything);
        Memory { rows, queries, broken, stopping_after, reads, now, appends: 0 }
    }

    /// Values of a series, in the order of time; `None` is a marker.
    pub fn floats(&self, series: &LabelSet) -> Vec<(i64, Option<f64>)> {
        let rows = self.rows.get(series).into_iter().flatten();
        let float = |value: &NewValue<Histogram>| match value {
            NewValue::Float(value) => Some(*value),
            NewValue::Stale => None,
            NewValue::Histogram(_) => panic!("a histogram"),
        };
        rows.map(|(time_ms, value)| (*time_ms, float(value))).collect()
    }

    /// Last samples of the series of a name between two times.
    pub fn last(&self, name: &str, from_ms: i64, to_ms: i64) -> Vec<StoredSample> {
        let rows = self.rows.iter().filter(|(series, _)| series.get("__name__") == name);
        let last = rows.filter_map(|(series, row)| {
            let (time_ms, value) = row.range(from_ms..=to_ms).next_back()?;
            let value = match value {
                NewValue::Float(value) => *value,
                _ => tidepool_model::STALE_NAN,
            };
            Some(StoredSample { series: series.clone(), time_ms: *time_ms, value })
        });
        last.collect()
    }

    fn refusal(&self, sample: &NewSample<Histogram>) -> Option<Refusal> {
        let (last_ms, last) = self.rows.get(&sample.series)?.last_key_value()?;
        match sample.time_ms.cmp(last_ms) {
            std::cmp::Ordering::Less => Some(Refusal::OutOfOrder),
            std::cmp::Ordering::Equal if *last != sample.value => Some(Refusal::Duplicate),
            _ => None,
        }
    }
}

impl Engine for Memory {
    type Histogram = Histogram;

    fn query(&self, query: &Query<'_>) -> Result<Answer<Histogram>, String> {
        (self.queries)(query, &self.rows)
    }

    fn reads(&self, expression: &str) -> Reads {
        (self.reads)(expression)
    }

    fn append(
        &mut self,
        _: &Origin<'_>,
        samples: &[NewSample<Histogram>],
    ) -> Result<Vec<(usize, Refusal)>, String> {
        self.appends += 1;
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let mut refused = Vec::new();
        for (position, sample) in samples.iter().enumerate() {
            match self.refusal(sample) {
                Some(refusal) => refused.push((position, refusal)),
                None => {
                    let row = self.rows.entry(sample.series.clone()).or_default();
                    row.insert(sample.time_ms, sample.value.clone());
                }
            }
        }
        Ok(refused)
    }

    fn now(&self) -> Moment {
        self.now
    }

    fn is_stopping(&self) -> bool {
        self.appends >= self.stopping_after
    }
}

pub fn labels(pairs: &[(&str, &str)]) -> LabelSet {
    LabelSet::new(pairs.iter().copied())
}

pub fn float(value: f64, pairs: &[(&str, &str)]) -> Sample<Histogram> {
    Sample { labels: labels(pairs), value: Value::Float(value) }
}

/// Answers each query with the samples that a function has for its time.
pub fn at(vector: impl Fn(i64) -> Vector + 'static) -> Memory {
    Memory::new(move |query, _| Ok(Answer::Vector(vector(query.time_ms))))
}

struct NoChecks;

impl Checks for NoChecks {
    fn expression(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn template(&self, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }
}

pub fn defaults() -> Defaults {
    Defaults {
        interval: Duration::from_secs(60),
        query_offset: Duration::ZERO,
        external_labels: Arc::default(),
        external_url: "".into(),
    }
}

/// Reads a rule file, which must be good.
pub fn file_of(path: &str, text: &str) -> RuleFile {
    let file = file::parse(Path::new(path), text.as_bytes(), &FileOptions::default(), &NoChecks);
    file.unwrap_or_else(|error| panic!("{error}"))
}

pub fn groups_of(path: &str, text: &str, defaults: &Defaults) -> Vec<Group> {
    let file = file_of(path, text);
    file.groups.iter().map(|group| Group::new(Path::new(path), group, defaults)).collect()
}

/// Makes a group without a limit of one rule, whose alerts are taken for restored.
pub fn group_of(rule: &str) -> Group {
    let rule = rule.trim().replace('\n', "\n    ");
    let text = format!("groups:\n- name: default\n  rules:\n  - {rule}\n");
    let mut groups = groups_of("rules.yml", &text, &defaults());
    let mut group = groups.remove(0);
    group.skip_restore();
    group
}

pub fn rule(group: &Group) -> RuleSnapshot {
    group.snapshot().rules.remove(0)
}

/// Alerts of the first rule, resolved ones included.
pub fn alerts(group: &Group) -> Vec<AlertSnapshot> {
    match rule(group).kind {
        KindSnapshot::Alerting { alerts, .. } => alerts,
        KindSnapshot::Recording => panic!("a recording rule"),
    }
}

/// Options under which absence counts at once.
pub fn options() -> Options {
    Options { settle_ms: 0, ..Options::default() }
}
