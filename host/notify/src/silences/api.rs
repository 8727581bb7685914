//! Silences as Alertmanager's API has them, without HTTP: bodies and parameters in, JSON out.
//!
//! Source: prometheus/alertmanager, `api/v2/openapi.yaml` and `api/v2/api.go`. Texts and statuses
//! of refusals are upstream's, including those of the validator that is generated from the
//! description.

pub use super::json::time_text;

use super::{SilenceError, SilenceId, SilenceState, Silences, Wanted, json};
use crate::matchers::{Matcher, Matchers, MatchersError};
use serde::Deserialize;
use serde_json::{Value, json};
use tidepool_rules::file::Labels;

/// Codes of the generated validator, for what no field of the body may be.
const TYPE_CODE: u16 = 601;
const REQUIRED_CODE: u16 = 602;
const FEW_ITEMS_CODE: u16 = 612;

/// A request that is not answered with success.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApiError {
    /// What the caller wants is not possible.
    #[error("{0}")]
    Bad(String),
    /// The body is no JSON of this form.
    #[error("{0}")]
    Body(String),
    /// A field is missing or has a wrong form.
    #[error("{message}")]
    Field { code: u16, message: String },
    #[error("silence not found")]
    NotFound,
    /// A silence that would be changed does not exist.
    #[error("silence not found")]
    NothingToChange,
    #[error("{0}")]
    Internal(String),
}

/// Which silences are listed.
#[derive(Clone, Debug)]
pub struct Listing<'a> {
    /// Matchers that a silence must have exactly so.
    pub filters: Vec<&'a str>,
    pub active: bool,
    pub pending: bool,
    pub expired: bool,
}

impl ApiError {
    /// Returns the status of the response.
    pub fn status(&self) -> u16 {
        match self {
            ApiError::Bad(_) | ApiError::Body(_) => 400,
            ApiError::NotFound | ApiError::NothingToChange => 404,
            ApiError::Field { .. } => 422,
            ApiError::Internal(_) => 500,
        }
    }

    /// Returns the body of the response, if it has one.
    pub fn body(&self) -> Option<Value> {
        match self {
            ApiError::Bad(text) | ApiError::Internal(text) => Some(text.as_str().into()),
            ApiError::Body(message) => Some(json!({"code": 400, "message": message})),
            ApiError::Field { code, message } => Some(json!({"code": code, "message": message})),
            ApiError::NotFound => None,
            ApiError::NothingToChange => Some(self.to_string().into()),
        }
    }
}

impl From<SilenceError> for ApiError {
    fn from(error: SilenceError) -> ApiError {
        match error {
            SilenceError::NotFound => ApiError::NotFound,
            SilenceError::NoId | SilenceError::Disk(_) => ApiError::Internal(error.to_string()),
            error => ApiError::Bad(error.to_string()),
        }
    }
}

impl From<MatchersError> for ApiError {
    fn from(error: MatchersError) -> ApiError {
        ApiError::Bad(error.to_string())
    }
}

/// Answers `GET /api/v2/silences`.
pub fn list(silences: &Silences, listing: &Listing<'_>) -> Result<Value, ApiError> {
    let filters: Vec<Matcher> =
        listing.filters.iter().map(|text| Matcher::parse(text)).collect::<Result<_, _>>()?;
    let is_listed = |state| match state {
        SilenceState::Active => listing.active,
        SilenceState::Pending => listing.pending,
        SilenceState::Expired => listing.expired,
    };
    let has = |matchers: &Matchers, wanted: &Matcher| matchers.iter().any(|found| found == wanted);
    let listed = silences.list().into_iter().filter(|(silence, state)| {
        is_listed(*state) && filters.iter().all(|filter| has(&silence.matchers, filter))
    });
    Ok(listed.map(|(silence, state)| json::shown(&silence, state)).collect())
}

/// Answers `POST /api/v2/silences`. Blocking.
pub fn post(silences: &Silences, body: &[u8]) -> Result<Value, ApiError> {
    let id = silences.set(&wanted(body)?).map_err(|error| match error {
        SilenceError::NotFound => ApiError::NothingToChange,
        error => error.into(),
    })?;
    Ok(json!({"silenceID": id.to_string()}))
}

/// Answers `GET /api/v2/silence/{id}`.
pub fn get(silences: &Silences, id: &str) -> Result<Value, ApiError> {
    let (silence, state) = silences.get(id_of(id)?).ok_or(ApiError::NotFound)?;
    Ok(json::shown(&silence, state))
}

/// Answers `DELETE /api/v2/silence/{id}`. Blocking.
pub fn delete(silences: &Silences, id: &str) -> Result<(), ApiError> {
    Ok(silences.expire(id_of(id)?)?)
}

fn id_of(text: &str) -> Result<SilenceId, ApiError> {
    text.parse().map_err(|_| ApiError::Field {
        code: TYPE_CODE,
        message: format!("silenceID in path must be of type uuid: {text:?}"),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Posted {
    id: Option<String>,
    matchers: Option<Vec<PostedMatcher>>,
    starts_at: Option<String>,
    ends_at: Option<String>,
    created_by: Option<String>,
    comment: Option<String>,
    annotations: Option<Labels>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostedMatcher {
    name: Option<String>,
    value: Option<String>,
    is_regex: Option<bool>,
    is_equal: Option<bool>,
}

/// Reads the body of `POST /api/v2/silences`.
fn wanted(body: &[u8]) -> Result<Wanted, ApiError> {
    let unread = |why: &dyn std::fmt::Display| {
        ApiError::Body(format!("parsing silence body from \"\" failed, because {why}"))
    };
    let posted: Posted = serde_json::from_slice(body).map_err(|error| unread(&error))?;
    // Fields are checked in this order, which is upstream's.
    let comment = required(posted.comment, "comment")?;
    let created_by = required(posted.created_by, "createdBy")?;
    let ends_at = required(posted.ends_at, "endsAt")?;
    let posted_matchers = required(posted.matchers, "matchers")?;
    if posted_matchers.is_empty() {
        let message = "matchers in body should have at least 1 items".to_owned();
        return Err(ApiError::Field { code: FEW_ITEMS_CODE, message });
    }
    let mut matchers = Vec::with_capacity(posted_matchers.len());
    for (place, matcher) in posted_matchers.into_iter().enumerate() {
        let field = |name: &str| format!("matchers.{place}.{name}");
        let is_regex = required(matcher.is_regex, &field("isRegex"))?;
        let name = required(matcher.name, &field("name"))?;
        let value = required(matcher.value, &field("value"))?;
        let made = json::matcher(&name, &value, is_regex, matcher.is_equal.unwrap_or(true));
        // Compiled at the end, so that missing fields are named first.
        matchers.push(made.map_err(|error| {
            let why = format!("invalid label matcher {place} in set 0: {error}");
            ApiError::from(SilenceError::Invalid(why))
        }));
    }
    let starts_at = required(posted.starts_at, "startsAt")?;
    let time = |text: &str| {
        json::time_ms(text).ok_or_else(|| unread(&format!("{text:?} is no time of RFC 3339")))
    };
    let starts_at_ms = Some(time(&starts_at)?).filter(|time_ms| *time_ms != json::ZERO_MS);
    Ok(Wanted {
        id: match posted.id.as_deref() {
            None | Some("") => None,
            // No silence has another kind of identifier.
            Some(id) => Some(id.parse().map_err(|_| ApiError::NothingToChange)?),
        },
        ends_at_ms: time(&ends_at)?,
        starts_at_ms,
        matchers: Matchers::of(matchers.into_iter().collect::<Result<Vec<_>, _>>()?),
        created_by,
        comment,
        annotations: posted.annotations.unwrap_or_default(),
    })
}

fn required<T>(field: Option<T>, name: &str) -> Result<T, ApiError> {
    field.ok_or_else(|| ApiError::Field {
        code: REQUIRED_CODE,
        message: format!("{name} in body is required"),
    })
}
