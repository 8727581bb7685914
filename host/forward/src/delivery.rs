//! Delivers samples to one destination until a failure: reads the logs, hands requests to senders,
//! and writes the position after each answer. Waits only for the engine and its own files.
//!
//! | part | owns |
//! | --- | --- |
//! | [`Reader`] | the tails of both logs, and the time window of the store that is being read |
//! | [`Dispatcher`] | shards, requests without an answer yet, and the effects of answers |
//! | [`Housekeeper`] | the work of each second: figures, limits, the number of shards |
//! | [`PositionWriter`] | the file of the position up to which samples are delivered |
//!
//! The parts know each other only as arguments; [`Shared`] has the state that all parts use.

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

/// One delivery run: it ends with the process, with its engine instance, or with an error.
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

    /// Works until the process or the destination is stopped.
    pub fn work(&mut self) -> Result<(), ForwardError> {
        let Delivery { shared, reader, dispatcher, housekeeper } = self;
        housekeeper.begin(shared, reader)?;
        shared.write_position(false)?;
        loop {
            // Answers are handled first: they free room in the queues for further rows.
            let mut has_done = dispatcher.take_answers(shared, Duration::ZERO)?;
            // Queued rows belong to the old shards. No row is read until they are sent.
            let is_resharding = housekeeper.is_resharding();
            if !is_resharding {
                has_done |= reader.read(shared)?;
            }
            has_done |= dispatcher.send(shared, is_resharding || reader.has_ended_window())?;
            housekeeper.tidy_if_due(shared, reader, dispatcher)?;
            // An idle run waits for answers, but only until its next look at the log.
            if !has_done {
                dispatcher.take_answers(shared, LOOK_EVERY)?;
            }
            if shared.parts.is_stopping_within(Duration::ZERO) {
                // The position of a request that is answered now is written, so that it is not sent
                // again.
                dispatcher.await_answers(shared)?;
                return shared.position.end(&mut shared.destination);
            }
        }
    }

    /// Returns the position for the next run; `None` if the engine instance has failed.
    pub fn last_position(&mut self) -> Option<Position> {
        let Shared { destination, position, .. } = &mut self.shared;
        let shards = destination.positions().ok()?;
        let gaps = destination.gaps().ok()?;
        Some(Position { shards, gaps, delivered_ms: position.progress().delivered_ms() })
    }
}
