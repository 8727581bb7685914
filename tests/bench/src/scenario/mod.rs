//! Scenarios of the benchmark, one module each.

mod churn;
mod compaction;
mod cuts;
mod days;
mod flash;
mod idle;
mod reads;
mod replay;
mod restart;
mod scraping;
mod series;
mod wasm;
mod write;

use super::outcome::Outcome;
use super::{BenchError, Context};
use clap::ValueEnum;

/// One part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Remote write of 10k series × 360: CPU and peak memory.
    #[value(name = "write-10k")]
    Write10k,
    /// Remote write of 100k series × 60, and reads of ten of them.
    #[value(name = "write-100k")]
    Write100k,
    /// Remote write 2.0 of 10k series × 120 in requests that are cut anywhere, by 1 to 50 senders.
    Cuts,
    /// 180 connections with 1000 series each.
    Senders,
    /// 180 targets with 1000 series each, of which 60 % are replaced every 15 minutes of an hour.
    Churn,
    /// Starts on a log of 100 million samples that upstream's packages wrote.
    Replay,
    /// The same with a billion; needs 20 GB of disk, only when named.
    Billion,
    /// Starts after a clean stop and after kill -9.
    Restart,
    /// 10k series × 8 h: bytes written, reads of everything and of the last 2 h.
    Reads,
    /// 1000 series × 5 days: bytes written on the first and the last day, and kept.
    Flash,
    /// Merges blocks that upstream's packages wrote: CPU, memory, bytes kept.
    Compaction,
    /// Memory of an empty server without requests.
    Idle,
    /// The engine as WebAssembly against the engine as native code, by `cargo bench`.
    Wasm,
    /// Writes and reads of 1k to 1M series.
    Series,
    /// Writes and reads beside 1 to 30 days of blocks.
    Days,
    /// Scrapes of ten large targets each second, and of a thousand small ones; beside vmagent.
    Scraping,
}

impl Scenario {
    /// Returns the name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
    }

    /// Returns whether this scenario is measured if none is named.
    pub fn is_usual(self, quick: bool) -> bool {
        match self {
            Scenario::Billion => false,
            // The scenario compiles for minutes.
            Scenario::Wasm => !quick,
            _ => true,
        }
    }

    pub fn measure(self, context: &Context) -> Result<Outcome, BenchError> {
        eprintln!("{}", self.name());
        match self {
            Scenario::Write10k => write::ten_thousand(context),
            Scenario::Write100k => write::hundred_thousand(context),
            Scenario::Cuts => cuts::measure(context),
            Scenario::Senders => write::senders(context),
            Scenario::Churn => churn::measure(context),
            Scenario::Replay => replay::hundred_million(context),
            Scenario::Billion => replay::billion(context),
            Scenario::Restart => restart::measure(context),
            Scenario::Reads => reads::measure(context),
            Scenario::Flash => flash::measure(context),
            Scenario::Compaction => compaction::measure(context),
            Scenario::Idle => idle::measure(context),
            Scenario::Wasm => wasm::measure(context),
            Scenario::Series => series::measure(context),
            Scenario::Days => days::measure(context),
            Scenario::Scraping => scraping::measure(context),
        }
    }
}

/// Returns megabytes of a million bytes, as operators count them.
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
