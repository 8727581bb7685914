//! Who was told of alerts: the history of alerts, receivers, and Alertmanagers.

use super::condition::Condition;
use super::envelope::{ApiError, success, success_of_json};
use super::parameters::Parameters;
use crate::http::aside;
use crate::http::context::Context;
use crate::http::reply::Reply;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use tidepool_notify::event::Entry;
use tidepool_notify::history::{HistoryPage, HistoryRequest, PAGE_EVENTS_MAX};
use tidepool_notify::notifier::{ReceiverStatus, ReceiverTestError};
use tidepool_rules::number::scientific;

/// Events of a page if the request names no limit.
const EVENTS_DEFAULT: usize = 100;

/// `GET /api/v1/alertmanagers`.
pub fn alertmanagers(context: &Context) -> Reply {
    let urls = context.notifier.alertmanagers();
    let list = |urls: Vec<String>| -> Vec<_> {
        urls.into_iter().map(|url| json!({ "url": url })).collect()
    };
    success(json!({
        "activeAlertmanagers": list(urls.active),
        "droppedAlertmanagers": list(urls.dropped),
    }))
}

/// `GET /api/v1/alerts/history`: beginnings and ends of alerts, the newest first.
pub async fn history(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let (start_ms, end_ms) =
        (parameters.time("start", i64::MIN)?, parameters.time("end", i64::MAX)?);
    let sets = parameters
        .matcher_sets()?
        .into_iter()
        .map(|matchers| matchers.into_iter().map(Condition::new).collect::<Result<Vec<_>, _>>());
    let sets: Vec<Vec<Condition>> =
        sets.collect::<Result<_, _>>().map_err(|why| ApiError::parameter("match[]", why))?;
    let limit = match parameters.number("limit")? {
        None => EVENTS_DEFAULT,
        Some(limit) => match usize::try_from(limit) {
            Ok(limit) if (1..=PAGE_EVENTS_MAX).contains(&limit) => limit,
            _ => {
                let why = format!("the limit must be from 1 to {PAGE_EVENTS_MAX}");
                return Err(ApiError::parameter("limit", why));
            }
        },
    };
    let before = match parameters.first("next_token") {
        "" => None,
        token => Some(token.parse().map_err(|_| {
            ApiError::parameter("next_token", format!("invalid next_token {token:?}"))
        })?),
    };
    let notifier = context.notifier.clone();
    // The journal is read from files.
    let page = aside::run(move || {
        let takes = |entry: &Entry| {
            let value = |name: &str| entry.event.labels.get(name);
            let holds = |set: &Vec<Condition>| set.iter().all(|condition| condition.holds(value));
            sets.is_empty() || sets.iter().any(holds)
        };
        let request = HistoryRequest { start_ms, end_ms, before, limit, takes: &takes };
        page_json(&notifier.history(&request))
    });
    let json = page.await?.map_err(|error| ApiError::Internal(error.to_string()))?;
    Ok(success_of_json(&json))
}

/// `GET /api/v1/alerts/receivers`: what receivers of alerts were told, and what waits for them.
pub fn receivers(context: &Context) -> Result<Reply, ApiError> {
    let receivers = context.notifier.receivers();
    let receivers: Vec<Receiver<'_>> = receivers.iter().map(Receiver::of).collect();
    let json = serde_json::to_string(&json!({ "receivers": receivers }));
    Ok(success_of_json(&json.map_err(|error| ApiError::Internal(error.to_string()))?))
}

/// `POST /api/v1/admin/alerts/test`: sends one made-up alert to a receiver.
pub async fn test(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let receiver = parameters.required("receiver")?;
    match context.notifier.test(receiver).await {
        Ok(answered) => Ok(success(json!({ "receiver": receiver, "answer": answered.summary }))),
        Err(error @ ReceiverTestError::Unknown(_)) => {
            Err(ApiError::parameter("receiver", error.to_string()))
        }
        Err(error) => Err(ApiError::Execution(error.to_string())),
    }
}

fn page_json(page: &HistoryPage) -> serde_json::Result<String> {
    let events: Vec<Event<'_>> = page.entries.iter().map(Event::of).collect();
    serde_json::to_string(&History {
        events,
        next_token: page.before.map(|before| before.to_string()),
        oldest_time: page.oldest_ms.and_then(time),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct History<'a> {
    events: Vec<Event<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_time: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    number: u64,
    id: String,
    change: &'static str,
    time: Option<String>,
    file: &'a str,
    group: &'a str,
    labels: std::collections::BTreeMap<&'a str, &'a str>,
    annotations: &'a std::collections::BTreeMap<String, String>,
    value: String,
    fired_at: Option<String>,
    cause: &'static str,
}

impl Event<'_> {
    fn of(entry: &Entry) -> Event<'_> {
        let event = &entry.event;
        Event {
            number: entry.number,
            id: event.id(),
            change: event.change.name(),
            time: time(event.time_ms),
            file: &event.origin.file,
            group: &event.origin.group,
            labels: event.labels.iter().collect(),
            annotations: &event.annotations,
            value: scientific(event.value),
            fired_at: time(event.fired_at_ms),
            cause: event.cause.name(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Receiver<'a> {
    name: &'a str,
    kind: &'static str,
    undelivered: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    undelivered_since: Option<String>,
    waiting: u64,
    muted: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_success: Option<String>,
    sent: u64,
    failed: u64,
    dropped: u64,
    silenced: u64,
    skipped: u64,
}

impl Receiver<'_> {
    fn of(status: &ReceiverStatus) -> Receiver<'_> {
        Receiver {
            name: &status.name,
            kind: status.kind,
            undelivered: status.undelivered,
            undelivered_since: status.undelivered_since_ms.and_then(time),
            waiting: status.waiting,
            muted: status.muted,
            failing_since: status.failing_since_ms.and_then(time),
            last_error: status.last_error.as_deref(),
            last_success: status.succeeded_ms.and_then(time),
            sent: status.sent,
            failed: status.failed,
            dropped: status.dropped,
            silenced: status.silenced,
            skipped: status.skipped,
        }
    }
}

/// Returns a time as RFC 3339 writes it; `None` outside of the years that it has.
fn time(time_ms: i64) -> Option<String> {
    Timestamp::from_millisecond(time_ms).ok().map(|time| time.to_string())
}
