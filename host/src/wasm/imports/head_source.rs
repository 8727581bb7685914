//! `head-source`: the head of another instance, reached through the store.

use crate::wasm::bindings::tidepool::tsdb::head_source::{
    Host, HostCursor, HostExemplars, HostTexts,
};
use crate::wasm::state::{HeadAccess, InstanceState};
use crate::wasm::{Error, Label, Lookup, Matcher, TimeRange};
use std::sync::Arc;
use wasmtime::Result;
use wasmtime::component::Resource;

/// A cursor on the head.
pub struct HeadCursor(OpenOnHead);

/// A list of label names or values of the head.
pub struct HeadTexts(OpenOnHead);

/// Exemplars of the head.
pub struct HeadExemplars(OpenOnHead);

/// Something that is open on the head. Closed when dropped, also by an instance that crashed.
struct OpenOnHead {
    head: Arc<dyn HeadAccess>,
    number: u64,
    _counted: Arc<()>,
}

impl Drop for OpenOnHead {
    fn drop(&mut self) {
        self.head.close(self.number);
    }
}

impl InstanceState {
    /// Whether something of another instance's head is open.
    pub(super) fn reads_head(&self) -> bool {
        Arc::strong_count(&self.open_on_head) > 1
    }

    fn head(&self) -> Result<Arc<dyn HeadAccess>, Error> {
        let head = self.storage.head.as_ref().map(Arc::clone);
        head.ok_or_else(|| Error::WrongRole("head-source".into()))
    }

    /// Opens something on the head, and keeps it for the instance.
    fn open_on_head<T: Send + 'static>(
        &mut self,
        kind: impl FnOnce(OpenOnHead) -> T,
        open: impl FnOnce(&dyn HeadAccess) -> Result<u64, Error>,
    ) -> Result<Result<Resource<T>, Error>> {
        let opened = self.head().and_then(|head| {
            let number = open(&*head)?;
            Ok(OpenOnHead { head, number, _counted: Arc::clone(&self.open_on_head) })
        });
        match opened {
            Ok(opened) => Ok(Ok(self.table.push(kind(opened))?)),
            Err(error) => Ok(Err(error)),
        }
    }
}

impl Host for InstanceState {
    fn open(
        &mut self,
        matchers: Vec<Matcher>,
        range: TimeRange,
        external_labels: Vec<Label>,
    ) -> Result<Result<Resource<HeadCursor>, Error>> {
        self.open_on_head(HeadCursor, |head| head.open(matchers, range, external_labels))
    }

    fn series(&mut self, lookup: Lookup) -> Result<Result<Resource<HeadCursor>, Error>> {
        self.open_on_head(HeadCursor, |head| head.series(lookup))
    }

    fn label_names(&mut self, lookup: Lookup) -> Result<Result<Resource<HeadTexts>, Error>> {
        self.open_on_head(HeadTexts, |head| head.label_names(lookup))
    }

    fn label_values(
        &mut self,
        name: String,
        lookup: Lookup,
    ) -> Result<Result<Resource<HeadTexts>, Error>> {
        self.open_on_head(HeadTexts, |head| head.label_values(name, lookup))
    }

    fn scan_exemplars(
        &mut self,
        range: TimeRange,
    ) -> Result<Result<Resource<HeadExemplars>, Error>> {
        self.open_on_head(HeadExemplars, |head| head.scan_exemplars(range))
    }

    fn plan_cut(&mut self) -> Result<Result<Option<TimeRange>, Error>> {
        Ok(self.head().and_then(|head| head.plan_cut()))
    }

    fn forget(&mut self, before_ms: i64) -> Result<Result<bool, Error>> {
        Ok(self.head().and_then(|head| head.forget(before_ms)))
    }

    fn deletion_mark(&mut self) -> Result<Result<u64, Error>> {
        Ok(self.head().and_then(|head| head.deletion_mark()))
    }
}

impl HostCursor for InstanceState {
    fn next(
        &mut self,
        cursor: Resource<HeadCursor>,
        bytes_max: u32,
    ) -> Result<Result<Vec<u8>, Error>> {
        let HeadCursor(OpenOnHead { head, number, .. }) = self.table.get(&cursor)?;
        Ok(head.next(*number, bytes_max))
    }

    fn rewind(&mut self, cursor: Resource<HeadCursor>) -> Result<Result<(), Error>> {
        let HeadCursor(OpenOnHead { head, number, .. }) = self.table.get(&cursor)?;
        Ok(head.rewind(*number))
    }

    fn drop(&mut self, cursor: Resource<HeadCursor>) -> Result<()> {
        self.table.delete(cursor)?;
        Ok(())
    }
}

impl HostTexts for InstanceState {
    fn next(
        &mut self,
        texts: Resource<HeadTexts>,
        bytes_max: u32,
    ) -> Result<Result<Vec<String>, Error>> {
        let HeadTexts(OpenOnHead { head, number, .. }) = self.table.get(&texts)?;
        Ok(head.next_texts(*number, bytes_max))
    }

    fn drop(&mut self, texts: Resource<HeadTexts>) -> Result<()> {
        self.table.delete(texts)?;
        Ok(())
    }
}

impl HostExemplars for InstanceState {
    fn next(
        &mut self,
        exemplars: Resource<HeadExemplars>,
        bytes_max: u32,
    ) -> Result<Result<Option<Vec<u8>>, Error>> {
        let HeadExemplars(OpenOnHead { head, number, .. }) = self.table.get(&exemplars)?;
        Ok(head.next_exemplars(*number, bytes_max))
    }

    fn drop(&mut self, exemplars: Resource<HeadExemplars>) -> Result<()> {
        self.table.delete(exemplars)?;
        Ok(())
    }
}
