//! What is done of the journal's events, for one receiver, and the file that keeps it.
//!
//! `DIR/receivers/NAME.json`, replaced as a whole and synced:
//!
//! ```text
//! {"crc32c":1383707441,"position":{"through":17,"beyond":[[19,24]],"muted":[12],"left_ms":null}}
//! ```
//!
//! | field | meaning |
//! | --- | --- |
//! | `through` | events up to this number are done; 0: none |
//! | `beyond` | ranges of later events that are done, both ends included: ascending, with gaps between |
//! | `muted` | events up to there that were due while a silence matched, and still fire: ascending |
//! | `left_ms` | when the receiver was first seen to be absent from the configuration |
//! | `crc32c` | CRC-32C of the text of `position`, exactly as above: no spaces, this order |
//!
//! A damaged file is renamed to `NAME.json.damaged`; the receiver then starts like a new one: at
//! the newest event, with the alerts that fire.

mod store;
#[cfg(test)]
mod tests;

pub use store::{Found, Positions};

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A file of more bytes is damaged: no journal has as many events.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub through: u64,
    pub beyond: Vec<(u64, u64)>,
    pub muted: Vec<u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum PositionError {
    #[error(
        "could not write the position of receiver {receiver}: {source}; delivery continues, and a \
         restart would deliver events again"
    )]
    Write { receiver: String, source: tidepool_disk::DiskError },
    #[error("could not {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// Why a file has no position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("{bytes} bytes; at most {FILE_BYTES_MAX} are read")]
    TooLong { bytes: u64 },
    #[error("it is not the JSON of a position: {0}")]
    Json(String),
    #[error("its checksum is {found}, that of its content {computed}")]
    Checksum { found: u32, computed: u32 },
    #[error("its numbers do not ascend")]
    Order,
    #[error("it could not be read: {0}")]
    Unreadable(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    crc32c: u32,
    position: Content,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    through: u64,
    beyond: Vec<(u64, u64)>,
    muted: Vec<u64>,
    left_ms: Option<i64>,
}

impl Position {
    /// Returns the position at which all events up to `read` are done, but for these, which ascend.
    pub fn without(
        undelivered: impl IntoIterator<Item = u64>,
        read: u64,
        muted: impl IntoIterator<Item = u64>,
    ) -> Position {
        let mut undelivered = undelivered.into_iter();
        let first = undelivered.next();
        let through = first.map_or(read, |first| first.saturating_sub(1));
        let (mut beyond, mut last) = (Vec::new(), first.unwrap_or(read));
        for number in undelivered.chain([read.saturating_add(1)]) {
            if number > last.saturating_add(1) {
                beyond.push((last + 1, number - 1));
            }
            last = last.max(number);
        }
        Position { through, beyond, muted: muted.into_iter().collect() }
    }

    pub fn is_done(&self, number: u64) -> bool {
        let after = self.beyond.partition_point(|(first, _)| *first <= number);
        let is_beyond = after > 0 && number <= self.beyond[after - 1].1;
        number <= self.through || is_beyond
    }

    /// Returns the number of the last event that is done.
    pub fn last(&self) -> u64 {
        self.beyond.last().map_or(self.through, |(_, last)| *last)
    }

    /// Returns how many of the events below `end` are not done.
    pub fn undone_below(&self, end: u64) -> u64 {
        let open = end.saturating_sub(1).saturating_sub(self.through);
        let within =
            |(first, last): &(u64, u64)| (end.min(last.saturating_add(1))).saturating_sub(*first);
        open.saturating_sub(self.beyond.iter().map(within).sum())
    }

    fn is_ordered(&self) -> bool {
        let mut before = self.through;
        let ranges = self.beyond.iter().all(|(first, last)| {
            let is_after = *first > before.saturating_add(1) && last >= first;
            before = *last;
            is_after
        });
        let muted = self.muted.is_sorted_by(|one, next| one < next);
        ranges && muted && self.muted.last().is_none_or(|number| *number <= self.last())
    }
}

fn encode(position: &Position, left_ms: Option<i64>) -> Vec<u8> {
    let Position { through, beyond, muted } = position.clone();
    let position = Content { through, beyond, muted, left_ms };
    let crc32c = checksum(&position);
    // Numbers and lists of numbers can always be written.
    serde_json::to_vec(&File { crc32c, position }).unwrap_or_default()
}

fn decode(bytes: &[u8]) -> Result<(Position, Option<i64>), Damage> {
    let file: File =
        serde_json::from_slice(bytes).map_err(|error| Damage::Json(error.to_string()))?;
    let (found, computed) = (file.crc32c, checksum(&file.position));
    if found != computed {
        return Err(Damage::Checksum { found, computed });
    }
    let Content { through, beyond, muted, left_ms } = file.position;
    let position = Position { through, beyond, muted };
    match position.is_ordered() {
        true => Ok((position, left_ms)),
        false => Err(Damage::Order),
    }
}

fn checksum(content: &Content) -> u32 {
    crc32c::crc32c(&serde_json::to_vec(content).unwrap_or_default())
}
