//! Reads: a fresh instance for each, on a thread of the blocking pool.

use super::{Shared, StoreError};
use crate::wasm::{
    FrameFormat, Instance, InstanceLogs, InstanceStorage, Matcher, Role, Selection, TimeRange,
};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::runtime::Handle;
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

/// The receiver of the parts went away, or is too slow.
pub(super) struct ReceiverGone;

/// Where the parts of an answer go. Called from a thread of the blocking pool.
struct Outlet<'a, P> {
    parts: &'a Sender<Result<P, StoreError>>,
    runtime: Handle,
    /// A client that takes nothing must not keep the head from forgetting for ever.
    deadline: Option<Instant>,
}

impl<P> Outlet<'_, P> {
    fn send(&self, part: Result<P, StoreError>) -> Result<(), ReceiverGone> {
        let sent = self.parts.send(part);
        let sent = match self.deadline {
            None => self.runtime.block_on(sent).is_ok(),
            Some(deadline) => self
                .runtime
                .block_on(tokio::time::timeout_at(deadline.into(), sent))
                .is_ok_and(|sent| sent.is_ok()),
        };
        if sent { Ok(()) } else { Err(ReceiverGone) }
    }
}

/// Lets a fresh instance answer; an error is the last part.
pub(super) fn answer_parts<P>(
    shared: &Arc<Shared>,
    parts: &Sender<Result<P, StoreError>>,
    answer: impl FnOnce(&mut Instance, &dyn Fn(P) -> Result<(), ReceiverGone>) -> Result<(), StoreError>,
) {
    let deadline = shared.live().query_limits.deadline.map(|limit| Instant::now() + limit);
    let outlet = Outlet { parts, runtime: Handle::current(), deadline };
    let answered = instantiate(shared)
        .and_then(|mut instance| answer(&mut instance, &|part| outlet.send(Ok(part))));
    if let Err(error) = answered {
        if let StoreError::Crashed(_) | StoreError::Deadline | StoreError::NeedsTooMuchMemory =
            &error
        {
            shared.counters.query_crashes.fetch_add(1, Relaxed);
            tracing::warn!(%error, "a read was ended");
        }
        // If nobody listens any more, nobody needs to know.
        let _ = outlet.send(Err(error));
    }
}

fn instantiate(shared: &Arc<Shared>) -> Result<Instance, StoreError> {
    let storage = InstanceStorage {
        logs: InstanceLogs::None,
        blocks: shared.blocks.clone(),
        head: Some(Arc::new(shared.head.clone())),
        memory: Some(Arc::clone(&shared.read_memory.pool)),
    };
    let options = shared.options(Role::Query);
    Ok(shared.runtime.instantiate(options, storage, shared.live().query_limits)?)
}

impl Read {
    /// Answers the queries one after the other. An answer with fewer ends of queries than the read
    /// has queries was cut short.
    pub fn run(self, shared: &Arc<Shared>, parts: &Sender<Result<ReadPart, StoreError>>) {
        answer_parts(shared, parts, |instance, send| self.answer(instance, send));
    }

    fn answer(
        &self,
        instance: &mut Instance,
        send: &dyn Fn(ReadPart) -> Result<(), ReceiverGone>,
    ) -> Result<(), StoreError> {
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
