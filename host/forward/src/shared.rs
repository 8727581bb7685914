//! The state that all parts of a delivery run use.

use super::ForwardError;
use super::position_writer::PositionWriter;
use super::resharding::Resharding;
use super::resources::Resources;
use super::tail::Feeding;
use tidepool_runtime::Destination;

pub(super) struct Shared<'w> {
    pub parts: &'w Resources,
    /// The engine's queues of rows.
    pub destination: Destination,
    pub position: PositionWriter<'w>,
    /// Counts rows read and delivered, from which the number of shards is computed.
    pub resharding: Resharding,
}

impl Shared<'_> {
    /// Writes the position, and with `with_gaps` also the gaps (ranges to be read from the store).
    pub fn write_position(&mut self, with_gaps: bool) -> Result<(), ForwardError> {
        self.position.write(&mut self.destination, with_gaps)
    }

    /// Returns the target for rows that are read, which limits each queue to `capacity` rows.
    pub fn feeding(&mut self, capacity: u32) -> Feeding<'_> {
        Feeding {
            destination: &mut self.destination,
            capacity,
            figures: &self.parts.figures,
            resharding: &mut self.resharding,
        }
    }
}
