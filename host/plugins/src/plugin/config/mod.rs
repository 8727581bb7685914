//! The section `plugins` of the configuration file, and its defaults.
//!
//! ```yaml
//! plugins:
//!   - name: relabel
//!     world: transform
//!     order: 10
//!     on-fault: reject
//!     config: |
//!       - action: labeldrop
//!         regex: pod_uid
//!     limits: {memory: 32MiB, time: 100ms}
//! ```

mod section;
#[cfg(test)]
mod tests;

pub use section::read;

use serde::Deserialize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tidepool_settings::yaml;

/// World of the contract that a plugin implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum World {
    /// Edits or drops each batch before it is stored.
    Transform,
    /// Converts bodies of other protocols into samples.
    Decoder,
    /// Runs on a schedule and may read and append.
    Job,
    /// Sees batches after they are stored.
    Observer,
}

/// Handling of a batch on which a transform fails.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum OnFault {
    /// The batch is stored without this transform.
    #[default]
    Pass,
    /// The batch is refused with 503, so that the sender keeps it and retries.
    Reject,
}

/// Limits of a plugin's instances and calls.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum linear memory of one instance; the columns of a batch may take half of it.
    #[serde(rename = "memory", deserialize_with = "section::memory")]
    pub memory_bytes_max: usize,
    /// Longest duration of one call; `None` is the default of the plugin's world.
    #[serde(deserialize_with = "section::time")]
    pub time: Option<Duration>,
    /// Maximum size of the values that one call returns, in bytes.
    #[serde(rename = "output", deserialize_with = "section::output")]
    pub output_bytes_max: usize,
    /// Maximum number of batches in an observer's queue.
    #[serde(deserialize_with = "yaml::number::<_, _, 1, 1024>")]
    pub queue: usize,
    #[serde(deserialize_with = "yaml::number::<_, _, 1, 1024>")]
    pub instances: usize,
}

/// Permissions of a plugin beyond the imports of its world.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Grants {
    /// Prefixes of URLs that the plugin may post to.
    #[serde(deserialize_with = "section::webhooks")]
    pub webhooks: Vec<String>,
    /// Directory that the plugin sees as `/data`.
    #[serde(deserialize_with = "section::directory")]
    pub directory: Option<PathBuf>,
    /// Whether the plugin may write to that directory.
    #[serde(rename = "writable")]
    pub is_writable: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "section::Section")]
pub struct PluginSettings {
    /// Name in URLs, metrics and logs; unique.
    pub name: String,
    /// Name of the file in the directory of plugins.
    pub file: String,
    /// World for which the file must be made, if the configuration names one.
    pub world: Option<World>,
    /// Position among the transforms: ascending order, then name.
    pub order: i32,
    /// Handling of batches on which the transform fails.
    pub on_fault: OnFault,
    /// Text that the plugin receives when it starts.
    pub config: String,
    /// Interval of a job's runs.
    pub schedule: Duration,
    /// URL paths of a decoder in addition to `/api/v1/push/NAME`.
    pub paths: Vec<String>,
    pub limits: Limits,
    pub grants: Grants,
}

/// Configuration of all plugins: flags and the section of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginsConfig {
    /// Directory of the `.wasm` files; without a directory there are no plugins.
    pub directory: Option<PathBuf>,
    /// Maximum linear memory of all instances together, in bytes.
    pub memory_bytes_max: usize,
    /// Maximum memory of the process that compiles a plugin, in bytes.
    pub compiler_bytes_max: u64,
    /// Plugins that the section configures, in its order.
    pub plugins: Vec<PluginSettings>,
}

impl World {
    pub const ALL: [World; 4] = [World::Transform, World::Decoder, World::Job, World::Observer];

    /// Returns the name in configuration, metrics and WIT.
    pub fn name(self) -> &'static str {
        match self {
            World::Transform => "transform",
            World::Decoder => "decoder",
            World::Job => "job",
            World::Observer => "observer",
        }
    }

    /// Returns the interface that a plugin of this world exports, without its version.
    pub fn interface(self) -> &'static str {
        match self {
            World::Transform => "tidepool:plugin/transform-batches",
            World::Decoder => "tidepool:plugin/decode-bodies",
            World::Job => "tidepool:plugin/run-job",
            World::Observer => "tidepool:plugin/observe-batches",
        }
    }

    /// Returns the longest duration of one call unless `limits.time` is set.
    pub fn time_default(self) -> Duration {
        match self {
            // Writes wait for a transform, so it has the shortest time; nothing waits for a job.
            World::Transform => Duration::from_millis(200),
            World::Decoder => Duration::from_secs(2),
            World::Observer => Duration::from_secs(1),
            World::Job => Duration::from_secs(60),
        }
    }
}

impl FromStr for World {
    type Err = String;

    fn from_str(text: &str) -> Result<World, String> {
        let named = World::ALL.into_iter().find(|world| world.name() == text);
        named.ok_or_else(|| {
            format!("{text:?} is not a world; expected transform, decoder, job or observer")
        })
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory_bytes_max: 64 << 20,
            time: None,
            output_bytes_max: 32 << 20,
            queue: 16,
            instances: 2,
        }
    }
}

impl PluginSettings {
    /// Returns the settings of a plugin without an item in the configuration file.
    pub fn named(name: &str) -> PluginSettings {
        PluginSettings {
            name: name.to_owned(),
            file: format!("{name}.wasm"),
            world: None,
            order: 0,
            on_fault: OnFault::default(),
            config: String::new(),
            schedule: Duration::from_secs(60),
            paths: Vec::new(),
            limits: Limits::default(),
            grants: Grants::default(),
        }
    }

    /// Refuses settings that do not apply to a plugin of this world.
    pub fn check_world(&self, world: World) -> Result<(), String> {
        // A value equal to the default is treated as not set, because set keys are not recorded.
        let defaults = PluginSettings::named(&self.name);
        let (is_transform, is_job) = (world == World::Transform, world == World::Job);
        let (is_decoder, is_observer) = (world == World::Decoder, world == World::Observer);
        let Limits { queue, instances, .. } = defaults.limits;
        for (is_said, may_have, who, key) in [
            (self.order != defaults.order, is_transform, "transforms", "order"),
            (self.on_fault != defaults.on_fault, is_transform, "transforms", "on-fault"),
            (self.schedule != defaults.schedule, is_job, "jobs", "schedule"),
            (!self.paths.is_empty(), is_decoder, "decoders", "paths"),
            (self.limits.queue != queue, is_observer, "observers", "limits.queue"),
            (
                self.limits.instances != instances,
                is_transform || is_decoder,
                "transforms and decoders",
                "limits.instances",
            ),
            (
                !self.grants.webhooks.is_empty(),
                is_job || is_observer,
                "jobs and observers",
                "grants.webhooks",
            ),
        ] {
            if is_said && !may_have {
                return Err(format!("only {who} have {key}"));
            }
        }
        Ok(())
    }

    /// Returns the longest duration of one call of a plugin of this world.
    pub fn time(&self, world: World) -> Duration {
        self.limits.time.unwrap_or(world.time_default())
    }
}

/// Refuses names that would need escaping in URLs or metrics.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is not a plugin name: expected up to 64 letters, digits, - and _"
        )),
    }
}

/// Returns whether a path is reserved for tidepool, so that no decoder may be configured for it.
pub fn is_reserved(path: &str) -> bool {
    ["/api/v1/", "/api/v2/silence", "/api/v2/status", "/-/", "/ui/"]
        .iter()
        .any(|own| path.starts_with(own))
        || matches!(
            path,
            "/" | "/federate" | "/graph" | "/metrics" | "/query" | "/ui" | "/api/v1" | "/-"
        )
}
