//! Steps that all reads of the store share: an instance for each read, with its limits; a thread
//! for each read; and sending the parts of an answer to its receiver. Crates above the store with
//! reads of another kind, such as queries, use these steps as well.
//!
//! ```text
//! check ─▶ a turn ─▶ answer_now: a thread ─▶ answer_until: an instance ─▶ parts ─▶ the receiver
//! ```
//!
//! Invariants: an instance that crashes or exceeds its limits ends alone, and also ends when the
//! receiver is gone. An answer has a few small parts in memory at most, or one large part.

pub use crate::changes::Moment;
pub use crate::ledger::Ledger;

use super::{Shared, Store, StoreError};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tidepool_runtime::{Instance, InstanceLimits, InstanceLogs, InstanceStorage, Role};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout_at;

/// The store's interface for readers; clones share the store.
#[derive(Clone)]
pub struct Reading {
    pub(super) shared: Arc<Shared>,
}

/// Error: the receiver of the parts is gone, or too slow.
pub struct ReceiverGone;

/// A part of an answer, with the properties that sending needs.
pub trait Part {
    /// Returns whether the part takes little memory.
    fn is_small(&self) -> bool;

    /// Returns whether this is the last part of its answer.
    fn is_last(&self) -> bool;
}

/// Maximum size of a small part. A small answer may be a single small part.
pub const SMALL_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of parts that wait for their receiver: a few small parts, or one large part.
const PARTS_MAX: usize = 3;

/// Sends the parts of an answer. Used on threads that may block.
///
/// Sending a part may wake the receiver's thread, which costs more than reading a small answer. So
/// small parts are held back until the last part or a large part, and sent together with it.
struct Outlet<'a, P> {
    parts: &'a Sender<Result<P, StoreError>>,
    held: RefCell<Vec<P>>,
    runtime: Handle,
    /// A client that reads nothing must not prevent the head from truncating forever.
    deadline: Option<Instant>,
}

impl<P: Part> Outlet<'_, P> {
    fn send(&self, part: P) -> Result<(), ReceiverGone> {
        let is_held = part.is_small() && !part.is_last();
        let mut held = self.held.borrow_mut();
        held.push(part);
        if is_held && held.len() < PARTS_MAX {
            // Checked here, because only sending would notice that the receiver is gone.
            return if self.parts.is_closed() { Err(ReceiverGone) } else { Ok(()) };
        }
        held.drain(..).try_for_each(|part| self.send_now(part.is_small(), Ok(part)))
    }

    /// Sends an error instead of the parts held back: half an answer is of no use.
    fn fail(&self, error: StoreError) {
        self.held.borrow_mut().clear();
        // The receiver may be dropped: the client disconnected.
        let _ = self.send_now(true, Err(error));
    }

    fn send_now(&self, is_small: bool, part: Result<P, StoreError>) -> Result<(), ReceiverGone> {
        // A large part reserves all places, so that no other part waits with it.
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

impl Store {
    /// Returns the store's interface for readers.
    pub fn reading(&self) -> Reading {
        Reading { shared: Arc::clone(&self.shared) }
    }
}

impl Reading {
    /// Checks that the head can be read, and that there is memory for a read.
    pub fn check(&self) -> Result<(), StoreError> {
        self.shared.head.check_ready()?;
        let check = || self.shared.read_memory.check(self.shared.head.memory_used_bytes());
        check().or_else(|_| {
            // Drops waiting instances, whose memory this read may use.
            self.shared.readers.drop_instances();
            check()
        })
    }

    /// Returns the current limits of each instance.
    pub fn limits(&self) -> InstanceLimits {
        self.shared.live().query_limits
    }

    /// Returns the ledger of changes, for code that keeps what it has read.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.shared.ledger
    }

    /// Checks for blocks of other programs, if due, and records changes in the ledger.
    pub fn look_at_blocks(&self) {
        self.shared.ledger.look_at(&self.shared.blocks);
    }

    /// Returns how often blocks were added or deleted, or their tombstones replaced.
    pub fn block_changes(&self) -> u64 {
        self.shared.blocks.changes()
    }

    /// Waits for a slot of the reads, then runs `run` on a thread of its own.
    pub async fn answer<P: Send + 'static>(
        &self,
        run: impl FnOnce(&Reading, &Sender<P>) + Send + 'static,
    ) -> Result<Receiver<P>, StoreError> {
        self.answer_in(&self.shared.read_slots, run).await
    }

    /// [`Reading::answer`] for callers with slots of their own.
    pub(super) async fn answer_in<P: Send + 'static>(
        &self,
        slots: &Arc<Semaphore>,
        run: impl FnOnce(&Reading, &Sender<P>) + Send + 'static,
    ) -> Result<Receiver<P>, StoreError> {
        self.check()?;
        let slot = Arc::clone(slots).acquire_owned().await;
        let slot = slot.map_err(|_| StoreError::Stopped)?;
        Ok(self.answer_now(slot, run))
    }

    /// Runs `run` on a thread of its own, which drops `turn` (a slot, for example) at the end.
    pub fn answer_now<P: Send + 'static>(
        &self,
        turn: impl Send + 'static,
        run: impl FnOnce(&Reading, &Sender<P>) + Send + 'static,
    ) -> Receiver<P> {
        // The capacity limits an answer's memory: a few small parts, or one large part, wait.
        let (parts, receiver) = channel(PARTS_MAX);
        let reading = self.clone();
        let runtime = Handle::current();
        let work = move || {
            // The thread does not belong to the runtime, but `Handle::current` must work on it.
            let _entered = runtime.enter();
            run(&reading, &parts);
            drop(turn);
        };
        // Without a thread the parts end early, which the receiver treats as an error.
        if let Err(error) = self.run(work) {
            tracing::error!(%error, "could not start a thread for a read");
        }
        receiver
    }

    /// Runs work on a thread that does nothing else at the same time.
    pub fn run(&self, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
        self.shared.readers.run(Box::new(work))
    }

    /// Lets an instance answer within the time limit of a read. An error is sent as the last part.
    pub fn answer_parts<P: Part + Send + 'static>(
        &self,
        parts: &Sender<Result<P, StoreError>>,
        answer: impl FnOnce(
            &mut Instance,
            &dyn Fn(P) -> Result<(), ReceiverGone>,
        ) -> Result<(), StoreError>,
    ) {
        let limit = self.limits().deadline;
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        self.answer_until(deadline, parts, |error| error, answer);
    }

    /// [`Reading::answer_parts`] with a deadline. `of_error` converts errors to those of this kind
    /// of read. If the receiver is dropped, the instance ends.
    pub fn answer_until<P: Part + Send + 'static>(
        &self,
        deadline: Option<Instant>,
        parts: &Sender<Result<P, StoreError>>,
        of_error: fn(StoreError) -> StoreError,
        answer: impl FnOnce(
            &mut Instance,
            &dyn Fn(P) -> Result<(), ReceiverGone>,
        ) -> Result<(), StoreError>,
    ) {
        let held = RefCell::default();
        let outlet = Outlet { parts, held, runtime: Handle::current(), deadline };
        let is_gone = {
            let parts = parts.clone();
            move || parts.is_closed()
        };
        let answered = self.with_instance(deadline, is_gone, |instance| {
            answer(instance, &|part| outlet.send(part))
        });
        if let Err(error) = answered.map_err(of_error) {
            // A read that was refused is not counted as a crash.
            if let StoreError::Crashed(_)
            | StoreError::Deadline
            | StoreError::QueryTimeout(_)
            | StoreError::NeedsTooMuchMemory = &error
            {
                self.shared.counters.query_crashes.fetch_add(1, Relaxed);
                tracing::warn!(%error, "read cancelled");
            }
            outlet.fail(error);
        }
    }

    /// Runs `work` with an instance that ends at the deadline, or after `is_gone` returns true.
    pub fn with_instance<T>(
        &self,
        deadline: Option<Instant>,
        is_gone: impl Fn() -> bool + Send + Sync + 'static,
        work: impl FnOnce(&mut Instance) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        HeldInstance::new(self).run(deadline, is_gone, work)
    }

    fn instantiate(&self, deadline: Option<Instant>) -> Result<Instance, StoreError> {
        let shared = &self.shared;
        let storage = InstanceStorage {
            logs: InstanceLogs::None,
            blocks: shared.blocks.clone(),
            head: Some(shared.head.access()),
            memory: Some(Arc::clone(&shared.read_memory.pool)),
        };
        let options = shared.options(Role::Query);
        let limit = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let limits = InstanceLimits { deadline: limit, ..self.limits() };
        Ok(shared.runtime.instantiate(options, storage, limits)?)
    }
}

/// An instance for reads that follow one another.
pub struct HeldInstance<'a> {
    reading: &'a Reading,
    /// With the number of block changes when its first read began.
    held: Option<(u64, Instance)>,
}

impl<'a> HeldInstance<'a> {
    pub fn new(reading: &'a Reading) -> HeldInstance<'a> {
        HeldInstance { reading, held: None }
    }

    /// Runs `work` with an instance that ends at the deadline, or after `is_gone` returns true. It
    /// has seen all block changes.
    pub fn run<T>(
        &mut self,
        deadline: Option<Instant>,
        is_gone: impl Fn() -> bool + Send + Sync + 'static,
        work: impl FnOnce(&mut Instance) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let shared = &self.reading.shared;
        // Read before the instance lists the blocks, so that `changes` is not too new.
        let changes = shared.blocks.changes();
        let held = self.held.take().filter(|(known, _)| *known == changes);
        let mut instance = match held.map(|(_, instance)| instance) {
            Some(held) => held,
            None => match shared.readers.instance(changes) {
                Some(waiting) => waiting,
                None => self.reading.instantiate(deadline)?,
            },
        };
        instance.end_when(deadline, is_gone);
        // After an error the instance is dropped, because it may have resources open.
        let done = work(&mut instance)?;
        shared.damaged_in_reads(&mut instance)?;
        self.held = Some((changes, instance));
        Ok(done)
    }
}

/// Lets others have the instance.
impl Drop for HeldInstance<'_> {
    fn drop(&mut self) {
        let shared = &self.reading.shared;
        if let Some((changes, instance)) = self.held.take() {
            shared.readers.keep(changes, instance);
            // Blocks may have changed during the read, which outdates the instance.
            shared.drop_outdated_readers();
        }
    }
}

/// Sends an answer that is made without an instance.
pub fn answer_ready<P: Part + Send + 'static>(
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
