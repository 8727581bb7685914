//! The command line, and what it becomes: one validated structure. Starts nothing.

mod file;
mod flags;
mod memory;
mod network;
mod otlp;
mod plugins;
pub(crate) mod section;
mod ship;
mod source;

pub use file::FileError;
pub(crate) use file::{Wrong, line};
pub use memory::UnusedMemory;
pub use network::ClientLimits;
pub use source::{ConfigError, ConfigSource, Settings};

use crate::access::{AccessConfig, CorsOrigin};
#[cfg(feature = "plugins")]
use crate::cli::PluginCommandArgs;
use crate::cli::TsdbArgs;
use crate::disk::wal::{BATCH_INTERVAL_DEFAULT, SEGMENT_BYTES_DEFAULT, SYNC_INTERVAL_DEFAULT};
use crate::disk::{Compression, SET_ASIDE_BYTES_DEFAULT, SyncPolicy, WalOptions};
use crate::forward::{DestinationConfig, ForwardConfig};
use crate::plugin::config::PluginsConfig;
use crate::prom::external_labels::{ExternalLabel, ExternalLabels};
use crate::ship::ShipConfig;
use crate::store::{DiskShare, StoreConfig};
use crate::telemetry::{self, LogFormat};
use crate::wasm::InstanceLimits;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use network::NetworkArgs;
use otlp::OtlpArgs;
use plugins::PluginArgs;
use ship::ShipArgs;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

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

/// Longest time between two syncs of the log that may be asked for.
const SYNC_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// When the write-ahead log is forced to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WalSync {
    /// When the system likes: survives a crash or kill of the process, not a power cut
    Off,
    /// Every --wal-sync-interval: a power cut costs at most that much
    Interval,
    /// Before each answer: what was acknowledged survives a power cut
    Always,
    /// Kept in memory, written and forced to the device every --wal-sync-interval: spares flash. A
    /// crash or kill of the process costs as much as a power cut, at most that interval; a clean
    /// stop costs nothing
    Batch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WalCompression {
    None,
    Snappy,
    Zstd,
}

/// How samples lie in the write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WalRecords {
    /// As Prometheus writes them, so that it can take over at any moment
    Prometheus,
    /// By columns, in about a fifth of the bytes. Prometheus and its tools see nothing of them: before
    /// going back to it, stop tidepool and run `tidepool tsdb compact --head`
    Columns,
}

#[derive(Debug, Clone, Args)]
struct ServeArgs {
    /// Configuration file: YAML whose keys are the names of these flags. A flag given here as well
    /// holds as given here. Read again on SIGHUP
    #[arg(long, alias = "config.file", value_name = "FILE")]
    config: Option<PathBuf>,

    /// Directory for all data; made if it is missing. May be one that Prometheus wrote
    #[arg(long, value_name = "DIR", default_value = "./data")]
    data_dir: PathBuf,

    /// Address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9201")]
    listen: SocketAddr,

    /// A label that tells this node from all others, such as node=edge-7; may be given several
    /// times. What is read from here carries them; what is stored does not
    #[arg(long = "external-label", alias = "label", value_name = "NAME=VALUE")]
    external_labels: Vec<ExternalLabel>,

    /// Answer /api/v1/admin/tsdb/{delete_series,clean_tombstones,snapshot}: whoever reaches the
    /// port may then delete data
    #[arg(long, alias = "web.enable-admin-api")]
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
    #[arg(long, value_name = "BYTES", default_value_t = SEGMENT_BYTES_DEFAULT, value_parser = bytes)]
    wal_segment_size: u64,

    /// What is kept in DIR/set-aside of damaged log segments, as they were found, and of logs that
    /// could not be replayed; the oldest goes beyond. 0: only the newest of such logs
    #[arg(long, value_name = "BYTES", default_value_t = SET_ASIDE_BYTES_DEFAULT, value_parser = bytes)]
    set_aside_size: u64,

    /// Starts in a row that may fail while the log is replayed; then it is set aside, and the node
    /// serves without it. 0: it never is
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    max_failed_starts: u32,

    /// Span of one block; the head is cut when it spans more than one and a half
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = duration)]
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

    /// Send all samples on to this receiver of remote write, with Prometheus' defaults; may be given
    /// several times. The section remote_write of --config says more
    #[arg(long, value_name = "URL", value_parser = DestinationConfig::of_url)]
    remote_write_url: Vec<DestinationConfig>,

    /// Bytes of log segments that are kept for destinations that lag; beyond, they get from blocks
    /// what they have not got from the log
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = bytes)]
    remote_write_log_size: u64,

    /// Reads that run at a time; more wait
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    read_concurrency: usize,

    /// Longest time a read may take
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    read_timeout: Duration,

    /// Most samples of a query in an answer of kind SAMPLES; more are refused with 400. 0: no limit
    #[arg(long, value_name = "COUNT", default_value_t = 50_000_000)]
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

    /// Memory of the engine instance that cuts and merges blocks, at least a third of the head's.
    /// Blocks whose merge could need more stay as they are
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    compactor_memory_limit: Option<u64>,

    /// Longest time that the head may work on one call before it is taken for stuck and started
    /// again from the log
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    head_timeout: Duration,

    /// How log lines look
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,

    /// Least level of log lines, or a filter
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = telemetry::check_level)]
    log_level: String,
}

/// More than this is of no use without a flag that asks for it.
const REQUEST_BYTES: u64 = 32 << 20;
const INFLIGHT_BYTES: u64 = 64 << 20;
const QUERY_BYTES: u64 = 256 << 20;

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
    /// Least level of log lines.
    pub log_level: String,
}

/// The server's part of the configuration.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Address to listen on.
    pub listen: SocketAddr,
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

impl From<ServeArgs> for ServeConfig {
    fn from(args: ServeArgs) -> ServeConfig {
        let sync = match args.wal_sync {
            WalSync::Off => SyncPolicy::Off,
            WalSync::Interval => {
                SyncPolicy::Interval(args.wal_sync_interval.unwrap_or(SYNC_INTERVAL_DEFAULT))
            }
            WalSync::Always => SyncPolicy::Always,
            WalSync::Batch => SyncPolicy::Batch {
                interval: args.wal_sync_interval.unwrap_or(BATCH_INTERVAL_DEFAULT),
                bytes_max: size(args.wal_buffer_size).max(1),
            },
        };
        let compression = match args.wal_compression {
            WalCompression::None => Compression::None,
            WalCompression::Snappy => Compression::Snappy,
            WalCompression::Zstd => Compression::Zstd,
        };
        let mut memory = memory::memory_split(&args);
        let unused_memory = memory::unused_memory(&args, &memory);
        let plugins_bytes = args.plugins.take_memory(&mut memory);
        let head_part = memory.head_bytes / 8;
        let inflight_bytes = memory.network_bytes.min(INFLIGHT_BYTES);
        let inflight_bytes = args.network.max_inflight_bytes.unwrap_or(inflight_bytes);
        let wal = WalOptions { segment_bytes_max: args.wal_segment_size, compression, sync };
        let (hold, ship) = (args.ship.hold(&args.data_dir), args.ship.ship());
        let store = StoreConfig {
            data_dir: args.data_dir,
            wal,
            wal_by_columns: args.wal_records == WalRecords::Columns,
            set_aside_bytes_max: args.set_aside_size,
            failed_starts_max: args.max_failed_starts,
            block_duration: args.block_duration,
            block_duration_max: args.max_block_duration,
            future_limit: args.max_future,
            out_of_order_window: args.out_of_order_window,
            retention: args.retention_time,
            retention_size: args.retention_size,
            hold,
            disk_reserve: args.disk_reserve,
            series_max: args.max_series,
            exemplars_max: args.max_exemplars,
            label_limits: args.network.label_limits(),
            reads_max: args.read_concurrency.max(1),
            holds_log: false,
            head_snapshot: args.head_snapshot,
            memory,
            query_limits: InstanceLimits {
                memory_bytes_max: size(
                    args.query_memory_limit.unwrap_or(memory.reads_bytes.min(QUERY_BYTES)),
                ),
                deadline: Some(args.read_timeout),
            },
            head_timeout: args.head_timeout,
        };
        let http = HttpConfig {
            listen: args.listen,
            connections_max: args.network.connections_max(),
            limits: args.network.client_limits(),
            inflight_bytes_max: size(inflight_bytes),
            external_labels: args.external_labels.into_iter().collect(),
            otlp: args.otlp.settings(),
            admin_api: args.enable_admin_api,
            lifecycle: args.network.enable_lifecycle,
            access_log: args.network.access_log,
            cors_origin: args.network.cors_origin.clone(),
            flags: BTreeMap::new(),
            request_bytes_max: size(
                args.max_request_size
                    .unwrap_or(head_part.min(REQUEST_BYTES).min(inflight_bytes / 2)),
            ),
            read_timeout: args.read_timeout,
            read_samples_max: args.read_sample_limit,
            read_response_bytes_max: args.read_response_limit,
            read_frame_bytes_max: u32::try_from(args.read_max_bytes_in_frame).unwrap_or(u32::MAX),
        };
        let access = args.network.access();
        let (log_format, log_level) = (args.log_format, args.log_level);
        let plugins = args.plugins.config(plugins_bytes);
        let forward = ForwardConfig {
            destinations: args.remote_write_url,
            log_bytes_max: args.remote_write_log_size,
        };
        ServeConfig {
            store,
            unused_memory,
            access,
            http,
            ship,
            plugins,
            forward,
            log_format,
            log_level,
        }
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// A duration as Prometheus writes them: `500ms`, `15s`, `1h30m`, `2d`, `1w`, `1y`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 7] = [
        ("ms", 1),
        ("s", 1000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
        ("w", 604_800_000),
        ("y", 31_536_000_000),
    ];
    let wrong = || format!("{text:?} is no duration such as 500ms, 15s, 1h30m or 2d");
    let mut rest = text;
    let mut total_ms = 0u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit_ms));
        total_ms = part.and_then(|part| total_ms.checked_add(part)).ok_or_else(wrong)?;
        rest = after;
    }
    if total_ms == 0 { Err(wrong()) } else { Ok(Duration::from_millis(total_ms)) }
}

/// How often the log is synced. What is longer costs more than a wrong unit should.
fn sync_interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    match interval <= SYNC_INTERVAL_MAX {
        true => Ok(interval),
        false => Err("a power cut may cost what was not synced: no more than 1h is allowed".into()),
    }
}

/// A size, or a part of the disk such as `5%`.
fn disk_share(text: &str) -> Result<DiskShare, String> {
    let Some(percent) = text.strip_suffix('%') else { return bytes(text).map(DiskShare::Bytes) };
    match percent.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(DiskShare::Percent(percent)),
        _ => Err(format!("{text:?} is no part of a disk between 0% and 100%")),
    }
}

/// A duration that may be nothing.
pub(crate) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0s" || text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

/// A size as Prometheus writes them (`32MB` means 32 × 1024²), or with the binary units' names.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size such as 65536, 512KB, 32MiB or 3GB");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "KB" | "KIB" => 10,
        "MB" | "MIB" => 20,
        "GB" | "GIB" => 30,
        "TB" | "TIB" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_read_as_prometheus_writes_them() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "5", "h", "5 s", "0s", "-1s", "99999999999999999999y"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(bytes("32MB"), Ok(32 << 20));
        assert_eq!(bytes("128KiB"), Ok(128 << 10));
        for wrong in ["", "MB", "1XB", "1.5MB", "99999999999999999TB"] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn intervals_and_parts_of_a_disk_have_bounds() {
        assert_eq!(sync_interval("1h"), Ok(Duration::from_secs(3600)));
        assert!(sync_interval("61m").is_err_and(|error| error.contains("1h")));
        assert_eq!(disk_share("80%"), Ok(DiskShare::Percent(80.0)));
        assert_eq!(disk_share("0.5%"), Ok(DiskShare::Percent(0.5)));
        assert_eq!(disk_share("64MB"), Ok(DiskShare::Bytes(64 << 20)));
        for wrong in ["", "%", "0%", "101%", "-1%", "NaN%", "5 %", "5.5"] {
            assert!(disk_share(wrong).is_err(), "{wrong:?}");
        }
    }

    fn read(arguments: &[&str]) -> Result<(ServeConfig, Settings), ConfigError> {
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
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
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
