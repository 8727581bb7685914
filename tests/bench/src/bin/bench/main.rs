//! Measures tidepool beside Prometheus and VictoriaMetrics; see `--help`.

mod dashboard;
mod narrow;
mod queries;

use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};
use dashboard::DashboardOptions;
use narrow::NarrowOptions;
use queries::QueryOptions;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Duration;
use tidepool_bench::beside::{self, Beside};
use tidepool_bench::contender::Contender;
use tidepool_bench::load::Load;
use tidepool_bench::outcome::{self, SavedFigures};
use tidepool_bench::scenario::Scenario;
use tidepool_bench::trial::IDLE_WINDOW;
use tidepool_bench::{BenchError, Context, custom, docs, report};
use tidepool_tests::built::workspace;
use tidepool_tests::clock::now_ms;
use tidepool_tests::peers::Release;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::victoria_metrics;
use tidepool_tests::wait::chain;

const IDLE_WINDOW_QUICK: Duration = Duration::from_millis(50);

/// Starts real servers, gives them the same work over real sockets, checks that everything they
/// took is there, and prints what it cost each of them: CPU of the server first, wall time second.
///
/// Build what it measures first: `cargo build --release` and `tests/peers/build`. TIDEPOOL_BIN
/// names another tidepool. Nothing else should run on the machine.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
    /// Who is measured, one after the other; by default tidepool, prometheus3, and victoriametrics
    /// if it is built.
    #[arg(long, global = true, value_enum, value_delimiter = ',')]
    servers: Vec<ServerName>,
    /// A flag for `tidepool serve`, such as --tidepool-flag=--wal-sync=always; may be repeated.
    #[arg(long, global = true)]
    tidepool_flag: Vec<String>,
    /// Where the servers' data goes; a memory file system hides the cost of writing.
    #[arg(long, global = true, default_value_os_t = std::env::temp_dir())]
    directory: PathBuf,
    /// Decides the data.
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    /// Measures everything so many times; the table has the least of each figure, that of queries
    /// the most.
    #[arg(long, global = true, default_value_t = 1)]
    rounds: usize,
}

#[derive(Subcommand)]
enum Command {
    /// Measures scenarios, keeps their figures in target/bench, and prints the table of them.
    Table(TableOptions),
    /// Writes host/docs/speed.md with its charts, and the pages of queries, of dashboards and of
    /// scraping beside it, from the figures that are kept.
    Docs {
        /// The folder of the page.
        #[arg(long, default_value_os_t = workspace().join("host/docs"))]
        folder: PathBuf,
    },
    /// Measures one load of any shape, and reads of all of it.
    Load(LoadOptions),
    /// Measures how long tidepool's writes take, alone and beside readers that ask for everything
    /// over and over.
    Beside(BesideOptions),
}

#[derive(Args)]
struct TableOptions {
    /// What is measured; by default everything but the billion, queries, narrow requests and the
    /// dashboard.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Sizes of a smoke test, whose figures mean nothing and are not kept.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    queries: QueryOptions,
    #[command(flatten)]
    dashboard: DashboardOptions,
    #[command(flatten)]
    narrow: NarrowOptions,
}

/// Tables to measure: the scenarios together, the queries, narrow requests, and the dashboard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Scenario(Scenario),
    Queries,
    Dashboard,
    Narrow,
}

impl Part {
    fn scenario(&self) -> Option<Scenario> {
        match *self {
            Part::Scenario(scenario) => Some(scenario),
            Part::Queries | Part::Narrow | Part::Dashboard => None,
        }
    }
}

impl ValueEnum for Part {
    fn value_variants<'a>() -> &'a [Part] {
        static ALL: LazyLock<Vec<Part>> = LazyLock::new(|| {
            let scenarios = Scenario::value_variants().iter().copied().map(Part::Scenario);
            scenarios.chain([Part::Queries, Part::Narrow, Part::Dashboard]).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Part::Scenario(scenario) => scenario.to_possible_value(),
            Part::Queries => {
                let help = "Queries in PromQL, a table of its own: CPU s / wall s / peak MB of each \
                            server, freshly started, whose answers have to be Prometheus'";
                Some(PossibleValue::new("queries").help(help))
            }
            Part::Narrow => {
                let help = "Requests for few of many series, tables of their own: CPU / median / \
                            p99 in ms of instant queries, remote reads and lookups";
                Some(PossibleValue::new("narrow").help(help))
            }
            Part::Dashboard => {
                let help = "Dashboards that refresh beside writes, a table of its own: how long panels \
                            and writes take, alone and beside one another";
                Some(PossibleValue::new("dashboard").help(help))
            }
        }
    }
}

#[derive(Args)]
struct Series {
    /// Number of series, of about ten labels each.
    #[arg(long, default_value_t = 10_000)]
    series: usize,
    /// Samples per series.
    #[arg(long, default_value_t = 360)]
    samples: usize,
    /// Seconds between the samples of a series.
    #[arg(long, default_value_t = 15)]
    interval_s: i64,
    /// Series in a request.
    #[arg(long, default_value_t = 2_000)]
    rows: usize,
    /// Connections that send at the same time.
    #[arg(long, default_value_t = 2)]
    connections: usize,
}

#[derive(Args)]
struct LoadOptions {
    #[command(flatten)]
    series: Series,
    /// Sends native histograms of some forty buckets instead of floats.
    #[arg(long)]
    histograms: bool,
    /// Versions of remote write.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "1.0,2.0")]
    versions: Vec<VersionName>,
}

#[derive(Args)]
struct BesideOptions {
    /// The history that is read.
    #[command(flatten)]
    series: Series,
    /// How many read at the same time.
    #[arg(long, default_value_t = 2)]
    readers: usize,
    /// Samples written in a second, if the machine can.
    #[arg(long, default_value_t = 300_000)]
    write_rate: usize,
    /// Seconds of writes alone, and of writes beside reads.
    #[arg(long, default_value_t = 20)]
    phase_s: usize,
    /// The version of remote write.
    #[arg(long, value_enum, default_value = "2.0")]
    version: VersionName,
}

#[derive(Clone, Copy, ValueEnum)]
enum ServerName {
    Tidepool,
    Prometheus3,
    Prometheus2,
    #[value(name = "victoriametrics")]
    VictoriaMetrics,
}

#[derive(Clone, Copy, ValueEnum)]
enum VersionName {
    #[value(name = "1.0")]
    V1,
    #[value(name = "2.0")]
    V2,
}

impl From<ServerName> for Contender {
    fn from(name: ServerName) -> Contender {
        match name {
            ServerName::Tidepool => Contender::Tidepool,
            ServerName::Prometheus3 => Contender::Prometheus(Release::V3),
            ServerName::Prometheus2 => Contender::Prometheus(Release::V2),
            ServerName::VictoriaMetrics => Contender::VictoriaMetrics,
        }
    }
}

impl From<VersionName> for Version {
    fn from(name: VersionName) -> Version {
        match name {
            VersionName::V1 => Version::V1,
            VersionName::V2 => Version::V2,
        }
    }
}

impl Series {
    fn load(
        &self,
        seed: u64,
        version: Version,
        scrapes: usize,
        start_ms: i64,
        interval_ms: i64,
    ) -> Load {
        let shape = self.shape(seed, scrapes, start_ms, interval_ms);
        Load::encode(&Dataset::generate(shape), version, self.rows, self.connections.max(1))
    }

    fn shape(&self, seed: u64, scrapes: usize, start_ms: i64, interval_ms: i64) -> Shape {
        let texture = Texture::Regular;
        Shape { seed, series: self.series, scrapes, start_ms, interval_ms, texture }
    }

    fn interval_ms(&self) -> i64 {
        self.interval_s * 1_000
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let context = |quick: bool| Context {
        servers: servers(&options.servers),
        directory: options.directory.clone(),
        tidepool_flags: options.tidepool_flag.clone(),
        quick,
        idle_window: if quick { IDLE_WINDOW_QUICK } else { IDLE_WINDOW },
        seed: options.seed,
    };
    let done = match &options.command {
        Command::Table(table) => measure_table(table, &context(table.quick), options.rounds),
        Command::Docs { folder } => write_docs(folder).map(|()| true),
        Command::Load(load) => measure_load(load, &context(false), options.rounds).map(|()| true),
        Command::Beside(beside) => measure_beside(beside, &context(false)).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn servers(names: &[ServerName]) -> Vec<Contender> {
    if !names.is_empty() {
        return names.iter().map(|name| Contender::from(*name)).collect();
    }
    let mut servers = vec![Contender::Tidepool, Contender::Prometheus(Release::V3)];
    if victoria_metrics::is_installed() {
        servers.push(Contender::VictoriaMetrics);
    }
    servers
}

/// Returns whether all answers are right and all checked aims are reached.
fn measure_table(
    options: &TableOptions,
    context: &Context,
    rounds: usize,
) -> Result<bool, BenchError> {
    let rounds = rounds.max(1);
    let mut scenarios: Vec<Scenario> = options.parts.iter().filter_map(Part::scenario).collect();
    if options.parts.is_empty() {
        let usual = Scenario::value_variants().iter().copied();
        scenarios = usual.filter(|scenario| scenario.is_usual(context.quick)).collect();
    }
    // Figures name their commit, so files must not differ from it.
    if !context.quick && outcome::commit()?.ends_with('+') {
        return Err(BenchError::Uncommitted);
    }
    let mut kept = SavedFigures::new();
    for scenario in scenarios {
        let measured = outcome::measure(context, scenario, rounds)?;
        eprintln!("{} took {:.0} s", scenario.name(), measured.took_s);
        if !context.quick {
            outcome::keep(scenario, &measured)?;
        }
        kept.insert(scenario.name(), measured);
    }
    if !kept.is_empty() {
        println!("Commit {}. {}\n", outcome::commit()?, docs::machine()?);
        print!("{}", report::table(&kept));
    }
    let TableOptions { parts, queries, narrow, dashboard, .. } = options;
    let mut is_good = true;
    if parts.contains(&Part::Queries) {
        is_good &= queries::measure(queries, context, rounds)?;
    }
    if parts.contains(&Part::Narrow) {
        is_good &= narrow::measure(narrow, context, queries.check)?;
    }
    if parts.contains(&Part::Dashboard) {
        let QueryOptions { series, check, .. } = *queries;
        is_good &= dashboard::measure(dashboard, series, check, context, rounds)?;
    }
    Ok(is_good)
}

fn write_docs(folder: &std::path::Path) -> Result<(), BenchError> {
    for path in docs::write(&outcome::load_kept()?, folder)? {
        println!("{}", path.display());
    }
    Ok(())
}

fn measure_load(options: &LoadOptions, context: &Context, rounds: usize) -> Result<(), BenchError> {
    let LoadOptions { series, histograms, versions } = options;
    let interval_ms = series.interval_ms();
    let mut measurements = Vec::new();
    for _ in 0..rounds {
        for version in versions.iter().map(|name| Version::from(*name)) {
            // Built for each version: the data ends now, or servers would refuse it as too old.
            let start_ms = now_ms() - series.samples as i64 * interval_ms;
            let load = match histograms {
                true => Load::encode_histograms(
                    series.shape(context.seed, series.samples, start_ms, interval_ms),
                    version,
                    series.rows,
                    series.connections.max(1),
                ),
                false => series.load(context.seed, version, series.samples, start_ms, interval_ms),
            };
            eprintln!(
                "{} samples in {} series, {} MB of remote write {version}",
                load.samples,
                series.series,
                load.body_bytes / 1_000_000
            );
            for &contender in context.servers.iter().filter(|server| server.takes(version)) {
                let measurement = custom::run(context, contender, &load)?;
                let cpu = measurement.write.cost.cpu;
                eprintln!("{contender}: {:.1} CPU s", cpu.as_secs_f64());
                measurements.push(measurement);
            }
        }
    }
    print!("{}", report::custom_table(&measurements));
    Ok(())
}

/// Measures writes alone, then beside reads.
fn measure_beside(options: &BesideOptions, context: &Context) -> Result<(), BenchError> {
    let BesideOptions { series, readers, write_rate, phase_s, version } = options;
    let (seed, version) = (context.seed, Version::from(*version));
    let per_second = (*write_rate).max(1) as f64;
    let scrape_every = Duration::from_secs_f64(series.series as f64 / per_second);
    let scrapes = (2.0 * *phase_s as f64 / scrape_every.as_secs_f64()) as usize;
    // The history ends at the time of the first write, and the writes end now.
    let write_interval_ms = (scrape_every.as_millis() as i64).max(1);
    let start_ms = now_ms() - scrapes as i64 * write_interval_ms;
    let history_start_ms = start_ms - series.samples as i64 * series.interval_ms();
    let history =
        series.load(seed, version, series.samples, history_start_ms, series.interval_ms());
    let writes = series.load(seed, version, scrapes, start_ms, write_interval_ms);
    let beside = Beside { history: &history, writes: &writes, scrape_every, readers: *readers };
    let outcome = beside::run(&beside, &context.directory, &context.tidepool_flags)?;
    print!("{}", beside::table(&outcome));
    Ok(())
}
