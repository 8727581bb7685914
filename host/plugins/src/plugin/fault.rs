//! Why a call of a plugin gave nothing.

use super::batch::{InvalidBatch, ViewError};
use super::figures::Outcome;
use super::text::bounded;
use std::time::Duration;
use tidepool_runtime::MemoryBound;

/// Why a call of a plugin gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It says so itself.
    #[error("{0}")]
    Refused(String),
    /// It crashed, and the instance is of no further use.
    #[error("it crashed: {0}")]
    Trap(String),
    /// It took too long, and the instance is of no further use.
    #[error("it took longer than {} ms (limits.time; 10 s to start)", .0.as_millis())]
    Timeout(Duration),
    /// It needed too much memory, and the instance is of no further use.
    #[error("it needs more memory than {}", bound_name(.0))]
    Memory(MemoryBound),
    /// It gave more than it may, and the instance is of no further use.
    #[error("its output has more than {0} bytes (limits.output)")]
    Flood(usize),
    /// Its output contradicts itself.
    #[error("its output is invalid: {0}")]
    Invalid(#[from] InvalidBatch),
    /// It was not called.
    #[error("{0}")]
    Skipped(&'static str),
    /// There is nothing to give it.
    #[error(transparent)]
    View(#[from] ViewError),
}

impl Fault {
    /// An error that the plugin returned.
    pub fn refused(why: &str) -> Fault {
        Fault::Refused(bounded(why))
    }

    /// How it is counted.
    pub fn outcome(&self) -> Outcome {
        match self {
            Fault::Refused(_) => Outcome::Error,
            Fault::Trap(_) => Outcome::Trap,
            Fault::Timeout(_) => Outcome::Timeout,
            Fault::Memory(_) => Outcome::Memory,
            Fault::Flood(_) | Fault::Invalid(_) => Outcome::Output,
            Fault::Skipped(_) | Fault::View(_) => Outcome::Skipped,
        }
    }

    /// Whether the instance can be called again.
    pub fn spares_instance(&self) -> bool {
        matches!(self, Fault::Refused(_) | Fault::Invalid(_) | Fault::Skipped(_) | Fault::View(_))
    }
}

fn bound_name(bound: &MemoryBound) -> &'static str {
    match bound {
        MemoryBound::Own => "its limit (limits.memory)",
        MemoryBound::Shared => "the limit of all plugins leaves (--plugins-memory-limit)",
    }
}
