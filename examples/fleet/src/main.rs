//! A fleet on one machine: generators write to edge nodes, which forward to one centre. Prints the
//! cost of forwarding for three ways of doing it.

mod figures;
mod fleet;
mod metrics;

use crate::fleet::{Fleet, Queues, Way};
use clap::Parser;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use tidepool_tests::remote_write::Version;
use tidepool_tests::wait::chain;

/// Queues of the tuning guide: many small shards, then half as many of twice the size.
const SMALL: Queues = Queues { max_shards: 200, capacity: 2_500, max_samples_per_send: 500 };
const LARGE: Queues = Queues { max_shards: 100, capacity: 5_000, max_samples_per_send: 1_000 };

const WAYS: [Way; 3] = [
    Way { version: Version::V2, queues: SMALL },
    Way { version: Version::V2, queues: LARGE },
    Way { version: Version::V1, queues: LARGE },
];

/// Starts a centre and edge nodes, lets generators write to the nodes, waits until the centre has
/// every sample (its checksum is compared), and prints what each way of forwarding took.
///
/// Build tidepool first: `cargo build --release`. TIDEPOOL_BIN names another program.
#[derive(Parser)]
struct Options {
    /// How many edge nodes there are.
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// Series of each node.
    #[arg(long, default_value_t = 2_000)]
    series: usize,
    /// Samples of each series, fifteen seconds apart, sent as fast as they are taken.
    #[arg(long, default_value_t = 120)]
    scrapes: usize,
    /// Writes the charts to this file, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let fleet = Fleet::new(options.nodes, options.series, options.scrapes);
    let mut results = Vec::new();
    for way in WAYS {
        eprintln!("{} nodes forward by {way} …", options.nodes);
        results.push((way, fleet.forward(way)?));
    }
    print!("{}", figures::table(&results));
    println!("\n{}", figures::summary(&results));
    if let Some(path) = &options.plot {
        std::fs::write(path, figures::plot(&results))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a short fleet and checks the figures that do not depend on the machine's speed.
    #[test]
    fn a_short_fleet_delivers_everything_in_fewer_and_smaller_requests() {
        let fleet = Fleet::new(2, 800, 30);
        let results = WAYS.map(|way| (way, fleet.forward(way).expect("all arrives")));
        let [(_, small), (_, large), (_, v1)] = &results;
        assert!(large.requests < 0.7 * small.requests, "{large:?} {small:?}");
        assert!(large.bytes < 0.53 * v1.bytes, "{large:?} {v1:?}");
        assert_eq!(figures::table(&results).lines().count(), 2 + WAYS.len());
        assert!(figures::summary(&results).contains("% less sent"));
        assert!(figures::plot(&results).ends_with("</svg>\n"));
    }
}
