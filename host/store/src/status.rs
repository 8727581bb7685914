//! Reads of exemplars, metadata and cardinality. Exemplars are read by an instance of their own;
//! metadata and cardinality in slices by the head, which accepts writes between two slices.

use super::head::OnHead;
use super::reading::Reading;
use super::{LookupPart, Shared, Store, StoreError, lookup};
use std::sync::Arc;
use tidepool_protocol::prom::selection::SelectionCount;
use tidepool_runtime::{
    CardinalityList, FamilyMetadata, Instance, Matcher, PoolShare, Ranked, SeriesExemplars,
    TimeRange,
};
use tokio::sync::mpsc;

/// Approximate size of the result of one call of the head.
const PIECE_BYTES: u32 = 32 * 1024;

/// Approximate size of an item in a list of [`Cardinality`], in memory and as text.
const ITEM_BYTES: usize = 64;

/// Cardinality of the head's series. Each list begins with the largest number.
pub struct Cardinality {
    /// Number of distinct pairs of label name and label value.
    pub label_pairs: u64,
    /// The metric names with the most series.
    pub metrics_by_series: Vec<Ranked>,
    /// The label names with the most series.
    pub names_by_series: Vec<Ranked>,
    /// Label names with the most values.
    pub names_by_values: Vec<Ranked>,
    /// The label names whose values have the most bytes together.
    pub names_by_value_bytes: Vec<Ranked>,
    /// The labels, as `name=value`, with the most series.
    pub pairs_by_series: Vec<Ranked>,
    _memory: PoolShare,
}

impl Store {
    /// Returns the exemplars of series that at least one set of matchers selects, in label order.
    /// The answer arrives in parts; the exemplars of one series may be in several parts.
    pub async fn exemplars(
        &self,
        matcher_sets: Vec<Vec<Matcher>>,
        range: TimeRange,
    ) -> Result<mpsc::Receiver<Result<LookupPart<SeriesExemplars>, StoreError>>, StoreError> {
        SelectionCount::check(&matcher_sets)?;
        let run = move |reading: &Reading, parts: &mpsc::Sender<_>| {
            reading.answer_parts(parts, |instance, send| {
                let cursor = instance.exemplars(&matcher_sets, range)?;
                let next =
                    |instance: &mut Instance| instance.next_exemplars(cursor, lookup::PART_BYTES);
                lookup::give(reading, instance, send, next, |_| Ok(false))?;
                Ok(instance.close_exemplars(cursor)?)
            });
        };
        self.reading().answer(run).await
    }

    /// Returns the metadata of all metric families, or of `family` only: at most `families_max`
    /// families, by name. The answer arrives in parts; each part shows the state when it was read.
    pub fn metadata(
        &self,
        family: Option<String>,
        families_max: usize,
    ) -> Result<mpsc::Receiver<Result<LookupPart<FamilyMetadata>, StoreError>>, StoreError> {
        self.shared.head.check_ready()?;
        let (parts, receiver) = mpsc::channel(1);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let given = shared.in_time(give_metadata(&shared, &parts, family, families_max)).await;
            if let Err(error) = given {
                // The receiver may be dropped: the client disconnected.
                let _ = parts.try_send(Err(error));
            }
        });
        Ok(receiver)
    }

    /// Returns the cardinality of the head's series, in lists of at most `items_max` items.
    pub async fn cardinality(&self, items_max: u32) -> Result<Cardinality, StoreError> {
        self.shared.head.check_ready()?;
        let slot = self.shared.read_slots.acquire().await;
        let _slot = slot.map_err(|_| StoreError::Stopped)?;
        self.shared.in_time(walk(&self.shared, items_max)).await
    }
}

impl Shared {
    /// Ends work that exceeds the time limit of a read.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match self.live().query_limits.deadline {
            None => work.await,
            Some(limit) => {
                tokio::time::timeout(limit, work).await.unwrap_or(Err(StoreError::Deadline))
            }
        }
    }
}

async fn give_metadata(
    shared: &Shared,
    parts: &mpsc::Sender<Result<LookupPart<FamilyMetadata>, StoreError>>,
    family: Option<String>,
    families_max: usize,
) -> Result<(), StoreError> {
    let mut first = family.clone().unwrap_or_default();
    let mut left = families_max;
    while left > 0 {
        let from = first.clone();
        // With 0 bytes the head returns a single family, which is enough for a given name.
        let bytes_max = if family.is_some() { 0 } else { PIECE_BYTES };
        let mut page =
            shared.head.call(move |head| head.instance.metadata(&from, bytes_max)).await?;
        page.retain(|said| family.as_ref().is_none_or(|family| said.family == *family));
        page.truncate(left);
        let Some(last) = page.last() else { break };
        // The smallest name that is greater than the last name.
        first = format!("{}\0", last.family);
        left -= page.len();
        if parts.send(Ok(LookupPart::Page(page))).await.is_err() {
            return Ok(());
        }
    }
    // The receiver may be dropped: the client disconnected.
    let end = LookupPart::End { is_truncated: false, damaged_blocks: Vec::new() };
    let _ = parts.send(Ok(end)).await;
    Ok(())
}

async fn walk(shared: &Shared, items_max: u32) -> Result<Cardinality, StoreError> {
    let open = shared.head.open_walk(items_max).await?;
    let label_pairs = loop {
        if let Some(label_pairs) = open.walk().await? {
            break label_pairs;
        }
    };
    let mut memory = shared.read_memory.pool.share();
    let mut taken = 0;
    let mut list = async |list| list_of(&open, list, &mut memory, &mut taken).await;
    let metrics_by_series = list(CardinalityList::MetricsBySeries).await?;
    let names_by_series = list(CardinalityList::NamesBySeries).await?;
    let names_by_values = list(CardinalityList::NamesByValues).await?;
    let names_by_value_bytes = list(CardinalityList::NamesByValueBytes).await?;
    let pairs_by_series = list(CardinalityList::PairsBySeries).await?;
    Ok(Cardinality {
        label_pairs,
        metrics_by_series,
        names_by_series,
        names_by_values,
        names_by_value_bytes,
        pairs_by_series,
        _memory: memory,
    })
}

/// Returns a list of a finished walk. Its memory counts towards the memory of reads.
async fn list_of(
    open: &OnHead,
    list: CardinalityList,
    memory: &mut PoolShare,
    taken: &mut usize,
) -> Result<Vec<Ranked>, StoreError> {
    let mut items = Vec::new();
    loop {
        let page = open.next_of_walk(list, PIECE_BYTES).await?;
        if page.is_empty() {
            return Ok(items);
        }
        // Each name is in memory twice: in the list and in the text of the answer.
        *taken += page.iter().map(|item| 2 * item.name.len() + ITEM_BYTES).sum::<usize>();
        if !memory.grow_to(*taken) {
            return Err(StoreError::short_of_reads_memory(memory.pool()));
        }
        items.extend(page);
    }
}
