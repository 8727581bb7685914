//! A store at work: seeded writes and maintenance, step by step, with a record of all requests and
//! answers.

use crate::model::{Deletion, Event, Model, Promise, Sent, StoredSamples};
use crate::node::Node;
use crate::sim_disk::SimDisk;
use crate::{START_MS, TestResult, WINDOW_MS};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidepool_disk::SyncPolicy;
use tidepool_runtime::{CallError, MatchOp, Matcher, RemoteWriteVersion, Runtime, TimeRange};
use tidepool_tests::remote_write::{Version, message_bytes};
use tidepool_tests::series::{ORDINARY_NAN_BITS, Random, STALE_MARKER_BITS, Series};

/// Number of series that are written at a time.
const SERIES: usize = 6;

/// Limit on series, above the number of any run.
const SERIES_MAX: usize = 80;

/// Number of attempts to start on a failing disk.
const STARTS_MAX: usize = 100;

/// A store, the record of its requests, and the random source of its steps.
pub struct Run<'a> {
    runtime: &'a Runtime,
    pub disk: SimDisk,
    policy: SyncPolicy,
    pub model: Model,
    /// `None` only if a start failed.
    node: Option<Node>,
    random: Random,
    /// Chooses the record format of each run.
    kinds: Random,
    /// Approximate time of the newest sample.
    clock_ms: i64,
    series: Vec<usize>,
    next_series: usize,
    next_number: usize,
    /// Numbers of writes that wait for their group's sync.
    group: Vec<usize>,
    /// Whether the test expects errors.
    pub expects_errors: bool,
    pub errors: Vec<String>,
}

type Batch = Vec<Sent>;

impl<'a> Run<'a> {
    /// Starts on a disk with the given history.
    pub fn start(
        runtime: &'a Runtime,
        disk: SimDisk,
        policy: SyncPolicy,
        model: Model,
        seed: u64,
    ) -> TestResult<Run<'a>> {
        let mut run = Run::without_node(runtime, disk, policy, model, seed);
        run.open()?;
        Ok(run)
    }

    /// Starts on a disk that may fail.
    pub fn start_in_spite_of_errors(
        runtime: &'a Runtime,
        disk: SimDisk,
        policy: SyncPolicy,
        seed: u64,
    ) -> TestResult<Run<'a>> {
        let mut run = Run::without_node(runtime, disk, policy, Model::default(), seed);
        run.expects_errors = true;
        run.open()?;
        Ok(run)
    }

    fn without_node(
        runtime: &'a Runtime,
        disk: SimDisk,
        policy: SyncPolicy,
        model: Model,
        seed: u64,
    ) -> Run<'a> {
        let newest_ms = model.sent().map(|sent| sent.timestamp_ms).max();
        let next_number = model.last_number();
        disk.mark(model.events.len());
        Run {
            runtime,
            disk,
            policy,
            model,
            node: None,
            random: Random::new(seed, 0x90),
            kinds: Random::new(seed, 0x91),
            clock_ms: newest_ms.unwrap_or(START_MS),
            series: (0..SERIES).collect(),
            next_series: SERIES,
            next_number,
            group: Vec::new(),
            expects_errors: false,
            errors: Vec::new(),
        }
    }

    fn open(&mut self) -> TestResult {
        for _ in 0..STARTS_MAX {
            let opened = Node::open(self.runtime, &self.disk, self.policy).and_then(|mut node| {
                if self.kinds.below(2) == 1 {
                    node.log_by_columns()?;
                }
                Ok(node)
            });
            match opened {
                Ok(node) => {
                    self.node = Some(node);
                    return Ok(());
                }
                Err(error) => self.note(Err(error), "the start")?,
            }
        }
        Err("the store does not start".into())
    }

    fn node(&mut self) -> TestResult<&mut Node> {
        self.node.as_mut().ok_or_else(|| "the store is not open".into())
    }

    /// Notes an error, or returns it if the test expects none. The end of an instance is always an
    /// error of the test.
    fn note(&mut self, result: TestResult, what: &str) -> TestResult {
        let Err(error) = result else { return Ok(()) };
        let is_end = error.downcast_ref().is_some_and(CallError::is_end)
            || error.to_string().contains("instance ended");
        let text = format!("{what}: {error}");
        if is_end || !self.expects_errors {
            return Err(text.into());
        }
        self.errors.push(text);
        Ok(())
    }

    fn tell(&mut self, event: Event) {
        self.model.events.push(event);
        self.disk.mark(self.model.events.len());
    }

    fn number(&mut self) -> usize {
        self.next_number += 1;
        self.next_number
    }
    pub fn steps(&mut self, count: usize) -> TestResult {
        for _ in 0..count {
            self.step()?;
        }
        self.end_group()
    }

    fn step(&mut self) -> TestResult {
        match self.random.below(100) {
            0..60 => self.scrape(),
            60..68 => self.out_of_order(),
            68..73 => self.overwrite(),
            73..80 => self.sync(),
            80..90 => self.compact(),
            90..94 => self.delete(),
            94..96 => self.clean(),
            96 => self.snapshot(),
            97 => self.restart(),
            98 => self.outage(),
            _ => self.churn(),
        }?;
        // The compactor thread looks often.
        match self.node()?.wants_cut()? {
            true => self.compact(),
            false => Ok(()),
        }
    }

    /// Sends the next sample of each series, as scrapers do, now and then with out-of-order
    /// samples.
    fn scrape(&mut self) -> TestResult {
        self.clock_ms += 300 + self.random.below(1700) as i64;
        let samples = if self.random.one_in(40) { 150 } else { 1 };
        let mut batch = Batch::new();
        for at in 0..self.series.len() {
            let series = self.series[at];
            let mut timestamp_ms = self.clock_ms + self.random.below(50) as i64;
            for _ in 0..samples {
                let bits = self.value();
                batch.push(Sent { series: series_name(series), timestamp_ms, bits });
                timestamp_ms += 1 + self.random.below(5) as i64;
            }
        }
        if self.random.one_in(4) {
            let more = self.out_of_order_samples(1 + self.random.clone().below(3) as usize);
            batch.extend(more);
        }
        if self.random.one_in(6) {
            self.add_series();
        }
        self.write(batch)
    }

    fn out_of_order(&mut self) -> TestResult {
        let batch = self.out_of_order_samples(4);
        self.write(batch)
    }

    fn out_of_order_samples(&mut self, count: usize) -> Batch {
        let mut batch = Batch::new();
        for _ in 0..count {
            let timestamp_ms = self.clock_ms - self.random.below(WINDOW_MS as u64) as i64;
            let series = self.random.pick(&self.series);
            let bits = self.value();
            batch.push(Sent { series: series_name(series), timestamp_ms, bits });
        }
        batch
    }

    /// Sends another value for a time that was sent before: refused unless only a block has the
    /// first.
    fn overwrite(&mut self) -> TestResult {
        let sent: Batch = self.model.sent().rev().take(200).cloned().collect();
        if sent.is_empty() {
            return Ok(());
        }
        let mut again = sent[self.random.below(sent.len() as u64) as usize].clone();
        again.bits = self.value();
        self.write(vec![again])
    }

    fn write(&mut self, batch: Batch) -> TestResult {
        if self.send(&batch)? {
            return Ok(());
        }
        // What a sender does then: again, something else at the same times, earlier times, nothing.
        match self.random.below(4) {
            0 => drop(self.send(&batch)?),
            1 => {
                let mut other = batch;
                for sample in &mut other {
                    sample.bits = self.value();
                }
                self.send(&other)?;
            }
            2 => self.clock_ms -= 1500,
            _ => {}
        }
        Ok(())
    }

    /// Sends a batch once; returns whether it was accepted.
    fn send(&mut self, batch: &Batch) -> TestResult<bool> {
        let (now_ms, write) = (self.clock_ms, self.number());
        self.tell(Event::Sent { write, samples: batch.clone() });
        let series: Vec<Series> = batch.iter().map(Sent::to_series).collect();
        let rows: Vec<_> = series.iter().map(Series::row).collect();
        let (wire, version) = match self.random.one_in(2) {
            true => (Version::V1, RemoteWriteVersion::V1),
            false => (Version::V2, RemoteWriteVersion::V2),
        };
        let body = message_bytes(wire, &rows);
        match self.node()?.append(version, &body, now_ms) {
            Ok(outcome) => {
                // Which rows of a batch were refused is unknown.
                if outcome.refused == 0 {
                    self.group.push(write);
                }
                if self.policy != SyncPolicy::Always || self.random.one_in(2) {
                    self.end_group()?;
                }
                Ok(true)
            }
            Err(error) => {
                self.note(Err(error.into()), "a write")?;
                Ok(false)
            }
        }
    }

    /// Ends the group of waiting writes and notes their acknowledgement.
    fn end_group(&mut self) -> TestResult {
        let group = std::mem::take(&mut self.group);
        let finished = self.node()?.finish_group(!group.is_empty());
        let is_synced = finished.is_ok() && self.policy == SyncPolicy::Always;
        if finished.is_ok() || self.policy != SyncPolicy::Always {
            for write in group {
                self.tell(Event::Acknowledged { write });
            }
        }
        if is_synced {
            self.tell(Event::Synced);
        }
        self.note(finished, "the sync of a group")
    }

    /// Syncs both logs, as the sync interval would.
    pub fn sync(&mut self) -> TestResult {
        self.end_group()?;
        let synced = self.node()?.sync();
        if synced.is_ok() {
            self.tell(Event::Synced);
        }
        self.note(synced, "a sync")
    }

    pub fn compact(&mut self) -> TestResult {
        self.end_group()?;
        let now_ms = self.clock_ms;
        let compacted = self.node()?.compact(now_ms);
        self.note(compacted, "a compaction")
    }

    fn clean(&mut self) -> TestResult {
        self.end_group()?;
        let now_ms = self.clock_ms;
        let cleaned = self.node()?.clean_tombstones(now_ms);
        self.note(cleaned, "cleaning tombstones")
    }

    fn delete(&mut self) -> TestResult {
        self.end_group()?;
        let series = self.random.pick(&self.series);
        let is_one = !self.random.one_in(4);
        let end_ms = self.clock_ms - self.random.below(60_000) as i64 + 20_000;
        let start_ms = match self.random.one_in(4) {
            true => i64::MIN,
            false => end_ms - self.random.below(30_000) as i64,
        };
        let series = is_one.then_some(series);
        let number = self.number();
        let name = series.map(series_name);
        let deletion = Deletion { series: name, start_ms, end_ms };
        self.tell(Event::Deletion { number, deletion });
        let matchers: Vec<Matcher> = series.map(matcher_of).into_iter().collect();
        let deleted = self.node()?.delete(&matchers, TimeRange { start_ms, end_ms });
        if deleted.is_ok() {
            self.tell(Event::Deleted { number });
            // It syncs both logs.
            self.tell(Event::Synced);
        }
        self.note(deleted, "a deletion")
    }

    fn snapshot(&mut self) -> TestResult {
        self.end_group()?;
        // Another life must not take the same name, as in production.
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let name = format!("snapshot-{}", LAST.fetch_add(1, Ordering::Relaxed));
        let now_ms = self.clock_ms;
        let made = self.node()?.snapshot(&name, now_ms);
        self.note(made, "a snapshot")
    }

    /// Stops cleanly and starts again.
    pub fn restart(&mut self) -> TestResult {
        self.end_group()?;
        let synced = self.node()?.sync();
        let is_synced = synced.is_ok();
        self.note(synced, "the sync at the end")?;
        self.node = None;
        if is_synced {
            self.tell(Event::Synced);
        }
        self.open()
    }

    /// Skips time, as when senders are away, so that retention drops blocks.
    fn outage(&mut self) -> TestResult {
        self.clock_ms += 30_000 + self.random.below(120_000) as i64;
        Ok(())
    }

    /// Changes the series that are written; some of them were written before.
    fn churn(&mut self) -> TestResult {
        for _ in 0..SERIES / 2 {
            self.add_series();
        }
        let returning = self.random.below(self.next_series as u64) as usize;
        if !self.series.contains(&returning) {
            self.series.push(returning);
        }
        Ok(())
    }

    fn add_series(&mut self) {
        self.series.push(self.next_series);
        self.next_series += 1;
        if self.series.len() > SERIES {
            let gone = self.random.below(self.series.len() as u64) as usize;
            self.series.swap_remove(gone);
        }
    }

    fn value(&mut self) -> u64 {
        match self.random.below(12) {
            0 => ORDINARY_NAN_BITS,
            1 => STALE_MARKER_BITS,
            2 => (-0.0f64).to_bits(),
            3 => self.random.next_u64(),
            _ => (self.random.below(1000) as f64).to_bits(),
        }
    }

    /// Sends unanswered requests again, as senders do.
    pub fn send_unanswered(&mut self) -> TestResult {
        let last = self.model.events.iter().rev().find_map(|event| match event {
            Event::Sent { write, samples } => Some((*write, samples.clone())),
            _ => None,
        });
        let Some((write, batch)) = last else { return Ok(()) };
        let is_answered = self.model.events.iter().any(
            |event| matches!(event, Event::Acknowledged { write: answered } if *answered == write),
        );
        if !is_answered {
            self.send(&batch)?;
        }
        self.end_group()
    }

    /// Reads everything back and compares.
    pub fn check(&mut self, promise: Promise) -> TestResult<StoredSamples> {
        let disk = self.disk.clone();
        let node = self.node()?;
        let found = node.read(Vec::new())?;
        node.verify_blocks(&disk)?;
        self.model.check(&found, promise)?;
        Ok(found)
    }

    /// Reads series by series, so that damage to one does not keep others back.
    pub fn read_by_series(&mut self) -> TestResult<Read> {
        let mut read = Read::default();
        for number in 0..self.next_series.max(SERIES_MAX) {
            match self.node()?.read(vec![matcher_of(number)]) {
                Ok(found) => read.found.extend(found),
                Err(error) => drop(read.errors.insert(series_name(number), error.to_string())),
            }
        }
        Ok(read)
    }
}

/// The samples that were read, and the series that could not be read.
#[derive(Default)]
pub struct Read {
    pub found: StoredSamples,
    pub errors: BTreeMap<String, String>,
}

impl Read {
    /// Returns all samples; an error if any series could not be read.
    pub fn whole(self) -> TestResult<StoredSamples> {
        match self.errors.first_key_value() {
            None => Ok(self.found),
            Some((series, why)) => Err(format!("{series}: {why}").into()),
        }
    }
}

fn matcher_of(series: usize) -> Matcher {
    Matcher { name: "id".into(), op: MatchOp::Equal, value: format!("s{series}") }
}

impl Sent {
    fn to_series(&self) -> Series {
        let labels: Vec<(String, String)> = self
            .series
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
            .collect();
        let labels: Vec<(&str, &str)> =
            labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Series::new(&labels, &[(self.timestamp_ms, f64::from_bits(self.bits))])
    }
}

fn series_name(number: usize) -> String {
    format!("__name__=\"metric_{}\",id=\"s{number}\"", number % 3)
}
