//! What was asked of a store, in order, and what it must therefore hold.

use crate::RETENTION_MS;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Differences that are listed.
const LINES_MAX: usize = 8;

/// What a store holds: bits of values by time, by series.
pub type Found = BTreeMap<String, BTreeMap<i64, u64>>;

/// One sample that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub series: String,
    pub timestamp_ms: i64,
    pub bits: u64,
}

/// Something that was asked, or answered.
#[derive(Clone, Debug)]
pub enum Event {
    /// Samples were sent. From then on they may be found.
    Sent { write: usize, samples: Vec<Sent> },
    /// They were acknowledged, all of them.
    Acknowledged { write: usize },
    /// A sync of both logs was completed.
    Synced,
    /// A deletion was asked for. From then on what it concerns may be missing.
    Deletion { number: usize, deletion: Deletion },
    /// It was acknowledged: what it concerns must be missing.
    Deleted { number: usize },
}

/// A range of one series, or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub series: Option<String>,
    pub start_ms: i64,
    pub end_ms: i64,
}

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// What was acknowledged before the last completed sync: all that counts after a power cut.
    Synced,
    /// Whatever was acknowledged.
    Acknowledged,
}

/// All that happened.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub events: Vec<Event>,
}

/// A sample that was sent, where it stands among all that happened.
#[derive(Clone, Copy)]
struct Write {
    at: usize,
    bits: u64,
    is_promised: bool,
}

/// What was sent of one series at one time.
type History = Vec<Write>;

/// A deletion, and when it was asked for.
struct Asked<'a> {
    at: usize,
    is_done: bool,
    deletion: &'a Deletion,
}

impl Model {
    /// What had happened when there were so many events.
    pub fn first(&self, events: usize) -> Model {
        Model { events: self.events[..events].to_vec() }
    }

    /// The samples that were sent, newest last.
    pub fn sent(&self) -> impl DoubleEndedIterator<Item = &Sent> {
        let samples = self.events.iter().map(|event| match event {
            Event::Sent { samples, .. } => samples.as_slice(),
            _ => &[],
        });
        samples.flatten()
    }

    /// The highest number of a write or deletion.
    pub fn last_number(&self) -> usize {
        let numbers = self.events.iter().map(|event| match event {
            Event::Sent { write, .. } => *write,
            Event::Deletion { number, .. } => *number,
            _ => 0,
        });
        numbers.max().unwrap_or(0)
    }

    /// What still counts after a power cut: only synced samples are promised.
    pub fn after_power_cut(mut self) -> Model {
        let synced = self.synced_events();
        let mut at = 0;
        self.events.retain(|event| {
            at += 1;
            at <= synced || !matches!(event, Event::Acknowledged { .. })
        });
        self
    }

    /// The same when nothing is promised any more.
    pub fn after_damage(mut self) -> Model {
        self.events.retain(|event| !matches!(event, Event::Acknowledged { .. }));
        self
    }

    /// How many events there were when the last sync was completed.
    fn synced_events(&self) -> usize {
        self.events.iter().rposition(|event| matches!(event, Event::Synced)).unwrap_or(0)
    }

    /// Says in what way a store does not hold what it must, or holds what it must not.
    pub fn check(&self, found: &Found, promise: Promise) -> Result<(), String> {
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

    /// Says what was found that was never sent.
    pub fn check_nothing_invented(&self, found: &Found) -> Result<(), String> {
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

    /// Says what was acknowledged, not to be deleted later, and is not there, but for some series.
    pub fn check_what_is_promised(
        &self,
        found: &Found,
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

    /// What happened to one sample.
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

/// What is wrong with what was found at one time of a series, given the deletions of that time.
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
