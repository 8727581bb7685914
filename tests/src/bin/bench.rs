//! Measures tidepool and Prometheus side by side; see `--help`.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tidepool_tests::bench::beside::{self, Beside};
use tidepool_tests::bench::load::Load;
use tidepool_tests::bench::{self, Contender, report};
use tidepool_tests::peers::Release;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::wait::{chain, now_ms};

/// Writes the same series to real servers, reads them back, and prints what it cost each of them.
#[derive(Parser)]
struct Options {
    /// Number of series, of about ten labels each.
    #[arg(long, default_value_t = 10_000)]
    series: usize,
    /// Samples per series.
    #[arg(long, default_value_t = 360)]
    samples: usize,
    /// Sends native histograms of some forty buckets instead of floats.
    #[arg(long)]
    histograms: bool,
    /// Seconds between the samples of a series; the last sample is now.
    #[arg(long, default_value_t = 15)]
    interval_s: i64,
    /// Series in a request.
    #[arg(long, default_value_t = 2_000)]
    rows: usize,
    /// Connections that send at the same time.
    #[arg(long, default_value_t = 2)]
    connections: usize,
    /// Who is measured, one after the other.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "tidepool,prometheus3")]
    servers: Vec<ServerName>,
    /// Versions of remote write.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "1.0,2.0")]
    versions: Vec<VersionName>,
    /// A flag for `tidepool serve`, such as --tidepool-flag=--wal-sync=always; may be repeated.
    #[arg(long)]
    tidepool_flag: Vec<String>,
    /// Where the servers' data goes; a memory file system hides the cost of writing.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    directory: PathBuf,
    /// Decides the data.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measures instead how long tidepool's writes take, alone and beside so many readers that ask
    /// for everything over and over. Series and samples are those of the history that is read.
    #[arg(long, default_value_t = 0)]
    beside_reads: usize,
    /// With --beside-reads: samples written in a second, if the machine can.
    #[arg(long, default_value_t = 300_000)]
    write_rate: usize,
    /// With --beside-reads: seconds of writes alone, and of writes beside reads.
    #[arg(long, default_value_t = 20)]
    phase_s: usize,
    /// Measures everything so many times.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum ServerName {
    Tidepool,
    Prometheus3,
    Prometheus2,
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

fn main() -> ExitCode {
    let options = Options::parse();
    let measured = match options.beside_reads {
        0 => measure(&options),
        readers => measure_beside(&options, readers),
    };
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Writes alone, and beside reads.
fn measure_beside(options: &Options, readers: usize) -> Result<(), bench::BenchError> {
    let version = options.versions.last().map_or(Version::V2, |name| Version::from(*name));
    let scrape_every =
        Duration::from_secs_f64(options.series as f64 / options.write_rate.max(1) as f64);
    let scrapes = (2.0 * options.phase_s as f64 / scrape_every.as_secs_f64()) as usize;
    let interval_ms = options.interval_s * 1_000;
    // The history ends where the writes begin, and these end now.
    let write_interval_ms = (scrape_every.as_millis() as i64).max(1);
    let start_ms = now_ms() - scrapes as i64 * write_interval_ms;
    let load = |scrapes: usize, start_ms: i64, interval_ms: i64| {
        let Options { seed, series, rows, connections, .. } = *options;
        let texture = Texture::Regular;
        let shape = Shape { seed, series, scrapes, start_ms, interval_ms, texture };
        Load::encode(&Dataset::generate(shape), version, rows, connections.max(1))
    };
    let history_start_ms = start_ms - options.samples as i64 * interval_ms;
    let history = load(options.samples, history_start_ms, interval_ms);
    let writes = load(scrapes, start_ms, write_interval_ms);
    let beside = Beside { history: &history, writes: &writes, scrape_every, readers };
    let outcome = beside::run(&beside, &options.directory, &options.tidepool_flag)?;
    print!("{}", beside::table(&outcome));
    Ok(())
}

fn measure(options: &Options) -> Result<(), bench::BenchError> {
    let interval_ms = options.interval_s * 1_000;
    let mut measurements = Vec::new();
    for _ in 0..options.rounds {
        for version in options.versions.iter().map(|name| Version::from(*name)) {
            // Anew each time: the data ends now, or servers would take it for old.
            let shape = Shape {
                seed: options.seed,
                series: options.series,
                scrapes: options.samples,
                start_ms: now_ms() - options.samples as i64 * interval_ms,
                interval_ms,
                texture: Texture::Regular,
            };
            let connections = options.connections.max(1);
            let load = match options.histograms {
                true => Load::encode_histograms(shape, version, options.rows, connections),
                false => {
                    Load::encode(&Dataset::generate(shape), version, options.rows, connections)
                }
            };
            eprintln!(
                "{} samples in {} series, {} MB of remote write {version}",
                load.samples,
                options.series,
                load.body_bytes / 1_000_000
            );
            for contender in options.servers.iter().map(|name| Contender::from(*name)) {
                if contender.takes(version) {
                    let flags = &options.tidepool_flag;
                    let measurement = bench::run(contender, &load, &options.directory, flags)?;
                    eprintln!("{contender}: {:.1} CPU s", measurement.cpu.as_secs_f64());
                    measurements.push(measurement);
                }
            }
        }
    }
    print!("{}", report::table(&measurements));
    Ok(())
}
