//! `tidepool scrape`: prints the samples that one scrape of a URL would store.
//!
//! The exit code is 1 if the scrape fails, when `up` would be 0.

use super::progress::warn_line;
use crate::config::ConfigSource;
use clap::{Args, ValueEnum};
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tidepool_runtime::LabelLimits;
use tidepool_scrape::config::{Depth, ScrapeConfig};
use tidepool_scrape::error::beginning;
use tidepool_scrape::job::Job;
use tidepool_scrape::trial::{LabelCheck, Outcome, Shown, Trial};
use tidepool_scraping::USER_AGENT;
use tidepool_settings::duration::duration;
use tidepool_telemetry::{self as telemetry, LogFormat};

/// Name of the job if there is no configuration file.
const JOB: &str = "scrape";

/// What is scraped, and as which job.
#[derive(Debug, Clone, Args)]
pub struct ScrapeCommandArgs {
    /// The URL, or host and port; what it leaves out is as in the job, /metrics for example
    #[arg(value_name = "URL")]
    url: String,

    /// Take the settings of a job in this configuration file
    ///
    /// Authentication, TLS, relabeling, limits and all else are those of the job. If the job lists
    /// a target with the address of the URL, the target's labels count, too.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Name of the job, unless the file has only one
    #[arg(long, value_name = "NAME", requires = "config")]
    job: Option<String>,

    /// Maximum time of the scrape [default: the job's, or 10s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// Show help and unit of metrics, too
    #[arg(long)]
    metadata: bool,

    /// Output format: text, or JSON in one line
    #[arg(short = 'o', long, value_enum, default_value = "text")]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub fn run(args: ScrapeCommandArgs) -> ExitCode {
    telemetry::init(LogFormat::Text, "error");
    match scrape(&args).and_then(|outcome| {
        show(&args, &outcome).map_err(|error| error.to_string())?;
        Ok(outcome.error.is_none())
    }) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(what) => {
            warn_line(&what);
            ExitCode::FAILURE
        }
    }
}

fn scrape(args: &ScrapeCommandArgs) -> Result<Outcome, String> {
    let source = match &args.config {
        Some(path) => ConfigSource::of_file(path, Depth::Files),
        None => ConfigSource::new(["tidepool".into()]),
    };
    // The whole configuration is read, because the store's limits apply to labels as well.
    let (config, _) = source.serve().map_err(|error| error.to_string())?;
    let job = match &args.config {
        Some(_) => chosen(config.scrape.settings.jobs, args.job.as_deref())?,
        None => ScrapeConfig::new(Job::new(JOB), Vec::new()),
    };
    let trial = Trial {
        url: args.url.clone(),
        config: job,
        timeout: args.timeout,
        user_agent: USER_AGENT.to_owned(),
        body_bytes_max: config.scrape.body_bytes_max,
        out_of_order_window: config.store.out_of_order_window,
        check_labels: label_check(config.store.label_limits),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no async runtime: {error}"))?;
    runtime.block_on(trial.run()).map_err(|error| error.to_string())
}

/// Returns a check of labels by the store's limits. Errors name the flag; 0 means no limit.
fn label_check(limits: LabelLimits) -> LabelCheck {
    let is_over = |count: usize, max: u32| max > 0 && count > max as usize;
    Arc::new(move |pairs| {
        let LabelLimits { labels_max, name_bytes_max, value_bytes_max } = limits;
        if is_over(pairs.len(), labels_max) {
            let count = pairs.len();
            return Err(format!(
                "{count} labels are more than --max-label-names-per-series={labels_max}"
            ));
        }
        for (name, value) in pairs {
            let shown = beginning(name);
            if is_over(name.len(), name_bytes_max) {
                return Err(format!(
                    "the name of label {shown:?} has {} bytes, more than \
                     --max-label-name-length={name_bytes_max}",
                    name.len()
                ));
            }
            if is_over(value.len(), value_bytes_max) {
                return Err(format!(
                    "the value of label {shown:?} has {} bytes, more than \
                     --max-label-value-length={value_bytes_max}",
                    value.len()
                ));
            }
        }
        Ok(())
    })
}

/// Returns the job with a name, or the only job.
fn chosen(mut jobs: Vec<ScrapeConfig>, name: Option<&str>) -> Result<ScrapeConfig, String> {
    // Jobs with a probe do not scrape a URL.
    jobs.retain(|config| config.job.probe.is_none());
    let names = jobs.iter().map(|config| config.job.name.as_str()).collect::<Vec<_>>().join(", ");
    let place = match (name, jobs.len()) {
        (_, 0) => return Err("the configuration file has no job in scrape_configs".to_owned()),
        (Some(name), _) => jobs
            .iter()
            .position(|config| config.job.name == name)
            .ok_or_else(|| format!("there is no job {name:?}: the file has {names}"))?,
        (None, 1) => 0,
        (None, _) => return Err(format!("--job is missing: the file has {names}")),
    };
    Ok(jobs.swap_remove(place))
}

fn show(args: &ScrapeCommandArgs, outcome: &Outcome) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match args.output {
        Format::Text => write!(out, "{}", Shown { outcome, with_metadata: args.metadata }),
        Format::Json => writeln!(out, "{}", outcome.json()),
    };
    match written.and_then(|()| out.flush()) {
        // The reader of the pipe has ended, which is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_unless_there_is_only_one() {
        let jobs = |names: &[&str]| -> Vec<ScrapeConfig> {
            let job = |name: &&str| ScrapeConfig::new(Job::new(*name), Vec::new());
            names.iter().map(job).collect()
        };
        let found = |names: &[&str], name| chosen(jobs(names), name).map(|config| config.job.name);
        assert_eq!(found(&["a"], None), Ok("a".to_owned()));
        assert_eq!(found(&["a", "b"], Some("b")), Ok("b".to_owned()));
        for (names, name, said) in [
            (&[][..], None, "the configuration file has no job in scrape_configs"),
            (&["a", "b"], None, "--job is missing: the file has a, b"),
            (&["a", "b"], Some("c"), "there is no job \"c\": the file has a, b"),
        ] {
            assert_eq!(found(names, name), Err(said.to_owned()));
        }
    }
}
