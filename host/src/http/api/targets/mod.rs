//! What is scraped: `/api/v1/targets` and `/api/v1/scrape_pools`, and what is below them.

pub mod metadata;
pub mod relabel_steps;

use super::envelope::{ApiError, TRUNCATED, success};
use super::parameters::Parameters;
use super::window::Window;
use crate::http::context::Context;
use crate::http::reply::{self, Reply};
use hyper::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tidepool_scrape::pool::Listed;
use tidepool_scrape::target::{Health, LabelMap, State, Target};
use tidepool_settings::duration::duration_text;

/// Upstream's zero time: no scrape yet.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// `GET /api/v1/targets`. `health`, `search`, `offset` and `limit` are ours.
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
    let health = parameters.first("health");
    let mut window = Window::of(parameters)?;
    let all = context.scraping.targets(None);
    let is_asked_for = |name: &str| pool.is_none_or(|pool| pool == name);
    let listed: Vec<(&String, &Listed)> =
        all.iter().filter(|(name, _)| is_asked_for(name)).collect();
    let mut active: Vec<Active<'_>> = listed
        .iter()
        .filter(|_| has_active)
        .flat_map(|(pool, listed)| listed.active.iter().map(|target| Active::of(pool, target)))
        .filter(|target| health.is_empty() || target.state.health.name() == health)
        .collect();
    let mut dropped: Vec<(&str, &LabelMap)> = listed
        .iter()
        .filter(|_| has_dropped && health.is_empty())
        .flat_map(|(pool, listed)| {
            listed.dropped.iter().map(|one| (pool.as_str(), &one.discovered))
        })
        .collect();
    if let Some(window) = &mut window {
        // What fails is what people look for. The sort keeps all else in its order.
        active.sort_by_key(|target| target.state.health != Health::Down);
        active.retain(|target| window.takes(&target.searched()));
        dropped.retain(|(pool, labels)| window.takes(&searched(pool, "", labels.iter(), "")));
    }
    // Of all jobs, as upstream has it, whichever is asked for.
    let counts: Map<String, Value> = all
        .iter()
        .map(|(pool, listed)| (pool.clone(), json!(listed.dropped_total)))
        .filter(|_| has_dropped)
        .collect();
    let dropped = dropped
        .into_iter()
        .map(|(pool, labels)| json!({ "discoveredLabels": labels, "scrapePool": pool }));
    let mut answer = json!({
        "status": "success",
        "data": {
            "activeTargets": active.iter().map(Active::json).collect::<Vec<Value>>(),
            "droppedTargets": dropped.collect::<Vec<Value>>(),
            "droppedTargetCounts": has_dropped.then_some(counts),
        },
    });
    if let Some(window) = window {
        answer["total"] = json!(window.total());
        if window.is_cut_off() {
            answer["warnings"] = json!([TRUNCATED]);
        }
    }
    Ok(reply::json(StatusCode::OK, &answer))
}

/// A target that is scraped, as it is at one moment.
struct Active<'a> {
    pool: &'a str,
    target: &'a Target,
    state: State,
}

impl<'a> Active<'a> {
    fn of(pool: &'a str, target: &'a Target) -> Active<'a> {
        Active { pool, target, state: target.state() }
    }

    fn last_error(&self) -> String {
        self.state.last_error.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    fn searched(&self) -> String {
        let labels = self.target.public_labels();
        let labels = labels.iter().map(|(name, value)| (name, value));
        searched(self.pool, self.target.url(), labels, &self.last_error())
    }

    fn json(&self) -> Value {
        let Active { pool, target, state } = self;
        let labels: BTreeMap<String, String> = target.public_labels().into_iter().collect();
        json!({
            "discoveredLabels": target.discovered_labels(),
            "labels": labels,
            "scrapePool": pool,
            "scrapeUrl": target.url(),
            "globalUrl": target.url(),
            "lastError": self.last_error(),
            "lastScrape": time(state.last_scrape),
            "lastScrapeDuration": state.last_duration.as_secs_f64(),
            "health": state.health.name(),
            "scrapeInterval": duration_text(target.interval()),
            "scrapeTimeout": duration_text(target.timeout()),
        })
    }
}

/// The text of a target in which is searched.
fn searched<'a>(
    pool: &str,
    url: &str,
    labels: impl Iterator<Item = (&'a String, &'a String)>,
    last_error: &str,
) -> String {
    let mut text = format!("{pool} {url} ");
    for (name, value) in labels {
        text += &format!("{name}=\"{value}\" ");
    }
    text + last_error
}

fn time(since_epoch: Option<Duration>) -> String {
    let time = since_epoch.and_then(|time| {
        let (seconds, nanos) = (i64::try_from(time.as_secs()).ok()?, time.subsec_nanos());
        Timestamp::new(seconds, i32::try_from(nanos).ok()?).ok()
    });
    time.map_or_else(|| NEVER.to_owned(), |time| time.to_string())
}

/// `GET /api/v1/scrape_pools/config`
pub fn scrape_pool_config(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let pool = parameters.required("scrapePool")?;
    let yaml = context.scraping.job_yaml(pool).ok_or_else(|| unknown_pool(pool))?;
    Ok(success(json!({ "yaml": yaml })))
}

fn unknown_pool(pool: &str) -> ApiError {
    ApiError::BadData(format!("error retrieving scrape config: unknown scrape pool {pool:?}"))
}

/// `GET /api/v1/scrape_pools`
pub fn scrape_pools(context: &Context) -> Reply {
    success(json!({ "scrapePools": context.scraping.pools() }))
}
