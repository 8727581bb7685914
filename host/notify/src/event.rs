//! A transition of an alert: it began to fire, or it ended.

use ring::digest::{SHA256, digest};
use std::fmt::Write as _;
use std::sync::Arc;
use tidepool_rules::file::Labels;
use tidepool_rules::labels::LabelSet;

/// Digits of an identifier.
const DIGITS: usize = 16;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    Firing,
    Resolved,
}

/// Why an alert ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// Its rule found it, or does not find it any more.
    #[default]
    Evaluation,
    /// The configuration has its rule no longer.
    RuleRemoved,
    /// Its end was not seen, because the program did not run or its rule was changed. The time of
    /// the event is that of the first evaluation without it.
    Unseen,
}

/// The rule group of an alert.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    pub file: Arc<str>,
    pub group: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub change: Change,
    /// When it happened: the slot of the evaluation.
    pub time_ms: i64,
    pub origin: Origin,
    /// With `alertname`.
    pub labels: LabelSet,
    pub annotations: Arc<Labels>,
    /// Of the expression, at the last evaluation that found it; NaN if there was none.
    pub value: f64,
    /// When it began to fire.
    pub fired_at_ms: i64,
    /// Always [`Cause::Evaluation`] for an alert that began.
    pub cause: Cause,
    /// Whether its rule ships with the program, and `rule_files` does not name its file.
    pub is_unnamed: bool,
}

/// An event with its number in the journal. Numbers ascend by one and begin at 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub number: u64,
    pub event: Event,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Change::Firing => "firing",
            Change::Resolved => "resolved",
        }
    }
}

impl Cause {
    pub fn name(self) -> &'static str {
        match self {
            Cause::Evaluation => "evaluation",
            Cause::RuleRemoved => "rule-removed",
            Cause::Unseen => "unseen",
        }
    }
}

impl Event {
    /// Identifier by which a receiver recognizes a repeated notification: the same for the same
    /// change of the same alert at the same time, on every start of the program.
    pub fn id(&self) -> String {
        hex(&[
            self.origin.file.as_bytes(),
            self.origin.group.as_bytes(),
            label_bytes(&self.labels).as_bytes(),
            self.change.name().as_bytes(),
            &self.time_ms.to_le_bytes(),
        ])
    }
}

/// Identifier of an alert by its labels alone, as Alertmanager shows one: FNV-1a (64 bits) over
/// names and values, each followed by a byte of ones (`LabelsToSignature` in prometheus/common,
/// `model`).
pub fn fingerprint(labels: &LabelSet) -> String {
    let mut hash = FNV_OFFSET;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    for (name, value) in labels.iter() {
        for text in [name, value] {
            text.bytes().for_each(&mut add);
            add(u8::MAX);
        }
    }
    format!("{hash:016x}")
}

fn label_bytes(labels: &LabelSet) -> String {
    let mut text = String::new();
    for (name, value) in labels.iter() {
        // Writing to a string cannot fail. Lengths keep different sets apart.
        let _ = write!(text, "{}:{name}{}:{value}", name.len(), value.len());
    }
    text
}

/// The first digits of a hash of the parts.
fn hex(parts: &[&[u8]]) -> String {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    let hash = digest(&SHA256, &bytes);
    let mut text: String = hash.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    text.truncate(DIGITS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Go's `model.LabelSet{...}.Fingerprint()` has it.
    #[test]
    fn fingerprints_are_upstreams() {
        assert_eq!(fingerprint(&LabelSet::default()), "cbf29ce484222325");
    }

    #[test]
    fn an_identifier_tells_changes_and_times_apart() {
        let event = Event {
            change: Change::Firing,
            time_ms: 1,
            origin: Origin { file: "f".into(), group: "g".into() },
            labels: LabelSet::new([("alertname", "A")]),
            annotations: Arc::default(),
            value: 1.0,
            fired_at_ms: 1,
            cause: Cause::Evaluation,
            is_unnamed: false,
        };
        let others = [
            Event { change: Change::Resolved, ..event.clone() },
            Event { time_ms: 2, ..event.clone() },
            Event { labels: LabelSet::new([("alertname", "B")]), ..event.clone() },
        ];
        for other in others {
            assert_ne!(other.id(), event.id());
        }
        let same = Event { value: 2.0, cause: Cause::Unseen, ..event.clone() };
        assert_eq!(same.id(), event.id());
        assert_eq!(event.id().len(), DIGITS);
    }
}
