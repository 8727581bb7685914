//! `tidepool alerts silence`: silences of a server, with the words of `amtool`.
//!
//! It asks `/api/v2/`, so it also works with an Alertmanager.

mod add;
mod client;
mod print;
mod query;

use super::backtest::SERVER;
use crate::cli::query::Failure;
use clap::{Args, Subcommand};
use client::Client;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tidepool_model::MatchOp;
use tidepool_notify::matchers::{Matcher, MatchersError};
use tidepool_rules::labels::ALERT_NAME;

#[derive(Debug, Clone, Args)]
pub struct SilenceArgs {
    #[command(subcommand)]
    command: SilenceCommand,

    /// The server
    #[arg(long, value_name = "URL", default_value = SERVER, global = true)]
    server: String,

    /// YAML file with credentials, TLS and proxy for the server
    #[arg(long = "http.config.file", value_name = "FILE", global = true)]
    http_config_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
enum SilenceCommand {
    /// Silence the alerts that match all matchers, and print the silence's identifier
    ///
    /// A first argument without an operator is the name of an alert.
    ///
    /// Example: tidepool alerts silence add DiskFull device=sda1 --duration=2h --comment="new disk"
    Add(add::AddArgs),
    /// List silences that have not expired
    Query(query::QueryArgs),
    /// End silences
    Expire(ExpireArgs),
}

#[derive(Debug, Clone, Args)]
struct ExpireArgs {
    /// Identifiers of silences
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

pub fn run(args: &SilenceArgs) -> ExitCode {
    match written(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit("silence error: "),
    }
}

fn written(args: &SilenceArgs) -> Result<(), Failure> {
    let open = || Client::open(&args.server, args.http_config_file.as_deref());
    let text = match &args.command {
        SilenceCommand::Add(add) => {
            // Mistakes of the command line are shown before the server is asked.
            let body = add.body()?;
            open()?.set(&body)? + "\n"
        }
        SilenceCommand::Query(query) => query.run(&open()?)?,
        SilenceCommand::Expire(expire) => {
            let client = open()?;
            expire.ids.iter().try_for_each(|id| client.expire(id))?;
            return Ok(());
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Reads matchers; a first one without an operator is the name of an alert.
fn matchers(texts: &[String]) -> Result<Vec<Matcher>, Failure> {
    let read = |(place, text): (usize, &String)| match Matcher::parse(text) {
        Err(MatchersError::Format { .. }) if place == 0 => {
            Matcher::new(MatchOp::Equal, ALERT_NAME, text)
        }
        read => read,
    };
    let matchers: Result<Vec<Matcher>, MatchersError> =
        texts.iter().enumerate().map(read).collect();
    matchers.map_err(|error| Failure::Argument(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_matcher_without_an_operator_is_the_name_of_an_alert() {
        let read = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let matchers = matchers(&texts).map_err(|failure| failure.to_string())?;
            Ok::<_, String>(matchers.iter().map(Matcher::to_string).collect::<Vec<_>>())
        };
        let both = ["alertname=\"Disk full\"", "job=~\"a|b\""];
        assert_eq!(read(&["Disk full", "job=~a|b"]), Ok(both.map(str::to_owned).to_vec()));
        assert_eq!(read(&["job!=a"]), Ok(vec!["job!=\"a\"".to_owned()]));
        assert!(read(&["job=a", "b"]).is_err_and(|why| why.starts_with("bad matcher format: b")));
        assert!(read(&["job=~("]).is_err_and(|why| why.starts_with("invalid regular expression")));
    }
}
