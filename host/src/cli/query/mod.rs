//! `tidepool query`: PromQL on the command line, with the flags and the output of `promtool query`.
//! Queries a server, or with `--dir` a data directory without a server.
//!
//! Start with [`Source`]: [`server`] over [`http`], or [`local`]; both return the types of
//! [`value`]. [`mod@print`] prints them in the format of [`go`]; [`analyze`] counts buckets.

mod analyze;
mod go;
mod http;
mod local;
mod print;
mod server;
mod time;
mod value;

pub use http::{HttpClient, parse_url};
pub use local::Local;
pub use server::Server;
pub use time::Time;

use super::{CliError, Verdict};
use clap::{Args, Subcommand};
use http::parse_header;
use hyper::header::{HeaderName, HeaderValue};
use print::Format;
use server::TIMEOUT;
use std::fmt;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use tidepool_runtime::CallError;
use tidepool_settings::duration::bytes;
use tidepool_telemetry::{self as telemetry, LogFormat};
use value::{Metric, Value};

/// Approximate number of steps of a range without `--step`; steps are whole seconds.
const STEPS: f64 = 250.0;

/// Length of a range without `--start`, in seconds.
const RANGE_SECONDS: i64 = 300;

/// Queries.
#[derive(Debug, Clone, Args)]
pub struct QueryArgs {
    #[command(subcommand)]
    command: QueryCommand,

    /// Output format: text, or JSON in one line
    #[arg(short = 'o', long, value_enum, default_value = "promql", global = true)]
    format: Format,

    /// YAML file with credentials, TLS and proxy for the server
    ///
    /// Keys are those of Prometheus' HTTP client: basic_auth, authorization, oauth2, tls_config,
    /// proxy_url, no_proxy, proxy_from_environment, proxy_connect_header, http_headers,
    /// follow_redirects, enable_http2. Paths are relative to the file.
    #[arg(long = "http.config.file", value_name = "FILE", global = true)]
    http_config_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
enum QueryCommand {
    /// Evaluate an expression at one time
    #[command(override_usage = "tidepool query instant [OPTIONS] SERVER EXPR\n       \
                          tidepool query instant [OPTIONS] --dir DIR EXPR")]
    Instant(InstantArgs),
    /// Evaluate an expression at every step of a range
    #[command(override_usage = "tidepool query range [OPTIONS] SERVER EXPR\n       \
                          tidepool query range [OPTIONS] --dir DIR EXPR")]
    Range(RangeArgs),
    /// List the series that selectors select
    #[command(override_usage = "tidepool query series --match SELECTOR [OPTIONS] SERVER\n       \
                          tidepool query series --match SELECTOR [OPTIONS] --dir DIR")]
    Series(SeriesArgs),
    /// List the values of a label
    #[command(override_usage = "tidepool query labels [OPTIONS] SERVER NAME\n       \
                          tidepool query labels [OPTIONS] --dir DIR NAME")]
    Labels(LabelsArgs),
    /// Count the buckets that histograms use
    #[command(
        override_usage = "tidepool query analyze --server SERVER --type histogram --match SELECTOR\n       \
                          tidepool query analyze --dir DIR --type histogram --match SELECTOR"
    )]
    Analyze(AnalyzeArgs),
}

/// A data directory in place of a server.
#[derive(Debug, Clone, Args)]
pub struct DirArgs {
    /// Ask this data directory, tidepool's or Prometheus', without a server
    ///
    /// It is only read. Samples that are only in the logs are read into memory first. No server may
    /// be running on it.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Memory of the engine instance with --dir
    #[arg(long, value_name = "BYTES", default_value = "3GiB", value_parser = bytes)]
    pub memory_limit: u64,
}

/// Further headers for the server.
#[derive(Debug, Clone, Args)]
struct HeaderArgs {
    /// Extra header to send to the server, as NAME=VALUE; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse_header)]
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// When series and labels are looked up.
#[derive(Debug, Clone, Args)]
struct SpanArgs {
    /// Start time, in RFC 3339 or seconds since the Unix epoch; without it 9999 hours ago
    #[arg(long, allow_hyphen_values = true)]
    start: Option<String>,

    /// End time, in the same forms; without it in 9999 hours
    #[arg(long, allow_hyphen_values = true)]
    end: Option<String>,
}

#[derive(Debug, Clone, Args)]
struct InstantArgs {
    /// The server, such as http://127.0.0.1:9201; left out with --dir
    #[arg(value_name = "SERVER")]
    first: String,

    /// The expression
    #[arg(value_name = "EXPR")]
    second: Option<String>,

    /// Evaluation time, in RFC 3339 or seconds since the Unix epoch; now without it
    #[arg(long, allow_hyphen_values = true)]
    time: Option<String>,

    #[command(flatten)]
    headers: HeaderArgs,
    #[command(flatten)]
    dir: DirArgs,
}

#[derive(Debug, Clone, Args)]
struct RangeArgs {
    /// The server, such as http://127.0.0.1:9201; left out with --dir
    #[arg(value_name = "SERVER")]
    first: String,

    /// The expression
    #[arg(value_name = "EXPR")]
    second: Option<String>,

    /// Start time, in RFC 3339 or seconds since the Unix epoch; without it 5 minutes before the end
    #[arg(long, allow_hyphen_values = true)]
    start: Option<String>,

    /// End time, in the same forms; now without it
    #[arg(long, allow_hyphen_values = true)]
    end: Option<String>,

    /// Time between steps, such as 15s; without it a 250th of the range, in whole seconds
    #[arg(long, value_name = "DURATION", value_parser = go::parse_duration, allow_hyphen_values = true)]
    step: Option<i64>,

    #[command(flatten)]
    headers: HeaderArgs,
    #[command(flatten)]
    dir: DirArgs,
}

#[derive(Debug, Clone, Args)]
struct SeriesArgs {
    /// The server, such as http://127.0.0.1:9201; left out with --dir
    #[arg(value_name = "SERVER", required_unless_present = "dir", conflicts_with = "dir")]
    server: Option<String>,

    /// Series selector such as 'up{job="node"}'; may be given several times, for all that any of
    /// them selects
    #[arg(long = "match", value_name = "SELECTOR", required = true)]
    selectors: Vec<String>,

    #[command(flatten)]
    span: SpanArgs,
    #[command(flatten)]
    dir: DirArgs,
}

#[derive(Debug, Clone, Args)]
struct LabelsArgs {
    /// The server, such as http://127.0.0.1:9201; left out with --dir
    #[arg(value_name = "SERVER")]
    first: String,

    /// The label's name
    #[arg(value_name = "NAME")]
    second: Option<String>,

    /// Series selector; may be given several times. Without one: all series
    #[arg(long = "match", value_name = "SELECTOR")]
    selectors: Vec<String>,

    #[command(flatten)]
    span: SpanArgs,
    #[command(flatten)]
    dir: DirArgs,
}

#[derive(Debug, Clone, Args)]
struct AnalyzeArgs {
    /// The server, such as http://127.0.0.1:9201
    #[arg(long, required_unless_present = "dir", conflicts_with = "dir")]
    server: Option<String>,

    /// Type of the metrics: histogram
    #[arg(long = "type", value_name = "TYPE")]
    metric_type: String,

    /// Time before --time that is analyzed
    #[arg(long, value_name = "DURATION", value_parser = go::parse_duration, default_value = "1h")]
    duration: i64,

    /// End of that time, in RFC 3339 or seconds since the Unix epoch; now without it
    #[arg(long, allow_hyphen_values = true)]
    time: Option<String>,

    /// Series selector, of native histograms or of the buckets of classic ones; may be given
    /// several times
    #[arg(long = "match", value_name = "SELECTOR", required = true)]
    selectors: Vec<String>,

    #[command(flatten)]
    dir: DirArgs,
}

#[derive(Debug)]
pub enum Failure {
    /// The command line is invalid; exit code 2.
    Usage(String),
    /// An argument is invalid, and promtool exits with 1 for it.
    Argument(String),
    /// The command failed before or after the query itself.
    Command(CliError),
    /// The query failed, with the type of error of Prometheus' HTTP API.
    Api { kind: String, text: String, detail: String },
    /// The server gave no valid response.
    Exchange(String),
}

enum Source {
    Server(Box<Server>),
    Dir(Box<Local>),
}

impl From<CliError> for Failure {
    fn from(error: CliError) -> Failure {
        Failure::Command(error)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        Failure::Command(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Command(CliError::Output(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) | Failure::Argument(text) | Failure::Exchange(text) => {
                f.write_str(text)
            }
            Failure::Command(error) => error.fmt(f),
            Failure::Api { kind, text, detail } if detail.is_empty() => write!(f, "{kind}: {text}"),
            Failure::Api { kind, text, detail } => write!(f, "{kind}: {text} (detail: {detail})"),
        }
    }
}

impl Source {
    fn instant(&mut self, expression: &str, time: Time) -> Result<Value, Failure> {
        match self {
            Source::Server(server) => server.instant(expression, time),
            Source::Dir(local) => local.instant(expression, time),
        }
    }

    fn range(
        &mut self,
        expression: &str,
        span: (Time, Time),
        step_seconds: f64,
    ) -> Result<Value, Failure> {
        match self {
            Source::Server(server) => {
                server.range(expression, span, &tidepool_model::number::plain(step_seconds))
            }
            Source::Dir(local) => local.range(expression, span, step_seconds),
        }
    }

    fn series(&mut self, selectors: &[String], span: (Time, Time)) -> Result<Vec<Metric>, Failure> {
        match self {
            Source::Server(server) => server.series(selectors, span),
            Source::Dir(local) => local.series(selectors, span),
        }
    }

    /// Returns the values of a label, and the response's warnings.
    fn label_values(
        &mut self,
        name: &str,
        selectors: &[String],
        span: (Time, Time),
    ) -> Result<(Vec<String>, Vec<String>), Failure> {
        match self {
            Source::Server(server) => server.label_values(name, selectors, span),
            Source::Dir(local) => Ok((local.label_values(name, selectors, span)?, Vec::new())),
        }
    }

    fn verdict(&self) -> Verdict {
        match self {
            Source::Dir(local) if local.is_damaged => Verdict::Damaged,
            _ => Verdict::Fine,
        }
    }
}

pub fn run(args: QueryArgs) -> ExitCode {
    telemetry::init(LogFormat::Text, "warn");
    match args.run() {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Damaged) => ExitCode::FAILURE,
        Err(failure) => {
            // promtool prints errors of `analyze` without a prefix.
            let is_analysis = matches!(args.command, QueryCommand::Analyze(_));
            failure.exit(if is_analysis { "" } else { "query error: " })
        }
    }
}

impl Failure {
    /// Writes the failure to standard error; an answer's with a text before it.
    pub fn exit(&self, before_answer: &str) -> ExitCode {
        let (before, code) = match self {
            // The reader of the pipe has ended, which is not an error.
            Failure::Command(CliError::Output(error))
                if error.kind() == io::ErrorKind::BrokenPipe =>
            {
                return ExitCode::SUCCESS;
            }
            Failure::Usage(_) => ("error: ", ExitCode::from(2)),
            Failure::Api { .. } | Failure::Exchange(_) => (before_answer, ExitCode::FAILURE),
            _ => ("", ExitCode::FAILURE),
        };
        complain(&format!("{before}{self}"));
        code
    }
}

impl QueryArgs {
    fn run(&self) -> Result<Verdict, Failure> {
        match &self.command {
            QueryCommand::Instant(args) => self.instant(args),
            QueryCommand::Range(args) => self.range(args),
            QueryCommand::Series(args) => self.series(args),
            QueryCommand::Labels(args) => self.labels(args),
            QueryCommand::Analyze(args) => self.analyze(args),
        }
    }

    fn instant(&self, args: &InstantArgs) -> Result<Verdict, Failure> {
        let (server, expression) =
            args.dir.operands(&args.first, args.second.as_deref(), "EXPR")?;
        let mut source = self.source(server, &args.dir, &args.headers.headers)?;
        let time = time(args.time.as_deref(), "error parsing evaluation time: ")?;
        let mut value = source.instant(expression, time)?;
        self.print(&self.format.value(&mut value), &source)
    }

    fn range(&self, args: &RangeArgs) -> Result<Verdict, Failure> {
        let (server, expression) =
            args.dir.operands(&args.first, args.second.as_deref(), "EXPR")?;
        let mut source = self.source(server, &args.dir, &args.headers.headers)?;
        let end = time(args.end.as_deref(), "error parsing end time: ")?;
        let start = match &args.start {
            None => end.plus_seconds(-RANGE_SECONDS),
            Some(_) => time(args.start.as_deref(), "error parsing start time: ")?,
        };
        if start >= end {
            return Err(Failure::Argument("start time is not before end time".into()));
        }
        // As in promtool, a step of 0 is treated as missing.
        let step_seconds = match args.step {
            None | Some(0) => (end.seconds_since(start) / STEPS).floor().max(1.0),
            Some(nanos) => nanos as f64 / 1e9,
        };
        let mut value = source.range(expression, (start, end), step_seconds)?;
        self.print(&self.format.value(&mut value), &source)
    }

    fn series(&self, args: &SeriesArgs) -> Result<Verdict, Failure> {
        let mut source = self.source(args.server.as_deref(), &args.dir, &[])?;
        let series = source.series(&args.selectors, args.span.times()?)?;
        self.print(&self.format.series(&series), &source)
    }

    fn labels(&self, args: &LabelsArgs) -> Result<Verdict, Failure> {
        let (server, name) = args.dir.operands(&args.first, args.second.as_deref(), "NAME")?;
        let mut source = self.source(server, &args.dir, &[])?;
        let (values, warnings) = source.label_values(name, &args.selectors, args.span.times()?)?;
        for warning in warnings {
            complain(&format!("query warning: {warning}"));
        }
        self.print(&self.format.label_values(&values), &source)
    }

    fn analyze(&self, args: &AnalyzeArgs) -> Result<Verdict, Failure> {
        if args.metric_type != "histogram" {
            let why = format!("analyze type is {}, must be 'histogram'", args.metric_type);
            return Err(Failure::Argument(why));
        }
        let before = format!("error parsing time '{}': ", args.time.as_deref().unwrap_or_default());
        let time = time(args.time.as_deref(), &before)?;
        let mut source = self.source(args.server.as_deref(), &args.dir, &[])?;
        let mut out = BufWriter::new(io::stdout().lock());
        analyze::analyze(&mut source, &args.selectors, args.duration, time, &mut out)?;
        Ok(source.verdict())
    }

    fn source(
        &self,
        server: Option<&str>,
        dir: &DirArgs,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<Source, Failure> {
        let config_file = self.http_config_file.as_deref();
        match (server, &dir.dir) {
            (Some(server), None) => {
                let url = parse_url(server).map_err(Failure::Usage)?;
                let client = HttpClient::open(url, config_file, headers)?;
                let is_analysis = matches!(self.command, QueryCommand::Analyze(_));
                // An analysis may read much data; promtool has no timeout for it either.
                let timeout = Some(TIMEOUT).filter(|_| !is_analysis);
                Ok(Source::Server(Box::new(Server::new(client, timeout)?)))
            }
            (None, Some(path)) => {
                if config_file.is_some() || !headers.is_empty() {
                    let why = "--http.config.file and --header are for a server, not for --dir";
                    return Err(Failure::Usage(why.into()));
                }
                Ok(Source::Dir(Box::new(Local::open(path, dir.memory_limit)?)))
            }
            _ => Err(Failure::Usage("give a server or --dir, one of the two".into())),
        }
    }

    fn print(&self, text: &str, source: &Source) -> Result<Verdict, Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(source.verdict())
    }
}

impl DirArgs {
    /// Returns the server (only without a directory), and the operand after it.
    fn operands<'a>(
        &self,
        first: &'a str,
        second: Option<&'a str>,
        name: &str,
    ) -> Result<(Option<&'a str>, &'a str), Failure> {
        match (&self.dir, second) {
            (None, Some(second)) => Ok((Some(first), second)),
            (Some(_), None) => Ok((None, first)),
            (None, None) => {
                Err(Failure::Usage(format!("{name} is missing, or the server before it")))
            }
            (Some(_), Some(_)) => {
                Err(Failure::Usage("give a server or --dir, not both of them".into()))
            }
        }
    }
}

impl SpanArgs {
    fn times(&self) -> Result<(Time, Time), Failure> {
        time::span(self.start.as_deref(), self.end.as_deref()).map_err(Failure::Argument)
    }
}

/// Writes a line to standard error. As in promtool, without the program's name.
fn complain(text: &str) {
    // If standard error is closed, the exit code still shows the result.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Parses a time of the command line. Without a text, returns the current time.
fn time(text: Option<&str>, before: &str) -> Result<Time, Failure> {
    let Some(text) = text else { return Ok(Time::now()) };
    Time::parse(text).map_err(|why| Failure::Argument(format!("{before}{why}")))
}
