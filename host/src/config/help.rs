//! Help for the server's flags: a short list of the most important flags, and all flags by topic.
//!
//! A topic is a struct of the feature to which the flags belong. The help texts are the doc
//! comments of the fields: the first line in the short list, the whole comment in the long list.

use super::topics::short;
use clap::{Arg, ArgAction, Command};

/// Maximum length of a line in the long help, in characters, without the indentation.
const COLUMNS_MAX: usize = 88;

const HEADING: &str = "Help";

/// Adds help to the command `serve`: `--help` prints the short list, `--help-all` everything.
pub(super) fn with_topics(command: Command) -> Command {
    // Clap's own `--help` would print the long help, but the short list is wanted.
    let command = command.disable_help_flag(true).disable_version_flag(true).mut_args(|arg| {
        let is_short = arg.get_long().is_some_and(|name| short().any(|it| it == name));
        // Wrapped here, because clap wraps only with its feature `wrap_help`.
        let long = arg.get_long_help().map(|text| wrapped(&text.to_string()));
        let arg = arg.hide_short_help(!is_short);
        match long {
            Some(text) => arg.long_help(text),
            None => arg,
        }
    });
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    let all = Arg::new("help-all").long("help-all").action(ArgAction::HelpLong);
    command
        .next_help_heading(HEADING)
        .args([help.help("Show the most important flags"), all.help("Show all flags, by topic")])
}

/// Adds the flag that prints the program's version.
pub(super) fn with_version(command: Command) -> Command {
    let version = Arg::new("version").short('V').long("version").action(ArgAction::Version);
    command.arg(version.help("Show the version").help_heading(HEADING))
}

/// Adds help to any other command and its subcommands, the same for `-h` and `--help`.
pub(super) fn with_help(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    command.mut_subcommands(with_help).arg(help.help("Print help"))
}

/// Wraps a text between words at the maximum line length.
fn wrapped(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    for (number, paragraph) in text.lines().enumerate() {
        if number > 0 {
            lines.push('\n');
        }
        let mut columns = 0;
        for word in paragraph.split(' ') {
            let length = word.chars().count();
            if columns > 0 && columns + 1 + length > COLUMNS_MAX {
                lines.push('\n');
                columns = 0;
            } else if columns > 0 {
                lines.push(' ');
                columns += 1;
            }
            lines.push_str(word);
            columns += length;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::CliCommand;
    use crate::config::source::{command, flags_command};
    use crate::config::{ConfigError, ConfigSource};

    /// Returns the text that a command line prints instead of serving.
    fn printed(arguments: &[&str]) -> String {
        let words = ["tidepool"].iter().chain(arguments).map(|word| (*word).into());
        match ConfigSource::new(words).read::<CliCommand>() {
            Err(ConfigError::CommandLine(error)) => error.to_string(),
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    /// Returns the names of the flags that a help lists.
    fn listed(help: &str) -> Vec<&str> {
        let flags = help.lines().filter_map(|line| line.trim_start().split_once("--"));
        let flags = flags.filter(|(before, _)| before.is_empty() || before.len() == 4);
        flags.map(|(_, rest)| rest.split([' ', '[', '=']).next().unwrap_or_default()).collect()
    }

    #[test]
    fn every_flag_has_a_topic_and_a_first_line() {
        for arg in flags_command().get_arguments() {
            let name = arg.get_long().unwrap_or_default();
            assert!(arg.get_help_heading().is_some(), "--{name} has no heading");
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.len() <= 80 && !help.ends_with('.'), "--{name}: {help}");
            assert!(help.starts_with(char::is_uppercase), "--{name}: {help}");
        }
    }

    #[test]
    fn the_short_list_fits_on_a_page() {
        for (arguments, lines_max) in [(["serve", "--help"].as_slice(), 42), (&["--help"], 54)] {
            let help = printed(arguments);
            let mut names = listed(&help);
            names.retain(|name| !name.starts_with("help") && *name != "version");
            assert_eq!(names, short().collect::<Vec<_>>(), "{help}");
            assert!(help.lines().count() <= lines_max, "{}: {help}", help.lines().count());
            assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
            assert_eq!(
                printed(&arguments.iter().map(|_| "-h").collect::<Vec<_>>()[..1]),
                printed(&["--help"])
            );
        }
        assert_eq!(printed(&["-h"]), printed(&["--help"]));
    }

    #[test]
    fn the_long_list_has_every_flag() {
        let help = printed(&["serve", "--help-all"]);
        let names = listed(&help);
        let command = command::<CliCommand>();
        let Some(serve) = command.find_subcommand("serve") else { panic!("there is no serve") };
        for name in serve.get_arguments().filter_map(Arg::get_long) {
            assert!(names.contains(&name), "--{name}");
        }
        assert!(help.contains("Remote read:\n"), "{help}");
    }

    #[test]
    fn other_commands_have_their_own_help() {
        for command in [["tsdb", "--help"], ["tsdb", "-h"]] {
            assert!(printed(&command).contains("Usage: tidepool tsdb"), "{command:?}");
        }
        assert!(printed(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        let text = format!("{}\n\nb", "word ".repeat(40).trim_end());
        let lines = wrapped(&text);
        assert!(lines.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "{lines}");
        assert_eq!(lines.split_whitespace().count(), 41);
        assert!(lines.ends_with("word\n\nb"), "{lines}");
    }
}
