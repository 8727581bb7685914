//! The steps that all reads of the store share: an instance for each read, with its limits, a
//! thread to run on, and the parts of an answer on their way to the receiver. Crates above the
//! store that read in their own way, as queries do, use this as well.
//!
//! ```text
//! check ─▶ a turn ─▶ answer_now: a thread ─▶ answer_until: an instance ─▶ parts ─▶ the receiver
//! ```
//!
//! Invariants: an instance that crashes or exceeds its limits ends alone, and ends once the
//! receiver is gone. An answer holds a few small parts in memory, or one large part.

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

/// A store as its readers see it; clones share it.
#[derive(Clone)]
pub struct Reading {
    pub(super) shared: Arc<Shared>,
}

/// The receiver of the parts went away, or is too slow.
pub struct ReceiverGone;

/// A part of an answer, as far as sending depends on it.
pub trait Part {
    /// Returns whether the part takes little memory.
    fn is_small(&self) -> bool;

    /// Returns whether no other part follows.
    fn is_last(&self) -> bool;
}

/// Maximum size of a small part, which may be a whole answer.
pub const SMALL_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of parts that wait for their receiver: a few small ones, or one large.
const PARTS_MAX: usize = 3;

/// Sends the parts of an answer. Called where blocking is allowed.
///
/// Sending a part may wake the receiver's thread, which costs more than a small answer does. So
/// small parts are held until the last part or a large one, and sent with it.
struct Outlet<'a, P> {
    parts: &'a Sender<Result<P, StoreError>>,
    held: RefCell<Vec<P>>,
    runtime: Handle,
    /// A client that reads nothing must not keep the head from truncating for ever.
    deadline: Option<Instant>,
}

impl<P: Part> Outlet<'_, P> {
    fn send(&self, part: P) -> Result<(), ReceiverGone> {
        let is_held = part.is_small() && !part.is_last();
        let mut held = self.held.borrow_mut();
        held.push(part);
        if is_held && held.len() < PARTS_MAX {
            // Holding a part back would not notice that the receiver is gone.
            return if self.parts.is_closed() { Err(ReceiverGone) } else { Ok(()) };
        }
        held.drain(..).try_for_each(|part| self.send_now(part.is_small(), Ok(part)))
    }

    /// Sends an error instead of the parts held back: the client need not see half an answer.
    fn fail(&self, error: StoreError) {
        self.held.borrow_mut().clear();
        // The receiver may be dropped: the client disconnected.
        let _ = self.send_now(true, Err(error));
    }

    fn send_now(&self, is_small: bool, part: Result<P, StoreError>) -> Result<(), ReceiverGone> {
        // A large part takes all places, so that it waits alone.
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
    /// Returns the store as its readers see it.
    pub fn reading(&self) -> Reading {
        Reading { shared: Arc::clone(&self.shared) }
    }
}

impl Reading {
    /// Checks that there is a head to read, and memory to read with.
    pub fn check(&self) -> Result<(), StoreError> {
        self.shared.head.check_ready()?;
        let check = || self.shared.read_memory.check(self.shared.head.memory_used_bytes());
        check().or_else(|_| {
            // Waiting instances take memory that this read may have.
            self.shared.readers.drop_instances();
            check()
        })
    }

    /// Returns the current limits of each instance.
    pub fn limits(&self) -> InstanceLimits {
        self.shared.live().query_limits
    }

    /// Returns the changes of the store, for code that keeps what it has read.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.shared.ledger
    }

    /// Records blocks that other programs added or removed in the ledger, if a look is due.
    pub fn look_at_blocks(&self) {
        self.shared.ledger.look_at(&self.shared.blocks);
    }

    /// Returns how often blocks were added or removed, or their tombstones replaced.
    pub fn block_changes(&self) -> u64 {
        self.shared.blocks.changes()
    }

    /// Waits for a turn among the reads, then runs `run` on a thread of its own.
    pub async fn answer<P: Send + 'static>(
        &self,
        run: impl FnOnce(&Reading, &Sender<P>) + Send + 'static,
    ) -> Result<Receiver<P>, StoreError> {
        self.answer_in(&self.shared.read_slots, run).await
    }

    /// The same for callers with slots of their own.
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

    /// Runs `run` on a thread of its own, which gives `turn` back at the end.
    pub fn answer_now<P: Send + 'static>(
        &self,
        turn: impl Send + 'static,
        run: impl FnOnce(&Reading, &Sender<P>) + Send + 'static,
    ) -> Receiver<P> {
        // One part, or a few small ones, wait while another is sent: an answer holds no more.
        let (parts, receiver) = channel(PARTS_MAX);
        let reading = self.clone();
        let runtime = Handle::current();
        let work = move || {
            // The thread is not the runtime's, and `Handle::current` must work on it.
            let _entered = runtime.enter();
            run(&reading, &parts);
            drop(turn);
        };
        // Without a thread the parts end too early, which is an error for the receiver.
        if let Err(error) = self.run(work) {
            tracing::error!(%error, "could not start a thread for a read");
        }
        receiver
    }

    /// Runs work on a thread that does nothing else meanwhile.
    pub fn run(&self, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
        self.shared.readers.run(Box::new(work))
    }

    /// Lets an instance answer within the time of a read; an error is the last part.
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

    /// The same until a deadline; `of_error` names an error as one of this kind of read. If the
    /// receiver is dropped, the instance ends.
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
            // A refused read is no crash, and is not counted as one.
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

    /// Runs `work` with an instance that ends at the deadline, or once `is_gone` returns true.
    pub fn with_instance<T>(
        &self,
        deadline: Option<Instant>,
        is_gone: impl Fn() -> bool + Send + Sync + 'static,
        work: impl FnOnce(&mut Instance) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let shared = &self.shared;
        // Read before the instance looks at the blocks.
        let changes = shared.blocks.changes();
        let mut instance = match shared.readers.instance(changes) {
            Some(waiting) => waiting,
            None => self.instantiate(deadline)?,
        };
        instance.end_when(deadline, is_gone);
        // After an error the instance is dropped: what it has open is not known.
        let done = work(&mut instance)?;
        shared.damaged_in_reads(&mut instance)?;
        shared.readers.keep(changes, instance);
        // Blocks may have changed meanwhile.
        shared.drop_outdated_readers();
        Ok(done)
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

/// Sends an answer that needs no instance.
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
