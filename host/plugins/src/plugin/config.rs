//! The section `plugins` of the configuration file, and what holds without it.
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

/// The world that a plugin is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum World {
    /// Sees each batch before it is stored.
    Transform,
    /// Makes samples of bodies.
    Decoder,
    /// Runs on a schedule.
    Job,
    /// Sees what was written.
    Observer,
}

/// What becomes of a batch when a transform fails.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum OnFault {
    /// It is stored as if the transform were not there.
    #[default]
    Pass,
    /// It is refused with 503: the sender keeps it and comes again.
    Reject,
}

/// The limits of a plugin.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Linear memory of one instance, and what one batch may take in columns.
    #[serde(rename = "memory", deserialize_with = "section::memory")]
    pub memory_bytes_max: usize,
    /// Time of one call; `None` is the default of its world.
    #[serde(deserialize_with = "section::time")]
    pub time: Option<Duration>,
    /// Bytes that one call may return.
    #[serde(rename = "output", deserialize_with = "section::output")]
    pub output_bytes_max: usize,
    /// Batches that may wait for an observer.
    #[serde(deserialize_with = "yaml::number::<_, _, 1, 1024>")]
    pub queue: usize,
    /// Instances that may work at a time.
    #[serde(deserialize_with = "yaml::number::<_, _, 1, 1024>")]
    pub instances: usize,
}

/// The grants of a plugin beyond its world.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Grants {
    /// Beginnings of URLs that it may post to.
    #[serde(deserialize_with = "section::webhooks")]
    pub webhooks: Vec<String>,
    /// A directory that it sees as `/data`.
    #[serde(deserialize_with = "section::directory")]
    pub directory: Option<PathBuf>,
    /// Whether it may write there.
    #[serde(rename = "writable")]
    pub is_writable: bool,
}

/// One plugin's settings.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "section::Section")]
pub struct PluginSettings {
    /// Its name in URLs, metrics and logs.
    pub name: String,
    /// Its file, inside the directory of plugins.
    pub file: String,
    /// The world that it must be made for, if that was said.
    pub world: Option<World>,
    /// Transforms run by ascending order, then name.
    pub order: i32,
    /// Of a transform.
    pub on_fault: OnFault,
    /// Handed to it when it starts.
    pub config: String,
    /// How often a job runs.
    pub schedule: Duration,
    /// Paths of URLs that a decoder answers, beside `/api/v1/push/NAME`.
    pub paths: Vec<String>,
    /// Its limits.
    pub limits: Limits,
    /// Its grants beyond its world.
    pub grants: Grants,
}

/// All about plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginsConfig {
    /// Where they are; without it there are none.
    pub directory: Option<PathBuf>,
    /// Linear memory of all instances together.
    pub memory_bytes_max: usize,
    /// Memory of the process that compiles one.
    pub compiler_bytes_max: u64,
    /// Those that the file speaks of.
    pub plugins: Vec<PluginSettings>,
}

impl World {
    /// All of them.
    pub const ALL: [World; 4] = [World::Transform, World::Decoder, World::Job, World::Observer];

    /// As configuration, metrics and WIT call it.
    pub fn name(self) -> &'static str {
        match self {
            World::Transform => "transform",
            World::Decoder => "decoder",
            World::Job => "job",
            World::Observer => "observer",
        }
    }

    /// The interface that such a plugin exports.
    pub fn interface(self) -> &'static str {
        match self {
            World::Transform => "tidepool:plugin/transform-batches",
            World::Decoder => "tidepool:plugin/decode-bodies",
            World::Job => "tidepool:plugin/run-job",
            World::Observer => "tidepool:plugin/observe-batches",
        }
    }

    /// Time of one call, if nothing else is said.
    pub fn time_default(self) -> Duration {
        match self {
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
    /// What holds for a plugin that the file does not speak of.
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

    /// An error if a setting does not apply to a plugin of this world.
    pub fn check_world(&self, world: World) -> Result<(), String> {
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

    /// Time of one call of a plugin of this world.
    pub fn time(&self, world: World) -> Duration {
        self.limits.time.unwrap_or(world.time_default())
    }
}

/// Whether a name can stand in URLs and metrics.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is not a plugin name: expected up to 64 letters, digits, - and _"
        )),
    }
}

/// Whether a path is, or may come to be, one of tidepool's own: no plugin has it.
pub fn is_reserved(path: &str) -> bool {
    ["/api/v1/", "/-/", "/ui/"].iter().any(|own| path.starts_with(own))
        || matches!(
            path,
            "/" | "/federate" | "/graph" | "/metrics" | "/query" | "/ui" | "/api/v1" | "/-"
        )
}
