//! `tidepool alerts silence query`.

use super::client::Client;
use super::{matchers, print};
use crate::cli::query::{Failure, Time};
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::time::Duration;
use tidepool_notify::matchers::Matcher;
use tidepool_settings::duration::duration;

#[derive(Debug, Clone, Args)]
pub struct QueryArgs {
    /// Matchers that a silence must have exactly so; the first may be the name of an alert
    #[arg(value_name = "MATCHER")]
    matchers: Vec<String>,

    /// List expired silences in place of the others
    #[arg(long)]
    expired: bool,

    /// Only those that end, or with --expired have ended, within this time
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    within: Option<Duration>,

    /// Only those of this author
    #[arg(long, value_name = "NAME")]
    created_by: Option<String>,

    /// Only the silence with this identifier
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Print only identifiers
    #[arg(short = 'q', long)]
    quiet: bool,

    /// Output format
    #[arg(short = 'o', long, value_enum, default_value = "simple")]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table
    Simple,
    /// A table with all times and the state
    Extended,
    /// One line of JSON, as the API answers
    Json,
}

impl QueryArgs {
    /// Returns the text to print.
    pub fn run(&self, client: &Client) -> Result<String, Failure> {
        let filters: Vec<String> =
            matchers(&self.matchers)?.iter().map(Matcher::to_string).collect();
        let mut silences = client.list(&filters)?;
        let now = Time::now();
        silences.retain(|silence| self.is_wanted(silence, now));
        silences.sort_by_key(ends_at);
        Ok(match (self.quiet, self.output) {
            (true, _) => print::ids(&silences),
            (false, Format::Json) => Value::from(silences).to_string() + "\n",
            (false, format) => print::table(&silences, format == Format::Extended),
        })
    }

    fn is_wanted(&self, silence: &Value, now: Time) -> bool {
        // The server's word, because its clock may differ.
        let is_expired = silence["status"]["state"] == "expired";
        let is_within = self.within.is_none_or(|within| {
            let within = within.as_secs_f64();
            ends_at(silence).is_some_and(|end| match is_expired {
                true => now.seconds_since(end) <= within,
                false => end.seconds_since(now) <= within,
            })
        });
        let is = |wanted: &Option<String>, key: &str| {
            wanted.as_ref().is_none_or(|wanted| silence[key] == **wanted)
        };
        is_expired == self.expired
            && is_within
            && is(&self.created_by, "createdBy")
            && is(&self.id, "id")
    }
}

fn ends_at(silence: &Value) -> Option<Time> {
    Time::parse(silence["endsAt"].as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches as _};
    use serde_json::json;

    #[test]
    fn flags_choose_silences() {
        let now = Time::parse("2026-11-08T12:00:00Z").expect("a time");
        let silence = |state: &str, ends_at: &str| {
            let status = json!({"state": state});
            json!({"id": "7", "createdBy": "ada", "status": status, "endsAt": ends_at})
        };
        let active = silence("active", "2026-11-08T13:00:00.000Z");
        let expired = silence("expired", "2026-11-08T11:00:00.000Z");
        for (flags, is_active_wanted, is_expired_wanted) in [
            (&[][..], true, false),
            (&["--expired"], false, true),
            (&["--within=30m"], false, false),
            (&["--within=1h"], true, false),
            (&["--expired", "--within=30m"], false, false),
            (&["--expired", "--within=1h"], false, true),
            (&["--created-by=ada", "--id=7"], true, false),
            (&["--created-by=eve"], false, false),
            (&["--id=8"], false, false),
        ] {
            let command = QueryArgs::augment_args(Command::new("query"));
            let matches = command.get_matches_from(["query"].iter().chain(flags));
            let args = QueryArgs::from_arg_matches(&matches).expect("flags");
            let wanted = (args.is_wanted(&active, now), args.is_wanted(&expired, now));
            assert_eq!(wanted, (is_active_wanted, is_expired_wanted), "{flags:?}");
        }
    }
}
