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

use crate::config::{Wrong, bytes, duration, line};
use saphyr::{MarkedYaml, ScalarStyle, YamlData};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What a plugin is for: the world that it is made for.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFault {
    /// It is stored as if the transform were not there.
    #[default]
    Pass,
    /// It is refused with 503: the sender keeps it and comes again.
    Reject,
}

/// What a plugin may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of one instance, and what one batch may take in columns.
    pub memory_bytes_max: usize,
    /// Time of one call; `None` is the default of its world.
    pub time: Option<Duration>,
    /// Bytes that one call may give.
    pub output_bytes_max: usize,
    /// Batches that may wait for an observer.
    pub queue: usize,
    /// Instances that may work at a time.
    pub instances: usize,
}

/// What a plugin gets beyond its world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Beginnings of URLs that it may post to.
    pub webhooks: Vec<String>,
    /// A directory that it sees as `/data`.
    pub directory: Option<PathBuf>,
    /// Whether it may write there.
    pub is_writable: bool,
}

/// One plugin's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginSettings {
    /// What it is called, in URLs, metrics and logs.
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
    /// What it may use.
    pub limits: Limits,
    /// What it gets beyond its world.
    pub grants: Grants,
}

/// All about plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginsConfig {
    /// Where they are; without it there are none.
    pub directory: Option<PathBuf>,
    /// Linear memory of all instances together.
    pub memory_bytes_max: usize,
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
        named.ok_or_else(|| format!("{text:?} is none of transform, decoder, job, observer"))
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
            limits: Limits::default(),
            grants: Grants::default(),
        }
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
            "{name:?} is no name of a plugin: up to 64 letters, digits, - and _ are wanted"
        )),
    }
}

/// Reads the section.
pub fn read(section: &MarkedYaml<'_>) -> Result<Vec<PluginSettings>, Wrong> {
    let YamlData::Sequence(items) = &section.data else {
        return Err((line(section), "plugins: a list is wanted".to_owned()));
    };
    let mut plugins: Vec<PluginSettings> = Vec::with_capacity(items.len());
    for item in items {
        let plugin = plugin(item)?;
        if plugins.iter().any(|other| other.name == plugin.name) {
            let what = format!("plugins: {} is there twice", plugin.name);
            return Err((line(item), what));
        }
        plugins.push(plugin);
    }
    Ok(plugins)
}

fn plugin(item: &MarkedYaml<'_>) -> Result<PluginSettings, Wrong> {
    let mut settings = PluginSettings::named("");
    let (mut name, mut file) = (None, None);
    each(item, "plugins", |key, value| {
        match key {
            "name" => name = Some(parsed(value, |text| check_name(text).map(|()| text.into()))?),
            "file" => file = Some(parsed(value, plain_file)?),
            "world" => settings.world = Some(parsed(value, str::parse)?),
            "order" => settings.order = parsed(value, whole)?,
            "config" => settings.config = parsed(value, |text| Ok(text.to_owned()))?,
            "schedule" => settings.schedule = parsed(value, schedule)?,
            "on-fault" => settings.on_fault = parsed(value, on_fault)?,
            "limits" => limits(value, &mut settings.limits)?,
            "grants" => grants(value, &mut settings.grants)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    settings.name = name.ok_or_else(|| (line(item), "plugins: a name is missing".to_owned()))?;
    settings.file = file.unwrap_or_else(|| format!("{}.wasm", settings.name));
    Ok(settings)
}

fn limits(value: &MarkedYaml<'_>, limits: &mut Limits) -> Result<(), Wrong> {
    each(value, "limits", |key, value| {
        match key {
            "memory" => limits.memory_bytes_max = parsed(value, size)?,
            "time" => limits.time = Some(parsed(value, duration)?),
            "output" => limits.output_bytes_max = parsed(value, size)?,
            "queue" => limits.queue = parsed(value, at_least_one)?,
            "instances" => limits.instances = parsed(value, at_least_one)?,
            _ => return Ok(false),
        }
        Ok(true)
    })
}

fn grants(value: &MarkedYaml<'_>, grants: &mut Grants) -> Result<(), Wrong> {
    each(value, "grants", |key, value| {
        match key {
            "webhooks" => {
                let YamlData::Sequence(items) = &value.data else {
                    return Err((line(value), "webhooks: a list of URLs is wanted".to_owned()));
                };
                let urls = items.iter().map(|item| parsed(item, webhook));
                grants.webhooks = urls.collect::<Result<_, _>>()?;
            }
            "directory" => grants.directory = Some(parsed(value, |text| Ok(text.into()))?),
            "writable" => grants.is_writable = parsed(value, yes_or_no)?,
            _ => return Ok(false),
        }
        Ok(true)
    })
}

/// Gives each key with its value to `take`, which says whether it knows the key.
fn each(
    node: &MarkedYaml<'_>,
    what: &str,
    mut take: impl FnMut(&str, &MarkedYaml<'_>) -> Result<bool, Wrong>,
) -> Result<(), Wrong> {
    let YamlData::Mapping(map) = &node.data else {
        return Err((line(node), format!("{what}: lines of the form `key: value` are wanted")));
    };
    for (key, value) in map {
        let name = scalar(key).unwrap_or_default();
        let known =
            take(name, value).map_err(|(line, wrong)| (line, format!("{name}: {wrong}")))?;
        if !known {
            return Err((line(key), format!("{what}: there is no key {name:?}")));
        }
    }
    Ok(())
}

fn parsed<T>(
    node: &MarkedYaml<'_>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, Wrong> {
    let text = scalar(node).ok_or_else(|| (line(node), "one plain value is wanted".to_owned()))?;
    parse(text).map_err(|wrong| (line(node), wrong))
}

fn scalar<'a>(node: &'a MarkedYaml<'_>) -> Option<&'a str> {
    match &node.data {
        YamlData::Representation(text, ScalarStyle::Plain, _) if *text == "~" => Some(""),
        YamlData::Representation(text, ..) => Some(text),
        _ => None,
    }
}

fn whole(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| format!("{text:?} is no whole number"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1024).contains(number));
    number.ok_or_else(|| format!("{text:?} is no number from 1 to 1024"))
}

fn size(text: &str) -> Result<usize, String> {
    bytes(text).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}

fn schedule(text: &str) -> Result<Duration, String> {
    let schedule = duration(text)?;
    match schedule >= Duration::from_secs(1) {
        true => Ok(schedule),
        false => Err("a job runs once a second at most".to_owned()),
    }
}

fn on_fault(text: &str) -> Result<OnFault, String> {
    match text {
        "pass" => Ok(OnFault::Pass),
        "reject" => Ok(OnFault::Reject),
        _ => Err(format!("{text:?} is neither pass nor reject")),
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "true or false is wanted".to_owned())
}

/// A file of the directory itself: what lies elsewhere is not looked for.
fn plain_file(text: &str) -> Result<String, String> {
    match !text.is_empty() && !text.contains('/') && text.ends_with(".wasm") {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is no name of a .wasm file in the directory of plugins")),
    }
}

/// A URL; what begins with it, and goes on after a slash, is granted.
fn webhook(text: &str) -> Result<String, String> {
    match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            Ok(url.as_str().to_owned())
        }
        _ => Err(format!("{text:?} is no URL such as http://127.0.0.1:9093/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saphyr::YamlLoader;
    use saphyr_parser::Parser;

    fn settings(text: &str) -> Result<Vec<PluginSettings>, Wrong> {
        let mut loader = YamlLoader::<MarkedYaml<'_>>::default();
        loader.early_parse(false);
        let loaded = Parser::new_from_str(text).load(&mut loader, true);
        assert!(loaded.is_ok(), "{text:?}");
        read(&loader.into_documents()[0])
    }

    #[test]
    fn all_keys_are_read() {
        let text = "- name: a\n- name: b\n  file: c.wasm\n  world: job\n  order: -3\n  \
                    on-fault: reject\n  schedule: 5m\n  config: |\n    x: 1\n    y: 2\n  \
                    limits: {memory: 1MiB, time: 2s, output: 3KiB, queue: 4, instances: 5}\n  \
                    grants:\n    webhooks: [http://127.0.0.1:9093/x]\n    directory: /d\n    \
                    writable: true\n";
        let expected = PluginSettings {
            name: "b".into(),
            file: "c.wasm".into(),
            world: Some(World::Job),
            order: -3,
            on_fault: OnFault::Reject,
            config: "x: 1\ny: 2\n".into(),
            schedule: Duration::from_secs(300),
            limits: Limits {
                memory_bytes_max: 1 << 20,
                time: Some(Duration::from_secs(2)),
                output_bytes_max: 3 << 10,
                queue: 4,
                instances: 5,
            },
            grants: Grants {
                webhooks: vec!["http://127.0.0.1:9093/x".into()],
                directory: Some("/d".into()),
                is_writable: true,
            },
        };
        assert_eq!(settings(text), Ok(vec![PluginSettings::named("a"), expected]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, what) in [
            ("a: b\n", 1, "a list"),
            ("- name: a\n- order: 1\n", 2, "a name is missing"),
            ("- name: a/b\n", 1, "no name of a plugin"),
            ("- name: a\n- name: a\n", 2, "there twice"),
            ("- name: a\n  world: filter\n", 2, "none of transform"),
            ("- name: a\n  ordr: 1\n", 2, "no key \"ordr\""),
            ("- name: a\n  on-fault: ignore\n", 2, "neither pass nor reject"),
            ("- name: a\n  limits: {memory: much}\n", 2, "memory: \"much\" is no size"),
            ("- name: a\n  limits:\n    time: 5\n", 3, "no duration"),
            ("- name: a\n  limits: {queue: 0}\n", 2, "from 1 to 1024"),
            ("- name: a\n  grants:\n    webhooks: [ftp://x]\n", 3, "no URL"),
            ("- name: a\n  file: ../x.wasm\n", 2, "no name of a .wasm file"),
            ("- name: a\n  schedule: 10ms\n", 2, "once a second"),
        ] {
            match settings(text) {
                Err((at, said)) => {
                    assert!(said.contains(what), "{text:?}: {said}");
                    assert_eq!(at, line, "{text:?}: {said}");
                }
                Ok(settings) => panic!("{text:?}: {settings:?}"),
            }
        }
    }
}
