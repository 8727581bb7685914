//! Delivers to one destination until something fails: reads, hands requests to senders, and writes
//! the position after each answer. Waits only for the engine and its own files.
//!
//! | part | owns |
//! | --- | --- |
//! | [`Reader`] | the tails of both logs, the window of the backlog that is read from the store |
//! | [`Dispatcher`] | shards, requests that are on their way, their answers |
//! | [`Housekeeper`] | what is done once a second: figures, limits, the number of shards |
//! | [`PositionWriter`] | the file of the position, how far delivery has come |
//!
//! The parts know each other only as arguments; [`Shared`] has the state that all of them use.

use super::ForwardError;
use super::dispatcher::Dispatcher;
use super::housekeeper::Housekeeper;
use super::position::{Position, PositionFile};
use super::position_writer::PositionWriter;
use super::reader::Reader;
use super::resharding::Resharding;
use super::resources::{LOOK_EVERY, Resources};
use super::sender::Sender;
use super::shared::Shared;
use super::tail::Tails;
use super::version::Negotiated;
use std::sync::Arc;
use std::time::Duration;
use tidepool_runtime::Destination;

/// One delivery run: it ends with the process, or with its instance.
pub(super) struct Delivery<'w> {
    shared: Shared<'w>,
    reader: Reader,
    dispatcher: Dispatcher<'w>,
    housekeeper: Housekeeper,
}

impl<'w> Delivery<'w> {
    /// Creates a run that has read and sent nothing yet.
    pub fn new(
        parts: &'w Resources,
        sender: &'w Arc<Sender>,
        file: &'w mut PositionFile,
        version: &'w mut Negotiated,
        mut destination: Destination,
        tails: Tails,
        delivered_ms: Option<i64>,
    ) -> Result<Delivery<'w>, ForwardError> {
        let positions = destination.positions()?;
        let has_resumed_window = destination.store_window()?.is_some();
        let samples_per_second = parts.config.backlog.samples_per_second;
        Ok(Delivery {
            reader: Reader::new(tails, has_resumed_window, samples_per_second),
            dispatcher: Dispatcher::new(sender, version, positions.len()),
            housekeeper: Housekeeper::new(),
            shared: Shared {
                parts,
                destination,
                position: PositionWriter::new(parts, file, &positions, delivered_ms),
                resharding: Resharding::default(),
            },
        })
    }

    /// Works until it is time to stop.
    pub fn work(&mut self) -> Result<(), ForwardError> {
        let Delivery { shared, reader, dispatcher, housekeeper } = self;
        housekeeper.begin(shared, reader)?;
        shared.write_position(false)?;
        loop {
            // Answers come first: they free room in the queues for rows that are read next.
            let mut has_done = dispatcher.take_answers(shared, Duration::ZERO)?;
            // Waiting rows belong to the shards before the change, so none are read meanwhile.
            let is_resharding = housekeeper.is_resharding();
            if !is_resharding {
                has_done |= reader.read(shared)?;
            }
            has_done |= dispatcher.send(shared, is_resharding || reader.has_ended_window())?;
            housekeeper.tidy_if_due(shared, reader, dispatcher)?;
            // An idle run waits for answers, but looks at the log again soon.
            if !has_done {
                dispatcher.take_answers(shared, LOOK_EVERY)?;
            }
            if shared.parts.is_stopping_within(Duration::ZERO) {
                // A request that is answered now is not sent again after the next start.
                dispatcher.await_answers(shared)?;
                return shared.position.end(&mut shared.destination);
            }
        }
    }

    /// Returns the position for the next run; `None` if the instance has ended.
    pub fn last_position(&mut self) -> Option<Position> {
        let Shared { destination, position, .. } = &mut self.shared;
        let shards = destination.positions().ok()?;
        let gaps = destination.gaps().ok()?;
        Some(Position { shards, gaps, delivered_ms: position.progress().delivered_ms() })
    }
}
