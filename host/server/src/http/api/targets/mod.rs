//! Scrape targets and jobs: `/api/v1/targets`, `/api/v1/scrape_pools` and the paths below them.

pub mod metadata;
pub mod relabel_steps;

use super::envelope::{ApiError, TRUNCATED, success};
use super::pages::{Page, Progress, Rows, Shape, stream};
use super::parameters::Parameters;
use super::window::Window;
use crate::http::aside;
use crate::http::context::Context;
use crate::http::reply::Reply;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use std::vec::IntoIter;
use tidepool_scrape::labels::Labels;
use tidepool_scrape::pool::Listed;
use tidepool_scrape::target::{Health, State, Target, shown_discovered};
use tidepool_settings::duration::duration_text;
use tidepool_store::StoreError;

/// Go's zero time, which upstream shows before the first scrape.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// `GET /api/v1/targets`. `health`, `search`, `offset` and `limit` are our additions.
pub async fn targets(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let state = parameters.first("state").to_ascii_lowercase();
    let (has_active, has_dropped) = match state.as_str() {
        "active" => (true, false),
        "dropped" => (false, true),
        "" | "any" => (true, true),
        // As in upstream, an unknown state selects nothing.
        _ => (false, false),
    };
    let asked = Asked {
        pool: Some(parameters.first("scrapePool").to_owned()).filter(|pool| !pool.is_empty()),
        has_active,
        has_dropped,
        health: parameters.first("health").to_owned(),
        window: Window::of(parameters)?,
    };
    let scraping = context.scraping.clone();
    // Copying 100,000 targets would block the network thread.
    let rows = aside::run(move || TargetRows::of(scraping.targets(None), asked)).await?;
    Ok(stream(Shape::Fields, rows).await?)
}

/// The parameters of a request.
struct Asked {
    pool: Option<String>,
    has_active: bool,
    has_dropped: bool,
    /// Name of a health state; empty for any.
    health: String,
    window: Option<Window>,
}

/// An active target, with its state when the request was answered.
struct Active {
    pool: Arc<str>,
    target: Arc<Target>,
    state: State,
}

/// Writes the response target by target, because 100,000 targets need about 100 MB.
struct TargetRows {
    active: IntoIter<Active>,
    dropped: IntoIter<(Arc<str>, Labels)>,
    /// Number of dropped targets by job.
    counts: Option<Map<String, Value>>,
    window: Option<Window>,
    at: Part,
}

#[derive(Clone, Copy)]
enum Part {
    Begin,
    Active { is_first: bool },
    Dropped { is_first: bool },
}

impl TargetRows {
    fn of(all: BTreeMap<String, Listed>, asked: Asked) -> TargetRows {
        let Asked { pool, has_active, has_dropped, health, mut window } = asked;
        // As in upstream, all jobs are counted, even if one is requested.
        let counts = all.iter().map(|(pool, listed)| (pool.clone(), json!(listed.dropped_total)));
        let counts = has_dropped.then(|| counts.collect());
        let (mut active, mut dropped) = (Vec::new(), Vec::new());
        for (name, listed) in all {
            if pool.as_ref().is_some_and(|pool| *pool != name) {
                continue;
            }
            let pool: Arc<str> = name.into();
            if has_active {
                let targets = listed.active.iter().cloned();
                active.extend(targets.map(|target| Active::of(&pool, target)));
            }
            // Dropped targets have no health that could match.
            if has_dropped && health.is_empty() {
                let labels = listed.dropped.iter().cloned();
                dropped.extend(labels.map(|labels| (Arc::clone(&pool), labels)));
            }
        }
        active.retain(|target| health.is_empty() || target.state.health.name() == health);
        if let Some(window) = &mut window {
            // Failing targets are first; the sort is stable and keeps the order otherwise.
            active.sort_by_key(|target| target.state.health != Health::Down);
            active.retain(|target| window.takes(&target.searched()));
            dropped.retain(|(pool, labels)| window.takes(&searched(pool, "", labels, "")));
        }
        let (active, dropped) = (active.into_iter(), dropped.into_iter());
        TargetRows { active, dropped, counts, window, at: Part::Begin }
    }
}

impl Rows for TargetRows {
    fn poll_rows(
        &mut self,
        _: &mut std::task::Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>> {
        let out = page.more_of_row();
        let put_next = |row: Value, is_first: bool, out: &mut Vec<u8>| {
            if !is_first {
                out.push(b',');
            }
            put_json(out, &row);
        };
        match self.at {
            Part::Begin => {
                out.extend_from_slice(b"\"activeTargets\":[");
                self.at = Part::Active { is_first: true };
            }
            Part::Active { is_first } => match self.active.next() {
                Some(target) => {
                    put_next(target.json(), is_first, out);
                    self.at = Part::Active { is_first: false };
                }
                None => {
                    out.extend_from_slice(b"],\"droppedTargets\":[");
                    self.at = Part::Dropped { is_first: true };
                }
            },
            Part::Dropped { is_first } => match self.dropped.next() {
                Some((pool, labels)) => {
                    let labels = shown_discovered(&labels);
                    let row = json!({ "discoveredLabels": labels, "scrapePool": &*pool });
                    put_next(row, is_first, out);
                    self.at = Part::Dropped { is_first: false };
                }
                None => {
                    out.extend_from_slice(b"],\"droppedTargetCounts\":");
                    put_json(out, &json!(self.counts.take()));
                    out.push(b'}');
                    return Poll::Ready(Ok(Progress::END));
                }
            },
        }
        Poll::Ready(Ok(Progress::More))
    }

    fn put_fields(&self, out: &mut Vec<u8>) {
        let Some(window) = &self.window else { return };
        out.extend_from_slice(format!(",\"total\":{}", window.total()).as_bytes());
        if window.is_cut_off() {
            out.extend_from_slice(b",\"warnings\":");
            put_json(out, &json!([TRUNCATED]));
        }
    }
}

fn put_json(out: &mut Vec<u8>, value: &impl Serialize) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, value);
}

impl Active {
    fn of(pool: &Arc<str>, target: Arc<Target>) -> Active {
        Active { pool: Arc::clone(pool), state: target.state(), target }
    }

    fn last_error(&self) -> String {
        self.state.last_error.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    fn searched(&self) -> String {
        let labels = self.target.public_labels();
        let labels = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        searched(&self.pool, &self.target.shown_url(), labels, &self.last_error())
    }

    fn json(&self) -> Value {
        let Active { pool, target, state } = self;
        let labels: BTreeMap<String, String> = target.public_labels().into_iter().collect();
        json!({
            "discoveredLabels": shown_discovered(&target.discovered_labels()),
            "labels": labels,
            "scrapePool": &**pool,
            "scrapeUrl": target.shown_url(),
            "globalUrl": target.shown_url(),
            "lastError": self.last_error(),
            "lastScrape": time(state.last_scrape),
            "lastScrapeDuration": state.last_duration.as_secs_f64(),
            "health": state.health.name(),
            "scrapeInterval": duration_text(target.interval()),
            "scrapeTimeout": duration_text(target.timeout()),
        })
    }
}

/// Returns the text in which the words of `search` are looked up.
fn searched<'a>(
    pool: &str,
    url: &str,
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
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

pub fn scrape_pool_config(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let pool = parameters.required("scrapePool")?;
    let yaml = context.scraping.job_yaml(pool).ok_or_else(|| unknown_pool(pool))?;
    Ok(success(json!({ "yaml": yaml })))
}

fn unknown_pool(pool: &str) -> ApiError {
    ApiError::BadData(format!("error retrieving scrape config: unknown scrape pool {pool:?}"))
}

pub fn scrape_pools(context: &Context) -> Reply {
    success(json!({ "scrapePools": context.scraping.pools() }))
}
