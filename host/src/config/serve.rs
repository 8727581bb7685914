//! Flags to the configuration of a server.

use super::wal::{WalCompression, WalRecords, WalSync};
use super::{HttpConfig, ServeArgs, ServeConfig, memory};
use crate::disk::wal::{BATCH_INTERVAL_DEFAULT, SYNC_INTERVAL_DEFAULT};
use crate::disk::{Compression, SyncPolicy, WalOptions};
use crate::store::StoreConfig;
use crate::wasm::InstanceLimits;
use std::collections::BTreeMap;

/// More than this is of no use without a flag that asks for it.
const REQUEST_BYTES: u64 = 32 << 20;
const INFLIGHT_BYTES: u64 = 64 << 20;
const QUERY_BYTES: u64 = 256 << 20;

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
            reads_max: args.read_concurrency,
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
            allowed_hosts: args.network.allowed_host.clone(),
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
        let forward = args.forward.config();
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

/// What fits in an address.
pub(super) fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
