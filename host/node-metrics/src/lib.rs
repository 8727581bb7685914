//! The metrics of a Linux machine: names, labels, help, types and values are those of Prometheus'
//! node_exporter 1.12 with its default flags, so that its dashboards, rules and alerts (node-mixin)
//! work unchanged.
//!
//! | collector | source | metrics |
//! | --- | --- | --- |
//! | `bonding` | `class/net/bonding_masters` and `*/bonding` in sysfs | `node_bonding_*` |
//! | `conntrack` | `sys/net/netfilter`, `net/stat/nf_conntrack` | `node_nf_conntrack_*` |
//! | `cpu` | `stat`; `devices/system/cpu` in sysfs | `node_cpu_*` |
//! | `diskstats` | `diskstats`; `block/*/queue` in sysfs; udev's data | `node_disk_*` |
//! | `filefd` | `sys/fs/file-nr` | `node_filefd_*` |
//! | `filesystem` | `1/mountinfo`, `statfs(2)` | `node_filesystem_*` |
//! | `hwmon` | `class/hwmon` in sysfs | `node_hwmon_*` |
//! | `loadavg` | `loadavg` | `node_load*` |
//! | `mdadm` | `mdstat`; `block/md*/md` in sysfs | `node_md_*` |
//! | `meminfo` | `meminfo` | `node_memory_*` |
//! | `netdev` | rtnetlink, or else `net/dev` | `node_network_*_total` |
//! | `netstat` | `net/netstat`, `net/snmp`, `net/snmp6` | `node_netstat_*` |
//! | `os` | `/etc/os-release` | `node_os_*` |
//! | `pressure` | `pressure/*` | `node_pressure_*` |
//! | `sockstat` | `net/sockstat`, `net/sockstat6` | `node_sockstat_*` |
//! | `stat` | `stat` | `node_boot_time_seconds`, `node_context_switches_total`, … |
//! | `textfile` | `*.prom` in given directories | the metrics in the files, `node_textfile_*` |
//! | `thermal_zone` | `class/thermal` in sysfs | `node_thermal_zone_temp`, `node_cooling_device_*` |
//! | `time` | the clock; `devices/system/clocksource` in sysfs | `node_time_*` |
//! | `timex` | `adjtimex(2)` | `node_timex_*` |
//! | `uname` | `uname(2)` | `node_uname_info` |
//! | `vmstat` | `vmstat` | `node_vmstat_*` |
//!
//! Sources are in procfs unless stated otherwise. For each collector, there are also
//! `node_scrape_collector_success` and `node_scrape_collector_duration_seconds`.
//!
//! Differences from upstream: the collectors `cpu` and `stat` read `stat`, the most expensive file,
//! only once; a mount point with several mounts has one set of series, while upstream's scrape
//! reports duplicates; a mount without an answer delays a single round by the timeout, while
//! upstream's scrape waits forever; if a sandbox forbids netlink sockets, `net/dev` is read, and
//! only `node_network_receive_nohandler_total` is missing; directories of the textfile collector
//! cannot be patterns; the size of files is limited.
//!
//! A failed collector only misses its own series. All files are read with a size limit and without
//! waiting. On a busy virtual machine with two processors, 20 mounts and five network devices, a
//! round of 337 samples takes 0.55 to 0.7 ms of CPU time, four fifths of it in the kernel
//! (`examples/cost.rs`); the goal is 1 ms. Each sensor of `hwmon` adds a file, and some drivers
//! need milliseconds per file.
//!
//! The crate `procfs` could parse a third of the files, but it reads fixed paths, allocates for
//! each field, and fails if a field is missing that upstream can do without.
//!
//! Continue with [`Sink`], which receives the metrics, and [`NodeMetrics`].

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod collectors;
mod error;
mod exposition;
mod paths;
mod read;
mod sink;
#[cfg(test)]
mod testing;
mod text;

pub use collectors::textfile::{FILES_MAX, TEXT_FILE_BYTES_MAX};
pub use error::CollectError;
pub use exposition::Exposition;
pub use paths::Paths;
pub use sink::{Kind, Label, Sink, TextFile, TextFileOutcome};

use collectors::proc_stat::SharedStat;
use collectors::{Collector, Round};
use read::Reader;
use sink::Output;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Default of the time that a round waits for mounts, as in upstream.
pub const MOUNT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct Options {
    pub paths: Paths,
    /// Directories with metric files of other programs, whose names end in `.prom`. They should be
    /// on local disks: a round waits for a network file system whose server does not answer.
    pub textfile_directories: Vec<PathBuf>,
    /// Time that a round waits for the answers of all mounts. A mount without an answer by then
    /// gets `device_error="mountpoint timeout"`, and is not queried again until it answers.
    pub mount_timeout: Duration,
}

/// Reads the metrics of the machine. Each call of [`NodeMetrics::collect`] is a round.
///
/// Kept between rounds: a thread that queries mounts (and another one for each mount that does not
/// answer, up to 16), a netlink socket, and buffers.
pub struct NodeMetrics {
    paths: Paths,
    reader: Reader,
    stat: SharedStat,
    collectors: Vec<Box<dyn Collector>>,
    /// Results of the collectors in this round, for `node_scrape_collector_*`.
    outcomes: Vec<Outcome>,
}

struct Outcome {
    collector: &'static str,
    is_success: bool,
    duration: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            paths: Paths::default(),
            textfile_directories: Vec::new(),
            mount_timeout: MOUNT_TIMEOUT_DEFAULT,
        }
    }
}

impl NodeMetrics {
    /// Creates the collectors. Only the time zone is read now.
    pub fn new(options: Options) -> NodeMetrics {
        let mut reader = Reader::default();
        let collectors = collectors::all(&options, &mut reader);
        let outcomes = Vec::with_capacity(collectors.len());
        let paths = options.paths;
        NodeMetrics { paths, reader, stat: SharedStat::default(), collectors, outcomes }
    }

    /// Runs a round: passes all current metrics to `sink`.
    ///
    /// Blocks while reading. This takes longer than a few milliseconds only if a mount does not
    /// answer ([`Options::mount_timeout`]). By then, only `filesystem` and `textfile` are not done.
    pub fn collect(&mut self, sink: &mut dyn Sink) {
        let mut output = Output::new(sink);
        let NodeMetrics { paths, reader, stat, collectors, outcomes } = self;
        // `stat` is shared within a round, but not between rounds.
        stat.reset();
        outcomes.clear();
        let mut round = Round { paths, reader, stat };
        for collector in collectors {
            let begin = Instant::now();
            let result = collector.collect(&mut round, &mut output);
            let duration = begin.elapsed();
            let is_success = result.is_ok();
            outcomes.push(Outcome { collector: collector.name(), is_success, duration });
            // Samples written before the failure remain, and the other collectors continue.
            if let Err(error) = result {
                output.failed(collector.name(), &error);
            }
        }
        scrape_outcomes(outcomes, &mut output);
        // Otherwise a single large file would occupy memory permanently.
        self.reader.shrink();
    }
}

fn scrape_outcomes(outcomes: &[Outcome], output: &mut Output<'_>) {
    let mut durations = output.family(
        "node_scrape_collector_duration_seconds",
        "node_exporter: Duration of a collector scrape.",
        Kind::Gauge,
    );
    for outcome in outcomes {
        durations.sample(&[("collector", outcome.collector)], outcome.duration.as_secs_f64());
    }
    let mut successes = output.family(
        "node_scrape_collector_success",
        "node_exporter: Whether a collector succeeded.",
        Kind::Gauge,
    );
    for outcome in outcomes {
        let value = f64::from(u8::from(outcome.is_success));
        successes.sample(&[("collector", outcome.collector)], value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    fn round(metrics: &mut NodeMetrics) -> Recorder {
        let mut recorder = Recorder::default();
        metrics.collect(&mut recorder);
        recorder
    }

    fn series(recorder: &Recorder) -> Vec<&str> {
        let series = recorder.samples.iter().filter_map(|line| line.rsplit_once(' '));
        series.map(|(series, _)| series).collect()
    }

    #[test]
    fn a_machine_without_files_has_what_needs_none() {
        let tree = Tree::new();
        let paths = tree.paths();
        let mut metrics = NodeMetrics::new(Options { paths, ..Options::default() });
        let recorder = round(&mut metrics);
        let success = |collector: &str| {
            let series = format!("node_scrape_collector_success{{collector=\"{collector}\"}}");
            recorder.value(&series)
        };
        for collector in ["textfile", "thermal_zone", "time", "uname"] {
            assert_eq!(success(collector), Some(1.0), "{collector}");
        }
        for collector in ["cpu", "filesystem", "hwmon", "meminfo", "os", "stat", "vmstat"] {
            assert_eq!(success(collector), Some(0.0), "{collector}");
            let is_told = recorder.failures.iter().any(|(failed, _)| *failed == collector);
            assert!(is_told, "{collector}: {:?}", recorder.failures);
        }
        let all = recorder.samples.iter();
        let all = all.filter(|line| line.starts_with("node_scrape_collector_duration_seconds"));
        assert_eq!(all.count(), 22);
        // Files that appear are read.
        tree.write("proc/loadavg", "1 2 3 4/5 6\n");
        assert_eq!(round(&mut metrics).value("node_load1"), Some(1.0));
    }

    /// Other programs may add series, but between two of many rounds none does.
    #[test]
    fn rounds_have_the_same_series_in_the_same_order() {
        let mut metrics = NodeMetrics::new(Options::default());
        let mut before = round(&mut metrics);
        assert!(before.samples.len() > 100, "{:?}", before.failures);
        let are_the_same = (0..100).any(|_| {
            let now = round(&mut metrics);
            let are_the_same = series(&before) == series(&now) && before.families == now.families;
            before = now;
            are_the_same
        });
        assert!(are_the_same);
    }

    #[test]
    fn rounds_may_run_in_any_thread() {
        let mut metrics = NodeMetrics::new(Options::default());
        let thread = std::thread::spawn(move || round(&mut metrics).samples.len());
        assert!(thread.join().expect("no panic") > 100);
    }
}
