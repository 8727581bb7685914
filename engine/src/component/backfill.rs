//! Exports the interface `backfill`: imports of samples of any age.

use super::Component;
use super::bindings::exports::tidepool::tsdb::backfill::{self, Guest, GuestImporter};
use super::bindings::tidepool::tsdb::types as wit;
use super::imports::HostBlocks;
use crate::backfill::{Backfill, BackfillOptions, WrittenBlock};
use crate::error::Error;
use crate::model::{Labels, Sample};
use std::cell::RefCell;
use std::rc::Rc;

impl Guest for Component {
    type Importer = Importer;
}

pub struct Importer(RefCell<Result<Backfill, Error>>);

impl Importer {
    fn with<T>(
        &self,
        call: impl FnOnce(&mut Backfill) -> Result<T, Error>,
    ) -> Result<T, wit::Error> {
        match &mut *self.0.borrow_mut() {
            Ok(import) => Ok(call(import)?),
            Err(error) => Err(wit::Error::Invalid(error.to_string())),
        }
    }
}

impl GuestImporter for Importer {
    fn new(block_duration_ms: i64, bytes_max: u64, hash_seed: u64) -> Importer {
        // A limit beyond 4 GiB has no effect, because the instance has less memory.
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let options = BackfillOptions { block_duration_ms, bytes_max, hash_seed };
        // A WIT constructor cannot fail, so the first call returns the error.
        Importer(RefCell::new(Backfill::new(Rc::new(HostBlocks), options)))
    }

    fn series(&self, labels: Vec<wit::Label>) -> Result<u32, wit::Error> {
        let pairs = labels.iter().map(|label| (label.name.as_str(), label.value.as_str()));
        let labels = Labels::from_pairs(pairs).map_err(|e| wit::Error::Invalid(e.to_string()))?;
        self.with(|import| Ok(import.series(&labels)))
    }

    fn append(
        &self,
        rows: backfill::Rows,
        now_ms: i64,
    ) -> Result<backfill::AppendStep, wit::Error> {
        let backfill::Rows { series, timestamps_ms, values } = rows;
        if series.len() != timestamps_ms.len() || series.len() != values.len() {
            return Err(wit::Error::Invalid("the columns differ in length".into()));
        }
        let samples = timestamps_ms.iter().zip(&values);
        let samples = samples.map(|(&timestamp_ms, &value)| Sample { timestamp_ms, value });
        let rows = series.iter().copied().zip(samples);
        let step = self.with(|import| import.append(rows, now_ms))?;
        Ok(backfill::AppendStep {
            block: step.block.map(Into::into),
            series_dropped: step.series_dropped,
        })
    }

    fn finish_pass(&self, now_ms: i64) -> Result<backfill::PassStep, wit::Error> {
        let step = self.with(|import| import.finish_pass(now_ms))?;
        let block = step.block.map(Into::into);
        Ok(backfill::PassStep { block, done: step.done, again: step.again })
    }
}

impl From<WrittenBlock> for backfill::WrittenBlock {
    fn from(block: WrittenBlock) -> backfill::WrittenBlock {
        backfill::WrittenBlock { id: block.ulid, samples: block.samples }
    }
}
