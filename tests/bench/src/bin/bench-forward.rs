//! Measures the cost of forwarding on a node; see `--help`.

use clap::Parser;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidepool_bench::load::Load;
use tidepool_bench::plot::short;
use tidepool_bench::trial::{IDLE_WINDOW, settle};
use tidepool_tests::clock::now_ms;
use tidepool_tests::http::Client;
use tidepool_tests::process::{Server, free_address};
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::Config;
use tidepool_tests::wait::{chain, until_every};

/// Timeout for the delivery of all samples.
const TIMEOUT: Duration = Duration::from_secs(900);
/// Interval between two looks at a node's progress.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const ROWS_PER_REQUEST: usize = 2_000;
const CONNECTIONS: usize = 2;

/// Gives a node the same load without and with a destination, which is a second tidepool, and
/// prints what forwarding adds; then cuts the way to it for as many hours as the outage has, lets
/// the log be cut into blocks meanwhile, and measures how fast blocks are drained on one core.
///
/// Build first: `cargo build --release`. TIDEPOOL_BIN names another program. Nothing else should
/// run on the machine. Needs `taskset`.
#[derive(Parser)]
struct Options {
    /// Number of series, of about ten labels each.
    #[arg(long, default_value_t = 10_000)]
    series: usize,
    /// Samples of each, fifteen seconds apart.
    #[arg(long, default_value_t = 360)]
    samples: usize,
    /// Series during the outage.
    #[arg(long, default_value_t = 4_000)]
    outage_series: usize,
    /// Samples of each during the outage.
    #[arg(long, default_value_t = 1_440)]
    outage_samples: usize,
    /// Lines of `queue_config`, such as 'min_shards: 4', instead of the defaults.
    #[arg(long, default_value = "")]
    queue: String,
    /// Which messages are sent.
    #[arg(long, value_parser = version, default_value = "2.0")]
    version: Version,
    /// Measures everything so many times.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Where the servers' data goes.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    directory: PathBuf,
}

struct Cost {
    cpu: Duration,
    peak_memory_bytes: u64,
    centre_cpu: Duration,
}

/// Cost of sending the backlog of an outage.
struct Drain {
    samples: u64,
    wall: Duration,
    cpu: Duration,
    peak_memory_bytes: u64,
}

fn version(text: &str) -> Result<Version, String> {
    let found = Version::ALL.into_iter().find(|version| version.to_string() == text);
    found.ok_or_else(|| "1.0 or 2.0 is wanted".to_owned())
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-forward: {}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    println!(
        "| remote write {} | CPU s a million | peak MB | peak MB more than without | centre CPU s a \
         million | drained k samples/s on one core | CPU s a million drained | peak MB draining |",
        options.version
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for round in 1..=options.rounds {
        let load = load(options.series, options.samples);
        eprintln!("{} samples without a destination …", load.samples);
        let without = write(options, &load, false)?;
        eprintln!("the same with one …");
        let with = write(options, &load, true)?;
        let outage = self::load(options.outage_series, options.outage_samples);
        eprintln!("{} samples while it is gone …", outage.samples);
        let drain = drain(options, &outage)?;
        let millions = load.samples as f64 / 1e6;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let figures = [
            with.cpu.saturating_sub(without.cpu).as_secs_f64() / millions,
            mb(with.peak_memory_bytes),
            mb(with.peak_memory_bytes.saturating_sub(without.peak_memory_bytes)),
            with.centre_cpu.as_secs_f64() / millions,
            drain.samples as f64 / drain.wall.as_secs_f64() / 1e3,
            drain.cpu.as_secs_f64() / drain.samples as f64 * 1e6,
            mb(drain.peak_memory_bytes),
        ];
        println!("| round {round} | {} |", figures.map(short).join(" | "));
    }
    println!("\nBars: 0.4 CPU s a million with 2.0, 64 MB, 500 k samples/s.");
    Ok(())
}

fn load(series: usize, scrapes: usize) -> Load {
    let interval_ms = 15_000;
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Regular;
    let shape = Shape { seed: 1, series, scrapes, start_ms, interval_ms, texture };
    Load::encode(&Dataset::generate(shape), Version::V2, ROWS_PER_REQUEST, CONNECTIONS)
}

/// Returns the flag of a configuration that forwards to an address.
fn forwards_to(options: &Options, dir: &Path, address: &str) -> Result<String, std::io::Error> {
    let message = match options.version {
        Version::V1 => "prometheus.WriteRequest",
        Version::V2 => "io.prometheus.write.v2.Request",
    };
    let queue = &options.queue;
    let yaml = format!(
        "remote_write:\n  - url: http://{address}/api/v1/write\n    name: centre\n    \
         protobuf_message: {message}\n    queue_config: {{{queue}}}\n"
    );
    let path = dir.join("tidepool.yml");
    std::fs::write(&path, yaml)?;
    Ok(format!("--config={}", path.display()))
}

/// Returns the configuration of a node, and the address that its destination will have.
fn config(dir: &Path, name: &str) -> Result<Config, std::io::Error> {
    let dir = dir.join(name);
    std::fs::create_dir(&dir)?;
    Ok(Config::new(&dir).flag("--out-of-order-window=30d"))
}

/// Pins a server to one core.
fn pinned(config: Config, core: usize) -> Config {
    config.started_by(["taskset", "-c", &core.to_string()].map(Into::into).to_vec())
}

fn write(options: &Options, load: &Load, forwards: bool) -> Result<Cost, Box<dyn Error>> {
    let dir = tempfile::tempdir_in(&options.directory)?;
    let centre = config(dir.path(), "centre")?.start()?;
    let mut node = config(dir.path(), "node")?;
    if forwards {
        node = node.flag(&forwards_to(options, dir.path(), &centre.address().to_string())?);
    }
    let node = node.start()?;
    let (before, centre_before) = (node.usage()?.cpu, centre.usage()?.cpu);
    load.send(&node.url())?;
    if forwards {
        until_every(LOOK_EVERY * 10, "all to be delivered", TIMEOUT, || {
            (figure(&node, "prometheus_remote_storage_samples_total")? >= load.samples as f64)
                .then_some(())
        })?;
    }
    let after = settle(&node, IDLE_WINDOW)?;
    let centre_cpu = settle(&centre, IDLE_WINDOW)?.cpu.saturating_sub(centre_before);
    let cpu = after.cpu.saturating_sub(before);
    Ok(Cost { cpu, peak_memory_bytes: after.peak_memory_bytes, centre_cpu })
}

fn drain(options: &Options, load: &Load) -> Result<Drain, Box<dyn Error>> {
    let dir = tempfile::tempdir_in(&options.directory)?;
    let address = free_address()?;
    // Blocks are cut soon, and the log keeps almost nothing for a destination that lags.
    let node = config(dir.path(), "node")?
        .block_duration("30m")
        .flag("--wal-segment-size=1MiB")
        .flag("--remote-write-log-size=1MiB")
        .flag(&forwards_to(options, dir.path(), &address.to_string())?);
    let node = pinned(node, 0).start()?;
    load.send(&node.url())?;
    let backlog = "tidepool_remote_storage_backlog_samples";
    until_every(LOOK_EVERY * 10, "most of it to be in blocks only", TIMEOUT, || {
        (figure(&node, backlog)? > load.samples as f64 * 0.6).then_some(())
    })?;
    settle(&node, IDLE_WINDOW)?;
    node.reset_peak_memory()?;
    let centre = pinned(config(dir.path(), "centre")?, 1).launch_at(address).start()?;
    let sent = || figure(&node, "prometheus_remote_storage_samples_total");
    let usage = || node.usage();
    until_every(LOOK_EVERY, "the first samples", TIMEOUT, || (sent()? > 0.0).then_some(()))?;
    let (begun, first, before) = (Instant::now(), sent().unwrap_or(0.0), usage()?);
    until_every(LOOK_EVERY, "what is in blocks", TIMEOUT, || {
        (figure(&node, backlog)? == 0.0).then_some(())
    })?;
    let (wall, last, after) = (begun.elapsed(), sent().unwrap_or(0.0), usage()?);
    drop(centre);
    Ok(Drain {
        samples: (last - first) as u64,
        wall,
        cpu: after.cpu.saturating_sub(before.cpu),
        peak_memory_bytes: after.peak_memory_bytes,
    })
}

/// Returns a metric of the destination.
fn figure(node: &Server, name: &str) -> Option<f64> {
    let page = Client::default().get(&format!("{}/metrics", node.url())).ok()?.text();
    let begins = format!("{name}{{");
    let line = page.lines().find(|line| line.starts_with(&begins))?;
    line.rsplit(' ').next()?.parse().ok()
}
