//! Compares the last response with the module's rules.

use super::exchange::Answer;
use super::version;
use crate::config::{HeaderMatch, HttpProbe};
use crate::error::ProbeError;
use crate::report::{FAILED_REGEX, Report};
use hyper::header::HeaderMap;

/// Judges a response whose body was read. Returns the first violated rule as the error.
pub(super) fn judge(
    probe: &HttpProbe,
    answer: &Answer,
    report: &mut Report,
) -> Result<(), ProbeError> {
    let wrong = |what: String| Err(ProbeError::Unwanted(what));
    let status = answer.response.status();
    let is_valid = match probe.valid_status_codes.as_slice() {
        [] => status.is_success(),
        valid => valid.contains(&status.as_u16()),
    };
    if !is_valid {
        return wrong(format!("status {}", status.as_u16()));
    }
    if let Some(what) = unwanted_text(probe, answer.response.headers(), &answer.body) {
        report.set(FAILED_REGEX, 1.0);
        return wrong(what);
    }
    let (_, version) = version(answer.response.version());
    if !probe.valid_http_versions.is_empty()
        && !probe.valid_http_versions.iter().any(|valid| valid == version)
    {
        return wrong(format!("version {version}"));
    }
    match &answer.tls {
        Some(_) if probe.fail_if_ssl => wrong("the response came by TLS".to_owned()),
        None if probe.fail_if_not_ssl => wrong("the response came without TLS".to_owned()),
        _ => Ok(()),
    }
}

fn unwanted_text(probe: &HttpProbe, headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let with = probe.fail_if_header_matches.iter().map(|rule| (rule, true));
    let without = probe.fail_if_header_not_matches.iter().map(|rule| (rule, false));
    let header = with.chain(without).find(|(rule, fails)| is_wrong(rule, headers, *fails));
    if let Some((rule, _)) = header {
        return Some(format!("header {}", rule.header));
    }
    if let Some(found) = probe.fail_if_body_matches_regexp.iter().find(|one| one.is_match(body)) {
        return Some(format!("the body matches {found}"));
    }
    let missing = probe.fail_if_body_not_matches_regexp.iter().find(|one| !one.is_match(body));
    missing.map(|missing| format!("the body does not match {missing}"))
}

/// Returns whether a header violates a rule: some value matches, or no value matches.
fn is_wrong(rule: &HeaderMatch, headers: &HeaderMap, fails_if_matches: bool) -> bool {
    let mut values = headers.get_all(&rule.header).iter().peekable();
    if values.peek().is_none() {
        return !rule.allow_missing;
    }
    values.any(|value| rule.regexp.is_match(value.as_bytes())) == fails_if_matches
}
