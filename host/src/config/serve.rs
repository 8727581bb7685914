//! Flags to the configuration of a server.

use super::{ServeArgs, ServeConfig, memory};
use std::collections::BTreeMap;
use tidepool_runtime::InstanceLimits;
use tidepool_server::http::HttpConfig;
use tidepool_store::StoreConfig;

/// More than this is of no use without a flag that asks for it.
const REQUEST_BYTES: u64 = 32 << 20;
const INFLIGHT_BYTES: u64 = 64 << 20;
const QUERY_BYTES: u64 = 256 << 20;

impl From<ServeArgs> for ServeConfig {
    fn from(args: ServeArgs) -> ServeConfig {
        let reload_interval = args.general.reload_interval();
        let mut memory = memory::memory_split(&args.memory);
        let unused_memory = memory::unused_memory(&args.memory, &memory);
        let plugins_bytes = args.plugins.take_memory(&mut memory);
        let head_part = memory.head_bytes / 8;
        let inflight_bytes = memory.network_bytes.min(INFLIGHT_BYTES);
        let inflight_bytes = args.http.max_inflight_bytes.unwrap_or(inflight_bytes);
        let (pin, ship) = (args.ship.pin(&args.storage.data_dir), args.ship.ship());
        let store = StoreConfig {
            data_dir: args.storage.data_dir,
            wal: args.wal.options(),
            record_format: args.wal.record_format(),
            quarantine_bytes_max: args.wal.quarantine_size,
            failed_starts_max: args.wal.max_failed_starts,
            block_duration: args.storage.block_duration,
            block_duration_max: args.storage.max_block_duration,
            future_limit: args.storage.max_future,
            out_of_order_window: args.storage.out_of_order_window,
            retention: args.storage.retention_time,
            retention_size: args.storage.retention_size,
            pin,
            disk_reserve: args.storage.disk_reserve,
            series_max: args.series.max_series,
            exemplars_max: args.series.max_exemplars,
            label_limits: args.series.label_limits(),
            reads_max: args.read.read_concurrency,
            queries: args.query.config(),
            holds_log: false,
            head_snapshot: args.wal.head_snapshot,
            memory,
            query_limits: InstanceLimits {
                memory_bytes_max: size(
                    args.memory.query_memory_limit.unwrap_or(memory.reads_bytes.min(QUERY_BYTES)),
                ),
                deadline: Some(args.read.read_timeout),
            },
            head_timeout: args.storage.head_timeout,
            open_block_files_max: args.storage.max_open_block_files,
        };
        let http = HttpConfig {
            listen: args.http.listen.clone(),
            connections_max: args.http.max_connections,
            limits: args.http.client_limits(),
            inflight_bytes_max: size(inflight_bytes),
            external_labels: args.general.external_labels.into_iter().collect(),
            otlp: args.otlp.settings(),
            admin_api: args.http.enable_admin_api,
            lifecycle: args.http.enable_lifecycle,
            access_log: args.log.access_log,
            allowed_hosts: args.security.allowed_host.clone(),
            cors_origin: args.security.cors_origin.clone(),
            flags: BTreeMap::new(),
            yaml: String::new(),
            request_bytes_max: size(
                args.http
                    .max_request_size
                    .unwrap_or(head_part.min(REQUEST_BYTES).min(inflight_bytes / 2)),
            ),
            read_samples_max: args.read.read_sample_limit,
            read_response_bytes_max: args.read.read_response_limit,
            read_frame_bytes_max: u32::try_from(args.read.read_max_bytes_in_frame)
                .unwrap_or(u32::MAX),
        };
        let access = args.security.access();
        let (log_format, log_level) = (args.log.log_format, args.log.log_level);
        let plugins = args.plugins.config(plugins_bytes);
        let (forward, scrape) = (args.forward.config(), args.scrape.config());
        ServeConfig {
            store,
            unused_memory,
            access,
            http,
            ship,
            plugins,
            forward,
            scrape,
            reload_interval,
            log_format,
            log_level,
        }
    }
}

/// What fits in an address.
pub(super) fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
