//! What an expansion may use, and still may.

use crate::template::error::Reason;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use tidepool_relabel::Substitution;

/// Bytes that are read or written in one step.
const STEP_BYTES: u64 = 32;

/// What an expansion may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Nodes, commands, arguments and passes of loops that are evaluated, and 32 bytes each that
    /// functions read and write. A query counts as 1,000, a sample as 10, a regular expression to
    /// compile as 5,000.
    pub steps_max: u64,
    /// Maximum length of the output, and of every text on the way to it.
    pub output_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps_max: 1_000_000, output_bytes_max: 256 * 1024 }
    }
}

/// Steps that several expansions may use together, such as those of one rule; clones share them.
#[derive(Clone, Debug)]
pub struct Allowance {
    steps_left: Rc<Cell<u64>>,
}

impl Allowance {
    pub fn new(steps_max: u64) -> Allowance {
        Allowance { steps_left: Rc::new(Cell::new(steps_max)) }
    }

    /// Whether an expansion needed more than was left.
    pub fn is_used_up(&self) -> bool {
        self.steps_left.get() == 0
    }

    fn charge(&self, steps: u64) -> bool {
        let left = self.steps_left.get().saturating_sub(steps);
        self.steps_left.set(left);
        left > 0
    }
}

#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    allowance: Allowance,
    steps_left: u64,
    /// Regular expressions that were compiled, by their text. Each costs steps.
    pub expressions: HashMap<String, Arc<Substitution>>,
}

impl Budget {
    pub fn new(limits: Limits, allowance: &Allowance) -> Budget {
        let (allowance, expressions) = (allowance.clone(), HashMap::new());
        Budget { limits, allowance, steps_left: limits.steps_max, expressions }
    }

    pub fn charge(&mut self, steps: u64) -> Result<(), Reason> {
        let steps_max = self.limits.steps_max;
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Reason::Steps { steps_max })?;
        if self.allowance.charge(steps) { Ok(()) } else { Err(Reason::Allowance) }
    }

    /// Charges the steps for bytes, and `factor` times as many on top.
    pub fn charge_bytes(&mut self, bytes: usize, factor: u64) -> Result<(), Reason> {
        self.charge((bytes as u64 / STEP_BYTES).saturating_mul(factor.saturating_add(1)))
    }

    /// Maximum length of the output, and of any text on the way to it.
    pub fn bytes_max(&self) -> usize {
        self.limits.output_bytes_max
    }

    /// Returns the error of a text that is too long.
    pub fn output(&self) -> Reason {
        Reason::Output { bytes_max: self.limits.output_bytes_max }
    }
}
