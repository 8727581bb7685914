//! One silence, its identifier and its state.

use crate::matchers::Matchers;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tidepool_rules::file::Labels;

/// A random UUID (RFC 9562, version 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SilenceId(u128);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a silence's identifier is a UUID")]
pub struct NoUuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceState {
    Pending,
    Active,
    Expired,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Silence {
    pub id: SilenceId,
    pub matchers: Matchers,
    pub starts_at_ms: i64,
    /// Included.
    pub ends_at_ms: i64,
    pub updated_at_ms: i64,
    pub created_by: String,
    pub comment: String,
    pub annotations: Labels,
    /// Monotonic time at which it was set while the clock was doubted. Its times move once the
    /// clock can be trusted.
    pub(super) doubted_since: Option<Duration>,
}

impl SilenceState {
    pub fn name(self) -> &'static str {
        match self {
            SilenceState::Pending => "pending",
            SilenceState::Active => "active",
            SilenceState::Expired => "expired",
        }
    }
}

impl Silence {
    pub fn state(&self, judged_ms: i64) -> SilenceState {
        if judged_ms < self.starts_at_ms {
            SilenceState::Pending
        } else if judged_ms > self.ends_at_ms {
            SilenceState::Expired
        } else {
            SilenceState::Active
        }
    }

    pub fn is_active(&self, judged_ms: i64) -> bool {
        self.state(judged_ms) == SilenceState::Active
    }
}

impl SilenceId {
    /// `None` if the system has no random bytes.
    pub fn random() -> Option<SilenceId> {
        let mut bytes = [0; 16];
        SystemRandom::new().fill(&mut bytes).ok()?;
        // Version 4 and the variant of RFC 9562.
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Some(SilenceId(u128::from_be_bytes(bytes)))
    }
}

impl FromStr for SilenceId {
    type Err = NoUuid;

    fn from_str(text: &str) -> Result<SilenceId, NoUuid> {
        let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
        let is_uuid = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match is_hyphen(at) {
                true => byte == b'-',
                false => byte.is_ascii_hexdigit(),
            });
        let digits = if is_uuid { text.replace('-', "") } else { return Err(NoUuid) };
        u128::from_str_radix(&digits, 16).map(SilenceId).map_err(|_| NoUuid)
    }
}

impl fmt::Display for SilenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let (a, rest) = digits.split_at(8);
        let (b, rest) = rest.split_at(4);
        let (c, rest) = rest.split_at(4);
        let (d, e) = rest.split_at(4);
        write!(f, "{a}-{b}-{c}-{d}-{e}")
    }
}

impl fmt::Debug for SilenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
