//! Properties of flags, by topic: flags of the short help, flags that a reload can change, and
//! flags that Prometheus names differently.

use super::general::GeneralFlags;
use super::log::LogFlags;
use tidepool_evaluation::flags::RuleFlags;
use tidepool_forward::flags::ForwardFlags;
use tidepool_notify::flags::NotifyFlags;
use tidepool_plugins::flags::PluginFlags;
use tidepool_query::flags::QueryFlags;
use tidepool_scraping::flags::ScrapeFlags;
use tidepool_server::flags::{HttpFlags, OtlpFlags, RemoteReadFlags, SecurityFlags};
use tidepool_settings::flags::Marks;
use tidepool_ship::flags::ShipFlags;
use tidepool_store::flags::{MemoryFlags, SeriesFlags, StorageFlags, WalFlags};

const TOPICS: [Marks; 17] = [
    GeneralFlags::MARKS,
    LogFlags::MARKS,
    HttpFlags::MARKS,
    SecurityFlags::MARKS,
    RemoteReadFlags::MARKS,
    OtlpFlags::MARKS,
    StorageFlags::MARKS,
    WalFlags::MARKS,
    MemoryFlags::MARKS,
    SeriesFlags::MARKS,
    QueryFlags::MARKS,
    ForwardFlags::MARKS,
    ShipFlags::MARKS,
    ScrapeFlags::MARKS,
    RuleFlags::MARKS,
    NotifyFlags::MARKS,
    PluginFlags::MARKS,
];

/// Returns the flags of the short help, in order.
pub(super) fn short() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().flat_map(|marks| marks.short).copied()
}

/// Returns whether a reload can change a flag, or a section of the configuration file.
pub fn is_reloadable(name: &str) -> bool {
    TOPICS.iter().any(|marks| marks.reloadable.contains(&name))
}

/// Returns pairs of Prometheus' name and our name of a flag.
pub(super) fn prometheus() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOPICS.iter().flat_map(|marks| marks.prometheus).copied()
}

pub(super) fn is_url(name: &str) -> bool {
    TOPICS.iter().any(|marks| marks.urls.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigError, ConfigSource};

    #[test]
    fn what_is_marked_is_a_flag_or_a_section() -> Result<(), ConfigError> {
        let (_, settings) = ConfigSource::new([std::ffi::OsString::from("tidepool")]).serve()?;
        let known: Vec<&str> = settings.iter().map(|(name, _)| name).collect();
        for marks in TOPICS {
            let ours = marks.prometheus.iter().map(|(_, ours)| ours);
            for name in marks.short.iter().chain(marks.reloadable).chain(marks.urls).chain(ours) {
                assert!(known.contains(name), "{name} of {known:?}");
            }
        }
        Ok(())
    }
}
