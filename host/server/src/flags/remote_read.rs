//! Flags of remote read: concurrency, deadline, limits and frame size.

use clap::Args;
use std::time::Duration;
use tidepool_settings::duration::{bytes, duration};
use tidepool_settings::flags::{Marks, at_least, concurrency, count};

const FRAME_BYTES_MIN: u64 = 1 << 10;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Remote read")]
pub struct RemoteReadFlags {
    /// Maximum number of concurrent reads
    ///
    /// Further reads wait.
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = concurrency)]
    pub read_concurrency: usize,

    /// Maximum duration of a read, including its response
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub read_timeout: Duration,

    /// Maximum number of samples in a SAMPLES response, 0 for no limit
    ///
    /// Queries that select more are rejected with 400.
    #[arg(long, value_name = "COUNT", default_value_t = 50_000_000, value_parser = count)]
    pub read_sample_limit: u64,

    /// Maximum size of a SAMPLES response before compression, 0 for 4GiB
    ///
    /// Larger responses are rejected with 400. The format itself allows no more than 4GiB.
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = bytes)]
    pub read_response_limit: u64,

    /// Maximum size of a frame in a STREAMED_XOR_CHUNKS response
    #[arg(
        long, value_name = "BYTES", default_value = "1MiB", value_parser = at_least(FRAME_BYTES_MIN)
    )]
    pub read_max_bytes_in_frame: u64,
}

impl RemoteReadFlags {
    /// Properties of the flags: reloadable, and names in Prometheus.
    pub const MARKS: Marks = Marks {
        reloadable: &[
            "read-max-bytes-in-frame",
            "read-response-limit",
            "read-sample-limit",
            "read-timeout",
        ],
        prometheus: &[
            ("storage.remote.read-concurrent-limit", "read-concurrency"),
            ("storage.remote.read-max-bytes-in-frame", "read-max-bytes-in-frame"),
            ("storage.remote.read-sample-limit", "read-sample-limit"),
        ],
        ..Marks::NONE
    };
}
