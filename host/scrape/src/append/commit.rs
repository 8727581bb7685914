//! References for what is new, and the batch to the store.

use super::{Appender, Owner};
use crate::labels::Labels;
use crate::store::{Appended, Batch, SeriesRef, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

impl Appender {
    /// Stores the batch. `now_ms` is the current time. On an error nothing was stored, except that
    /// new series may exist.
    pub async fn commit<S: Store>(
        &mut self,
        store: &S,
        now_ms: i64,
    ) -> Result<Appended, StoreError> {
        let result = self.try_commit(store, now_ms).await;
        match &result {
            Ok(appended) => {
                self.metrics.samples_out_of_order.add(appended.out_of_order);
                self.metrics.samples_duplicate.add(appended.duplicates);
                self.metrics.samples_out_of_bounds.add(appended.out_of_bounds);
                self.metrics.exemplars_out_of_order.add(appended.exemplars_out_of_order);
            }
            Err(_) => {
                let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
                families.change_all();
            }
        }
        result
    }

    async fn try_commit<S: Store>(
        &mut self,
        store: &S,
        now_ms: i64,
    ) -> Result<Appended, StoreError> {
        let refused = self.resolve_pending(store).await?;
        let batch = Arc::new(std::mem::take(&mut self.scrape.batch));
        let appended = match store.append(batch.clone(), now_ms).await {
            Err(StoreError::UnknownSeries) => {
                let mut batch = Arc::unwrap_or_clone(batch);
                self.resolve_again(store, &mut batch).await?;
                store.append(Arc::new(batch), now_ms).await
            }
            result => result,
        };
        let add_refused =
            |appended: Appended| Appended { refused: refused + appended.refused, ..appended };
        appended.map(add_refused)
    }

    /// Asks for the references of new series. Rows of series that the store refuses are taken out;
    /// returns their number.
    async fn resolve_pending<S: Store>(&mut self, store: &S) -> Result<u64, StoreError> {
        let pending = std::mem::take(&mut self.scrape.pending);
        if pending.is_empty() {
            return Ok(0);
        }
        let owners: BTreeSet<Owner> = pending.iter().map(|pending| pending.of).collect();
        // Those without labels are none that an appender adds.
        let has_labels = |owner: &Owner| self.labels_of(*owner).is_some();
        let owners: Vec<Owner> = owners.into_iter().filter(has_labels).collect();
        let labels = owners.iter().filter_map(|owner| self.labels_of(*owner).cloned());
        let references = resolve(store, labels.collect()).await?;
        for (owner, reference) in owners.iter().zip(references) {
            self.set_reference(*owner, reference);
        }
        let mut refused = BTreeSet::new();
        for pending in pending {
            match (self.reference_of(pending.of), self.scrape.batch.series.get_mut(pending.row)) {
                (Some(reference), Some(row)) => *row = reference,
                (None, Some(_)) => {
                    refused.insert(pending.row);
                }
                (_, None) => {}
            }
        }
        if !refused.is_empty() {
            let batch = &mut self.scrape.batch;
            without(&mut batch.series, &refused);
            without(&mut batch.timestamps_ms, &refused);
            without(&mut batch.values, &refused);
        }
        Ok(refused.len() as u64)
    }

    /// Asks again for the references of all series in a batch, because one is not valid any more.
    async fn resolve_again<S: Store>(
        &mut self,
        store: &S,
        batch: &mut Batch,
    ) -> Result<(), StoreError> {
        let used: BTreeSet<SeriesRef> =
            batch.series.iter().chain(&batch.markers).copied().collect();
        // Several texts of one series have one reference, old and new.
        let mut owners: BTreeMap<SeriesRef, Vec<Owner>> = BTreeMap::new();
        for (old, slot) in self.cache.slots().filter(|(old, _)| used.contains(old)) {
            owners.entry(old).or_default().push(Owner::Series(slot));
        }
        for (index, (_, old)) in self.report.iter().enumerate() {
            if let Some(old) = old {
                owners.entry(*old).or_default().push(Owner::Report(index));
            }
        }
        let mut sets: BTreeMap<SeriesRef, Labels> = self.scrape.ending.iter().cloned().collect();
        for (old, owners) in &owners {
            let labels = owners.first().and_then(|owner| self.labels_of(*owner));
            sets.extend(labels.map(|labels| (*old, labels.clone())));
        }
        let (old, sets): (Vec<SeriesRef>, Vec<Labels>) = sets.into_iter().unzip();
        let references = resolve(store, sets).await?;
        let mut renewed: BTreeMap<SeriesRef, SeriesRef> = BTreeMap::new();
        for (old, reference) in old.into_iter().zip(references) {
            for owner in owners.remove(&old).unwrap_or_default() {
                self.set_reference(owner, reference);
            }
            renewed.extend(reference.map(|reference| (old, reference)));
        }
        let rows = batch.series.iter().enumerate();
        let lost: BTreeSet<usize> =
            rows.filter(|(_, old)| !renewed.contains_key(old)).map(|(row, _)| row).collect();
        without(&mut batch.series, &lost);
        without(&mut batch.timestamps_ms, &lost);
        without(&mut batch.values, &lost);
        batch.markers.retain(|old| renewed.contains_key(old));
        for reference in batch.series.iter_mut().chain(&mut batch.markers) {
            *reference = renewed.get(reference).copied().unwrap_or(*reference);
        }
        Ok(())
    }

    fn labels_of(&self, owner: Owner) -> Option<&Labels> {
        match owner {
            Owner::Series(slot) => self.cache.labels(slot),
            Owner::Report(index) => self.report.get(index).map(|(labels, _)| labels),
        }
    }

    fn reference_of(&self, owner: Owner) -> Option<SeriesRef> {
        match owner {
            Owner::Series(slot) => self.cache.reference(slot),
            Owner::Report(index) => self.report.get(index).and_then(|(_, reference)| *reference),
        }
    }

    fn set_reference(&mut self, owner: Owner, reference: Option<SeriesRef>) {
        match owner {
            Owner::Series(slot) => self.cache.set_reference(slot, reference),
            Owner::Report(index) => {
                if let Some((_, known)) = self.report.get_mut(index) {
                    *known = reference;
                }
            }
        }
    }
}

/// References of series; none where the store refuses one.
async fn resolve<S: Store>(
    store: &S,
    sets: Vec<Labels>,
) -> Result<Vec<Option<SeriesRef>>, StoreError> {
    let answers = store.resolve(sets.clone()).await?;
    if answers.len() != sets.len() {
        let (asked, answered) = (sets.len(), answers.len());
        let text = format!("it gave {answered} references for {asked} series");
        return Err(StoreError::Unavailable(text));
    }
    let refused =
        answers.iter().zip(&sets).filter_map(|(answer, set)| Some((answer.as_ref().err()?, set)));
    // One for the log is enough: a limit refuses thousands.
    if let Some((reason, series)) = refused.into_iter().next() {
        tracing::warn!(%series, "{reason}");
    }
    Ok(answers.into_iter().map(Result::ok).collect())
}

/// Takes rows out of a column.
fn without<T>(column: &mut Vec<T>, rows: &BTreeSet<usize>) {
    if rows.is_empty() {
        return;
    }
    let mut row = 0;
    column.retain(|_| {
        row += 1;
        !rows.contains(&(row - 1))
    });
}
