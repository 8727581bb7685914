//! All flags with their values as text, for those who ask the running server.

use clap::{ArgMatches, Command};
use std::collections::BTreeMap;

/// Flags by name, without the dashes. What was not given and has no fixed default is empty; what may
/// be given several times is joined by commas.
pub(super) fn flags(command: &Command, matches: &ArgMatches) -> BTreeMap<String, String> {
    let matches = matches.subcommand_matches("serve").unwrap_or(matches);
    let value = |id: &str| {
        let values = matches.try_get_raw(id).ok().flatten()?;
        let texts: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
        Some(texts.join(","))
    };
    let arguments = command.get_arguments().filter(|argument| !argument.is_global_set());
    let named = arguments.filter_map(|argument| Some((argument.get_long()?, argument.get_id())));
    let settings = named.filter(|(name, _)| !matches!(*name, "help" | "version"));
    settings.map(|(name, id)| (name.to_owned(), value(id.as_str()).unwrap_or_default())).collect()
}
