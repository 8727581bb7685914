//! Reads: a fresh instance for each, on a thread of the blocking pool.

use super::{Shared, StoreError};
use crate::wasm::{FrameFormat, InstanceStorage, Matcher, Role, Selection, TimeRange};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::mpsc::Sender;

/// Bytes of answer that one call into the instance gives at least, if there are as many.
const PART_BYTES: u32 = 256 * 1024;

/// One query of a read request.
#[derive(Clone, Debug)]
pub struct ReadQuery {
    /// All must hold.
    pub matchers: Vec<Matcher>,
    /// Both ends included.
    pub range: TimeRange,
}

/// A part of a read's answer.
#[derive(Debug)]
pub enum ReadPart {
    /// Whole frames of the running query.
    Frames(Bytes),
    /// The running query is answered; the next one follows, if there is one.
    EndOfQuery,
}

/// A read on its way.
pub(super) struct Read {
    pub queries: Vec<ReadQuery>,
    pub format: FrameFormat,
    pub frame_bytes_max: u32,
    pub samples_max: u64,
}

/// The receiver of the parts went away.
struct ReceiverGone;

impl Read {
    /// Answers the queries one after the other; an error is the last part.
    pub fn run(self, shared: &Arc<Shared>, parts: &Sender<Result<ReadPart, StoreError>>) {
        let send = |part| parts.blocking_send(part).map_err(|_| ReceiverGone);
        if let Err(error) = self.answer(shared, |part| send(Ok(part))) {
            if let StoreError::Crashed(reason) = &error {
                shared.counters.query_crashes.fetch_add(1, Relaxed);
                tracing::warn!(reason, "a read was ended");
            }
            // If nobody listens any more, nobody needs to know.
            let _ = send(Err(error));
        }
    }

    fn answer(
        &self,
        shared: &Arc<Shared>,
        send: impl Fn(ReadPart) -> Result<(), ReceiverGone>,
    ) -> Result<(), StoreError> {
        let storage = InstanceStorage {
            logs: None,
            blocks: shared.blocks.clone(),
            head: Some(Arc::new(shared.head.clone())),
        };
        let options = shared.options(Role::Query);
        let limits = shared.config.query_limits;
        let mut instance = shared.runtime.instantiate(options, storage, limits)?;
        for (query_index, query) in self.queries.iter().enumerate() {
            let cursor = instance.select(&Selection {
                matchers: query.matchers.clone(),
                range: query.range,
                format: self.format,
                query_index: query_index as u32,
                frame_bytes_max: self.frame_bytes_max,
                samples_max: self.samples_max,
            })?;
            loop {
                let frames = instance.next_frames(cursor, PART_BYTES)?;
                if frames.is_empty() {
                    break;
                }
                if send(ReadPart::Frames(frames.into())).is_err() {
                    return Ok(());
                }
            }
            instance.close_cursor(cursor)?;
            if send(ReadPart::EndOfQuery).is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}
