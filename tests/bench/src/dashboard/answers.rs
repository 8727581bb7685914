//! Compares two servers' answers to the same panels at a time that both have.

use super::super::BenchError;
use super::super::queries::answer::Answer;
use super::panels::Panel;
use super::viewer;
use serde_json::Value;
use std::collections::BTreeSet;
use tidepool_tests::http::Client;
use tidepool_tests::process::Server;

pub enum Reply {
    Series(Answer),
    /// Answer to a look-up: values, or label sets as JSON.
    Names(BTreeSet<String>),
}

/// Requests panels at a time; returns each answer or the reason for its absence.
pub fn ask(
    server: &Server,
    panels: &[Panel],
    time_ms: i64,
) -> Result<Vec<Result<Reply, String>>, BenchError> {
    let client = Client::default();
    let mut replies = Vec::new();
    for panel in panels {
        let answer = viewer::send(&client, &server.url(), panel, time_ms)?;
        replies.push(match answer.is_success() {
            true => Reply::read(&answer.body, panel.is_look_up()),
            false => Err(format!("{}: {}", answer.status, answer.text())),
        });
    }
    Ok(replies)
}

impl Reply {
    fn read(body: &[u8], is_look_up: bool) -> Result<Reply, String> {
        if !is_look_up {
            return Answer::read(body).map(Reply::Series);
        }
        let answer: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let names = answer["data"].as_array().filter(|_| answer["status"] == "success");
        let names = names.ok_or_else(|| format!("the answer is no list: {answer}"))?;
        Ok(Reply::Names(names.iter().map(Value::to_string).collect()))
    }

    fn is_empty(&self) -> bool {
        match self {
            Reply::Series(answer) => answer.series() == 0,
            Reply::Names(names) => names.is_empty(),
        }
    }
}

/// Returns the differences from the right answers. Empty answers count as differences, because they
/// prove nothing.
pub fn differences(
    panels: &[Panel],
    ours: &[Result<Reply, String>],
    theirs: &[Result<Reply, String>],
) -> Vec<String> {
    let mut found = Vec::new();
    for ((panel, ours), theirs) in panels.iter().zip(ours).zip(theirs) {
        let difference = match (ours, theirs) {
            (Err(error), _) => Some(format!("no answer: {error}")),
            (_, Err(error)) => Some(format!("nothing to compare with: {error}")),
            (Ok(_), Ok(theirs)) if theirs.is_empty() => Some("nothing to compare with".to_string()),
            (Ok(Reply::Series(ours)), Ok(Reply::Series(theirs))) => ours.difference(theirs),
            (Ok(Reply::Names(ours)), Ok(Reply::Names(theirs))) if ours == theirs => None,
            _ => Some("other names".to_string()),
        };
        found.extend(difference.map(|difference| format!("{}: {difference}", panel.promql)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::panels::Kind;
    use super::*;

    #[test]
    fn each_way_to_differ_is_found() {
        let names = |text: &str| Reply::read(text.as_bytes(), true);
        let series = |text: &str| Reply::read(text.as_bytes(), false);
        let (one, other) =
            (r#"{"status":"success","data":["a"]}"#, r#"{"status":"success","data":["b"]}"#);
        let none = r#"{"status":"success","data":[]}"#;
        let value = |value: &str| {
            format!(
                r#"{{"status":"success","data":{{"result":[{{"metric":{{}},"value":[1,"{value}"]}}]}}}}"#
            )
        };
        let panel = Panel { kind: Kind::Instant, promql: "p".to_string() };
        let differ = |ours, theirs| differences(std::slice::from_ref(&panel), &[ours], &[theirs]);
        assert!(differ(names(one), names(one)).is_empty());
        assert_eq!(differ(names(one), names(other)), ["p: other names"]);
        assert_eq!(differ(names(none), names(none)), ["p: nothing to compare with"]);
        assert!(differ(series(&value("1")), series(&value("1"))).is_empty());
        assert_eq!(differ(series(&value("1")), series(&value("2"))).len(), 1);
        assert_eq!(differ(names(one), series(&value("1"))), ["p: other names"]);
        assert!(differ(series("{"), series(&value("1")))[0].starts_with("p: no answer"));
        assert!(differ(names(one), names(r#"{"status":"error"}"#))[0].starts_with("p: nothing"));
    }
}
