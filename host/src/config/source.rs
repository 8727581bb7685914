//! Where the configuration comes from: the command line, and the file that it names. Both can be
//! read again.

use super::file::{ConfigFile, FileError, Sections, in_one_line};
use super::flags::flags;
use super::upstream::{SaidTwice, absent_flag, by_our_names, with_names};
use super::{Cli, Command, Invocation, ServeArgs, ServeConfig};
use crate::forward::DestinationConfig;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// The command that serves.
const SERVE: &str = "serve";

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line is wrong, or asks for help. Clap says it best by itself.
    #[error(transparent)]
    CommandLine(#[from] clap::Error),
    /// The configuration file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// A flag that Prometheus has and tidepool has not.
    #[error("{0}")]
    Absent(String),
    /// A flag has two values.
    #[error(transparent)]
    SaidTwice(#[from] SaidTwice),
    /// What is said does not go together.
    #[error("{0}")]
    Contradiction(String),
}

/// The values of all flags, by their names. Those that are not given and have no default have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, Vec<String>>);

impl Settings {
    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// Names of the flags that are not as they are in the other.
    pub fn changes<'a>(&'a self, other: &'a Settings) -> Vec<&'a str> {
        let differs = |name: &&String| self.0.get(*name) != other.0.get(*name);
        self.0.keys().filter(differs).map(String::as_str).collect()
    }

    fn of(matches: &ArgMatches) -> Settings {
        let command = <ServeArgs as clap::Args>::augment_args(clap::Command::new("tidepool"));
        let values = command.get_arguments().filter_map(|arg| {
            let values = matches.try_get_raw(arg.get_id().as_str()).ok()?;
            let values = values.into_iter().flatten();
            let values = values.map(|value| value.to_string_lossy().into_owned()).collect();
            Some((arg.get_long()?.to_owned(), values))
        });
        Settings(values.collect())
    }
}

/// The command line, kept to be read again with its file.
#[derive(Clone, Debug)]
pub struct ConfigSource {
    arguments: Vec<OsString>,
}

impl ConfigSource {
    /// From the arguments of the process, its name first.
    pub fn new(arguments: impl IntoIterator<Item = OsString>) -> ConfigSource {
        ConfigSource { arguments: arguments.into_iter().collect() }
    }

    /// What the command line asks for, with what the file that it names adds.
    pub fn read(&self) -> Result<Invocation, ConfigError> {
        let matches = parsed(self.arguments.clone())?;
        let cli = Cli::from_arg_matches(&matches)?;
        match cli.command {
            Some(Command::Tsdb(args)) => Ok(Invocation::Tsdb(args)),
            #[cfg(feature = "plugins")]
            Some(Command::Plugin(args)) => Ok(Invocation::Plugin(args)),
            _ => {
                let (config, settings) = self.serve_by(&matches)?;
                Ok(Invocation::Serve { config: Box::new(config), settings })
            }
        }
    }

    /// The configuration of a server, and the same as flags.
    pub fn serve(&self) -> Result<(ServeConfig, Settings), ConfigError> {
        self.serve_by(&parsed(self.arguments.clone())?)
    }

    fn serve_by(&self, matches: &ArgMatches) -> Result<(ServeConfig, Settings), ConfigError> {
        let Some(path) = serve_args(matches)?.config else {
            return configured(matches, &Sections::default());
        };
        let file = ConfigFile::read(&path)?;
        let flags = file.flags(serve_matches(matches)).into_iter().map(OsString::from);
        let read = parsed(self.arguments.iter().cloned().chain(flags).collect());
        read.and_then(|matches| configured(&matches, &file.sections)).map_err(|error| {
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
    let config = ServeConfig::from(serve_args(matches)?);
    let with_plugins = config.with_plugins(sections.plugins.clone());
    let mut config = with_plugins.map_err(ConfigError::Contradiction)?;
    config.forward.destinations.extend_from_slice(&sections.remote_write);
    config.store.holds_log = !config.forward.destinations.is_empty();
    config.check().map_err(ConfigError::Contradiction)?;
    let mut settings = Settings::of(serve_matches(matches));
    let names = sections.remote_write.iter().map(DestinationConfig::fingerprint);
    settings.0.insert("remote_write".to_owned(), names.collect());
    config.http.flags = flags(&config, &settings);
    Ok((config, settings))
}

/// What a command line says, by our names for the flags.
fn parsed(arguments: Vec<OsString>) -> Result<ArgMatches, ConfigError> {
    let command = command();
    let parse = |arguments: &[OsString]| {
        command.clone().try_get_matches_from(arguments).map_err(|error| {
            absent_flag(&error).map_or(ConfigError::CommandLine(error), ConfigError::Absent)
        })
    };
    let matches = parse(&arguments)?;
    if matches.subcommand_name().is_some_and(|name| name != SERVE) {
        return Ok(matches);
    }
    let flags = by_our_names(&command, serve_matches(&matches))?;
    match flags.is_empty() {
        true => Ok(matches),
        false => parse(&[arguments, flags].concat()),
    }
}

/// The whole command line, with Prometheus' names for the flags of a server.
pub(super) fn command() -> clap::Command {
    with_names(Cli::command()).mut_subcommand(SERVE, with_names)
}

/// `serve` may be named or not.
fn serve_matches(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand_matches(SERVE).unwrap_or(matches)
}

fn serve_args(matches: &ArgMatches) -> Result<ServeArgs, clap::Error> {
    ServeArgs::from_arg_matches(serve_matches(matches))
}
