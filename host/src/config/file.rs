//! The configuration file: YAML whose keys are the flags' names.
//!
//! ```yaml
//! data-dir: /var/lib/tidepool
//! retention-time: 30d
//! external-label:
//!   node: edge-7
//! ```
//!
//! Sections that flags cannot say, such as `remote_write`, are read by whom they concern.
//!
//! Each other key becomes the flag of its name and is judged by the same rules, so that the two cannot
//! differ. What the command line says as well holds as the command line says it.

use super::ServeArgs;
use super::upstream::{absent_flag, absent_section, our_name, with_names};
use crate::forward::DestinationConfig;
use crate::plugin::config::PluginSettings;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command};
use saphyr::{MarkedYaml, ScalarStyle, YamlData, YamlLoader};
use saphyr_parser::Parser;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Most wrong lines that are told of.
const WRONG_LINES_MAX: usize = 20;

/// The section that says more of plugins.
const PLUGINS: &str = "plugins";

/// The section that names other receivers, as in Prometheus' configuration.
const REMOTE_WRITE: &str = "remote_write";

/// What is wrong with a configuration file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read.
    #[error("the configuration file {} could not be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Lines of it are wrong.
    #[error("{}", in_lines(path, wrong))]
    Lines {
        /// The file.
        path: PathBuf,
        /// Each line, counted from one, and what is wrong there.
        wrong: Vec<(usize, String)>,
    },
}

/// One key with its value, as flags.
#[derive(Debug)]
struct Entry {
    key: String,
    line: usize,
    flags: Vec<String>,
    /// Whether it needs a companion that may stand elsewhere.
    needs_others: bool,
}

/// A file that was read and is well formed.
#[derive(Debug)]
pub(super) struct ConfigFile {
    path: PathBuf,
    entries: Vec<Entry>,
    /// What it says that no flag could.
    pub sections: Sections,
}

/// The parts of a file that are no flags.
#[derive(Clone, Debug, Default)]
pub(super) struct Sections {
    /// Of each plugin that it speaks of.
    pub plugins: Vec<PluginSettings>,
    /// Who else gets all samples.
    pub remote_write: Vec<DestinationConfig>,
}

/// What a file holds.
#[derive(Default)]
struct Content {
    entries: Vec<Entry>,
    sections: Sections,
}

impl ConfigFile {
    /// Reads a file and checks each of its keys.
    pub fn read(path: &Path) -> Result<ConfigFile, FileError> {
        let unreadable = |source| FileError::Unreadable { path: path.to_owned(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            let what = format!("more than {FILE_BYTES_MAX} bytes");
            return Err(unreadable(std::io::Error::other(what)));
        }
        let wrong = |wrong| FileError::Lines { path: path.to_owned(), wrong };
        let Content { entries, sections } = content(&text).map_err(wrong)?;
        Ok(ConfigFile { path: path.to_owned(), entries, sections })
    }

    /// The flags that the command line leaves to the file.
    pub fn flags(&self, command_line: &ArgMatches) -> Vec<String> {
        let command = flags_command();
        let is_given = |key: &str| {
            find(&command, our_name(key)).is_some_and(|arg| {
                command_line.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
            })
        };
        let left = self.entries.iter().filter(|entry| !is_given(&entry.key));
        left.flat_map(|entry| entry.flags.iter().cloned()).collect()
    }

    /// What is wrong with the whole, at the line of a flag that it speaks of, or of one that needs
    /// another; `None` if it is not about this file.
    pub fn place(&self, what: &str) -> Option<FileError> {
        let is_named = |entry: &&Entry| what.contains(&format!("--{}", entry.key));
        let named = self.entries.iter().find(is_named);
        let entry = named.or_else(|| self.entries.iter().find(|entry| entry.needs_others))?;
        let what = format!("{}: {what}", entry.key);
        Some(FileError::Lines { path: self.path.clone(), wrong: vec![(entry.line, what)] })
    }
}

/// The flags that `serve` takes, and nothing else.
fn flags_command() -> Command {
    let command = Command::new("tidepool").no_binary_name(true);
    with_names(ServeArgs::augment_args(command.disable_help_flag(true).disable_version_flag(true)))
}

/// The flag of a name or one of its other names.
fn find<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        arg.get_long() == Some(name)
            || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    })
}

/// A line, counted from one, and what is wrong there.
pub(crate) type Wrong = (usize, String);

/// All that is wrong, so that a file can be mended in one go.
fn in_lines(path: &Path, wrong: &[Wrong]) -> String {
    let shown = wrong.iter().take(WRONG_LINES_MAX);
    let shown = shown.map(|(line, what)| format!("{}:{line}: {what}", path.display()));
    let left = wrong.len().saturating_sub(WRONG_LINES_MAX);
    let left = (left > 0).then(|| format!("{}: {left} more mistakes", path.display()));
    shown.chain(left).collect::<Vec<_>>().join("\n")
}

fn content(text: &str) -> Result<Content, Vec<Wrong>> {
    let mut loader = YamlLoader::<MarkedYaml<'_>>::default();
    // What a scalar means is its flag's affair.
    loader.early_parse(false);
    let loaded = Parser::new_from_str(text).load(&mut loader, true);
    if let Err(error) = loaded.and_then(|()| loader.error().cloned().map_or(Ok(()), Err)) {
        return Err(vec![(error.marker().line(), format!("this is not YAML: {}", error.info()))]);
    }
    let documents = loader.into_documents();
    let document = match documents.as_slice() {
        [] => return Ok(Content::default()),
        [document] => document,
        [_, second, ..] => return Err(vec![(line(second), "a second document".to_owned())]),
    };
    let map = match &document.data {
        YamlData::Mapping(map) => map,
        data if is_nothing(data) => return Ok(Content::default()),
        _ => {
            let what = "lines of the form `flag: value` are wanted".to_owned();
            return Err(vec![(line(document), what)]);
        }
    };
    let command = flags_command();
    let mut content = Content::default();
    let read = map.iter().map(|(key, value)| content.put(&command, key, value));
    let wrong: Vec<Wrong> = read.filter_map(Result::err).collect();
    if wrong.is_empty() { Ok(content) } else { Err(wrong) }
}

impl Content {
    fn put(
        &mut self,
        command: &Command,
        key: &MarkedYaml<'_>,
        value: &MarkedYaml<'_>,
    ) -> Result<(), Wrong> {
        match scalar(key) {
            // A list is the section; a plain value is the flag of the same name.
            Some(PLUGINS) if matches!(value.data, YamlData::Sequence(_)) => {
                self.sections.plugins = crate::plugin::config::read(value)?;
            }
            Some(REMOTE_WRITE) => {
                self.sections.remote_write = DestinationConfig::read_all(REMOTE_WRITE, value)?;
            }
            _ => self.entries.push(entry(command, key, value)?),
        }
        Ok(())
    }
}

fn entry(command: &Command, key: &MarkedYaml<'_>, value: &MarkedYaml<'_>) -> Result<Entry, Wrong> {
    let line = line(key);
    let name = scalar(key).ok_or_else(|| (line, "a flag's name is wanted".to_owned()))?;
    if our_name(name) == "config" {
        return Err((line, "config: a configuration file names no other".to_owned()));
    }
    let Some(arg) = find(command, name) else {
        // Clap knows which names are alike.
        let error = command.clone().try_get_matches_from([format!("--{name}")]).err();
        let absent = absent_section(name).or_else(|| absent_flag(error.as_ref()?));
        let what = absent.unwrap_or_else(|| {
            let similar = error.and_then(|error| similar(&error)).unwrap_or_default();
            format!("{name}: there is no such flag{similar}")
        });
        return Err((line, what));
    };
    let flags = flags(arg, name, value)?;
    let checked = command.clone().try_get_matches_from(&flags);
    let needs_others = match checked {
        Ok(_) => false,
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => true,
        Err(error) => return Err((line, format!("{name}: {}", in_one_line(&error)))),
    };
    Ok(Entry { key: name.to_owned(), line, flags, needs_others })
}

/// A value as the flags that say the same.
fn flags(arg: &Arg, name: &str, value: &MarkedYaml<'_>) -> Result<Vec<String>, Wrong> {
    let wrong = |what: &str| Err((line(value), format!("{name}: {what}")));
    let takes_several = matches!(arg.get_action(), ArgAction::Append);
    match &value.data {
        YamlData::Sequence(items) if takes_several => {
            let mut flags = Vec::with_capacity(items.len());
            for item in items {
                let Some(text) = scalar(item) else {
                    return Err((line(item), format!("{name}: a list of plain values is wanted")));
                };
                flags.push(format!("--{name}={text}"));
            }
            Ok(flags)
        }
        YamlData::Mapping(map) if takes_several => {
            let mut flags = Vec::with_capacity(map.len());
            for (key, item) in map {
                let (Some(key), Some(text)) = (scalar(key), scalar(item)) else {
                    return Err((line(key), format!("{name}: a plain name and value is wanted")));
                };
                flags.push(format!("--{name}={key}={text}"));
            }
            Ok(flags)
        }
        YamlData::Sequence(_) | YamlData::Mapping(_) => wrong("one plain value is wanted"),
        _ => match scalar(value) {
            None | Some("") => wrong("the value is missing"),
            Some(text) if matches!(arg.get_action(), ArgAction::SetTrue) => match text {
                "true" => Ok(vec![format!("--{name}")]),
                "false" => Ok(Vec::new()),
                _ => wrong("true or false is wanted"),
            },
            Some(text) => Ok(vec![format!("--{name}={text}")]),
        },
    }
}

/// The text of a plain value. Nothing, as in `key:`, is the empty text.
pub(super) fn scalar<'a>(node: &'a MarkedYaml<'_>) -> Option<&'a str> {
    match &node.data {
        data if is_nothing(data) => Some(""),
        YamlData::Representation(text, ..) => Some(text),
        _ => None,
    }
}

pub(super) fn is_nothing<'a>(data: &YamlData<'a, MarkedYaml<'a>>) -> bool {
    match data {
        YamlData::BadValue => true,
        YamlData::Representation(text, ScalarStyle::Plain, _) => {
            matches!(text.as_ref(), "" | "~" | "null")
        }
        _ => false,
    }
}

/// Where a node begins, counted from one.
pub(crate) fn line(node: &MarkedYaml<'_>) -> usize {
    node.span.start.line()
}

/// What clap says, without its usage and the hint to `--help`.
pub(super) fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let is_usage = |line: &&str| !line.starts_with("Usage:");
    let lines = text.lines().map(str::trim).take_while(is_usage);
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with("For more information");
    let lines: Vec<&str> = lines.filter(is_said).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

fn similar(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(name) => {
            Some(format!("; `{}` is like it", name.trim_start_matches('-')))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags_of(text: &str) -> Result<Vec<String>, Vec<Wrong>> {
        Ok(content(text)?.entries.into_iter().flat_map(|entry| entry.flags).collect())
    }

    #[test]
    fn keys_become_flags() {
        let text = "# a node\ndata-dir: /var/lib/tidepool\nwal-sync: 'batch'\nmax-series: 1000\n\
                    head-snapshot: false\nenable-admin-api: true\naccess-log: false\n\
                    external-label:\n  node: edge-7\n  site: \"a b\"\n";
        let expected = [
            "--data-dir=/var/lib/tidepool",
            "--wal-sync=batch",
            "--max-series=1000",
            "--head-snapshot=false",
            "--enable-admin-api",
            "--external-label=node=edge-7",
            "--external-label=site=a b",
        ];
        assert_eq!(flags_of(text), Ok(expected.map(str::to_owned).to_vec()));
        assert_eq!(
            flags_of("label: [node=a, rack=b]"),
            Ok(vec!["--label=node=a".to_owned(), "--label=rack=b".to_owned()])
        );
        for nothing in ["", "# only this\n", "---\n", "~\n"] {
            assert_eq!(flags_of(nothing), Ok(Vec::new()), "{nothing:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, what) in [
            ("listen: 127.0.0.1:1\nwal-sink: batch\n", 2, "`wal-sync` is like it"),
            ("wal-sync: sometimes\n", 1, "possible values"),
            ("a-b-c: 1\n", 1, "no such flag"),
            ("\n\nmax-series: many\n", 3, "invalid value 'many'"),
            ("data-dir:\n  - a\n", 2, "one plain value"),
            ("data-dir:\nlisten: 127.0.0.1:1\n", 1, "missing"),
            ("access-log: yes\n", 1, "true or false"),
            ("external-label:\n  node: [a]\n", 2, "plain name and value"),
            ("max-series: 1\nmax-series: 2\n", 2, "not YAML"),
            ("data-dir: 'a\nlisten: b\n", 1, "not YAML"),
            ("- data-dir\n", 1, "`flag: value`"),
            ("data-dir: a\n---\ndata-dir: b\n", 3, "second document"),
            ("config: other.yml\n", 1, "names no other"),
            ("plugins:\n  - name: a\n    wrld: job\n", 3, "plugins.wrld: there is no such key"),
        ] {
            match content(text).map(|content| content.entries) {
                Err(wrong) => {
                    let [(at, said)] = wrong.as_slice() else { panic!("{text:?}: {wrong:?}") };
                    assert!(said.contains(what), "{text:?}: {said}");
                    assert_eq!(*at, line, "{text:?}: {said}");
                }
                Ok(content) => panic!("{text:?}: {content:?}"),
            }
        }
    }

    #[test]
    fn prometheus_configuration_is_named_section_by_section() {
        let text = "global:\n  scrape_interval: 15s\nscrape_configs:\n  - job_name: a\n\
                    rule_files: [a.yml]\nalerting: {}\nstorage.tsdb.path: /d\n\
                    storage.tsdb.paht: /d\nweb.external-url: x\n";
        let wrong = content(text).err().unwrap_or_default();
        let starts = [
            (1, "tidepool does not know the section `global`: "),
            (3, "tidepool does not know the section `scrape_configs`: "),
            (5, "tidepool does not know the section `rule_files`: "),
            (6, "tidepool does not know the section `alerting`: "),
            (8, "storage.tsdb.paht: there is no such flag; `storage.tsdb.path` is like it"),
            (9, "tidepool has no flag --web.external-url, which is Prometheus': "),
        ];
        assert_eq!(wrong.len(), starts.len(), "{wrong:?}");
        for ((at, said), (line, start)) in wrong.iter().zip(starts) {
            assert!(*at == line && said.starts_with(start), "{at}: {said}");
        }
        let many: Vec<Wrong> = (1..=25).map(|line| (line, "wrong".to_owned())).collect();
        let said = in_lines(Path::new("a.yml"), &many);
        assert!(said.contains("a.yml:20: wrong\na.yml: 5 more mistakes"), "{said}");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\n]{0,200}|(?s).{0,60}") {
            let _ = content(&text);
        }
    }
}
