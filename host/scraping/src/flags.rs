//! Flags for scraping and built-in jobs. All other jobs are in the configuration file.

use super::{BuiltinConfig, ScrapeConfig};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tidepool_node_metrics::{Options, Paths};
use tidepool_scrape::config::ScrapeSettings;
use tidepool_settings::duration::{bytes, duration};
use tidepool_settings::flags::Marks;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Scraping")]
pub struct ScrapeFlags {
    /// Maximum uncompressed size of a scraped body, for jobs without body_size_limit
    ///
    /// A scrape that exceeds it fails. Bodies are parsed as they arrive, and not held.
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = bytes)]
    scrape_body_limit: u64,
    /// Maximum size of each scrape_failure_log_file
    ///
    /// A full file is renamed to FILE.1, which overwrites the one before.
    #[arg(long, value_name = "BYTES", default_value = "10MiB", value_parser = bytes)]
    scrape_failure_log_size: u64,
    /// Do not record the metrics of this machine
    ///
    /// They are recorded as the job "node", with node_exporter's names, labels and values. A job of
    /// this name in scrape_configs takes their place.
    #[arg(long)]
    no_host_metrics: bool,
    /// Do not record tidepool's own metrics
    ///
    /// They are recorded as the job "tidepool": what GET /metrics answers. A job of this name in
    /// scrape_configs takes their place.
    #[arg(long)]
    no_own_metrics: bool,
    /// Interval of the built-in jobs "node" and "tidepool"
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = interval)]
    host_metrics_interval: Duration,
    /// Label instance of the built-in jobs [default: the host name]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    host_metrics_instance: Option<String>,
    /// Mount point of procfs that host metrics are read from
    #[arg(long = "path.procfs", value_name = "DIR", default_value = "/proc")]
    path_procfs: PathBuf,
    /// Mount point of sysfs that host metrics are read from
    #[arg(long = "path.sysfs", value_name = "DIR", default_value = "/sys")]
    path_sysfs: PathBuf,
    /// Mount point of the machine's root file system
    ///
    /// In a container, host metrics look at the mount points below it, and leave it out of their
    /// labels.
    #[arg(long = "path.rootfs", value_name = "DIR", default_value = "/")]
    path_rootfs: PathBuf,
    /// Directory of udev's data, for the names of disks
    #[arg(long = "path.udev.data", value_name = "DIR", default_value = "/run/udev/data")]
    path_udev_data: PathBuf,
    /// Directory of *.prom files that are part of host metrics; repeatable
    #[arg(long = "collector.textfile.directory", value_name = "DIR")]
    textfile_directories: Vec<PathBuf>,
}

/// Shortest interval of the built-in jobs: a round takes about a millisecond of CPU time.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if interval < INTERVAL_MIN {
        return Err("must be at least 1s".to_owned());
    }
    Ok(interval)
}

impl ScrapeFlags {
    /// Sections of the configuration file that a reload applies.
    pub const MARKS: Marks = Marks { reloadable: &["scrape_configs"], ..Marks::NONE };

    /// Returns the part of the configuration that comes from flags.
    pub fn config(self) -> ScrapeConfig {
        let paths = Paths {
            procfs: self.path_procfs,
            sysfs: self.path_sysfs,
            rootfs: self.path_rootfs,
            udev_data: self.path_udev_data,
        };
        let textfile_directories = self.textfile_directories;
        let host = Options { paths, textfile_directories, ..Options::default() };
        let builtin = BuiltinConfig {
            host: (!self.no_host_metrics).then_some(host),
            own: !self.no_own_metrics,
            interval: self.host_metrics_interval,
            instance: self.host_metrics_instance,
        };
        let settings = ScrapeSettings::default();
        ScrapeConfig {
            settings,
            body_bytes_max: self.scrape_body_limit,
            failure_log_bytes_max: self.scrape_failure_log_size,
            builtin,
        }
    }
}
