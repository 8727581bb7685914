//! `head-source`: the head of another instance, reached through the store.

use crate::wasm::bindings::tidepool::tsdb::head_source::{Host, HostCursor};
use crate::wasm::state::{HeadAccess, InstanceState};
use crate::wasm::{Error, Matcher, TimeRange};
use std::sync::Arc;
use wasmtime::Result;
use wasmtime::component::Resource;

/// A cursor on the head. Closed when dropped, also by an instance that crashed.
pub struct HeadCursor {
    head: Arc<dyn HeadAccess>,
    number: u64,
}

impl Drop for HeadCursor {
    fn drop(&mut self) {
        self.head.close(self.number);
    }
}

impl InstanceState {
    fn head(&self) -> Result<Arc<dyn HeadAccess>, Error> {
        let head = self.storage.head.as_ref().map(Arc::clone);
        head.ok_or_else(|| Error::WrongRole("head-source".into()))
    }
}

impl Host for InstanceState {
    fn open(
        &mut self,
        matchers: Vec<Matcher>,
        range: TimeRange,
    ) -> Result<Result<Resource<HeadCursor>, Error>> {
        let opened = self.head().and_then(|head| {
            let number = head.open(matchers, range)?;
            Ok(HeadCursor { head, number })
        });
        match opened {
            Ok(cursor) => Ok(Ok(self.table.push(cursor)?)),
            Err(error) => Ok(Err(error)),
        }
    }

    fn plan_cut(&mut self) -> Result<Result<Option<TimeRange>, Error>> {
        Ok(self.head().and_then(|head| head.plan_cut()))
    }

    fn forget(&mut self, before_ms: i64) -> Result<Result<bool, Error>> {
        Ok(self.head().and_then(|head| head.forget(before_ms)))
    }
}

impl HostCursor for InstanceState {
    fn next(
        &mut self,
        cursor: Resource<HeadCursor>,
        bytes_max: u32,
    ) -> Result<Result<Vec<u8>, Error>> {
        let cursor = self.table.get(&cursor)?;
        Ok(cursor.head.next(cursor.number, bytes_max))
    }

    fn drop(&mut self, cursor: Resource<HeadCursor>) -> Result<()> {
        self.table.delete(cursor)?;
        Ok(())
    }
}
