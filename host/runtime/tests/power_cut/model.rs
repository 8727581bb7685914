//! The requests to a store, in order, and the data that it must therefore hold.

use crate::RETENTION_MS;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Maximum number of differences in a message.
const LINES_MAX: usize = 8;

/// Content of a store: bits of values by time, by series.
pub type StoredSamples = BTreeMap<String, BTreeMap<i64, u64>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub series: String,
    pub timestamp_ms: i64,
    pub bits: u64,
}

/// A request to the store, or its answer.
#[derive(Clone, Debug)]
pub enum Event {
    /// Samples were sent. From here on they may be found.
    Sent { write: usize, samples: Vec<Sent> },
    /// All samples of a write were acknowledged.
    Acknowledged { write: usize },
    /// A sync of both logs was completed.
    Synced,
    /// A deletion was requested. From here on the samples in its range may be missing.
    Deletion { number: usize, deletion: Deletion },
    /// A deletion was acknowledged: the samples in its range must be missing.
    Deleted { number: usize },
}

/// A time range of one series, or of all series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub series: Option<String>,
    pub start_ms: i64,
    pub end_ms: i64,
}

/// Samples that a store must still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Samples acknowledged before the last completed sync, which survive a power cut.
    Synced,
    /// All samples that were acknowledged.
    Acknowledged,
}

/// All requests and answers so far.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub events: Vec<Event>,
}

/// A sent sample with the position of its event, and whether the store must have it.
#[derive(Clone, Copy)]
struct Write {
    at: usize,
    bits: u64,
    is_promised: bool,
}

/// Samples that were sent for one series and time.
type History = Vec<Write>;

/// A deletion with the position of its request.
struct Asked<'a> {
    at: usize,
    is_done: bool,
    deletion: &'a Deletion,
}

impl Model {
    /// The model as it was after the first `events` events.
    pub fn first(&self, events: usize) -> Model {
        Model { events: self.events[..events].to_vec() }
    }

    /// All samples that were sent, newest last.
    pub fn sent(&self) -> impl DoubleEndedIterator<Item = &Sent> {
        let samples = self.events.iter().map(|event| match event {
            Event::Sent { samples, .. } => samples.as_slice(),
            _ => &[],
        });
        samples.flatten()
    }

    /// Highest number of any write or deletion.
    pub fn last_number(&self) -> usize {
        let numbers = self.events.iter().map(|event| match event {
            Event::Sent { write, .. } => *write,
            Event::Deletion { number, .. } => *number,
            _ => 0,
        });
        numbers.max().unwrap_or(0)
    }

    /// The model after a power cut: only synced samples are promised.
    pub fn after_power_cut(mut self) -> Model {
        let synced = self.synced_events();
        let mut at = 0;
        self.events.retain(|event| {
            at += 1;
            at <= synced || !matches!(event, Event::Acknowledged { .. })
        });
        self
    }

    /// The model after damage: no sample is promised any more.
    pub fn after_damage(mut self) -> Model {
        self.events.retain(|event| !matches!(event, Event::Acknowledged { .. }));
        self
    }

    /// Number of events before the last completed sync.
    fn synced_events(&self) -> usize {
        self.events.iter().rposition(|event| matches!(event, Event::Synced)).unwrap_or(0)
    }

    /// Describes missing and surplus data of a store, if there is any.
    pub fn check(&self, found: &StoredSamples, promise: Promise) -> Result<(), String> {
        let histories = self.histories(promise);
        let deletions = self.deletions();
        let newest_ms = self.sent().map(|sent| sent.timestamp_ms).max().unwrap_or(i64::MIN);
        let kept_from_ms = newest_ms.saturating_sub(RETENTION_MS);
        let mut wrong = Vec::new();
        for ((series, timestamp_ms), history) in &histories {
            let bits = found.get(*series).and_then(|samples| samples.get(timestamp_ms)).copied();
            let concerning =
                deletions.iter().filter(|a| a.deletion.concerns(series, *timestamp_ms));
            let is_old = *timestamp_ms < kept_from_ms;
            if let Some(why) = judge(history, concerning, bits, is_old) {
                let story = self.story(series, *timestamp_ms);
                wrong.push(format!("{series} at {timestamp_ms}: {why} ({story})"));
            }
        }
        for (series, samples) in found {
            for timestamp_ms in samples.keys() {
                if !histories.contains_key(&(series.as_str(), *timestamp_ms)) {
                    wrong.push(format!("{series} at {timestamp_ms} was never sent"));
                }
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let mut text = format!("{} of {} samples are wrong", wrong.len(), histories.len());
        for line in wrong.iter().take(LINES_MAX) {
            // Writing to a string does not fail.
            let _ = write!(text, "\n  {line}");
        }
        Err(text)
    }

    /// Describes found samples that were never sent, if there are any.
    pub fn check_nothing_invented(&self, found: &StoredSamples) -> Result<(), String> {
        let histories = self.histories(Promise::Acknowledged);
        for (series, samples) in found {
            for (timestamp_ms, bits) in samples {
                let history = histories.get(&(series.as_str(), *timestamp_ms));
                let mut writes = history.into_iter().flatten();
                if !writes.any(|write| write.bits == *bits) {
                    return Err(format!("{series} at {timestamp_ms}: {bits:#x} was never sent"));
                }
            }
        }
        Ok(())
    }

    /// Describes promised samples that are missing, except in some series.
    pub fn check_what_is_promised(
        &self,
        found: &StoredSamples,
        is_left_out: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let deletions = self.deletions();
        for ((series, timestamp_ms), history) in self.histories(Promise::Acknowledged) {
            let deletions = deletions.iter().filter(|a| a.deletion.concerns(series, timestamp_ms));
            let bits = found.get(series).and_then(|samples| samples.get(&timestamp_ms)).copied();
            let is_promised = history.iter().any(|write| write.is_promised);
            if is_promised
                && bits.is_none()
                && !is_left_out(series)
                && let Some(why) = judge(&history, deletions, bits, false)
            {
                return Err(format!("{series} at {timestamp_ms}: {why}"));
            }
        }
        Ok(())
    }

    /// Describes the events of one sample.
    fn story(&self, series: &str, timestamp_ms: i64) -> String {
        let is_it = |sent: &&Sent| sent.series == series && sent.timestamp_ms == timestamp_ms;
        let mut writes = BTreeSet::new();
        let mut story = vec![format!("{} events", self.events.len())];
        for (at, event) in self.events.iter().enumerate() {
            match event {
                Event::Sent { write, samples } => {
                    for sent in samples.iter().filter(is_it) {
                        writes.insert(*write);
                        story.push(format!("{at}: sent {:#x}", sent.bits));
                    }
                }
                Event::Acknowledged { write } if writes.contains(write) => {
                    story.push(format!("{at}: acknowledged"));
                }
                Event::Deletion { deletion, .. } if deletion.concerns(series, timestamp_ms) => {
                    story.push(format!("{at}: to be deleted"));
                }
                _ => {}
            }
        }
        story.join(", ")
    }

    fn histories(&self, promise: Promise) -> BTreeMap<(&str, i64), History> {
        let promised_events = match promise {
            Promise::Acknowledged => self.events.len(),
            Promise::Synced => self.synced_events(),
        };
        let mut promised = BTreeSet::new();
        for event in &self.events[..promised_events] {
            if let Event::Acknowledged { write } = event {
                promised.insert(*write);
            }
        }
        let mut histories: BTreeMap<(&str, i64), History> = BTreeMap::new();
        for (at, event) in self.events.iter().enumerate() {
            let Event::Sent { write, samples } = event else { continue };
            let is_promised = promised.contains(write);
            for Sent { series, timestamp_ms, bits } in samples {
                let history = histories.entry((series, *timestamp_ms)).or_default();
                history.push(Write { at, bits: *bits, is_promised });
            }
        }
        histories
    }

    fn deletions(&self) -> Vec<Asked<'_>> {
        let mut done = BTreeSet::new();
        for event in &self.events {
            if let Event::Deleted { number } = event {
                done.insert(*number);
            }
        }
        let mut deletions = Vec::new();
        for (at, event) in self.events.iter().enumerate() {
            if let Event::Deletion { number, deletion } = event {
                deletions.push(Asked { at, is_done: done.contains(number), deletion });
            }
        }
        deletions
    }
}

impl Deletion {
    fn concerns(&self, series: &str, timestamp_ms: i64) -> bool {
        self.series.as_deref().is_none_or(|only| only == series)
            && (self.start_ms..=self.end_ms).contains(&timestamp_ms)
    }
}

/// Judges the value found at one time of a series, given the deletions of that time.
fn judge<'a>(
    history: &History,
    deletions: impl Iterator<Item = &'a Asked<'a>>,
    found: Option<u64>,
    is_old: bool,
) -> Option<String> {
    let (mut asked, mut deleted) = (None, None);
    for deletion in deletions {
        asked = Some(deletion.at);
        deleted = Some(deletion.at).filter(|_| deletion.is_done).or(deleted);
    }
    let promised = history.iter().rev().find(|write| write.is_promised);
    let promised = promised.filter(|write| Some(write.at) > deleted);
    // Nothing from before this can be found. A deletion that failed half way may have taken a newer
    // value out of the head, and have left an older one in a block.
    let counts_from = match promised {
        Some(write) if asked > Some(write.at) => deleted,
        promised => promised.map(|write| write.at).max(deleted),
    };
    let is_possible =
        |bits: u64| history.iter().any(|write| write.bits == bits && Some(write.at) >= counts_from);
    match (found, promised) {
        (Some(bits), _) if is_possible(bits) => None,
        (Some(bits), Some(write)) => Some(format!("{bits:#x} instead of {:#x}", write.bits)),
        (Some(bits), None) if deleted.is_some() => Some(format!("{bits:#x}, which was deleted")),
        (Some(bits), None) => Some(format!("{bits:#x}, which was never sent")),
        (None, Some(write)) => {
            let may_be_gone = is_old || asked > Some(write.at);
            (!may_be_gone).then(|| format!("{:#x} is missing", write.bits))
        }
        (None, None) => None,
    }
}
