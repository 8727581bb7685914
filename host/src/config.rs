//! The command line, and what it becomes: one validated structure. Starts nothing.

mod file;
mod flags;
mod forward;
mod listen;
mod memory;
mod network;
mod otlp;
mod plugins;
pub(crate) mod section;
mod serve;
mod ship;
mod source;
mod upstream;
mod values;
mod wal;

pub use file::FileError;
pub(crate) use file::{Wrong, line};
pub use listen::ListenAddress;
pub use memory::UnusedMemory;
pub use network::ClientLimits;
pub use source::{ConfigError, ConfigSource, Settings};
pub(crate) use values::{bytes, duration, duration_or_zero};

use crate::access::{AccessConfig, AllowedHost, CorsOrigin};
#[cfg(feature = "plugins")]
use crate::cli::PluginCommandArgs;
use crate::cli::TsdbArgs;
use crate::disk::SET_ASIDE_BYTES_DEFAULT;
use crate::disk::wal::SEGMENT_BYTES_DEFAULT;
use crate::forward::ForwardConfig;
use crate::plugin::config::PluginsConfig;
use crate::prom::external_labels::{ExternalLabel, ExternalLabels};
use crate::ship::ShipConfig;
use crate::store::{DiskShare, StoreConfig};
use crate::telemetry::{LogFilter, LogFormat};
use clap::{ArgAction, Args, Parser, Subcommand};
use forward::ForwardArgs;
use network::NetworkArgs;
use otlp::OtlpArgs;
use plugins::PluginArgs;
use ship::ShipArgs;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use values::{block_duration, concurrency, count, disk_share, segment_size, sync_interval};
use wal::{WalCompression, WalRecords, WalSync};

/// A Prometheus-compatible metrics store for edge nodes: takes remote write 1.0 and 2.0, answers
/// remote read, keeps its data in Prometheus' own formats.
///
/// Without a command it serves with the defaults.
#[derive(Debug, Parser)]
#[command(name = "tidepool", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Store metrics and serve them
    Serve(Box<ServeArgs>),
    /// Look at and work on a data directory, without a server
    Tsdb(TsdbArgs),
    /// Make, check and try plugins, without a server
    #[cfg(feature = "plugins")]
    Plugin(PluginCommandArgs),
}

#[derive(Debug, Clone, Args)]
struct ServeArgs {
    /// Configuration file: YAML whose keys are the names of these flags. A flag given here as well
    /// holds as given here. Read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Directory for all data; made if it is missing. May be one that Prometheus wrote
    #[arg(long, value_name = "DIR", default_value = "./data")]
    data_dir: PathBuf,

    /// Address to listen on; without a host, as in :9201, all addresses of the machine
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9201")]
    listen: ListenAddress,

    /// A label that tells this node from all others, such as node=edge-7; may be given several
    /// times. What is read from here carries them; what is stored does not
    #[arg(long = "external-label", alias = "label", value_name = "NAME=VALUE")]
    external_labels: Vec<ExternalLabel>,

    /// Answer /api/v1/admin/tsdb/{delete_series,clean_tombstones,snapshot}: whoever reaches the
    /// port may then delete data
    #[arg(long)]
    enable_admin_api: bool,

    /// When the write-ahead log is forced to the device
    #[arg(long, value_enum, default_value = "interval")]
    wal_sync: WalSync,

    /// How often, with --wal-sync=interval (1s if not given) or batch (5m if not given); 1h at most
    #[arg(long, value_name = "DURATION", value_parser = sync_interval)]
    wal_sync_interval: Option<Duration>,

    /// Bytes of log records that are kept in memory with --wal-sync=batch; more are written early
    #[arg(long, value_name = "BYTES", default_value = "8MiB", value_parser = bytes)]
    wal_buffer_size: u64,

    /// How log records are compressed. zstd takes a fifth less than snappy, but Prometheus 2.42 passes
    /// over it without a word
    #[arg(long, value_enum, default_value = "snappy")]
    wal_compression: WalCompression,

    /// How float samples that come in order lie in the log; both are read whatever is chosen
    #[arg(long, value_enum, default_value = "prometheus")]
    wal_records: WalRecords,

    /// At a clean stop, write the head down in the data directory, so that the next start need not
    /// read the log. Each stop then writes some 400 bytes a series: turn it off to spare flash
    #[arg(
        long, value_name = "BOOL", default_value_t = true, default_missing_value = "true",
        num_args = 0..=1, require_equals = true, action = ArgAction::Set
    )]
    head_snapshot: bool,

    /// Size at which a log segment ends; a multiple of 32KiB
    #[arg(long, value_name = "BYTES", default_value_t = SEGMENT_BYTES_DEFAULT, value_parser = segment_size)]
    wal_segment_size: u64,

    /// What is kept in DIR/set-aside of damaged log segments, as they were found, and of logs that
    /// could not be replayed; the oldest goes beyond. 0: only the newest of such logs
    #[arg(long, value_name = "BYTES", default_value_t = SET_ASIDE_BYTES_DEFAULT, value_parser = bytes)]
    set_aside_size: u64,

    /// Times in a row that the engine may fail to replay the log and get no further; then the log is
    /// set aside, and the node serves without it. Kills and power cuts do not count. 0: it never is
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    max_failed_starts: u32,

    /// Span of one block; the head is cut when it spans more than one and a half
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = block_duration)]
    block_duration: Duration,

    /// Longest span of a merged block; by default a tenth of the retention, and 31d at most. The
    /// block duration itself turns merging off, as Thanos' sidecar wants it
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    max_block_duration: Option<Duration>,

    /// How far ahead of this node's clock a sample may be
    #[arg(long, alias = "future-limit", value_name = "DURATION", default_value = "10m", value_parser = duration)]
    max_future: Duration,

    /// How far behind the newest sample a late one is still accepted. 0s: in order only
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = duration_or_zero)]
    out_of_order_window: Duration,

    /// How long blocks are kept, counted back from the newest. 0s: for ever
    #[arg(long, value_name = "DURATION", default_value = "15d", value_parser = duration_or_zero)]
    retention_time: Duration,

    /// Size that the data directory is kept under by dropping its oldest blocks, or a part of its
    /// disk such as 80%. 0: no limit
    #[arg(long, value_name = "BYTES|PERCENT", default_value = "0", value_parser = disk_share)]
    retention_size: DiskShare,

    /// Free space of the disk below which writes are refused with 503, until there is more again;
    /// reads go on, and blocks are cut, merged and dropped. Bytes or a part of the disk such as 5%,
    /// which is the default, but 100MiB at most. 0: none
    #[arg(long, value_name = "BYTES|PERCENT", value_parser = disk_share)]
    disk_reserve: Option<DiskShare>,

    /// Most series in the head at a time; new ones are refused with 429 beyond. 0: no limit
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    max_series: u64,

    /// Most exemplars kept in memory, the newest; 0: none, and those that are sent are refused
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    max_exemplars: u64,

    /// Largest body of a write or read request, compressed as well as decompressed; by default an
    /// eighth of the head's memory, and 32MiB at most
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    max_request_size: Option<u64>,

    #[command(flatten)]
    network: NetworkArgs,

    #[command(flatten)]
    otlp: OtlpArgs,

    #[command(flatten)]
    ship: ShipArgs,

    #[command(flatten)]
    plugins: PluginArgs,

    #[command(flatten)]
    forward: ForwardArgs,

    /// Reads that run at a time; more wait
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = concurrency)]
    read_concurrency: usize,

    /// Longest time a read may take
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    read_timeout: Duration,

    /// Most samples of a query in an answer of kind SAMPLES; more are refused with 400. 0: no limit
    #[arg(long, value_name = "COUNT", default_value_t = 50_000_000, value_parser = count)]
    read_sample_limit: u64,

    /// Most bytes in an answer of kind SAMPLES before it is compressed; more are refused with 400.
    /// 0: no limit but that of the format, 4GiB
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = bytes)]
    read_response_limit: u64,

    /// Size of a frame in an answer of kind STREAMED_XOR_CHUNKS
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = bytes)]
    read_max_bytes_in_frame: u64,

    /// Memory of the process. It is shared out: an eighth for requests, a quarter for reads, of the
    /// rest three quarters for the head and one for the compactor. When the head nears its part, a
    /// block is cut early, then new series are refused, then writes; reads that find no memory get
    /// 503. By default three quarters of what the machine or the control group has. The head's part
    /// is 3GiB at most, so that what goes beyond some 7GiB is not used
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory_limit: Option<u64>,

    /// Memory of the engine instance that holds the head, instead of its part of --memory-limit. As
    /// for every engine instance, what goes beyond 4095MiB is not used: addresses have 32 bits
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    head_memory_limit: Option<u64>,

    /// Memory of the engine instance of each read; by default all that there is for reads, and
    /// 256MiB at most
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    query_memory_limit: Option<u64>,

    /// Memory of all reads together, instead of its part of --memory-limit
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    reads_memory_limit: Option<u64>,

    /// Memory of the engine instance that cuts and merges blocks; by default a third of the head's.
    /// Blocks whose merge could need more stay as they are, and a head whose labels need more is cut
    /// into several
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    compactor_memory_limit: Option<u64>,

    /// Longest time that the head may work on one call before it is taken for stuck and started
    /// again from the log
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    head_timeout: Duration,

    /// How log lines look
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,

    /// Least level of log lines: debug, info, warn or error; others for single targets behind it, as
    /// in info,tidepool_host::store=debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LogFilter,
}

/// What to do.
#[derive(Clone, Debug)]
pub enum Invocation {
    /// Serve.
    Serve {
        /// What with.
        config: Box<ServeConfig>,
        /// The same as flags.
        settings: Settings,
    },
    /// Run a command over a data directory.
    Tsdb(TsdbArgs),
    /// Run a command about plugins.
    #[cfg(feature = "plugins")]
    Plugin(PluginCommandArgs),
}

/// All that `tidepool serve` needs to know.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// The store's part.
    pub store: StoreConfig,
    /// Flags that give more memory than can be used.
    pub unused_memory: Vec<UnusedMemory>,
    /// Who may connect and ask.
    pub access: AccessConfig,
    /// The server's part.
    pub http: HttpConfig,
    /// Where finished blocks go, if anywhere.
    pub ship: Option<ShipConfig>,
    /// Which plugins there are.
    pub plugins: PluginsConfig,
    /// Who else gets all samples.
    pub forward: ForwardConfig,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written.
    pub log_level: LogFilter,
}

/// The server's part of the configuration.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Address to listen on.
    pub listen: ListenAddress,
    /// Most open connections.
    pub connections_max: u32,
    /// How long clients may take.
    pub limits: ClientLimits,
    /// Request bodies in memory, all together.
    pub inflight_bytes_max: usize,
    /// Largest request body, compressed as well as decompressed.
    pub request_bytes_max: usize,
    /// What tells this node from all others.
    pub external_labels: ExternalLabels,
    /// How OTLP metrics are translated.
    pub otlp: crate::otlp::Settings,
    /// Whether stored data may be deleted and copied.
    pub admin_api: bool,
    /// Whether a request may reload the configuration.
    pub lifecycle: bool,
    /// Whether each request gets a line in the log.
    pub access_log: bool,
    /// Names under which this server may be asked, besides those that no page can point elsewhere.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Which pages in a browser may read answers.
    pub cors_origin: CorsOrigin,
    /// All flags as they were given, by name, to be shown.
    pub flags: BTreeMap<String, String>,
    /// Longest time a read may take, its answer included.
    pub read_timeout: Duration,
    /// Most samples in an answer of kind SAMPLES; 0 means no limit.
    pub read_samples_max: u64,
    /// Most bytes in an answer of kind SAMPLES; 0 means no limit.
    pub read_response_bytes_max: u64,
    /// Size of a streamed frame.
    pub read_frame_bytes_max: u32,
}

impl ServeConfig {
    /// Whether the parts go together.
    fn check(&self) -> Result<(), String> {
        self.store.memory.check().map_err(|error| error.to_string())?;
        self.check_ship()?;
        self.forward.check()?;
        self.check_network()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a command line means.
    pub fn read(arguments: &[&str]) -> Result<(ServeConfig, Settings), ConfigError> {
        let arguments = ["tidepool"].iter().chain(arguments).map(|text| (*text).into());
        ConfigSource::new(arguments).serve()
    }

    #[test]
    fn the_defaults_and_the_named_command_agree() -> Result<(), ConfigError> {
        let (bare, settings) = read(&[])?;
        let named = read(&["serve"])?;
        assert_eq!(format!("{bare:?} {settings:?}"), format!("{:?} {:?}", named.0, named.1));
        assert_eq!(bare.http.listen.to_string(), "127.0.0.1:9201");
        Ok(())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        source::command().debug_assert();
    }

    #[test]
    fn flags_are_shown_as_they_were_given() -> Result<(), ConfigError> {
        for words in [&[][..], &["serve"]] {
            let given = ["--external-label=a=b", "--label=c=d", "--enable-admin-api"];
            let words: Vec<&str> = words.iter().copied().chain(given).collect();
            let (config, _) = read(&words)?;
            let shown = |name: &str| config.http.flags.get(name).map(String::as_str);
            assert_eq!(shown("external-label"), Some("a=b,c=d"));
            assert_eq!(shown("enable-admin-api"), Some("true"));
            assert_eq!(shown("web.enable-admin-api"), Some("true"));
            assert_eq!(shown("block-duration"), Some("2h"));
            assert_eq!(shown("memory-limit"), Some(""));
            assert_eq!((shown("help"), shown("version")), (None, None));
        }
        Ok(())
    }
}
