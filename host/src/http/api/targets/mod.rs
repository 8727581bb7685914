//! What is scraped: `/api/v1/targets`, what is below it, and `/api/v1/scrape_pools`.

pub mod metadata;
pub mod relabel_steps;

use super::envelope::{ApiError, success};
use super::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::Reply;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tidepool_scrape::pool::Listed;
use tidepool_scrape::target::{LabelMap, Target};
use tidepool_settings::duration::duration_text;

/// Upstream's zero time: no scrape yet.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// `GET /api/v1/targets`
pub fn targets(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let pool = Some(parameters.first("scrapePool")).filter(|pool| !pool.is_empty());
    let state = parameters.first("state").to_ascii_lowercase();
    let (has_active, has_dropped) = match state.as_str() {
        "active" => (true, false),
        "dropped" => (false, true),
        "" | "any" => (true, true),
        // As upstream has it.
        _ => (false, false),
    };
    let listed = context.scraping.targets(pool);
    let of_all = |of_pool: &dyn Fn(&str, &Listed) -> Vec<Value>, is_asked: bool| {
        let pools = listed.iter().filter(|_| is_asked);
        pools.flat_map(|(pool, listed)| of_pool(pool, listed)).collect::<Vec<Value>>()
    };
    let active = of_all(&active, has_active);
    let dropped = of_all(&dropped, has_dropped);
    let counts: Map<String, Value> = listed
        .iter()
        .map(|(pool, listed)| (pool.clone(), json!(listed.dropped_total)))
        .filter(|_| has_dropped)
        .collect();
    Ok(success(json!({
        "activeTargets": active,
        "droppedTargets": dropped,
        "droppedTargetCounts": has_dropped.then_some(counts),
    })))
}

fn active(pool: &str, listed: &Listed) -> Vec<Value> {
    listed.active.iter().map(|target| active_target(pool, target)).collect()
}

fn active_target(pool: &str, target: &Target) -> Value {
    let state = target.state();
    let labels: BTreeMap<String, String> = target.public_labels().into_iter().collect();
    json!({
        "discoveredLabels": target.discovered_labels(),
        "labels": labels,
        "scrapePool": pool,
        "scrapeUrl": target.url(),
        "globalUrl": target.url(),
        "lastError": state.last_error.map(|error| error.to_string()).unwrap_or_default(),
        "lastScrape": time(state.last_scrape),
        "lastScrapeDuration": state.last_duration.as_secs_f64(),
        "health": state.health.name(),
        "scrapeInterval": duration_text(target.interval()),
        "scrapeTimeout": duration_text(target.timeout()),
    })
}

fn dropped(pool: &str, listed: &Listed) -> Vec<Value> {
    let target = |labels: &LabelMap| json!({ "discoveredLabels": labels, "scrapePool": pool });
    listed.dropped.iter().map(|dropped| target(&dropped.discovered)).collect()
}

fn time(since_epoch: Option<Duration>) -> String {
    let time = since_epoch.and_then(|time| {
        let (seconds, nanos) = (i64::try_from(time.as_secs()).ok()?, time.subsec_nanos());
        Timestamp::new(seconds, i32::try_from(nanos).ok()?).ok()
    });
    time.map_or_else(|| NEVER.to_owned(), |time| time.to_string())
}

/// `GET /api/v1/scrape_pools`
pub fn scrape_pools(context: &Context) -> Reply {
    success(json!({ "scrapePools": context.scraping.pools() }))
}
