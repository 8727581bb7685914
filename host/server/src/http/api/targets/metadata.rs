//! `GET /api/v1/targets/metadata`: metadata of metric families, as exposed by scrape targets.

use super::put_json;
use crate::http::api::condition::Condition;
use crate::http::api::envelope::ApiError;
use crate::http::api::pages::{Page, Progress, Rows, Shape, put_text, stream};
use crate::http::api::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::Reply;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{self, Poll};
use std::vec::IntoIter;
use tidepool_protocol::prom::selector::parse_selector;
use tidepool_scrape::store::FamilyMetadata;
use tidepool_scrape::target::Target;
use tidepool_store::StoreError;

/// Maximum number of entries; a warning is added if there are more.
const ENTRIES_MAX: usize = 100_000;

/// Returns the entries of each target whose labels match, as upstream does.
pub async fn answer(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let limit = parameters.number("limit")?.and_then(|limit| usize::try_from(limit).ok());
    let all = context.scraping.targets(None).into_values();
    let rows = MetadataRows {
        targets: all.flat_map(|listed| listed.active.to_vec()).collect::<Vec<_>>().into_iter(),
        conditions: conditions(parameters.first("match_target"))?,
        metric: parameters.first("metric").to_owned(),
        limit: limit.unwrap_or(usize::MAX),
        entries: 0,
        labels: Vec::new(),
        families: Vec::new().into_iter(),
    };
    Ok(stream(Shape::List, rows).await?)
}

/// Writes the response entry by entry, because 100,000 entries need about 30 MB.
struct MetadataRows {
    targets: IntoIter<Arc<Target>>,
    conditions: Vec<Condition>,
    /// Name of a metric family; empty for all families.
    metric: String,
    limit: usize,
    entries: usize,
    /// Labels of the current target, as JSON.
    labels: Vec<u8>,
    /// Remaining families of the current target.
    families: IntoIter<FamilyMetadata>,
}

/// Number of targets checked in one step.
const TARGETS_STEP: usize = 100;

impl MetadataRows {
    /// Moves to the next match among `TARGETS_STEP` targets. Returns whether there may be more.
    fn next_target(&mut self) -> bool {
        // As in upstream, the limit is checked between targets only.
        if self.entries >= self.limit {
            return false;
        }
        for target in self.targets.by_ref().take(TARGETS_STEP) {
            let labels: BTreeMap<String, String> = target.public_labels().into_iter().collect();
            let value = |name: &str| labels.get(name).map_or("", String::as_str);
            if self.conditions.iter().all(|condition| condition.holds(value)) {
                self.labels.clear();
                put_json(&mut self.labels, &labels);
                self.families = families(&target, &self.metric).into_iter();
                return true;
            }
        }
        self.targets.len() > 0
    }
}

impl Rows for MetadataRows {
    fn poll_rows(
        &mut self,
        context: &mut task::Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>> {
        let Some(found) = self.families.next() else {
            if !self.next_target() {
                return Poll::Ready(Ok(Progress::END));
            }
            // Yields to other tasks after a step without a match.
            context.waker().wake_by_ref();
            return Poll::Pending;
        };
        if self.entries == ENTRIES_MAX {
            let warnings = Vec::new();
            return Poll::Ready(Ok(Progress::End { is_truncated: true, warnings }));
        }
        self.entries += 1;
        let row = page.row();
        row.extend_from_slice(b"{\"target\":");
        row.extend_from_slice(&self.labels);
        let name = self.metric.is_empty().then_some(("metric", &*found.family));
        let texts = [("type", found.kind.as_str()), ("help", &found.help), ("unit", &found.unit)];
        for (key, text) in name.into_iter().chain(texts) {
            row.extend_from_slice(format!(",\"{key}\":").as_bytes());
            put_text(row, text);
        }
        row.push(b'}');
        Poll::Ready(Ok(Progress::More))
    }
}

fn conditions(selector: &str) -> Result<Vec<Condition>, ApiError> {
    if selector.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = |why: String| ApiError::parameter("match_target", why);
    let matchers = parse_selector(selector).map_err(|error| wrong(error.to_string()))?;
    matchers.into_iter().map(Condition::new).collect::<Result<_, _>>().map_err(wrong)
}

fn families(target: &Target, metric: &str) -> Vec<FamilyMetadata> {
    match metric {
        "" => target.metadata(),
        metric => target.with_families(|families| families.get(metric)).into_iter().collect(),
    }
}
