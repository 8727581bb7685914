//! A model of the permitted answers of a store, from everything sent to it and deleted from it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tidepool_tests::histogram::{Kind, Value, ValueSeries};
use tidepool_tests::series::Labels;

/// Number of events so far, as a time between two events.
pub type Tick = u64;

/// Maximum number of wrong samples in a message.
const WRONG_MAX: usize = 4;

/// Events of one data directory.
#[derive(Clone, Default)]
pub struct Model {
    /// The number of the last event.
    now: Tick,
    /// Journal whose length is recorded at each event.
    journal: Option<PathBuf>,
    journal_lengths: Vec<u64>,
    /// Tick at the beginning of the journal.
    journal_begun: Tick,
    requests: Vec<Request>,
    samples: BTreeMap<Labels, BTreeMap<i64, Vec<Sent>>>,
    deletions: Vec<Deletion>,
    exemplars: BTreeMap<Exemplar, Option<Tick>>,
    /// Number of acknowledged requests, including forgotten ones.
    pub taken: usize,
}

#[derive(Clone)]
struct Request {
    begun: Tick,
    ended: Option<Tick>,
    acknowledged: Option<Tick>,
}

#[derive(Clone)]
struct Sent {
    request: usize,
    value: Value,
}

#[derive(Clone)]
struct Deletion {
    begun: Tick,
    done: Option<Tick>,
    /// Deleted series; `None` for all.
    series: Option<BTreeSet<Labels>>,
    start_ms: i64,
    end_ms: i64,
}

/// An exemplar with all parts that distinguish it from others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exemplar {
    pub series: Labels,
    pub labels: Labels,
    pub timestamp_ms: i64,
    pub value: u64,
}

/// Required content of an answer.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The answer has all samples acknowledged before,
    pub acknowledged_before: Tick,
    /// none of the samples deleted before,
    pub deleted_before: Tick,
    /// and possibly samples sent before.
    pub sent_before: Tick,
}

/// Selection of the samples in a read.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The selected series; `None` for all.
    pub series: Option<&'a Labels>,
    pub start_ms: i64,
    pub end_ms: i64,
}

impl Asked<'_> {
    pub const EVERYTHING: Asked<'static> =
        Asked { series: None, start_ms: i64::MIN, end_ms: i64::MAX };

    fn has(&self, labels: &Labels, timestamp_ms: i64) -> bool {
        self.series.is_none_or(|series| series == labels)
            && (self.start_ms..=self.end_ms).contains(&timestamp_ms)
    }
}

impl Model {
    /// Makes a model with the length of a journal at each event.
    pub fn beside(journal: Option<PathBuf>) -> Model {
        Model { journal, ..Model::default() }
    }

    pub fn tick(&mut self) -> Tick {
        if let Some(journal) = &self.journal {
            self.journal_lengths.push(journal.metadata().map_or(0, |it| it.len()));
        }
        self.now += 1;
        self.now
    }

    /// Returns the tick after all events that were over before a position in the journal.
    pub fn tick_at(&self, journal_offset: u64) -> Tick {
        let before = self.journal_lengths.partition_point(|length| *length <= journal_offset);
        self.journal_begun + before as Tick + 1
    }

    /// Makes the model of a directory after a power cut, which has another journal, from the
    /// samples it may have and those it must have.
    pub fn after_a_cut(&self, view: View, journal: Option<PathBuf>) -> Model {
        let mut model = self.clone();
        model.tick();
        let now = model.now;
        (model.journal, model.journal_begun, model.journal_lengths) = (journal, now, Vec::new());
        for request in &mut model.requests {
            request.ended.get_or_insert(now);
            let promised = |at: &Tick| *at < view.acknowledged_before;
            request.acknowledged = request.acknowledged.filter(promised);
        }
        let requests = &model.requests;
        for times in model.samples.values_mut() {
            times.retain(|_, sent| {
                sent.retain(|sent| requests[sent.request].begun < view.sent_before);
                !sent.is_empty()
            });
        }
        model.samples.retain(|_, times| !times.is_empty());
        model.deletions.retain(|deletion| deletion.begun < view.sent_before);
        for deletion in &mut model.deletions {
            deletion.done = deletion.done.filter(|done| *done < view.deleted_before);
        }
        for acknowledged in model.exemplars.values_mut() {
            *acknowledged = acknowledged.filter(|at| *at < view.acknowledged_before);
        }
        model
    }

    /// Records the beginning of a request; returns its number.
    pub fn begin(&mut self, rows: impl IntoIterator<Item = (Labels, i64, Value)>) -> usize {
        let begun = self.tick();
        let request = self.requests.len();
        self.requests.push(Request { begun, ended: None, acknowledged: None });
        for (labels, timestamp_ms, value) in rows {
            let times = self.samples.entry(labels).or_default();
            times.entry(timestamp_ms).or_default().push(Sent { request, value: alike(value) });
        }
        request
    }

    /// Records the end of a request, with or without an answer.
    pub fn end(&mut self, request: usize, is_acknowledged: bool, exemplars: &[Exemplar]) {
        let now = self.tick();
        let request = &mut self.requests[request];
        request.ended = Some(now);
        request.acknowledged = is_acknowledged.then_some(now);
        self.taken += usize::from(is_acknowledged);
        for exemplar in exemplars {
            let acknowledged = self.exemplars.entry(exemplar.clone()).or_default();
            *acknowledged = acknowledged.or(request.acknowledged);
        }
    }

    /// Records the beginning of a deletion; returns its number.
    pub fn begin_deletion(
        &mut self,
        series: Option<BTreeSet<Labels>>,
        start_ms: i64,
        end_ms: i64,
    ) -> usize {
        let begun = self.tick();
        self.deletions.push(Deletion { begun, done: None, series, start_ms, end_ms });
        self.deletions.len() - 1
    }

    /// Records that the deletion was answered with success.
    pub fn end_deletion(&mut self, deletion: usize) {
        self.deletions[deletion].done = Some(self.tick());
    }

    /// Makes all samples acknowledged since then optional.
    pub fn forget_since(&mut self, tick: Tick) {
        for request in self.requests.iter_mut().filter(|request| request.begun > tick) {
            request.acknowledged = None;
        }
        for deletion in self.deletions.iter_mut().filter(|deletion| deletion.begun > tick) {
            deletion.done = None;
        }
        for acknowledged in self.exemplars.values_mut() {
            *acknowledged = acknowledged.filter(|at| *at <= tick);
        }
    }

    /// Returns the time of the newest sample that must exist.
    pub fn newest_kept(&self) -> Option<i64> {
        let is_kept = |labels: &Labels, timestamp_ms: i64, sent: &[Sent]| {
            sent.iter().any(|sent| self.requests[sent.request].acknowledged.is_some())
                && self.deletions_of(labels, timestamp_ms).next().is_none()
        };
        let newest_of = |(labels, times): (&Labels, &BTreeMap<i64, Vec<Sent>>)| {
            let mut newest_first = times.iter().rev();
            newest_first.find(|(time_ms, sent)| is_kept(labels, **time_ms, sent)).map(|it| *it.0)
        };
        self.samples.iter().filter_map(newest_of).max()
    }

    /// Returns whether a sample was ever sent for this time.
    pub fn has(&self, labels: &Labels, timestamp_ms: i64) -> bool {
        self.samples.get(labels).is_some_and(|times| times.contains_key(&timestamp_ms))
    }

    /// Returns times of samples sent for a series, between two; the first is excluded.
    pub fn times(&self, labels: &Labels, after_ms: i64, to_ms: i64) -> Vec<i64> {
        let times = self.samples.get(labels).into_iter().flat_map(BTreeMap::keys).copied();
        times.filter(|time_ms| *time_ms > after_ms && *time_ms <= to_ms).collect()
    }

    /// Returns all series that were ever sent.
    pub fn series(&self) -> impl Iterator<Item = &Labels> {
        self.samples.keys()
    }

    /// Returns times of a series at which everything was deleted after it was sent.
    pub fn deleted_times(&self, labels: &Labels) -> Vec<i64> {
        let Some(times) = self.samples.get(labels) else { return Vec::new() };
        let is_deleted = |(timestamp_ms, sent): (&i64, &Vec<Sent>)| {
            let all_gone = sent.iter().all(|sent| {
                let gone = |it: &Deletion| it.done.is_some() && self.is_over(sent, it.begun);
                self.deletions_of(labels, *timestamp_ms).any(gone)
            });
            all_gone.then_some(*timestamp_ms)
        };
        times.iter().filter_map(is_deleted).collect()
    }

    /// Returns an error if the exemplars of an answer, which has all, are wrong.
    pub fn judge_exemplars(&self, found: &[Exemplar]) -> Result<(), String> {
        let set: BTreeSet<&Exemplar> = found.iter().collect();
        if set.len() != found.len() {
            return Err("exemplars come twice".to_owned());
        }
        if let Some(invented) = set.iter().find(|exemplar| !self.exemplars.contains_key(**exemplar))
        {
            return Err(format!("an exemplar that was never sent: {invented:?}"));
        }
        let is_lost =
            |(exemplar, at): &(&Exemplar, &Option<Tick>)| at.is_some() && !set.contains(exemplar);
        let mut lost = self.exemplars.iter().filter(is_lost);
        match lost.next() {
            Some((first, _)) => Err(format!("{} exemplars lost: {first:?}", lost.count() + 1)),
            None => Ok(()),
        }
    }

    /// Returns an error if the samples of an answer are wrong.
    pub fn judge(&self, found: &[ValueSeries], asked: Asked<'_>, view: View) -> Result<(), String> {
        let mut answer: BTreeMap<&Labels, BTreeMap<i64, Value>> = BTreeMap::new();
        for ValueSeries { labels, points } in found {
            let mut times = BTreeMap::new();
            for point in points {
                if times.insert(point.timestamp_ms, alike(point.value.clone())).is_some() {
                    return Err(format!("{} has {} twice", name(labels), point.timestamp_ms));
                }
            }
            if answer.insert(labels, times).is_some() {
                return Err(format!("{} comes twice", name(labels)));
            }
        }
        let mut wrong = Vec::new();
        let all: BTreeSet<&Labels> = answer.keys().copied().chain(self.samples.keys()).collect();
        for labels in all {
            let found = answer.get(labels);
            let sent = self.samples.get(labels);
            let mut times: BTreeSet<i64> =
                found.into_iter().flat_map(BTreeMap::keys).copied().collect();
            times.extend(sent.into_iter().flat_map(BTreeMap::keys));
            for time_ms in times.into_iter().filter(|time_ms| asked.has(labels, *time_ms)) {
                let value = found.and_then(|found| found.get(&time_ms));
                let judged = self.judge_sample(labels, time_ms, value, view);
                wrong.extend(
                    judged.err().map(|what| format!("{} at {time_ms}: {what}", name(labels))),
                );
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let count = wrong.len();
        wrong.truncate(WRONG_MAX);
        Err(format!("{count} samples are wrong:\n  {}", wrong.join("\n  ")))
    }

    fn judge_sample(
        &self,
        labels: &Labels,
        timestamp_ms: i64,
        found: Option<&Value>,
        view: View,
    ) -> Result<(), String> {
        let sent = self.samples.get(labels).and_then(|times| times.get(&timestamp_ms));
        let sent = sent.map_or(&[][..], Vec::as_slice);
        let is_seen = |it: &&Deletion| it.begun < view.sent_before;
        let deletions: Vec<&Deletion> =
            self.deletions_of(labels, timestamp_ms).filter(is_seen).collect();
        let mut allowed = Vec::new();
        let mut wanted = None;
        let mut gone = Vec::new();
        for sent in sent {
            let request = &self.requests[sent.request];
            if request.begun >= view.sent_before {
                continue;
            }
            let removes = |it: &&Deletion| {
                it.done.is_some_and(|done| done < view.deleted_before)
                    && self.is_over(sent, it.begun)
            };
            if deletions.iter().any(removes) {
                // A refused sample may return with a log that has it.
                gone.extend(request.acknowledged.map(|_| &sent.value));
                continue;
            }
            let may_remove = |it: &&Deletion| it.done.is_none_or(|done| request.begun < done);
            let is_promised = request.acknowledged.is_some_and(|at| at < view.acknowledged_before);
            if is_promised && !deletions.iter().any(may_remove) {
                wanted = Some(&sent.value);
                // Samples whose request had ended before were replaced.
                allowed.retain(|earlier: &&Sent| !self.is_over(earlier, request.begun));
            }
            allowed.push(sent);
        }
        let allowed: Vec<&Value> = allowed.into_iter().map(|sent| &sent.value).collect();
        let Some(found) = found else {
            return wanted.map_or(Ok(()), |wanted| Err(format!("lost, was {wanted:?}")));
        };
        if allowed.contains(&found) {
            return Ok(());
        }
        if gone.contains(&found) {
            return Err(format!("deleted and back: {found:?}"));
        }
        if sent.iter().any(|sent| sent.value == *found) {
            return match allowed.is_empty() {
                true => Ok(()),
                false => Err(format!("the older value {found:?} instead of {allowed:?}")),
            };
        }
        Err(format!("never sent: {found:?}; sent were {allowed:?}"))
    }

    fn deletions_of(&self, labels: &Labels, timestamp_ms: i64) -> impl Iterator<Item = &Deletion> {
        self.deletions.iter().filter(move |it| {
            it.series.as_ref().is_none_or(|series| series.contains(labels))
                && (it.start_ms..=it.end_ms).contains(&timestamp_ms)
        })
    }

    /// Returns whether the request of a sample had ended before a tick.
    fn is_over(&self, sent: &Sent, tick: Tick) -> bool {
        self.requests[sent.request].ended.is_some_and(|ended| ended < tick)
    }
}

/// Returns a short name for a series: some have labels too long for a message.
fn name(labels: &Labels) -> String {
    format!("{} {}", labels.value("__name__"), labels.value("series"))
}

/// Makes staleness markers equal, because the kind of one may change.
fn alike(value: Value) -> Value {
    match value {
        Value::Stale(_) => Value::Stale(Kind::Float),
        value => value,
    }
}

#[cfg(test)]
mod tests;
