//! What all parts of a run use.

use super::ForwardError;
use super::parts::Parts;
use super::position_writer::PositionWriter;
use super::resharding::Resharding;
use super::tail::Feeding;
use tidepool_runtime::Destination;

/// What all parts of a run use.
pub(super) struct Shared<'w> {
    pub parts: &'w Parts,
    /// The engine's queues of rows.
    pub destination: Destination,
    pub position: PositionWriter<'w>,
    /// Counts rows that come and go, of which the number of shards follows.
    pub resharding: Resharding,
}

impl Shared<'_> {
    /// Writes down where delivery stands; gaps only if they may have changed.
    pub fn write_position(&mut self, with_gaps: bool) -> Result<(), ForwardError> {
        self.position.write(&mut self.destination, with_gaps)
    }

    /// Where rows go that are read, as long as no queue has more than `capacity`.
    pub fn feeding(&mut self, capacity: u32) -> Feeding<'_> {
        Feeding {
            destination: &mut self.destination,
            capacity,
            figures: &self.parts.figures,
            resharding: &mut self.resharding,
        }
    }
}
