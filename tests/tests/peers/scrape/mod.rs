//! Prometheus 3.15 and tidepool scrape the same scripts of pages with the same configuration, and
//! must store the same, with staleness markers and the series that a scraper adds.
//!
//! Each server has an exposer of its own. The page of a scrape depends on its number, and samples
//! are compared by that number, not by time: the n-th sample of a target's `up` gives the time of
//! its n-th scrape. So the times of the scrapes do not matter. Intervals are long enough for a busy
//! machine: a scrape that takes longer would fail, and count.
//!
//! Each target has a label `which` of its own, by which its series are found, whatever happens to
//! their other labels.
//!
//! Permitted differences: Prometheus writes staleness markers for series of a scrape that failed
//! half-way and was rolled back, although they have ended already or have never had a sample; and
//! it counts series as added that it had parsed of such a scrape. Markers after a marker, and
//! `scrape_series_added` after a failed scrape, have no meaning and are not compared. Nor is the
//! latter if the head refuses the only sample of a new series ([`REFUSED`]), which tidepool counts.

mod api;
mod bodies;
mod certificates;
mod changes;
mod exporter;
mod exposer;
mod histograms;
mod labels;
mod limits;
mod messages;
mod times;

use exposer::{Exposer, Scripts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tidepool_tests::clock::now_ms;
use tidepool_tests::histogram::{Point, Value, ValueSeries};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::remote_read::Reader;
use tidepool_tests::sender::read_all;
use tidepool_tests::tidepool::Config;
use tidepool_tests::{prometheus, wait};

/// Prefix of targets that have new series without an accepted sample.
const REFUSED: &str = "refused";
const TIMEOUT: Duration = Duration::from_secs(120);
/// A busy machine notices a timeout late.
const DURATION_TOLERANCE_S: f64 = 1.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SampleTime {
    /// At the scrape of this number, counted from zero.
    Scrape(usize),
    /// This number of milliseconds from the time that the pages refer to.
    Time(i64),
}

/// Values of each series by position.
type Scraped = BTreeMap<String, BTreeMap<SampleTime, String>>;

/// A server with its exposer.
struct Side {
    server: Server,
    exposer: Exposer,
    directory: PathBuf,
    config: PathBuf,
}

/// Both sides, with the settings they share.
struct Pair {
    theirs: Side,
    ours: Side,
    /// Time to which timestamps of pages refer.
    base_ms: i64,
    _directory: TempDir,
}

impl Pair {
    /// Starts both with a configuration, in which `ADDRESS` stands for that of the exposer and
    /// `DIRECTORY` for a folder of the server's own.
    fn start(yaml: &str, scripts: impl Fn(i64) -> Scripts) -> Pair {
        let directory = tempfile::tempdir().expect("a directory");
        let base_ms = now_ms();
        let side = |name: &str, start: &dyn Fn(&Path, &str) -> (Server, PathBuf)| {
            let folder = directory.path().join(name);
            std::fs::create_dir(&folder).expect("a directory");
            let exposer = Exposer::start(scripts(base_ms));
            let text = filled(yaml, &exposer, &folder);
            let (server, config) = start(&folder, &text);
            Side { server, exposer, directory: folder, config }
        };
        let theirs = side("theirs", &|folder, text| {
            let config = prometheus::Config::new(Release::V3, folder).expect("a directory");
            let config = config.flag("--enable-feature=exemplar-storage");
            let launch = config.launch().expect("Prometheus is built");
            let file = folder.join("prometheus.yml");
            std::fs::write(&file, text).expect("a file");
            (launch.start().expect("Prometheus starts"), file)
        });
        let ours = side("ours", &|folder, text| {
            let file = folder.join("tidepool.yml");
            std::fs::write(&file, text).expect("a file");
            let config = Config::new(folder).flag(&format!("--config={}", file.display()));
            // Prometheus accepts no out-of-order samples by default.
            let config = config.flag("--out-of-order-window=0s");
            (config.start().expect("tidepool starts"), file)
        });
        Pair { theirs, ours, base_ms, _directory: directory }
    }

    fn sides(&self) -> [&Side; 2] {
        [&self.theirs, &self.ours]
    }

    /// Returns each server's samples of the first scrapes of some targets: Prometheus first.
    fn scraped(&self, targets: usize, scrapes: usize, timeout_s: f64) -> [Scraped; 2] {
        self.sides().map(|side| {
            wait::until("all pages", TIMEOUT, || {
                side.scraped(self.base_ms, targets, scrapes, timeout_s)
            })
            .unwrap_or_else(|error| panic!("{error}\n{}", side.server.log()))
        })
    }

    /// Waits for these scrapes and compares them, and the requests of both.
    #[track_caller]
    fn assert_same(&self, targets: usize, scrapes: usize, timeout_s: f64) {
        let [theirs, ours] = self.scraped(targets, scrapes, timeout_s);
        assert_alike(&theirs, &ours);
        assert_eq!(self.ours.exposer.headers(), self.theirs.exposer.headers());
    }
}

impl Side {
    /// Returns all series, by the label that each target has.
    fn series(&self) -> BTreeMap<String, Vec<ValueSeries>> {
        let read = Reader::new(&self.server.url()).streamed_values(&read_all());
        let mut by_target: BTreeMap<String, Vec<ValueSeries>> = BTreeMap::new();
        for series in read.expect("an answer") {
            let which = series.labels.value("which").to_owned();
            assert!(!which.is_empty(), "of no target: {:?}", series.labels);
            by_target.entry(which).or_default().push(series);
        }
        by_target
    }

    /// Returns `None` before this number of targets has this number of scrapes, and one more.
    fn scraped(
        &self,
        base_ms: i64,
        targets: usize,
        scrapes: usize,
        timeout_s: f64,
    ) -> Option<Scraped> {
        let by_target = self.series();
        if by_target.len() < targets {
            return None;
        }
        let mut scraped = Scraped::new();
        for all in by_target.values() {
            let up = up_of(all)?;
            let numbers: BTreeMap<i64, usize> =
                up.points.iter().enumerate().map(|(at, point)| (point.timestamp_ms, at)).collect();
            if numbers.len() <= scrapes {
                return None;
            }
            let has_failed = |number: usize| {
                number
                    .checked_sub(1)
                    .is_some_and(|before| up.points[before].value != Value::Float(1f64.to_bits()))
            };
            for series in all {
                let is_added = series.labels.value("__name__") == "scrape_series_added";
                let is_refused = series.labels.value("which").starts_with(REFUSED);
                let is_duration = series.labels.value("__name__") == "scrape_duration_seconds";
                let points = told(&series.points).map(|point| {
                    let place = match numbers.get(&point.timestamp_ms) {
                        Some(number) => SampleTime::Scrape(*number),
                        None => SampleTime::Time(point.timestamp_ms - base_ms),
                    };
                    let limit = is_duration.then_some(timeout_s + DURATION_TOLERANCE_S);
                    (place, shown(&point.value, limit))
                });
                let is_judged = |(place, _): &(SampleTime, String)| match place {
                    SampleTime::Scrape(number) => {
                        *number < scrapes && !(is_added && (is_refused || has_failed(*number)))
                    }
                    SampleTime::Time(_) => true,
                };
                scraped.insert(self.name_of(series), points.filter(is_judged).collect());
            }
        }
        scraped.retain(|_, values| !values.is_empty());
        Some(scraped)
    }

    /// Returns labels without the parts that differ between the two servers.
    fn name_of(&self, series: &ValueSeries) -> String {
        let labels = series.labels.to_string();
        let labels = labels.replace(&self.exposer.address().to_string(), "ADDRESS");
        labels.replace(&*self.directory.to_string_lossy(), "DIRECTORY")
    }

    /// Rewrites the configuration and reloads it.
    fn reload(&self, yaml: &str) {
        let text = filled(yaml, &self.exposer, &self.directory);
        std::fs::write(&self.config, text).expect("a file");
        self.server.signal(rustix::process::Signal::HUP).expect("the signal is sent");
    }
}

/// Returns the series `up` of a target; a page may have one of that name, too.
fn up_of(all: &[ValueSeries]) -> Option<&ValueSeries> {
    let named = all.iter().filter(|one| one.labels.value("__name__") == "up");
    named.max_by_key(|one| one.points.len())
}

/// Returns points without staleness markers that have no meaning.
fn told(points: &[Point]) -> impl Iterator<Item = &Point> {
    let is_mark = |point: &Point| matches!(point.value, Value::Stale(_));
    let mut has_ended = true;
    points.iter().filter(move |point| {
        let says_nothing = has_ended && is_mark(point);
        has_ended = is_mark(point);
        !says_nothing
    })
}

fn filled(yaml: &str, exposer: &Exposer, folder: &Path) -> String {
    let text = yaml.replace("ADDRESS", &exposer.address().to_string());
    text.replace("DIRECTORY", &folder.to_string_lossy())
}

/// Returns a value by its bits; durations differ, but have a limit.
fn shown(value: &Value, limit: Option<f64>) -> String {
    match (value, limit) {
        (Value::Float(bits), Some(limit)) if (0.0..=limit).contains(&f64::from_bits(*bits)) => {
            "in time".to_owned()
        }
        // The kind of a staleness marker depends on the values stored before.
        (Value::Stale(_), _) => "end".to_owned(),
        (value, _) => format!("{value:?}"),
    }
}

/// Returns a job with one target, and further lines of its configuration.
fn job(name: &str, lines: &str) -> String {
    let mut text = format!("  - job_name: {name}\n    metrics_path: /{name}\n");
    for line in lines.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()) {
        text += &format!("    {line}\n");
    }
    text + &format!("    static_configs: [{{targets: [ADDRESS], labels: {{which: {name}}}}}]\n")
}

/// Returns a configuration of jobs that scrape every two seconds.
fn configuration(jobs: &[String]) -> String {
    let global = "global: {scrape_interval: 2s, scrape_timeout: 2s}\n";
    format!("{global}scrape_configs:\n{}", jobs.concat())
}

#[track_caller]
fn assert_alike(theirs: &Scraped, ours: &Scraped) {
    let mut wrong = String::new();
    let names: std::collections::BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for name in names {
        if ours.get(name) != theirs.get(name) {
            let (theirs, ours) = (theirs.get(name), ours.get(name));
            wrong += &format!("{name}\n  Prometheus {theirs:?}\n  tidepool   {ours:?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(!theirs.is_empty(), "nothing was scraped");
}
