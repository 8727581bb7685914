//! Random flags for one life of a node.

use std::fmt;
use tidepool_tests::series::Random;
use tidepool_tests::tidepool::{Config, WalSync};

/// Errors of file systems without hard links: EPERM, ENOSYS, EOPNOTSUPP.
const LINK_ERRORS: [u32; 6] = [0, 0, 0, 1, 38, 95];

/// Flags and disk of one life.
#[derive(Clone, Debug)]
pub struct Flags {
    pub out_of_order_ms: i64,
    pub wal_sync: WalSync,
    /// Error of hard links; zero if the file system has them.
    pub link_error: u32,
    rest: Vec<String>,
}

impl Flags {
    /// Chooses flags at random. With `synced`, most lives sync before they answer.
    pub fn random(random: &mut Random, synced: Synced) -> Flags {
        use WalSync::{Always, Batch, Interval, Off};
        let block_ms: i64 = random.pick(&[5_000, 10_000, 10_000, 30_000, 60_000]);
        let out_of_order_ms = random.pick(&[0, 5_000, 20_000, 20_000, 60_000, 7_200_000]);
        let wal_sync = random.pick(&[Always, Always, Batch, Batch, Interval, Interval, Off]);
        let wal_sync = match synced {
            Synced::Always => Always,
            Synced::Mostly if !random.one_in(4) => Always,
            Synced::Mostly | Synced::ByChance => wal_sync,
        };
        let mut rest = vec![
            format!("--block-duration={block_ms}ms"),
            format!("--out-of-order-window={out_of_order_ms}ms"),
            "--retention-time=0s".to_owned(),
            "--disk-reserve=0".to_owned(),
            "--enable-admin-api".to_owned(),
        ];
        let interval = random.pick(&["20ms", "200ms", "1s"]);
        if matches!(wal_sync, Interval) || matches!(wal_sync, Batch) && random.one_in(2) {
            rest.push(format!("--wal-sync-interval={interval}"));
        }
        let longest = random.pick(&[block_ms, 9 * block_ms, 27 * block_ms, 31 * 86_400_000]);
        rest.push(format!("--max-block-duration={longest}ms"));
        let segment = random.pick(&["32KiB", "64KiB", "256KiB", "128MiB"]);
        rest.push(format!("--wal-segment-size={segment}"));
        let compression = random.pick(&["snappy", "none", "zstd"]);
        rest.push(format!("--wal-compression={compression}"));
        let records = random.pick(&["auto", "auto", "columns", "prometheus"]);
        rest.push(format!("--wal-records={records}"));
        rest.push(format!("--head-snapshot={}", random.pick(&["true", "true", "false"])));
        if random.one_in(3) {
            let files = random.pick(&["1", "2", "8"]);
            rest.push(format!("--max-open-block-files={files}"));
        }
        let link_error = random.pick(&LINK_ERRORS);
        Flags { out_of_order_ms, wal_sync, link_error, rest }
    }

    /// Adds the flags to a configuration.
    pub fn apply(&self, config: Config) -> Config {
        let config = config.wal_sync(self.wal_sync);
        self.rest.iter().fold(config, |config, flag| config.flag(flag))
    }
}

/// Share of lives that sync before they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    Always,
    Mostly,
    ByChance,
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--wal-sync {:?} {}", self.wal_sync, self.rest.join(" "))?;
        match self.link_error {
            0 => Ok(()),
            error => write!(f, ", hard links get error {error}"),
        }
    }
}
