//! `GET /api/v1/rules` and `GET /api/v1/alerts`: rule groups, and the alerts of their rules.
//!
//! Responses are written alert by alert, because 100,000 alerts need about 50 MB.

use super::condition::Condition;
use super::envelope::ApiError;
use super::pages::{Page, Progress, Rows, Shape, stream};
use super::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::Reply;
use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::{self, Poll};
use tidepool_rules::alert::State;
use tidepool_rules::group::{AlertSnapshot, GroupSnapshot, Health, KindSnapshot, RuleSnapshot};
use tidepool_rules::number::scientific;
use tidepool_store::StoreError;

/// Go's zero time, which upstream shows before the first evaluation.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// `GET /api/v1/rules`.
pub async fn rules(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let asked = Asked::of(parameters)?;
    let groups = asked.groups(context.rules.snapshot())?;
    let is_doubted = context.store.clock_is_doubted();
    let rows =
        GroupRows { groups, exclude_alerts: asked.exclude_alerts, is_doubted, at: At::Begin };
    Ok(stream(Shape::Fields, rows).await?)
}

/// `GET /api/v1/alerts`: the pending and firing alerts of all rules.
pub async fn alerts(context: &Context) -> Result<Reply, ApiError> {
    let groups = context.rules.snapshot();
    let rows = AlertRows { groups, group: 0, rule: 0, next: 0, count: 0 };
    Ok(stream(Shape::Fields, rows).await?)
}

/// The parameters of a request.
struct Asked {
    has_alerting: bool,
    has_recording: bool,
    exclude_alerts: bool,
    rules: BTreeSet<String>,
    groups: BTreeSet<String>,
    files: BTreeSet<String>,
    /// Selectors of the labels of rules; any of them must match.
    conditions: Vec<Vec<Condition>>,
    /// Maximum number of groups, and the token of the first one.
    page: Option<(usize, String)>,
}

impl Asked {
    fn of(parameters: &Parameters) -> Result<Asked, ApiError> {
        let kind = parameters.first("type").to_ascii_lowercase();
        let (has_alerting, has_recording) = match kind.as_str() {
            "" => (true, true),
            "alert" => (true, false),
            "record" => (false, true),
            other => {
                return Err(ApiError::parameter("type", format!("not supported value {other:?}")));
            }
        };
        let texts = |name: &str| parameters.all(name).map(str::to_owned).collect();
        let conditions = parameters.matcher_sets()?.into_iter().map(|matchers| {
            let conditions = matchers.into_iter().map(Condition::new);
            conditions.collect::<Result<Vec<_>, _>>()
        });
        Ok(Asked {
            has_alerting,
            has_recording,
            exclude_alerts: parameters.flag("exclude_alerts")?,
            rules: texts("rule_name[]"),
            groups: texts("rule_group[]"),
            files: texts("file[]"),
            conditions: conditions
                .collect::<Result<_, _>>()
                .map_err(|why| ApiError::parameter("match[]", why))?,
            page: Asked::page(parameters)?,
        })
    }

    fn page(parameters: &Parameters) -> Result<Option<(usize, String)>, ApiError> {
        let wrong = |why: &str| Err(ApiError::parameter("group_limit", why));
        let token = parameters.first("group_next_token").to_owned();
        // As in upstream, which reads a number of 32 bits.
        match parameters.number("group_limit")?.map(i32::try_from) {
            None if token.is_empty() => Ok(None),
            None => Err(ApiError::parameter(
                "group_next_token",
                "group_limit needs to be present in order to paginate over the groups",
            )),
            Some(Ok(limit)) if limit > 0 => Ok(Some((limit as usize, token))),
            Some(Ok(_)) => wrong("group_limit needs to be greater than 0"),
            Some(Err(_)) => wrong("group_limit needs to be a valid number: value out of range"),
        }
    }

    /// Selects groups and rules, and a page of them.
    fn groups(&self, groups: Vec<Arc<GroupSnapshot>>) -> Result<Selected, ApiError> {
        let (limit, token) = match &self.page {
            Some((limit, token)) => (*limit, token.as_str()),
            None => (usize::MAX, ""),
        };
        let begin = match token {
            "" => 0,
            token => {
                let place = groups.iter().position(|group| next_token(group) == token);
                place.ok_or_else(|| {
                    let why =
                        format!("invalid group_next_token '{token}'. were rule groups changed?");
                    ApiError::parameter("group_next_token", why)
                })?
            }
        };
        let mut selected = Vec::new();
        for group in &groups[begin..] {
            let is_asked = has(&self.groups, &group.name) && has(&self.files, &group.file);
            let rules: Vec<usize> = match is_asked {
                true => (0..group.rules.len()).filter(|at| self.takes(&group.rules[*at])).collect(),
                false => Vec::new(),
            };
            if rules.is_empty() {
                continue;
            }
            if selected.len() == limit {
                return Ok((selected, Some(next_token(group))));
            }
            selected.push((Arc::clone(group), rules));
        }
        Ok((selected, None))
    }

    fn takes(&self, rule: &RuleSnapshot) -> bool {
        let is_of_type = match rule.kind {
            KindSnapshot::Recording => self.has_recording,
            KindSnapshot::Alerting { .. } => self.has_alerting,
        };
        let value = |name: &str| rule.labels.get(name).map_or("", String::as_str);
        let matches = |set: &Vec<Condition>| set.iter().all(|condition| condition.holds(value));
        is_of_type
            && has(&self.rules, &rule.name)
            && (self.conditions.is_empty() || self.conditions.iter().any(matches))
    }
}

/// Groups, each with the positions of its selected rules, and the token of the next page.
type Selected = (Vec<(Arc<GroupSnapshot>, Vec<usize>)>, Option<String>);

/// Whether a set that may be empty for anything has a name.
fn has(names: &BTreeSet<String>, name: &str) -> bool {
    names.is_empty() || names.contains(name)
}

/// Upstream's token of a page that begins with a group.
fn next_token(group: &GroupSnapshot) -> String {
    let hash = digest(&SHA256, format!("{};{}", group.file, group.name).as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

struct GroupRows {
    groups: Selected,
    exclude_alerts: bool,
    is_doubted: bool,
    at: At,
}

/// What is written next, by positions among the selected ones.
#[derive(Clone, Copy)]
enum At {
    Begin,
    Group { group: usize },
    Rule { group: usize, rule: usize },
    Alert { group: usize, rule: usize, next: usize, count: usize },
    EndOfGroup { group: usize },
    End,
}

impl Rows for GroupRows {
    fn poll_rows(
        &mut self,
        _: &mut task::Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>> {
        let out = page.more_of_row();
        self.at = match self.at {
            At::Begin => {
                out.extend_from_slice(b"\"groups\":[");
                At::Group { group: 0 }
            }
            At::Group { group } => match self.groups.0.get(group) {
                Some((snapshot, _)) => {
                    put_comma(out, group);
                    put_open(out, &Group::of(snapshot));
                    out.extend_from_slice(b",\"rules\":[");
                    At::Rule { group, rule: 0 }
                }
                None => At::End,
            },
            At::Rule { group, rule } => match self.rule(group, rule) {
                Some(snapshot) => {
                    put_comma(out, rule);
                    put_open(out, &Rule::of(snapshot));
                    match &snapshot.kind {
                        KindSnapshot::Alerting { .. } => {
                            out.extend_from_slice(b",\"alerts\":[");
                            At::Alert { group, rule, next: 0, count: 0 }
                        }
                        KindSnapshot::Recording => {
                            out.push(b'}');
                            At::Rule { group, rule: rule + 1 }
                        }
                    }
                }
                None => At::EndOfGroup { group },
            },
            At::Alert { group, rule, next, count } => {
                let found = self.rule(group, rule).and_then(|rule| active(rule, next));
                match found.filter(|_| !self.exclude_alerts) {
                    Some((place, snapshot)) => {
                        put_comma(out, count);
                        put_json(out, &Alert::of(snapshot));
                        At::Alert { group, rule, next: place + 1, count: count + 1 }
                    }
                    None => {
                        out.extend_from_slice(b"]}");
                        At::Rule { group, rule: rule + 1 }
                    }
                }
            }
            At::EndOfGroup { group } => {
                out.extend_from_slice(b"]}");
                At::Group { group: group + 1 }
            }
            At::End => {
                out.push(b']');
                if let Some(token) = &self.groups.1 {
                    out.extend_from_slice(b",\"groupNextToken\":");
                    put_json(out, token);
                }
                if self.is_doubted {
                    out.extend_from_slice(b",\"tidepool_clock_doubted\":true");
                }
                out.push(b'}');
                return Poll::Ready(Ok(Progress::END));
            }
        };
        Poll::Ready(Ok(Progress::More))
    }
}

impl GroupRows {
    fn rule(&self, group: usize, rule: usize) -> Option<&RuleSnapshot> {
        let (snapshot, rules) = self.groups.0.get(group)?;
        snapshot.rules.get(*rules.get(rule)?)
    }
}

/// Position of the next alert, among groups, rules and alerts.
struct AlertRows {
    groups: Vec<Arc<GroupSnapshot>>,
    group: usize,
    rule: usize,
    next: usize,
    count: usize,
}

impl Rows for AlertRows {
    fn poll_rows(
        &mut self,
        _: &mut task::Context<'_>,
        page: &mut Page,
    ) -> Poll<Result<Progress, StoreError>> {
        let out = page.more_of_row();
        if (self.group, self.rule, self.next) == (0, 0, 0) && self.count == 0 {
            out.extend_from_slice(b"\"alerts\":[");
        }
        let Some(group) = self.groups.get(self.group) else {
            out.extend_from_slice(b"]}");
            return Poll::Ready(Ok(Progress::END));
        };
        match group.rules.get(self.rule) {
            None => (self.group, self.rule, self.next) = (self.group + 1, 0, 0),
            Some(rule) => match active(rule, self.next) {
                None => (self.rule, self.next) = (self.rule + 1, 0),
                Some((place, alert)) => {
                    put_comma(out, self.count);
                    put_json(out, &Alert::of(alert));
                    (self.next, self.count) = (place + 1, self.count + 1);
                }
            },
        }
        Poll::Ready(Ok(Progress::More))
    }
}

/// Returns the first pending or firing alert from a position on, with its position.
fn active(rule: &RuleSnapshot, from: usize) -> Option<(usize, &AlertSnapshot)> {
    let KindSnapshot::Alerting { alerts, .. } = &rule.kind else { return None };
    let is_active = |alert: &AlertSnapshot| matches!(alert.state, State::Pending | State::Firing);
    let later = alerts.iter().enumerate().skip(from);
    later.into_iter().find(|(_, alert)| is_active(alert))
}

/// Fields of a group, before its rules.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Group<'a> {
    name: &'a str,
    file: &'a str,
    interval: f64,
    limit: i64,
    evaluation_time: f64,
    last_evaluation: String,
}

impl Group<'_> {
    fn of(group: &GroupSnapshot) -> Group<'_> {
        Group {
            name: &group.name,
            file: &group.file,
            interval: group.interval_ms as f64 / 1000.0,
            limit: group.limit,
            evaluation_time: group.evaluation_time.as_secs_f64(),
            last_evaluation: time(group.last_evaluation_ms),
        }
    }
}

/// Fields of a rule, before its alerts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    name: &'a str,
    query: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_firing_for: Option<f64>,
    labels: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a BTreeMap<String, String>>,
    health: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<&'a str>,
    evaluation_time: f64,
    last_evaluation: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl Rule<'_> {
    fn of(rule: &RuleSnapshot) -> Rule<'_> {
        let (state, duration, keep_firing_for, annotations, kind) = match &rule.kind {
            KindSnapshot::Recording => (None, None, None, None, "recording"),
            KindSnapshot::Alerting { state, for_, keep_firing_for, annotations, .. } => (
                Some(state.name()),
                Some(for_.as_secs_f64()),
                Some(keep_firing_for.as_secs_f64()),
                Some(annotations),
                "alerting",
            ),
        };
        Rule {
            state,
            name: &rule.name,
            query: &rule.query,
            duration,
            keep_firing_for,
            labels: &rule.labels,
            annotations,
            health: match rule.health {
                Health::Unknown => "unknown",
                Health::Ok => "ok",
                Health::Err => "err",
            },
            last_error: rule.last_error.as_deref(),
            evaluation_time: rule.evaluation_time.as_secs_f64(),
            last_evaluation: time(rule.last_evaluation_ms),
            kind,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Alert<'a> {
    labels: BTreeMap<&'a str, &'a str>,
    annotations: &'a BTreeMap<String, String>,
    state: &'static str,
    active_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_firing_since: Option<String>,
    value: String,
}

impl Alert<'_> {
    fn of(alert: &AlertSnapshot) -> Alert<'_> {
        Alert {
            labels: alert.labels.iter().collect(),
            annotations: &alert.annotations,
            state: alert.state.name(),
            active_at: time(Some(alert.active_at_ms)),
            keep_firing_since: alert.keep_firing_since_ms.map(|since| time(Some(since))),
            value: scientific(alert.value),
        }
    }
}

/// Writes a time as upstream does, or Go's zero time.
fn time(time_ms: Option<i64>) -> String {
    let time = time_ms.and_then(|time_ms| Timestamp::from_millisecond(time_ms).ok());
    time.map_or_else(|| NEVER.to_owned(), |time| time.to_string())
}

fn put_comma(out: &mut Vec<u8>, count: usize) {
    if count > 0 {
        out.push(b',');
    }
}

fn put_json(out: &mut Vec<u8>, value: &impl Serialize) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, value);
}

/// Writes an object without its end, so that more fields can follow.
fn put_open(out: &mut Vec<u8>, value: &impl Serialize) {
    put_json(out, value);
    out.pop();
}
