//! `tidepool alerts backtest`: asks a server, or evaluates over a data directory without one.

use super::print;
use crate::cli::progress::warn_line;
use crate::cli::query::{DirArgs, Failure, HttpClient, Local, Server, Time, parse_url};
use crate::cli::{CliError, Progress};
use clap::{Args, ValueEnum};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tidepool_evaluation::BacktestSettings;
use tidepool_evaluation::backtest::{BacktestReport, Limits};
use tidepool_query::QueryFeatures;
use tidepool_rules::file::RULES_MAX;
use tidepool_rules::group::Defaults;
use tidepool_settings::duration::duration;

/// Address of a server that was started without flags.
pub const SERVER: &str = "http://127.0.0.1:9201";

/// Maximum number of alerts of a rule: a server's default.
const ALERTS_MAX: usize = 10_000;

#[derive(Debug, Clone, Args)]
pub struct BacktestArgs {
    /// The rule file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Start of the range: RFC 3339, seconds since the Unix epoch, or a duration before now such as
    /// 7d
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    from: Time,

    /// End of the range, in the same forms; now without it
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    to: Option<Time>,

    /// The server whose store is read
    #[arg(long, value_name = "URL", default_value = SERVER, conflicts_with = "dir")]
    server: String,

    /// YAML file with credentials, TLS and proxy for the server
    #[arg(long = "http.config.file", value_name = "FILE", conflicts_with = "dir")]
    http_config_file: Option<PathBuf>,

    #[command(flatten)]
    dir: DirArgs,

    /// Interval of groups that have none, with --dir; a server has its global.evaluation_interval
    #[arg(
        long, value_name = "DURATION", default_value = "1m", value_parser = duration
    )]
    evaluation_interval: Duration,

    /// Output format
    #[arg(short = 'o', long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines of text
    Text,
    /// One line of JSON, as the API answers
    Json,
}

pub fn run(args: &BacktestArgs) -> ExitCode {
    match report(args).and_then(|report| written(args, &report)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit("backtest error: "),
    }
}

fn written(args: &BacktestArgs, report: &BacktestReport) -> Result<(), Failure> {
    let text = match args.format {
        Format::Text => print::text(report),
        Format::Json => serde_json::to_string(report).map_err(std::io::Error::other)? + "\n",
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn report(args: &BacktestArgs) -> Result<BacktestReport, Failure> {
    let rules = std::fs::read(&args.file).map_err(CliError::file("read", &args.file))?;
    let range = (args.from, args.to.unwrap_or_else(Time::now));
    if range.1 < range.0 {
        return Err(Failure::Argument("--to is before --from".to_owned()));
    }
    let _progress = Progress::spinner("evaluating the rules");
    match &args.dir.dir {
        Some(dir) => of_dir(args, dir, &rules, range),
        None => of_server(args, rules, range),
    }
}

fn of_server(
    args: &BacktestArgs,
    rules: Vec<u8>,
    (from, to): (Time, Time),
) -> Result<BacktestReport, Failure> {
    let url = parse_url(&args.server).map_err(Failure::Usage)?;
    let client = HttpClient::open(url, args.http_config_file.as_deref(), &[])?;
    // The server ends it at its own timeout.
    let server = Server::new(client, None)?;
    let rules = String::from_utf8(rules)
        .map_err(|error| Failure::Argument(format!("{}: {error}", args.file.display())))?;
    let parameters = [("rules", rules), ("start", from.parameter()), ("end", to.parameter())];
    server.post_only(&["alerts", "backtest"], &parameters)
}

fn of_dir(
    args: &BacktestArgs,
    dir: &Path,
    rules: &[u8],
    (from, to): (Time, Time),
) -> Result<BacktestReport, Failure> {
    // As a server without flags.
    let features = QueryFeatures::default();
    let settings = BacktestSettings {
        defaults: Defaults {
            interval: args.evaluation_interval,
            query_offset: Duration::ZERO,
            external_labels: Arc::default(),
            external_url: "".into(),
        },
        features,
        rules_max: RULES_MAX,
        alerts_max: ALERTS_MAX,
    };
    let failed =
        |error: tidepool_evaluation::backtest::BacktestError| Failure::Argument(error.to_string());
    let file = settings.read(&args.file, rules).map_err(failed)?;
    let local = Local::open(dir, args.dir.memory_limit)?;
    if local.is_damaged {
        warn_line("the outcome lacks what is damaged");
    }
    let limits = Limits {
        options: features.options(),
        memory_bytes_max: usize::try_from(args.dir.memory_limit).unwrap_or(usize::MAX),
        timeout: None,
        deadline: None,
        is_cancelled: Arc::new(|| false),
    };
    settings.run(&[file], (from.as_ms(), to.as_ms()), local.into_instance(), limits).map_err(failed)
}

/// Parses a time, or a duration before now; for clap.
fn time(text: &str) -> Result<Time, String> {
    match duration(text) {
        Ok(before) if text.parse::<f64>().is_err() => {
            Ok(Time::now().plus_seconds(-i64::try_from(before.as_secs()).unwrap_or(i64::MAX)))
        }
        _ => Time::parse(text),
    }
}
