//! Walks over the head's index in slices. The request that needs the result drives the walk.

use super::handle::{HeadHandle, HeadInstance, OpenOnHead};
use crate::StoreError;
use tidepool_runtime::{CallError, CardinalityList, HeadLost, Instance, Ranked, WalkHandle};

/// A walk that is open on the head. Dropping this value closes the walk, even after a cancellation.
pub(crate) struct OnHead {
    head: HeadHandle,
    number: u64,
}

impl Drop for OnHead {
    fn drop(&mut self) {
        // Jobs run in order, so the walk is closed after the call that opens it.
        self.head.close_in_turn(self.number);
    }
}

impl HeadHandle {
    /// Begins a walk that returns lists of at most `items_max` items.
    pub async fn open_walk(&self, items_max: u32) -> Result<OnHead, StoreError> {
        let number = self.state.next_number();
        // Made before the call, so that a caller cancelled meanwhile closes the walk.
        let opened = OnHead { head: self.clone(), number };
        let open = move |head: &mut HeadInstance| {
            let walk = head.instance.cardinality(items_max)?;
            head.open.insert(number, OpenOnHead::Walk(walk));
            Ok(())
        };
        self.call(open).await?;
        Ok(opened)
    }
}

impl OnHead {
    /// Does the next slice; returns the number of distinct labels when the walk is finished.
    pub async fn walk(&self) -> Result<Option<u64>, StoreError> {
        self.call(|instance, walk| instance.walk(walk)).await
    }

    /// Returns the next items of a list of a finished walk; empty at the end.
    pub async fn next_of_walk(
        &self,
        list: CardinalityList,
        bytes_max: u32,
    ) -> Result<Vec<Ranked>, StoreError> {
        self.call(move |instance, walk| instance.next_of_walk(walk, list, bytes_max)).await
    }

    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Instance, WalkHandle) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let number = self.number;
        let call = move |head: &mut HeadInstance| match head.open.get(&number) {
            Some(OpenOnHead::Walk(walk)) => call(&mut head.instance, *walk),
            _ => Err(CallError::Head(HeadLost::Restarted)),
        };
        self.head.call(call).await
    }
}
