//! A lack of memory that prevented the replay of the log.

use std::fmt;

const MIB: u64 = 1024 * 1024;

/// Kind of memory that was too short, with an estimate of what is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The head's memory, which is limited by flags.
    Head {
        /// Percentage of the log that was replayed.
        replayed_percent: u64,
        /// Estimate of a sufficient `--memory-limit`.
        limit_bytes: u64,
        /// Estimate of a sufficient `--head-memory-limit`, if that flag sets the head's share.
        head_bytes: Option<u64>,
    },
    /// The machine's memory: the kernel killed the process several times at the same record.
    Machine {
        /// Number of consecutive kills at that record.
        kills: u32,
    },
}

impl Shortage {
    /// Returns the `--memory-limit` that is needed; 0 if no limit would be enough.
    pub fn limit_bytes(&self) -> u64 {
        match self {
            Shortage::Head { limit_bytes, .. } => *limit_bytes,
            Shortage::Machine { .. } => 0,
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shortage::Head { replayed_percent, limit_bytes, head_bytes } => {
                write!(
                    f,
                    "the WAL needs more memory than the head has, which was used up at \
                     {replayed_percent} % of it. Restart with --memory-limit={}MiB",
                    limit_bytes / MIB
                )?;
                match head_bytes {
                    Some(bytes) => write!(f, " and --head-memory-limit={}MiB", bytes / MIB),
                    None => Ok(()),
                }
            }
            Shortage::Machine { kills } => write!(
                f,
                "the kernel's OOM killer ended the WAL replay {kills} times at the same record. \
                 Give the machine or the control group more memory, or lower --memory-limit, and \
                 restart"
            ),
        }
    }
}
