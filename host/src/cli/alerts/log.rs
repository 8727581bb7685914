//! `tidepool alerts log`: prints the journal of alerts of a data directory, also of a running node.

use crate::cli::DataDirArg;
use crate::cli::progress::warn_line;
use crate::cli::query::Failure;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::json;
use std::io::Write as _;
use std::process::ExitCode;
use tidepool_disk::ALERTS_DIR;
use tidepool_disk::fs::RealDisk;
use tidepool_notify::event::{Cause, Entry};
use tidepool_notify::journal::{Item, read_dir};

#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    #[command(flatten)]
    dir: DataDirArg,

    /// Output format
    #[arg(short = 'o', long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line of text for each event
    Text,
    /// A line of JSON for each event
    Json,
}

pub fn run(args: &LogArgs) -> ExitCode {
    match print(args) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::FAILURE,
        Err(failure) => failure.exit("log error: "),
    }
}

/// Prints all events; returns whether there is damage.
fn print(args: &LogArgs) -> Result<bool, Failure> {
    let dir = args.dir.data_dir.join(ALERTS_DIR);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut written = Ok(());
    let read = read_dir(&RealDisk, &dir, 0, &mut |item| {
        let line = match (item, args.format) {
            (Item::Event(entry), Format::Text) => text(entry),
            (Item::Event(entry), Format::Json) => json_line(entry),
            // Alerts that began before the oldest event are no events of it.
            (Item::Open(_), _) => return,
        };
        if written.is_ok() {
            written = writeln!(out, "{line}");
        }
    });
    let damage = read.map_err(|error| Failure::Argument(error.to_string()))?;
    written?;
    out.flush()?;
    for place in &damage {
        let path = place.path.display();
        warn_line(&format!(
            "{path} is damaged at byte {}; the events there are lost",
            place.offset
        ));
    }
    Ok(!damage.is_empty())
}

fn text(Entry { number, event }: &Entry) -> String {
    let labels: Vec<String> =
        event.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    let cause = match event.cause {
        Cause::Evaluation => String::new(),
        cause => format!(" ({})", cause.name()),
    };
    format!(
        "{number} {} {:8} {{{}}} {}{cause}",
        time(event.time_ms),
        event.change.name(),
        labels.join(", "),
        event.value
    )
}

fn json_line(Entry { number, event }: &Entry) -> String {
    json!({
        "number": number,
        "id": event.id(),
        "change": event.change.name(),
        "time": time(event.time_ms),
        "file": &*event.origin.file,
        "group": &*event.origin.group,
        "labels": event.labels.to_map(),
        "annotations": &*event.annotations,
        "value": event.value.to_string(),
        "firedAt": time(event.fired_at_ms),
        "cause": event.cause.name(),
    })
    .to_string()
}

/// Writes a time as RFC 3339 does, or in milliseconds outside of the years that it has.
fn time(time_ms: i64) -> String {
    let time = Timestamp::from_millisecond(time_ms);
    time.map_or_else(|_| time_ms.to_string(), |time| format!("{time:.3}"))
}
