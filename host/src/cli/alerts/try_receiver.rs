//! `tidepool alerts test`: has a server send one made-up alert to a receiver.

use super::backtest::SERVER;
use crate::cli::query::{Failure, HttpClient, Server, parse_url};
use clap::Args;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Clone, Args)]
pub struct TryArgs {
    /// Name of a receiver in the section notify of the server's configuration
    #[arg(value_name = "RECEIVER")]
    receiver: String,

    /// The server
    #[arg(long, value_name = "URL", default_value = SERVER)]
    server: String,

    /// YAML file with credentials, TLS and proxy for the server
    #[arg(long = "http.config.file", value_name = "FILE")]
    http_config_file: Option<PathBuf>,
}

#[derive(serde::Deserialize)]
struct Answered {
    answer: String,
}

pub fn run(args: &TryArgs) -> ExitCode {
    match answer(args).and_then(|answered| Ok(writeln!(std::io::stdout(), "{}", answered.answer)?))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit("test error: "),
    }
}

fn answer(args: &TryArgs) -> Result<Answered, Failure> {
    let url = parse_url(&args.server).map_err(Failure::Usage)?;
    let client = HttpClient::open(url, args.http_config_file.as_deref(), &[])?;
    let server = Server::new(client, None)?;
    server.post_only(&["admin", "alerts", "test"], &[("receiver", args.receiver.clone())])
}
