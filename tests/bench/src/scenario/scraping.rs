//! Scraping: a few large targets each second, and many small ones at the usual interval.
//!
//! Each server scrapes the same pages, which are gzipped. Its CPU time is counted from the second
//! scrape of every target until all targets had the given number of further scrapes. tidepool and
//! Prometheus store their samples; vmagent writes them by remote write 1.0 to a receiver that
//! accepts everything.

use super::super::contender::Contender;
use super::super::fleet::{self, Fleet, Pages, Size};
use super::super::outcome::Outcome;
use super::super::{BenchError, Context};
use super::megabytes;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tidepool_tests::process::{Launch, Usage};
use tidepool_tests::receiver::{self, Receiver};
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::{vmagent, wait};

/// Scrapes of each target before the clock starts: series are known, and the second begins.
const WARM_UP: u64 = 2;
/// Timeout for the storage of the last scrapes.
const STORED_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest slowdown of a scraper; slower ones are not measured.
const SLOWNESS_MAX: u32 = 4;

/// Targets, and the interval of their scrapes.
struct Scraping {
    rows: &'static str,
    size: Size,
    interval_s: u64,
    /// Number of scrapes that are measured.
    scrapes: u64,
}

/// Measures both kinds of targets with every server that scrapes.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let all = [("scrape-10x1000", 10, 1_000, 1, 60), ("scrape-1000x100", 1_000, 100, 15, 8)];
    for (rows, targets, series, interval_s, scrapes) in all {
        let scrapes = context.sized(scrapes, 2);
        let size = Size {
            targets: context.sized(targets, 10),
            series: context.sized(series, 60),
            // A server may be ahead of the clock by some scrapes.
            pages: scrapes + WARM_UP as usize + 3,
        };
        let interval_s = context.sized(interval_s, 1) as u64;
        let scraping = Scraping { rows, size, interval_s, scrapes: scrapes as u64 };
        let pages = fleet::pages(size, context.seed)?;
        for contender in scrapers(context) {
            scraping.measure(context, contender, &pages, &mut outcome)?;
        }
    }
    Ok(outcome)
}

/// Returns the scrapers of the measured servers; VictoriaMetrics scrapes by vmagent.
fn scrapers(context: &Context) -> Vec<Contender> {
    let scraper = |contender: &Contender| match contender {
        Contender::VictoriaMetrics => vmagent::is_installed().then_some(Contender::Vmagent),
        other => Some(*other),
    };
    context.servers.iter().filter_map(scraper).collect()
}

impl Scraping {
    fn measure(
        &self,
        context: &Context,
        contender: Contender,
        pages: &Pages,
        outcome: &mut Outcome,
    ) -> Result<(), BenchError> {
        let directory = tempfile::tempdir_in(&context.directory)?;
        let fleet = Fleet::start(pages)?;
        let receiver = Receiver::start()?;
        // Requests are not decoded before the clock has stopped.
        receiver.answers(|_, _| receiver::status(204));
        let launch = self.launch(context, contender, directory.path(), &fleet, &receiver)?;
        let server = launch.start()?;

        let wait_for = |scrapes: u64| {
            let timeout = Duration::from_secs(self.interval_s * (scrapes + 2)) * SLOWNESS_MAX;
            let is_there = || (fleet.least_asked() >= scrapes).then_some(());
            wait::until("scrapes of all targets", timeout, is_there)
        };
        wait_for(WARM_UP)?;
        let (before, asked_before, start) = (server.usage()?, fleet.asked(), Instant::now());
        wait_for(WARM_UP + self.scrapes)?;
        let (after, asked_after, wall) = (server.usage()?, fleet.asked(), start.elapsed());

        let series = self.size.series as u64;
        let stored = || match contender {
            Contender::Vmagent => written(&receiver),
            _ => read(&Reader::new(&server.url())),
        };
        let sent = asked_after * series;
        let is_stored = || stored().ok().filter(|found| *found >= sent);
        if wait::until("all samples", STORED_TIMEOUT, is_stored).is_err() {
            return Err(BenchError::Incomplete { contender, sent, found: stored()? });
        }
        server.terminate()?;
        let samples = (asked_after - asked_before) * series;
        self.add(contender, samples, &before, &after, wall, outcome);
        Ok(())
    }

    fn add(
        &self,
        contender: Contender,
        samples: u64,
        before: &Usage,
        after: &Usage,
        wall: Duration,
        outcome: &mut Outcome,
    ) {
        let rows = self.rows;
        let cpu = (after.cpu - before.cpu).as_secs_f64();
        let per_million = cpu / (samples as f64 / 1e6);
        outcome.add(&format!("{rows}-cpu"), contender, per_million);
        outcome.add_timed(&format!("{rows}-seconds"), contender, cpu, wall.as_secs_f64());
        outcome.add(&format!("{rows}-memory"), contender, megabytes(after.peak_memory_bytes));
    }

    /// Returns the launch of a scraper of all targets.
    fn launch(
        &self,
        context: &Context,
        contender: Contender,
        directory: &Path,
        fleet: &Fleet,
        receiver: &Receiver,
    ) -> Result<Launch, BenchError> {
        let file = directory.join("scrape.yml");
        let flags = match contender {
            Contender::Tidepool => {
                let mut flags = context.tidepool_flags.clone();
                flags.push(format!("--config={}", file.display()));
                flags
            }
            Contender::Vmagent => vec![
                format!("-promscrape.config={}", file.display()),
                format!("-remoteWrite.url={}", receiver.url()),
                "-remoteWrite.forcePromProto".to_owned(),
            ],
            Contender::Prometheus(_) | Contender::VictoriaMetrics => Vec::new(),
        };
        let launch = contender.launch(directory, &flags)?;
        let text = self.configuration(fleet);
        // Prometheus' flags already contain the path of a file.
        let file = match contender {
            Contender::Prometheus(_) => directory.join("prometheus.yml"),
            _ => file,
        };
        fs::write(file, text)?;
        Ok(launch)
    }

    fn configuration(&self, fleet: &Fleet) -> String {
        let seconds = self.interval_s;
        let mut text = format!(
            "global: {{scrape_interval: {seconds}s, scrape_timeout: {seconds}s}}\n\
             scrape_configs:\n  - job_name: fleet\n    static_configs:\n      - targets:\n"
        );
        for address in fleet.addresses() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "          - '{address}'");
        }
        text
    }
}

/// Returns whether a series is of a page, not of the scraper itself.
fn is_exposed(name: &str) -> bool {
    name != "up" && !name.starts_with("scrape_")
}

fn read(reader: &Reader) -> Result<u64, BenchError> {
    let mut found = 0;
    reader.visit_parts(&[everything(i64::MIN, i64::MAX)], |part| {
        if is_exposed(part.labels.value("__name__")) {
            found += part.samples.len() as u64;
        }
        Ok(())
    })?;
    Ok(found)
}

fn written(receiver: &Receiver) -> Result<u64, BenchError> {
    let of_request = |received: &receiver::Received| {
        let series = received.series().unwrap_or_default();
        let exposed = series.iter().filter(|one| is_exposed(one.labels.value("__name__")));
        exposed.map(|one| one.samples.len() as u64).sum::<u64>()
    };
    Ok(receiver.received().iter().map(of_request).sum())
}
