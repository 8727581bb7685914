//! Reasons why a call returns no result.

use super::batch::{InvalidBatch, ViewError};
use super::figures::Outcome;
use super::text::bounded;
use std::time::Duration;
use tidepool_runtime::MemoryBound;

/// Reason why a call of a plugin returned no result.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The plugin returned an error.
    #[error("{0}")]
    Refused(String),
    /// The call trapped. The instance cannot be called again.
    #[error("it crashed: {0}")]
    Trap(String),
    /// The call exceeded its time. The instance cannot be called again.
    #[error("it took longer than {} ms (limits.time; 10 s to start)", .0.as_millis())]
    Timeout(Duration),
    /// The instance needed more memory than a limit allows, and cannot be called again.
    #[error("it needs more memory than {}", bound_name(.0))]
    Memory(MemoryBound),
    /// The result exceeds `limits.output`. The instance cannot be called again.
    #[error("its output has more than {0} bytes (limits.output)")]
    Flood(usize),
    /// The result's columns contradict each other.
    #[error("its output is invalid: {0}")]
    Invalid(#[from] InvalidBatch),
    /// The plugin was not called, for the given reason.
    #[error("{0}")]
    Skipped(&'static str),
    /// The request has no columns that could be passed to the plugin.
    #[error(transparent)]
    View(#[from] ViewError),
}

impl Fault {
    /// Creates a fault from an error that the plugin returned. Its text is cut if it is long.
    pub fn refused(why: &str) -> Fault {
        Fault::Refused(bounded(why))
    }

    /// Returns the outcome under which metrics count this fault.
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

    /// Returns whether the instance can be called again.
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
