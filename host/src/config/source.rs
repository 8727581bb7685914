//! Sources of the configuration: the command line, and the file named by it. Both can be read
//! again.

use super::file::{ConfigFile, FileError, Sections, in_one_line};
use super::flags::flags;
use super::help::{with_help, with_topics, with_version};
use super::upstream::{ConflictingFlags, absent_flag, by_our_names, with_names};
use super::{Cli, Command, Invocation, ServeArgs, ServeConfig};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory as _, FromArgMatches as _};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;
use tidepool_evaluation::{FileOptions, RuleFilesError};
use tidepool_forward::DestinationConfig;
use tidepool_notify::config::ReceiverConfig;
use tidepool_scrape::config::Depth;

/// Name of the command that serves, which may be omitted.
const SERVE: &str = "serve";

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line is invalid, or asks for help. The message is clap's.
    #[error(transparent)]
    CommandLine(#[from] clap::Error),
    #[error(transparent)]
    File(#[from] FileError),
    /// A flag that exists in Prometheus but not in tidepool. Has the message.
    #[error("{0}")]
    Absent(String),
    #[error(transparent)]
    ConflictingFlags(#[from] ConflictingFlags),
    #[error(transparent)]
    RuleFiles(#[from] RuleFilesError),
    /// Flags or sections contradict each other. Has the message.
    #[error("{0}")]
    Contradiction(String),
}

/// Values of all flags by name. The list is empty for a flag without a value or default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, Vec<String>>,
    /// Names of the flags that were set on the command line or in the file.
    given: BTreeSet<String>,
}

impl Settings {
    /// Returns names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.values.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// Returns the names of the flags whose values differ from those of `other`.
    pub fn changes<'a>(&'a self, other: &'a Settings) -> Vec<&'a str> {
        let differs = |name: &&String| self.values.get(*name) != other.values.get(*name);
        self.values.keys().filter(differs).map(String::as_str).collect()
    }

    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains(name)
    }

    fn of(matches: &ArgMatches) -> Settings {
        let mut settings = Settings::default();
        // Only flags under our names: Prometheus' names were converted before.
        for arg in flags_command().get_arguments() {
            let id = arg.get_id().as_str();
            let (Some(name), Ok(values)) = (arg.get_long(), matches.try_get_raw(id)) else {
                continue;
            };
            let values = values.into_iter().flatten();
            let values = values.map(|value| value.to_string_lossy().into_owned()).collect();
            settings.values.insert(name.to_owned(), values);
            if !matches!(matches.value_source(id), None | Some(ValueSource::DefaultValue)) {
                settings.given.insert(name.to_owned());
            }
        }
        settings
    }

    /// Returns a flag as command-line arguments; none if the flag was not set.
    fn arguments(&self, arg: &clap::Arg) -> Vec<OsString> {
        let name = arg.get_long().unwrap_or_default();
        let values = self.values.get(name).filter(|_| self.is_given(name));
        let values = values.into_iter().flatten();
        match arg.get_action() {
            ArgAction::SetTrue => {
                let is_set = |value: &&String| value.as_str() == "true";
                values.filter(is_set).map(|_| format!("--{name}").into()).collect()
            }
            _ => values.map(|value| format!("--{name}={value}").into()).collect(),
        }
    }
}

/// The command line, kept so that it can be read again, together with its file.
#[derive(Clone, Debug)]
pub struct ConfigSource {
    arguments: Vec<OsString>,
    /// Whether files that the configuration file includes are read.
    depth: Depth,
    /// Whether rule files are read.
    reads_rules: bool,
}

impl ConfigSource {
    /// Creates a source from the arguments of the process; the first is the program's name.
    pub fn new(arguments: impl IntoIterator<Item = OsString>) -> ConfigSource {
        ConfigSource {
            arguments: arguments.into_iter().collect(),
            depth: Depth::Files,
            reads_rules: true,
        }
    }

    /// Creates a source with only a configuration file, for an otherwise empty command line. Rule
    /// files are not read.
    pub fn of_file(path: &Path, depth: Depth) -> ConfigSource {
        let mut flag = OsString::from("--config=");
        flag.push(path);
        ConfigSource { arguments: vec!["tidepool".into(), flag], depth, reads_rules: false }
    }

    /// Reads the command line and its file. `C` is the type of commands other than `serve`.
    pub fn read<C: clap::Subcommand>(&self) -> Result<Invocation<C>, ConfigError> {
        let matches = parsed(command::<C>(), self.arguments.clone())?;
        let cli = Cli::<C>::from_arg_matches(&matches)?;
        match cli.command {
            Some(Command::Other(command)) => Ok(Invocation::Other(command)),
            _ => {
                let (config, settings) = self.serve_by(&matches)?;
                Ok(Invocation::Serve { config: Box::new(config), settings })
            }
        }
    }

    /// Reads the configuration of a server. The second value is the same configuration as flags.
    pub fn serve(&self) -> Result<(ServeConfig, Settings), ConfigError> {
        self.serve_by(&served(self.arguments.clone())?)
    }

    /// Returns the path of the configuration file, if the command line has one.
    pub fn file(&self) -> Option<PathBuf> {
        serve_args(&served(self.arguments.clone()).ok()?).ok()?.general.config
    }

    /// Reads the configuration for a running server. Flags that `can_change` rejects keep the
    /// values from the start. Fails if the new configuration is invalid, or this mixture of old and
    /// new.
    pub fn serve_again(
        &self,
        started_with: &Settings,
        can_change: impl Fn(&str) -> bool,
    ) -> Result<(ServeConfig, Settings), ConfigError> {
        let matches = served(self.arguments.clone())?;
        // The new configuration must be valid by itself, because the next start will use it.
        let (_, settings, mut sections) = self.read_by(&matches, false)?;
        let command = flags_command();
        let flags = command.get_arguments().flat_map(|arg| match arg.get_long() {
            None | Some("config") => Vec::new(),
            Some(name) if can_change(name) => settings.arguments(arg),
            Some(_) => started_with.arguments(arg),
        });
        let arguments = std::iter::once(OsString::from("tidepool")).chain(flags);
        let matches = served(arguments.collect())?;
        if !started_with.is_given("plugins") {
            // Without a directory at the start, plugins can be loaded only after a restart.
            sections.plugins.clear();
        }
        let (config, _) = configured(&matches, &sections).map_err(|error| match error {
            ConfigError::Contradiction(what) => ConfigError::Contradiction(format!(
                "{what}. Flags that only a restart can change count as they are now"
            )),
            error => error,
        })?;
        Ok((config, settings))
    }

    fn serve_by(&self, matches: &ArgMatches) -> Result<(ServeConfig, Settings), ConfigError> {
        let (config, settings, _) = self.read_by(matches, true)?;
        Ok((config, settings))
    }

    fn read_by(
        &self,
        matches: &ArgMatches,
        is_start: bool,
    ) -> Result<(ServeConfig, Settings, Sections), ConfigError> {
        let whole = |matches: &ArgMatches, sections: Sections| {
            let (config, settings) = configured(matches, &sections)?;
            Ok((config, settings, sections))
        };
        let Some(path) = serve_args(matches)?.general.config else {
            return whole(matches, Sections::default());
        };
        let mut file = ConfigFile::read(&path, self.depth, is_start)?;
        file.sections.rules.reads_files = self.reads_rules;
        let flags = file.flags(serve_matches(matches)).into_iter().map(OsString::from);
        // Has only flags that the command line does not set, so clap sees no conflict.
        let read = served(self.arguments.iter().cloned().chain(flags).collect());
        // An error that names a flag of the file is reported with its position in the file.
        read.and_then(|matches| whole(&matches, file.sections.clone())).map_err(|error| {
            let what = match &error {
                ConfigError::CommandLine(error) => in_one_line(error),
                error => error.to_string(),
            };
            file.place(&what).map_or(error, ConfigError::File)
        })
    }
}

fn configured(
    matches: &ArgMatches,
    sections: &Sections,
) -> Result<(ServeConfig, Settings), ConfigError> {
    let args = serve_args(matches)?;
    args.check().map_err(ConfigError::Contradiction)?;
    let has_default_rules = !args.rules.no_default_rules;
    let mut config = ServeConfig::from(args);
    // Sections of the file have no flags, so they are added before the whole is checked.
    let plugins = config.plugins.with_plugins(sections.plugins.clone());
    config.plugins = plugins.map_err(ConfigError::Contradiction)?;
    config.forward.destinations.extend_from_slice(&sections.remote_write);
    config.scrape.settings = sections.scrape.clone();
    config.queries.subquery_step = sections.scrape.global.evaluation_interval;
    let global = &sections.scrape.global;
    config.rules.files = sections.rules.load(FileOptions {
        validation: global.validation,
        rules_max: config.rules.rules_max,
        features: config.queries.features,
    })?;
    config.rules.features = config.queries.features;
    if has_default_rules {
        config.rules.defaults = sections.rules.load_defaults()?;
    }
    config.rules.section = sections.rules.clone();
    config.rules.interval = global.evaluation_interval;
    config.rules.query_offset = global.rule_query_offset;
    config.rules.external_labels = config
        .http
        .external_labels
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    config.notify.external_labels = config.rules.external_labels.clone();
    config.notify.alerting = sections.alerting.clone();
    config.notify.notify = sections.notify.clone();
    // Segments are kept for forwarding only if there is a destination.
    config.store.holds_log = !config.forward.destinations.is_empty();
    config.check().map_err(ConfigError::Contradiction)?;
    let mut settings = Settings::of(serve_matches(matches));
    // Fingerprints suffice to detect changes, and show no secrets.
    let names = sections.remote_write.iter().map(DestinationConfig::fingerprint);
    settings.values.insert("remote_write".to_owned(), names.collect());
    let scraped = format!("{:08x}", crc32c::crc32c(format!("{:?}", sections.scrape).as_bytes()));
    settings.values.insert("scrape_configs".to_owned(), vec![scraped]);
    let rules = format!("{:08x}", crc32c::crc32c(format!("{:?}", config.rules).as_bytes()));
    settings.values.insert("rule_files".to_owned(), vec![rules]);
    let alerting = config.notify.alerting.fingerprint();
    settings.values.insert("alerting".to_owned(), vec![alerting]);
    let receivers = config.notify.notify.receivers.iter();
    let receivers = receivers.map(ReceiverConfig::fingerprint).collect();
    settings.values.insert("notify".to_owned(), receivers);
    config.http.flags = flags(&config, &settings);
    config.http.yaml = sections.shown.yaml(&config.http.external_labels);
    Ok((config, settings))
}

/// Parses the command line of a server. Prometheus' names are converted to ours.
fn served(arguments: Vec<OsString>) -> Result<ArgMatches, ConfigError> {
    parsed(command::<Infallible>(), arguments)
}

/// Parses a command line. Prometheus' names are converted to ours.
fn parsed(command: clap::Command, arguments: Vec<OsString>) -> Result<ArgMatches, ConfigError> {
    let parse = |arguments: &[OsString]| {
        command.clone().try_get_matches_from(arguments).map_err(|error| {
            absent_flag(&error).map_or(ConfigError::CommandLine(error), ConfigError::Absent)
        })
    };
    let matches = parse(&without_help_twice(&arguments))?;
    if matches.subcommand_name().is_some_and(|name| name != SERVE) {
        return Ok(matches);
    }
    let flags = by_our_names(&command, serve_matches(&matches))?;
    // Parsed again with our names, so that all of clap's rules apply to the values.
    match flags.is_empty() {
        true => Ok(matches),
        false => parse(&[arguments, flags].concat()),
    }
}

/// Removes `--help` from `tidepool help --help`, as `help` accepts only names of commands.
fn without_help_twice(arguments: &[OsString]) -> Vec<OsString> {
    let asks = arguments.get(1).is_some_and(|command| command == "help");
    let is_help = |argument: &&OsString| *argument == "--help" || *argument == "-h";
    arguments.iter().filter(|argument| !(asks && is_help(argument))).cloned().collect()
}

/// Returns the complete command line, including Prometheus' names of flags.
pub(super) fn command<C: clap::Subcommand>() -> clap::Command {
    let with_help_of = |command: clap::Command| match command.get_name() {
        SERVE => with_topics(with_names(command)),
        _ => with_help(command),
    };
    let command = Cli::<C>::command().mut_subcommands(with_help_of);
    with_version(with_topics(with_names(command)))
}

/// Returns the flags of `serve` under our names only.
pub(super) fn flags_command() -> clap::Command {
    <ServeArgs as clap::Args>::augment_args(clap::Command::new("tidepool"))
}

/// Returns the matches of `serve`, which may be omitted on the command line.
fn serve_matches(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand_matches(SERVE).unwrap_or(matches)
}

fn serve_args(matches: &ArgMatches) -> Result<ServeArgs, clap::Error> {
    ServeArgs::from_arg_matches(serve_matches(matches))
}
