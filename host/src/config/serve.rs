//! Converts flags to the configuration of a server. Divides the memory between features, and passes
//! settings of one feature to others that need them.

use super::{ServeArgs, ServeConfig};
use tidepool_store::PinConfig;
use tidepool_store::flags::Beside;

impl From<ServeArgs> for ServeConfig {
    fn from(args: ServeArgs) -> ServeConfig {
        let ServeArgs {
            general,
            log,
            server,
            store,
            query,
            forward,
            ship,
            scrape,
            rules,
            notify,
            plugins,
        } = args;
        let reload_interval = general.reload_interval();
        let mut memory = store.memory.split();
        // Computed before plugins take memory, because the warning is about the flags as set.
        let unused_memory = store.memory.unused(&memory);
        // Reduces the share of reads, so this must be done before that share is used below.
        let plugins_bytes = plugins.take_memory(&mut memory);
        // Blocks stay pinned until the list of shipped blocks has them.
        let list = ship.uploaded_list(&store.storage.data_dir);
        let pin = list.map(|(file, with_compacted)| PinConfig { file, with_compacted });
        let (reads_max, read_timeout) = (server.read.read_concurrency, server.read.read_timeout);
        let store = store.config(Beside { memory, pin, reads_max, read_timeout });
        let external_labels = general.external_labels.into_iter().collect();
        let (http, access) = server.config(&memory, external_labels, log.access_log);
        ServeConfig {
            store,
            queries: query.config(),
            unused_memory,
            access,
            http,
            ship: ship.ship(),
            plugins: plugins.config(plugins_bytes),
            forward: forward.config(),
            scrape: scrape.config(),
            rules: rules.config(),
            notify: notify.config(),
            reload_interval,
            log_format: log.log_format,
            log_level: log.log_level,
        }
    }
}
