//! Limits the memory of all request bodies together.
//!
//! One half of the memory is for arriving bodies, the other half for decompressed bodies that the
//! head has not stored yet. A body that waits for the second half uses only the first half, so the
//! head can always release the second half: slow senders cannot block other senders.

use super::StoreError;
use super::buffer::{Body, Buffers};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum time for which a request waits for room. Then the sender is asked to retry.
const ROOM_WAIT: Duration = Duration::from_secs(5);

/// Unit in which room is counted, in bytes.
const UNIT_BYTES: usize = 1024;

/// The limit on request bodies; clones share it.
#[derive(Clone)]
pub struct BodyBudget {
    arriving: Arc<Semaphore>,
    whole: Arc<Semaphore>,
    half_units: usize,
    wait: Duration,
    buffers: Buffers,
}

/// Memory of one body, released when this value is dropped.
pub struct BodyRoom {
    of: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
    wait: Duration,
}

impl BodyBudget {
    /// Creates a limit of `bytes_max`. A single body can use at most half of it.
    pub fn new(bytes_max: usize) -> BodyBudget {
        BodyBudget::with_wait(bytes_max, ROOM_WAIT)
    }

    fn with_wait(bytes_max: usize, wait: Duration) -> BodyBudget {
        // A semaphore is acquired in 32-bit numbers of permits.
        let half_units = (bytes_max / 2).div_ceil(UNIT_BYTES).clamp(1, u32::MAX as usize);
        let half = || Arc::new(Semaphore::new(half_units));
        BodyBudget {
            arriving: half(),
            whole: half(),
            half_units,
            wait,
            buffers: Buffers::default(),
        }
    }

    /// Returns room for an arriving body, which has no memory yet.
    pub fn arriving(&self) -> BodyRoom {
        BodyRoom { of: Arc::clone(&self.arriving), held: None, wait: self.wait }
    }

    /// Waits for room for a decompressed body.
    pub async fn whole(&self, bytes: usize) -> Result<BodyRoom, StoreError> {
        let of = Arc::clone(&self.whole);
        let mut room = BodyRoom { of, held: None, wait: self.wait };
        room.grow_to(bytes).await?;
        Ok(room)
    }

    /// Returns a buffer with arbitrary content. The caller must have room for it.
    pub fn buffer(&self, bytes: usize) -> Body {
        self.buffers.take(bytes)
    }

    /// Returns the number of bytes in use, of both halves.
    pub fn bytes_taken(&self) -> usize {
        let free = self.arriving.available_permits() + self.whole.available_permits();
        (2 * self.half_units).saturating_sub(free) * UNIT_BYTES
    }
}

impl BodyRoom {
    /// Returns empty room for rows that come from no request and are limited by other means.
    pub fn none() -> BodyRoom {
        BodyRoom { of: Arc::new(Semaphore::new(0)), held: None, wait: ROOM_WAIT }
    }

    /// Returns empty room for data that is derived from a body and limited by other means.
    pub fn beside(body: &BodyRoom) -> BodyRoom {
        BodyRoom { of: Arc::clone(&body.of), held: None, wait: body.wait }
    }

    /// Grows the room to `bytes`, after waiting for memory for a limited time.
    pub async fn grow_to(&mut self, bytes: usize) -> Result<(), StoreError> {
        // Even an empty body needs one unit, which limits the number of bodies.
        let units = bytes.div_ceil(UNIT_BYTES).max(1);
        let held_units = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(units.saturating_sub(held_units)).unwrap_or(u32::MAX);
        if more == 0 {
            return Ok(());
        }
        let permit = Arc::clone(&self.of).acquire_many_owned(more);
        let permit = tokio::time::timeout(self.wait, permit).await;
        let permit =
            permit.map_err(|_| StoreError::Overloaded)?.map_err(|_| StoreError::Stopped)?;
        match &mut self.held {
            Some(held) => held.merge(permit),
            None => self.held = Some(permit),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn room_is_bounded_and_comes_back() -> Result<(), StoreError> {
        let budget = BodyBudget::with_wait(8 * UNIT_BYTES, Duration::from_millis(10));
        let mut one = budget.arriving();
        one.grow_to(3 * UNIT_BYTES).await?;
        one.grow_to(UNIT_BYTES).await?;
        assert_eq!(budget.bytes_taken(), 3 * UNIT_BYTES);
        let mut other = budget.arriving();
        assert!(matches!(other.grow_to(2 * UNIT_BYTES).await, Err(StoreError::Overloaded)));
        let whole = budget.whole(4 * UNIT_BYTES).await?;
        assert!(matches!(budget.whole(1).await, Err(StoreError::Overloaded)));
        drop((one, whole));
        other.grow_to(4 * UNIT_BYTES).await?;
        assert_eq!(budget.bytes_taken(), 4 * UNIT_BYTES);
        drop(other);
        assert_eq!(budget.bytes_taken(), 0);
        Ok(())
    }
}
