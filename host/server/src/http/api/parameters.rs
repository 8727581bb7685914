//! Parameters of API requests, from the URL and from forms.

use super::envelope::ApiError;
use super::multipart::{self, Field};
use crate::http::body::{Bound, collect};
use crate::http::context::Context;
use crate::http::request::Request;
use hyper::Method;
use hyper::header::CONTENT_TYPE;
use std::borrow::Cow;
use std::time::Duration;
use tidepool_protocol::prom::selection::SelectionCount;
use tidepool_protocol::prom::selector::{matches_empty, parse_counted};
use tidepool_protocol::prom::time::{TIME_MAX_MS, TIME_MIN_MS, parse_time};
use tidepool_runtime::{Matcher, TimeRange};
use tidepool_settings::duration::duration_or_zero;

const FORM: &str = "application/x-www-form-urlencoded";

const MULTIPART_FORM: &str = "multipart/form-data";

/// Name of the parameter that contains the PromQL expression.
const EXPRESSION: &str = "query";

/// Maximum number of parameters: a parameter of two bytes may need a hundred bytes of memory.
const PARAMETERS_MAX: usize = 1000;

/// Parameters, first value first: a form precedes the URL; as in Go, a multipart form follows it.
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub async fn of(context: &Context, request: Request) -> Result<Parameters, ApiError> {
        let has_form = matches!(*request.method(), Method::POST | Method::PUT);
        let content_type = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        let is_form = has_form && kind.eq_ignore_ascii_case(FORM);
        let is_multipart = has_form && kind.eq_ignore_ascii_case(MULTIPART_FORM);
        let query = request.uri().query().unwrap_or_default().to_owned();
        let mut parameters = Vec::new();
        let mut form = None;
        if is_form || is_multipart {
            let body = collect(context, request.into_body(), Bound::of_reads(context)).await;
            form = Some(body.map_err(ApiError::body)?);
        }
        if let Some(form) = form.as_ref().filter(|_| is_form) {
            add_pairs(&form.bytes, &mut parameters)?;
        }
        add_pairs(query.as_bytes(), &mut parameters)?;
        if let Some(form) = form.as_ref().filter(|_| is_multipart) {
            add_fields(&form.bytes, &content_type, &mut parameters)?;
        }
        if parameters.len() > PARAMETERS_MAX {
            let why = format!("at most {PARAMETERS_MAX} parameters are allowed in one request");
            return Err(ApiError::BadData(why));
        }
        Ok(Parameters(parameters))
    }

    /// Returns all values of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a parameter, or an empty text.
    pub fn first(&self, name: &str) -> &str {
        self.0.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// Returns the value of a parameter that is required.
    pub fn required(&self, name: &str) -> Result<&str, ApiError> {
        match self.first(name) {
            "" => Err(ApiError::BadData(format!("no {name} parameter provided"))),
            value => Ok(value),
        }
    }

    /// Returns a whole number, or `None` if the parameter is absent.
    pub fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let text = self.first(name);
        match text.parse() {
            _ if text.is_empty() => Ok(None),
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(ApiError::parameter(name, format!("{text:?} is no whole number"))),
        }
    }

    /// Returns the parameter `limit`; zero means no limit.
    pub fn limit(&self) -> Result<u64, ApiError> {
        let limit = self.number("limit")?.unwrap_or(0);
        u64::try_from(limit).map_err(|_| ApiError::parameter("limit", "limit must be non-negative"))
    }

    /// Returns a boolean, false by default.
    pub fn flag(&self, name: &str) -> Result<bool, ApiError> {
        // The same texts as Go's `strconv.ParseBool`, which upstream uses.
        match self.first(name) {
            "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            other => {
                let reason =
                    format!("unable to parse boolean: {other:?} is neither true nor false");
                Err(ApiError::parameter(name, reason))
            }
        }
    }

    /// Returns the range from `start` to `end`. Each is unbounded if absent.
    pub fn range(&self) -> Result<TimeRange, ApiError> {
        let start_ms = self.time("start", TIME_MIN_MS)?;
        Ok(TimeRange { start_ms, end_ms: self.time("end", TIME_MAX_MS)? })
    }

    /// Returns a required time, in milliseconds since the epoch.
    pub fn some_time(&self, name: &str) -> Result<i64, ApiError> {
        match self.first(name) {
            "" => Err(ApiError::parameter(name, "cannot parse \"\" to a valid timestamp")),
            _ => self.time(name, 0),
        }
    }

    /// Returns a duration in milliseconds, given in seconds or with units as in `5m`.
    pub fn duration_ms(&self, name: &str) -> Result<i64, ApiError> {
        let text = self.first(name);
        let given_ms = match text.parse::<f64>() {
            Ok(seconds) => Some(seconds * 1000.0),
            Err(_) => duration_or_zero(text).ok().map(|given| given.as_millis() as f64),
        };
        match given_ms {
            // Upstream computes in nanoseconds with 64 bits.
            Some(ms) if ms.abs() * 1e6 <= i64::MAX as f64 => Ok(ms as i64),
            given => {
                let overflows = if given.is_some() { ". It overflows int64" } else { "" };
                let why = format!("cannot parse {text:?} to a valid duration{overflows}");
                Err(ApiError::parameter(name, why))
            }
        }
    }

    /// Same as `duration_ms`, but at least one millisecond.
    pub fn positive_duration(&self, name: &str) -> Result<Duration, ApiError> {
        match self.duration_ms(name)? {
            ms if ms > 0 => Ok(Duration::from_millis(ms.unsigned_abs())),
            _ => Err(ApiError::parameter(name, "the duration must be greater than zero")),
        }
    }

    /// Returns a time in milliseconds since the epoch.
    pub fn time(&self, name: &str, default_ms: i64) -> Result<i64, ApiError> {
        let text = self.first(name);
        if text.is_empty() {
            return Ok(default_ms);
        }
        parse_time(text).ok_or_else(|| {
            let reason = format!("cannot parse {text:?} to a valid timestamp");
            ApiError::parameter(name, format!("invalid time value for '{name}': {reason}"))
        })
    }

    /// Returns the selectors. A selector that matches every series is refused.
    pub fn matcher_sets(&self) -> Result<Vec<Vec<Matcher>>, ApiError> {
        let mut count = SelectionCount::default();
        self.all("match[]").map(|text| selector("match[]", text, &mut count)).collect()
    }

    /// Same as `matcher_sets`, but requires at least one selector.
    pub fn some_matcher_sets(&self) -> Result<Vec<Vec<Matcher>>, ApiError> {
        match self.matcher_sets()? {
            none if none.is_empty() => {
                Err(ApiError::BadData("no match[] parameter provided".to_owned()))
            }
            sets => Ok(sets),
        }
    }
}

/// Adds the parameters of a form, at most one more than the limit. Invalid UTF-8 is refused, except
/// in an expression, because its parser reports the position.
fn add_pairs(form: &[u8], parameters: &mut Vec<(String, String)>) -> Result<(), ApiError> {
    let parts = form.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    let pairs = form_urlencoded::parse(form).into_owned();
    for ((name, value), part) in pairs.zip(parts).take(PARAMETERS_MAX + 1) {
        // The form parser replaces invalid UTF-8 by U+FFFD, which a client may also send. In an
        // expression, both are errors at the same position, and both are valid in comments.
        if name != EXPRESSION
            && (name.contains(char::REPLACEMENT_CHARACTER)
                || value.contains(char::REPLACEMENT_CHARACTER))
            && let Err(error) = std::str::from_utf8(&unescaped(part))
        {
            // `part` is `name=value`, so the position in the value is smaller.
            let place = error.valid_up_to().saturating_sub(name.len() + 1);
            let why = format!("invalid UTF-8 after {place} bytes");
            return Err(ApiError::parameter(&name, why));
        }
        parameters.push((name, value));
    }
    Ok(())
}

/// Adds the fields of a multipart form, with the rules of [`add_pairs`].
fn add_fields(
    form: &[u8],
    content_type: &str,
    parameters: &mut Vec<(String, String)>,
) -> Result<(), ApiError> {
    let fields = multipart::fields(form, content_type, PARAMETERS_MAX + 1);
    let fields = fields.map_err(|why| ApiError::BadData(format!("{MULTIPART_FORM}: {why}")))?;
    for Field { name, value } in fields {
        let value = match String::from_utf8_lossy(value) {
            Cow::Owned(_) if name != EXPRESSION => {
                return Err(ApiError::parameter(&name, "invalid UTF-8"));
            }
            text => text.into_owned(),
        };
        parameters.push((name, value));
    }
    Ok(())
}

/// Decodes percent-encoding. Plus signs are not decoded.
fn unescaped(part: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part;
    while let [first, behind @ ..] = rest {
        let escaped = match behind {
            [high, low, after @ ..] if *first == b'%' => {
                let byte = digit(*high).zip(digit(*low)).map(|(high, low)| high * 16 + low);
                byte.map(|byte| (byte as u8, after))
            }
            _ => None,
        };
        let (byte, after) = escaped.unwrap_or((*first, behind));
        bytes.push(byte);
        rest = after;
    }
    bytes
}

/// Parses a selector. A selector that matches every series is refused as a likely mistake.
pub fn selector(
    name: &str,
    text: &str,
    count: &mut SelectionCount,
) -> Result<Vec<Matcher>, ApiError> {
    let matchers = parse_counted(text, count).map_err(|error| ApiError::parameter(name, error))?;
    if matchers.iter().all(matches_empty) {
        let reason = format!("{name} must contain at least one non-empty matcher");
        return Err(ApiError::parameter(name, reason));
    }
    Ok(matchers)
}
