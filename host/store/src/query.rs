//! Reads: an instance for each, on a thread of its own.

mod chunk_files;
mod samples;
mod streamed;

use super::{Shared, StoreError};
use bytes::Bytes;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tidepool_protocol::prom::read::{ReadFormat, ReadQuery};
use tidepool_runtime::{
    CursorHandle, Instance, InstanceLimits, InstanceLogs, InstanceStorage, Label, Role, Selection,
};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::timeout_at;

/// Bytes of answer that one call into the instance returns at least, if there are as many.
const PART_BYTES: u32 = 256 * 1024;

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

/// A part of an answer, as far as its way matters.
pub(super) trait Part {
    /// Whether it takes little memory.
    fn is_small(&self) -> bool;

    /// Whether nothing follows it.
    fn is_last(&self) -> bool;
}

/// Bytes up to which a part is small, and may be all of an answer.
pub const SMALL_BYTES_MAX: usize = 16 * 1024;

impl Part for ReadPart {
    fn is_small(&self) -> bool {
        match self {
            ReadPart::Bytes(bytes) => bytes.len() <= SMALL_BYTES_MAX,
            ReadPart::End => true,
        }
    }

    fn is_last(&self) -> bool {
        matches!(self, ReadPart::End)
    }
}

/// Parts that may wait for their receiver: a few small ones, or one.
pub(super) const PARTS_MAX: usize = 3;

/// Where the parts of an answer go. Called where waiting is allowed.
///
/// Each part that is sent may wake the receiver's thread, which costs more than a small answer
/// does. So small parts are held until the last one, or one that is not small, and sent with it.
struct Outlet<'a, P> {
    parts: &'a Sender<Result<P, StoreError>>,
    held: RefCell<Vec<P>>,
    runtime: Handle,
    /// A client that takes nothing must not keep the head from truncating for ever.
    deadline: Option<Instant>,
}

impl<P: Part> Outlet<'_, P> {
    fn send(&self, part: P) -> Result<(), ReceiverGone> {
        let is_held = part.is_small() && !part.is_last();
        let mut held = self.held.borrow_mut();
        held.push(part);
        if is_held && held.len() < PARTS_MAX {
            return if self.parts.is_closed() { Err(ReceiverGone) } else { Ok(()) };
        }
        held.drain(..).try_for_each(|part| self.send_now(part.is_small(), Ok(part)))
    }

    /// Instead of what is held: the client need not see half an answer.
    fn fail(&self, error: StoreError) {
        self.held.borrow_mut().clear();
        // The receiver may be dropped: the client disconnected.
        let _ = self.send_now(true, Err(error));
    }

    fn send_now(&self, is_small: bool, part: Result<P, StoreError>) -> Result<(), ReceiverGone> {
        // What is not small waits alone.
        let places = if is_small { 1 } else { PARTS_MAX };
        let mut reserved = match self.parts.try_reserve_many(places) {
            Ok(reserved) => reserved,
            Err(TrySendError::Closed(())) => return Err(ReceiverGone),
            Err(TrySendError::Full(())) => {
                let reserved = self.parts.reserve_many(places);
                let reserved = match self.deadline {
                    None => self.runtime.block_on(reserved).ok(),
                    Some(deadline) => self
                        .runtime
                        .block_on(async { timeout_at(deadline.into(), reserved).await })
                        .ok()
                        .and_then(Result::ok),
                };
                reserved.ok_or(ReceiverGone)?
            }
        };
        if let Some(place) = reserved.next() {
            place.send(part);
        }
        Ok(())
    }
}

/// Lets an instance answer within the time of a read; an error is the last part.
pub(super) fn answer_parts<P: Part + Send + 'static>(
    shared: &Arc<Shared>,
    parts: &Sender<Result<P, StoreError>>,
    answer: impl FnOnce(&mut Instance, &dyn Fn(P) -> Result<(), ReceiverGone>) -> Result<(), StoreError>,
) {
    let limit = shared.live().query_limits.deadline;
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    answer_until(shared, deadline, parts, |error| error, answer);
}

/// The same until a certain time; `of_error` names an error as one of this kind of read. If the
/// receiver is dropped, the instance ends.
pub(super) fn answer_until<P: Part + Send + 'static>(
    shared: &Arc<Shared>,
    deadline: Option<Instant>,
    parts: &Sender<Result<P, StoreError>>,
    of_error: fn(StoreError) -> StoreError,
    answer: impl FnOnce(&mut Instance, &dyn Fn(P) -> Result<(), ReceiverGone>) -> Result<(), StoreError>,
) {
    let held = RefCell::default();
    let outlet = Outlet { parts, held, runtime: Handle::current(), deadline };
    let is_gone = {
        let parts = parts.clone();
        move || parts.is_closed()
    };
    let answered = with_instance(shared, deadline, is_gone, |instance| {
        answer(instance, &|part| outlet.send(part))
    });
    if let Err(error) = answered.map_err(of_error) {
        if let StoreError::Crashed(_)
        | StoreError::Deadline
        | StoreError::QueryTimeout(_)
        | StoreError::NeedsTooMuchMemory = &error
        {
            shared.counters.query_crashes.fetch_add(1, Relaxed);
            tracing::warn!(%error, "read cancelled");
        }
        outlet.fail(error);
    }
}

/// Lends an instance, which ends at the deadline, or once `is_gone` returns true.
pub(super) fn with_instance<T>(
    shared: &Arc<Shared>,
    deadline: Option<Instant>,
    is_gone: impl Fn() -> bool + Send + Sync + 'static,
    work: impl FnOnce(&mut Instance) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // Before the instance looks at them.
    let changes = shared.blocks.changes();
    let mut instance = match shared.readers.instance(changes) {
        Some(waiting) => waiting,
        None => instantiate(shared, deadline)?,
    };
    instance.end_when(deadline, is_gone);
    let done = work(&mut instance)?;
    shared.damaged_in_reads(&mut instance)?;
    shared.readers.keep(changes, instance);
    // Some may have come meanwhile.
    shared.drop_outdated_readers();
    Ok(done)
}

/// Gives an answer that needs no instance.
pub(super) fn answer_ready<P: Part + Send + 'static>(
    parts: &Sender<Result<P, StoreError>>,
    deadline: Option<Instant>,
    answer: impl FnOnce(&dyn Fn(P) -> Result<(), ReceiverGone>) -> Result<(), StoreError>,
) {
    let held = RefCell::default();
    let outlet = Outlet { parts, held, runtime: Handle::current(), deadline };
    if let Err(error) = answer(&|part| outlet.send(part)) {
        outlet.fail(error);
    }
}

fn instantiate(shared: &Arc<Shared>, deadline: Option<Instant>) -> Result<Instance, StoreError> {
    let storage = InstanceStorage {
        logs: InstanceLogs::None,
        blocks: shared.blocks.clone(),
        head: Some(shared.head.access()),
        memory: Some(Arc::clone(&shared.read_memory.pool)),
    };
    let options = shared.options(Role::Query);
    let limit = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let limits = InstanceLimits { deadline: limit, ..shared.live().query_limits };
    Ok(shared.runtime.instantiate(options, storage, limits)?)
}

/// Why an answer ended before its end.
enum Cut {
    /// The receiver is gone.
    ReceiverGone,
    /// It cannot be given.
    Failed(StoreError),
}

impl<E: Into<StoreError>> From<E> for Cut {
    fn from(error: E) -> Cut {
        Cut::Failed(error.into())
    }
}

/// Sends parts to the read that waits for them.
struct Parts<'a> {
    send: &'a dyn Fn(ReadPart) -> Result<(), ReceiverGone>,
    is_gone: &'a dyn Fn() -> bool,
}

impl Parts<'_> {
    fn send(&self, bytes: Vec<u8>) -> Result<(), Cut> {
        let sent = (self.send)(ReadPart::Bytes(bytes.into()));
        sent.map_err(|ReceiverGone| Cut::ReceiverGone)
    }

    /// For work without a part to send: it stops if the receiver is gone.
    fn check(&self) -> Result<(), Cut> {
        if (self.is_gone)() { Err(Cut::ReceiverGone) } else { Ok(()) }
    }
}

impl Read {
    /// Answers the queries one after the other.
    pub fn run(self, shared: &Arc<Shared>, parts: &Sender<Result<ReadPart, StoreError>>) {
        answer_parts(shared, parts, |instance, send| {
            let outlet = Parts { send, is_gone: &|| parts.is_closed() };
            let answered = match self.format.message_bytes_max {
                Some(bytes_max) => self.samples(instance, &outlet, bytes_max),
                None => self.stream(instance, &outlet),
            };
            match answered {
                Ok(()) => {
                    // The receiver may be dropped: the client disconnected.
                    let _ = send(ReadPart::End);
                    Ok(())
                }
                Err(Cut::ReceiverGone) => Ok(()),
                Err(Cut::Failed(error)) => Err(error),
            }
        });
    }

    fn selection(&self, query_index: usize) -> Selection {
        let query = &self.queries[query_index];
        let ReadFormat { frames: format, frame_bytes_max, samples_max, .. } = self.format;
        Selection {
            matchers: query.matchers.clone(),
            range: query.range,
            format,
            query_index: query_index as u32,
            frame_bytes_max,
            samples_max,
            external_labels: self.external_labels.clone(),
        }
    }
}

/// Returns all that a cursor has.
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
