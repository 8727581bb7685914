//! Reads: a fresh instance for each, on a thread of its own.

mod samples;

use super::{Shared, StoreError};
use crate::prom::frames::seal_frames;
use crate::wasm::{
    CursorHandle, FrameFormat, Instance, InstanceLogs, InstanceStorage, Label, Matcher, Role,
    Selection, TimeRange,
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

/// How a read is answered, and within which limits.
#[derive(Clone, Copy, Debug)]
pub enum ReadFormat {
    /// Frames with chunks, one after the other.
    StreamedChunks {
        /// Size of a frame.
        frame_bytes_max: u32,
    },
    /// The fields `timeseries` of one `prometheus.QueryResult` after the other: series in label order,
    /// each with just the samples inside the range. A part may end inside of one.
    TimeSeries,
    /// Series as one instance hands them to another; a part ends between two.
    ChunkedSeries,
    /// A `prometheus.ReadResponse` in Snappy's block format. The limits are kept before the first
    /// part comes.
    Samples {
        /// Most samples of one query; 0 means no limit.
        samples_max: u64,
        /// Most bytes of the answer before it is compressed; 0 means no limit but the format's.
        bytes_max: u64,
    },
}

/// A part of a read's answer.
#[derive(Debug)]
pub enum ReadPart {
    /// The next bytes.
    Bytes(Bytes),
    /// That was all. An answer without this was cut short.
    End,
}

/// A read on its way.
pub(super) struct Read {
    pub queries: Vec<ReadQuery>,
    pub format: ReadFormat,
    /// Labels that each series gets unless it has one of that name.
    pub external_labels: Vec<Label>,
}

/// The receiver of the parts went away, or is too slow.
pub(super) struct ReceiverGone;

/// Where the parts of an answer go. Called where waiting is allowed.
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

/// Why an answer ended before its end.
enum Cut {
    /// Nobody takes it.
    ReceiverGone,
    /// It cannot be given.
    Failed(StoreError),
}

impl<E: Into<StoreError>> From<E> for Cut {
    fn from(error: E) -> Cut {
        Cut::Failed(error.into())
    }
}

/// Gives parts to whoever waits for them.
struct Parts<'a> {
    send: &'a dyn Fn(ReadPart) -> Result<(), ReceiverGone>,
    is_gone: &'a dyn Fn() -> bool,
}

impl Parts<'_> {
    fn send(&self, bytes: Vec<u8>) -> Result<(), Cut> {
        let sent = (self.send)(ReadPart::Bytes(bytes.into()));
        sent.map_err(|ReceiverGone| Cut::ReceiverGone)
    }

    /// For work without a part to send: it is not done for nobody.
    fn check(&self) -> Result<(), Cut> {
        if (self.is_gone)() { Err(Cut::ReceiverGone) } else { Ok(()) }
    }
}

impl Read {
    /// Answers the queries one after the other.
    pub fn run(self, shared: &Arc<Shared>, parts: &Sender<Result<ReadPart, StoreError>>) {
        answer_parts(shared, parts, |instance, send| {
            let outlet = Parts { send, is_gone: &|| parts.is_closed() };
            let answered = match self.format {
                ReadFormat::StreamedChunks { frame_bytes_max } => {
                    self.stream(instance, &outlet, frame_bytes_max)
                }
                ReadFormat::TimeSeries => self.plain(instance, FrameFormat::Samples, &outlet),
                ReadFormat::ChunkedSeries => {
                    self.plain(instance, FrameFormat::ChunkedSeries, &outlet)
                }
                ReadFormat::Samples { samples_max, bytes_max } => {
                    self.samples(instance, &outlet, samples_max, bytes_max)
                }
            };
            match answered {
                Ok(()) => {
                    // If nobody listens any more, nobody needs to know.
                    let _ = send(ReadPart::End);
                    Ok(())
                }
                Err(Cut::ReceiverGone) => Ok(()),
                Err(Cut::Failed(error)) => Err(error),
            }
        });
    }

    fn stream(
        &self,
        instance: &mut Instance,
        parts: &Parts<'_>,
        frame_bytes_max: u32,
    ) -> Result<(), Cut> {
        for query_index in 0..self.queries.len() {
            let selection = self.selection(query_index, FrameFormat::UnsealedStreamedChunks);
            let cursor = instance.select(&Selection { frame_bytes_max, ..selection })?;
            each_part(instance, cursor, |mut frames| {
                seal(&mut frames)?;
                parts.send(frames)
            })?;
            instance.close_cursor(cursor)?;
        }
        Ok(())
    }

    fn plain(
        &self,
        instance: &mut Instance,
        format: FrameFormat,
        parts: &Parts<'_>,
    ) -> Result<(), Cut> {
        for query_index in 0..self.queries.len() {
            let cursor = instance.select(&self.selection(query_index, format))?;
            each_part(instance, cursor, |frames| parts.send(frames))?;
            instance.close_cursor(cursor)?;
        }
        Ok(())
    }

    fn selection(&self, query_index: usize, format: FrameFormat) -> Selection {
        let query = &self.queries[query_index];
        Selection {
            matchers: query.matchers.clone(),
            range: query.range,
            format,
            query_index: query_index as u32,
            frame_bytes_max: 0,
            samples_max: 0,
            external_labels: self.external_labels.clone(),
        }
    }
}

/// Puts checksums into frames.
fn seal(frames: &mut [u8]) -> Result<(), StoreError> {
    let failed = |offset| {
        StoreError::Runtime(format!("the answer was not made: no frame begins at byte {offset}"))
    };
    seal_frames(frames).map_err(failed)
}

/// Gives all that a cursor has.
fn each_part(
    instance: &mut Instance,
    cursor: CursorHandle,
    mut give: impl FnMut(Vec<u8>) -> Result<(), Cut>,
) -> Result<(), Cut> {
    loop {
        let frames = instance.next_frames(cursor, PART_BYTES)?;
        if frames.is_empty() {
            return Ok(());
        }
        give(frames)?;
    }
}
