//! `tidepool alerts silence add`.

use super::matchers;
use crate::cli::query::{Failure, Time};
use clap::Args;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tidepool_model::MatchOp;
use tidepool_notify::matchers::Matcher;
use tidepool_notify::silences::api::time_text;
use tidepool_settings::duration::duration;

#[derive(Debug, Clone, Args)]
pub struct AddArgs {
    /// Matchers such as job=node, job!=node, job=~"a|b", job!~"a|b"; all must match
    #[arg(value_name = "MATCHER", required = true)]
    matchers: Vec<String>,

    /// How long the silence lasts
    #[arg(
        short = 'd', long, value_name = "DURATION", default_value = "1h", value_parser = duration
    )]
    duration: Duration,

    /// Its start, in RFC 3339 or seconds since the Unix epoch; now without it
    #[arg(long, value_name = "TIME", value_parser = Time::parse, allow_hyphen_values = true)]
    start: Option<Time>,

    /// Its end, in the same forms, in place of a duration
    #[arg(long, value_name = "TIME", value_parser = Time::parse, allow_hyphen_values = true)]
    end: Option<Time>,

    /// The name of the silence's author
    #[arg(short = 'a', long, value_name = "NAME", env = "USER", default_value = "")]
    author: String,

    /// Why the alerts are silenced
    #[arg(short = 'c', long, value_name = "TEXT")]
    comment: String,

    /// An annotation of the silence, as NAME=VALUE; may be given several times
    #[arg(long = "annotation", value_name = "NAME=VALUE")]
    annotations: Vec<String>,
}

impl AddArgs {
    /// Returns the body of the request.
    pub fn body(&self) -> Result<Value, Failure> {
        let wrong = |text: &str| Err(Failure::Argument(text.to_owned()));
        if self.comment.is_empty() {
            return wrong("--comment is empty; say why the alerts are silenced");
        }
        let start_ms = self.start.unwrap_or_else(Time::now).as_ms();
        let end_ms = match self.end {
            Some(end) => end.as_ms(),
            None => {
                let duration_ms = i64::try_from(self.duration.as_millis()).unwrap_or(i64::MAX);
                start_ms.saturating_add(duration_ms)
            }
        };
        if end_ms <= start_ms {
            return wrong("the silence would end before it starts");
        }
        let matchers: Vec<Value> = matchers(&self.matchers)?.iter().map(posted).collect();
        let mut body = json!({
            "matchers": matchers,
            "startsAt": time_text(start_ms),
            "endsAt": time_text(end_ms),
            "createdBy": self.author,
            "comment": self.comment,
        });
        let mut annotations = Map::new();
        for annotation in &self.annotations {
            match annotation.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    annotations.insert(name.to_owned(), value.into());
                }
                _ => return wrong("--annotation is given as NAME=VALUE"),
            }
        }
        if !annotations.is_empty() {
            body["annotations"] = annotations.into();
        }
        Ok(body)
    }
}

fn posted(matcher: &Matcher) -> Value {
    let op = matcher.op();
    json!({
        "name": matcher.name(),
        "value": matcher.value(),
        "isRegex": matches!(op, MatchOp::Regex | MatchOp::NotRegex),
        "isEqual": matches!(op, MatchOp::Equal | MatchOp::Regex),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches as _};

    fn body(arguments: &[&str]) -> Result<Value, String> {
        let command = AddArgs::augment_args(Command::new("add"));
        let arguments = ["add"].iter().chain(arguments);
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        let args = AddArgs::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        args.body().map_err(|failure| failure.to_string())
    }

    #[test]
    fn flags_become_the_body_of_the_request() {
        let start = "--start=2026-11-08T12:00:00Z";
        let expected = json!({
            "matchers": [
                {"name": "alertname", "value": "DiskFull", "isRegex": false, "isEqual": true},
                {"name": "job", "value": "a|b", "isRegex": true, "isEqual": false},
            ],
            "startsAt": "2026-11-08T12:00:00.000Z",
            "endsAt": "2026-11-08T14:00:00.000Z",
            "createdBy": "ada",
            "comment": "new disk",
            "annotations": {"ticket": "7=7"},
        });
        let flags = ["-d", "2h", "-a", "ada", "-c", "new disk", "--annotation=ticket=7=7"];
        let arguments: Vec<&str> =
            ["DiskFull", "job!~a|b", start].into_iter().chain(flags).collect();
        assert_eq!(body(&arguments), Ok(expected));
        let until = body(&["a=b", start, "--end=2026-11-08T12:30:00Z", "-c", "x"]).expect("a body");
        assert_eq!(until["endsAt"], "2026-11-08T12:30:00.000Z");
        for (wrong, expected) in [
            (&["a=b"][..], "--comment"),
            (&["a=b", "-c", ""], "--comment is empty"),
            (&["-c", "x"], "MATCHER"),
            (&["a=b", "-c", "x", "-d", "0s"], "is zero"),
            (
                &["a=b", start, "--end=2026-11-08T12:00:00Z", "-c", "x"],
                "would end before it starts",
            ),
            (&["a=b", "-c", "x", "--annotation=y"], "NAME=VALUE"),
        ] {
            let error = body(wrong).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }
}
