//! A silence as JSON: in the file and in the API.

use super::{Silence, SilenceId, SilenceState};
use crate::matchers::{Matcher, Matchers, MatchersError};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tidepool_model::MatchOp;
use tidepool_rules::file::Labels;

/// Go's zero time, 0001-01-01T00:00:00Z, by which a client says that it has no time.
pub const ZERO_MS: i64 = -62_135_596_800_000;

/// Returns the silence as Alertmanager's API shows it.
pub fn shown(silence: &Silence, state: SilenceState) -> Value {
    let mut shown = json!({
        "id": silence.id.to_string(),
        "status": {"state": state.name()},
        "updatedAt": time_text(silence.updated_at_ms),
    });
    if let Some(shown) = shown.as_object_mut() {
        put_rest(silence, shown);
    }
    shown
}

/// Returns the silence as the file holds it.
pub fn stored(silence: &Silence) -> Value {
    let mut stored = Map::new();
    stored.insert("id".to_owned(), silence.id.to_string().into());
    stored.insert("updatedAt".to_owned(), time_text(silence.updated_at_ms).into());
    put_rest(silence, &mut stored);
    if silence.doubted_since.is_some() {
        stored.insert("setInDoubt".to_owned(), true.into());
    }
    Value::Object(stored)
}

fn put_rest(silence: &Silence, out: &mut Map<String, Value>) {
    // Upstream leaves annotations out if there are none.
    if !silence.annotations.is_empty() {
        out.insert("annotations".to_owned(), json!(silence.annotations));
    }
    let matchers: Vec<Value> = silence.matchers.iter().map(shown_matcher).collect();
    for (name, value) in [
        ("comment", silence.comment.as_str().into()),
        ("createdBy", silence.created_by.as_str().into()),
        ("endsAt", time_text(silence.ends_at_ms).into()),
        ("matchers", matchers.into()),
        ("startsAt", time_text(silence.starts_at_ms).into()),
    ] {
        out.insert(name.to_owned(), value);
    }
}

fn shown_matcher(matcher: &Matcher) -> Value {
    let op = matcher.op();
    json!({
        "isEqual": matches!(op, MatchOp::Equal | MatchOp::Regex),
        "isRegex": matches!(op, MatchOp::Regex | MatchOp::NotRegex),
        "name": matcher.name(),
        "value": matcher.value(),
    })
}

pub fn matcher(
    name: &str,
    value: &str,
    is_regex: bool,
    is_equal: bool,
) -> Result<Matcher, MatchersError> {
    let op = match (is_regex, is_equal) {
        (false, true) => MatchOp::Equal,
        (false, false) => MatchOp::NotEqual,
        (true, true) => MatchOp::Regex,
        (true, false) => MatchOp::NotRegex,
    };
    Matcher::new(op, name, value)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    id: String,
    updated_at: String,
    #[serde(default)]
    annotations: Labels,
    comment: String,
    created_by: String,
    ends_at: String,
    matchers: Vec<StoredMatcher>,
    starts_at: String,
    #[serde(default)]
    set_in_doubt: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMatcher {
    is_equal: bool,
    is_regex: bool,
    name: String,
    value: String,
}

/// Reads a silence of the file. The error says what is wrong with it.
pub fn read(stored: &Value, monotonic: Duration) -> Result<Silence, String> {
    let stored = Stored::deserialize(stored).map_err(|error| error.to_string())?;
    let id: SilenceId = stored.id.parse().map_err(|_| "the id is no UUID")?;
    let matchers =
        stored.matchers.iter().map(|StoredMatcher { is_equal, is_regex, name, value }| {
            matcher(name, value, *is_regex, *is_equal)
        });
    let matchers: Vec<Matcher> =
        matchers.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let time = |text: &str| time_ms(text).ok_or_else(|| format!("{text:?} is no time"));
    Ok(Silence {
        id,
        matchers: Matchers::of(matchers),
        starts_at_ms: time(&stored.starts_at)?,
        ends_at_ms: time(&stored.ends_at)?,
        updated_at_ms: time(&stored.updated_at)?,
        created_by: stored.created_by,
        comment: stored.comment,
        annotations: stored.annotations,
        doubted_since: stored.set_in_doubt.then_some(monotonic),
    })
}

/// Writes a time with milliseconds, as upstream does. Years beyond 9999 become the end of that one.
pub fn time_text(time_ms: i64) -> String {
    let bound = if time_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    format!("{:.3}", Timestamp::from_millisecond(time_ms).unwrap_or(bound))
}

/// Reads a time of RFC 3339; one without an offset is in UTC.
pub fn time_ms(text: &str) -> Option<i64> {
    let with_offset = text.parse::<Timestamp>().ok();
    let time = with_offset.or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    });
    time.map(Timestamp::as_millisecond)
}
