//! Requests references for new series, and stores the batch.

use super::{Appender, Owner, Pending};
use crate::error::beginning;
use crate::labels::Labels;
use crate::store::{Appended, Batch, Reason, Refused, SeriesRef, SeriesRefused, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError};
use tidepool_turns::Pace;

/// Maximum number of label sets in one request for references, which bounds the memory for label
/// sets in the first scrape of many series.
const SETS_PER_REQUEST: usize = 1024;

/// Owners of one series' reference: cache entries and report series, each with the old reference.
type Owners<'a> = &'a [(SeriesRef, Owner)];

impl Appender {
    /// Stores the batch. `now_ms` is the current time. After an error nothing is stored, but new
    /// series may exist.
    pub async fn commit<S: Store>(
        &mut self,
        store: &S,
        now_ms: i64,
    ) -> Result<Appended, StoreError> {
        let result = self.try_commit(store, now_ms).await;
        match &result {
            Ok(appended) => {
                let refused = |reason| appended.refused.of(reason);
                self.metrics.samples_out_of_order.add(refused(Reason::OutOfOrder));
                self.metrics.samples_duplicate.add(refused(Reason::Duplicate));
                self.metrics.samples_out_of_bounds.add(refused(Reason::OutOfBounds));
                self.metrics.exemplars_out_of_order.add(appended.exemplars_out_of_order);
                // Only now, because a later scrape has to store an exemplar that was not stored.
                let stored = std::mem::take(&mut self.scrape.exemplars);
                stored.into_iter().for_each(|exemplar| self.cache.note_exemplar(exemplar));
            }
            Err(_) => {
                // The batch with the changed metadata is lost, so all metadata is sent again.
                let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
                families.change_all();
                drop(families);
            }
        }
        self.scrape.labels_bytes = 0;
        // A stored scrape does not fail for lack of memory; the next scrape would.
        let _ = self.hold();
        result
    }

    async fn try_commit<S: Store>(
        &mut self,
        store: &S,
        now_ms: i64,
    ) -> Result<Appended, StoreError> {
        let (mut refused, first_refusal) = self.resolve_pending(store).await?;
        let mut batch = Arc::new(std::mem::take(&mut self.scrape.batch));
        let appended = match store.append(batch.clone(), now_ms).await {
            // The store may have dropped a series or restarted after it returned the reference.
            Err(StoreError::UnknownSeries) => {
                let mut renewed = Arc::unwrap_or_clone(batch);
                refused.add_all(self.resolve_again(store, &mut renewed).await?);
                batch = Arc::new(renewed);
                store.append(batch.clone(), now_ms).await
            }
            result => result,
        };
        let mut appended = appended?;
        if !appended.refused_rows.is_empty() {
            let ends = self.end_refused(&batch, &appended.refused_rows);
            if !ends.markers.is_empty() {
                // The batch contains only markers, so its outcome is not counted.
                store.append(Arc::new(ends), now_ms).await?;
            }
        }
        appended.refused.add_all(refused);
        appended.first_refusal = first_refusal.or(appended.first_refusal);
        Ok(appended)
    }

    /// Ends series whose samples were all refused, if the previous scrape had the series: a refused
    /// series counts as absent. Upstream: TestScrapeLoopCreatesStaleMarkersOnOOOAppend.
    fn end_refused(&mut self, batch: &Batch, refused_rows: &[u32]) -> Batch {
        let rows: HashSet<u32> = refused_rows.iter().copied().collect();
        let (mut refused, mut stored) = (HashSet::new(), HashSet::new());
        for (row, series) in (0..).zip(&batch.series) {
            if rows.contains(&row) {
                refused.insert(*series)
            } else {
                stored.insert(*series)
            };
        }
        let is_refused = |series| refused.contains(&series) && !stored.contains(&series);
        let markers = self.cache.untrack_refused(is_refused);
        Batch { markers, markers_at_ms: batch.markers_at_ms, ..Batch::default() }
    }

    /// Requests the references of new series, in several requests. Removes rows of series that the
    /// store refuses; returns the number of rows, and the store's first reason.
    async fn resolve_pending<S: Store>(
        &mut self,
        store: &S,
    ) -> Result<(Refused, Option<String>), StoreError> {
        let pending = std::mem::take(&mut self.scrape.pending);
        // Ascending, since `pending` has the order of the rows; `take_rows_out` relies on it.
        let mut rows = Vec::new();
        let (mut refused, mut first_refusal) = (Refused::default(), None);
        let mut pace = Pace::begin();
        for pending in pending.chunks(SETS_PER_REQUEST) {
            // A set, because several rows of a new series need only one request.
            let owners: BTreeSet<Owner> = pending.iter().map(|pending| pending.of).collect();
            let is_new = |owner: &Owner| self.reference_of(*owner).is_none();
            let new = owners.into_iter().filter(is_new);
            // Every owner has labels; an owner without labels would be skipped.
            let new = new.filter_map(|owner| Some((owner, self.labels_of(owner)?)));
            let (new, sets): (Vec<Owner>, Vec<Labels>) = new.unzip();
            let mut reasons: BTreeMap<Owner, Reason> = BTreeMap::new();
            for (owner, answer) in new.into_iter().zip(resolve(store, sets).await?) {
                if let Err(SeriesRefused { reason, what }) = &answer {
                    reasons.insert(owner, *reason);
                    if first_refusal.is_none() {
                        let labels = self.labels_of(owner).unwrap_or_default();
                        first_refusal =
                            Some(format!("{}: {what}", beginning(&labels.series_text())));
                    }
                }
                self.set_reference(owner, answer.ok());
            }
            for Pending { row, of } in pending {
                let place = *row as usize;
                match (self.reference_of(*of), self.scrape.batch.series.get_mut(place)) {
                    (Some(reference), Some(row)) => *row = reference,
                    (None, Some(_)) => {
                        rows.push(place);
                        refused.add(reasons.get(of).copied().unwrap_or(Reason::Other), 1);
                    }
                    (_, None) => {}
                }
            }
            pace.step().await;
        }
        // A new map, because a cleared map keeps its memory.
        self.scrape.new_labels = HashMap::new();
        take_rows_out(&mut self.scrape.batch, &rows);
        Ok((refused, first_refusal))
    }

    /// Requests the references of all series in a batch again, because one reference is invalid.
    /// Removes rows of series that the store now refuses; returns their number.
    async fn resolve_again<S: Store>(
        &mut self,
        store: &S,
        batch: &mut Batch,
    ) -> Result<Refused, StoreError> {
        let mut used: Vec<SeriesRef> = batch.series.iter().chain(&batch.markers).copied().collect();
        used.sort_unstable();
        used.dedup();
        // Several texts may belong to one series, and share its old and new reference.
        let mut owners: Vec<(SeriesRef, Owner)> = Vec::with_capacity(used.len());
        owners.extend(self.cache.slots().map(|(old, slot)| (old, Owner::Series(slot))));
        owners.retain(|(old, _)| used.binary_search(old).is_ok());
        let report = (0..).zip(&self.report);
        owners.extend(report.filter_map(|(at, (_, old))| Some(((*old)?, Owner::Report(at)))));
        let ended = (0..).zip(&self.scrape.ended);
        owners.extend(ended.map(|(at, ended)| (ended.reference, Owner::Ended(at))));
        // Sorted by the old reference, for `chunk_by` and the binary search in `renewed`.
        owners.sort_unstable();
        // Freed before the new references need the same memory.
        drop(used);
        let groups: Vec<Owners<'_>> = owners.chunk_by(|(a, _), (b, _)| a == b).collect();
        let mut renewed: Vec<(SeriesRef, Result<SeriesRef, Reason>)> =
            Vec::with_capacity(groups.len());
        for groups in groups.chunks(SETS_PER_REQUEST) {
            let asked = groups.iter().filter_map(|group| {
                let (_, owner) = group.first()?;
                Some((*group, self.labels_of(*owner)?))
            });
            let (asked, sets): (Vec<Owners<'_>>, Vec<Labels>) = asked.unzip();
            for (group, answer) in asked.into_iter().zip(resolve(store, sets).await?) {
                let answer = answer.map_err(|refused| refused.reason);
                group.iter().for_each(|(_, owner)| self.set_reference(*owner, answer.ok()));
                renewed.extend(group.first().map(|(old, _)| (*old, answer)));
            }
        }
        let answer = |old: &SeriesRef| {
            let found = renewed.binary_search_by_key(old, |(old, _)| *old).ok();
            found.and_then(|at| renewed.get(at)).map_or(Err(Reason::Other), |(_, answer)| *answer)
        };
        let new = |old: &SeriesRef| answer(old).ok();
        let (mut lost, mut refused) = (Vec::new(), Refused::default());
        for (row, old) in batch.series.iter().enumerate() {
            if let Err(reason) = answer(old) {
                lost.push(row);
                refused.add(reason, 1);
            }
        }
        take_rows_out(batch, &lost);
        // A series that the store now refuses has no samples that a marker could end.
        batch.markers.retain(|old| new(old).is_some());
        for reference in batch.series.iter_mut().chain(&mut batch.markers) {
            *reference = new(reference).unwrap_or(*reference);
        }
        Ok(refused)
    }

    fn labels_of(&self, owner: Owner) -> Option<Labels> {
        match owner {
            Owner::Series(slot) => self.labels_of_series(slot),
            Owner::Report(at) => self.report.get(at as usize).map(|(labels, _)| labels.clone()),
            Owner::Ended(at) => {
                // The cache has removed this series, so the text in `ended` is used.
                let ended = self.scrape.ended.get(at as usize)?;
                self.labels_of_text(&ended.text, ended.form)
            }
        }
    }

    fn reference_of(&self, owner: Owner) -> Option<SeriesRef> {
        match owner {
            Owner::Series(slot) => self.cache.reference(slot),
            Owner::Report(at) => self.report.get(at as usize).and_then(|(_, known)| *known),
            Owner::Ended(_) => None,
        }
    }

    fn set_reference(&mut self, owner: Owner, reference: Option<SeriesRef>) {
        match owner {
            Owner::Series(slot) => self.cache.set_reference(slot, reference),
            Owner::Report(at) => {
                if let Some((_, known)) = self.report.get_mut(at as usize) {
                    *known = reference;
                }
            }
            Owner::Ended(_) => {}
        }
    }
}

/// Returns references of series, or the store's reason for refusing one.
async fn resolve<S: Store>(
    store: &S,
    sets: Vec<Labels>,
) -> Result<Vec<Result<SeriesRef, SeriesRefused>>, StoreError> {
    if sets.is_empty() {
        return Ok(Vec::new());
    }
    let asked = sets.len();
    let answers = store.resolve(sets).await?;
    // With another number of answers, it is unknown which answer belongs to which set.
    if answers.len() != asked {
        let what = format!("it gave {} references for {asked} series", answers.len());
        return Err(StoreError::Unavailable { reason: Reason::Other, what });
    }
    Ok(answers)
}

/// Removes rows from all columns of a batch. `rows` must ascend.
fn take_rows_out(batch: &mut Batch, rows: &[usize]) {
    without(&mut batch.series, rows);
    without(&mut batch.timestamps_ms, rows);
    without(&mut batch.values, rows);
}

/// Removes rows from a column. `rows` must ascend.
fn without<T>(column: &mut Vec<T>, rows: &[usize]) {
    let mut rows = rows.iter().copied().peekable();
    // Usually there are no rows to remove, and the column is not touched.
    if rows.peek().is_none() {
        return;
    }
    let mut row = 0;
    column.retain(|_| {
        row += 1;
        rows.next_if_eq(&(row - 1)).is_none()
    });
}
