//! The configuration file: YAML whose keys are the names of flags.
//!
//! ```yaml
//! data-dir: /var/lib/tidepool
//! retention-time: 30d
//! external-label:
//!   node: edge-7
//! ```
//!
//! Sections without flags, such as `remote_write`, are read by the features that own them.
//!
//! Every other key is converted to the flag of the same name and parsed as a flag, so that file and
//! flags have the same rules. A flag on the command line overrides its key.

use super::ServeArgs;
use super::shown::ShownConfig;
use super::upstream::{absent_flag, absent_section, our_name, with_names};
use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tidepool_evaluation::RuleSection;
use tidepool_forward::DestinationConfig;
use tidepool_notify::config::{AlertingSection, NotifySection};
use tidepool_plugins::config::{self as plugin, PluginSettings};
use tidepool_scrape::config::{ConfigError, Depth, ScrapeSettings, Sections as ScrapeSections};
use tidepool_settings::file::open_regular;
use tidepool_settings::yaml::{self, Data, Entry, Node, Position};

const FILE_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of errors that are reported together.
const WRONG_MAX: usize = 20;

/// Section with the settings of single plugins.
const PLUGINS: &str = "plugins";

/// Section with destinations of forwarding, as in Prometheus' configuration.
const REMOTE_WRITE: &str = "remote_write";

/// Sections about scraping, as in Prometheus' configuration.
const GLOBAL: &str = "global";
const SCRAPE_CONFIGS: &str = "scrape_configs";
const SCRAPE_CONFIG_FILES: &str = "scrape_config_files";

/// Section with patterns of rule files, as in Prometheus' configuration.
const RULE_FILES: &str = "rule_files";

/// Section with the Alertmanagers, as in Prometheus' configuration.
const ALERTING: &str = "alerting";
const NOTIFY: &str = "notify";

/// Sections about probes: the targets, and the probe modules.
const PROBE_CONFIGS: &str = "probe_configs";
const PROBE_MODULES: &str = "probe_modules";

/// Flag for which `global.external_labels` is an alias.
const EXTERNAL_LABEL: &str = "external-label";

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("the configuration file {} could not be read: {source}", path.display())]
    Unreadable {
        /// Path of the file, as on the command line.
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file that `scrape_config_files` includes is invalid.
    #[error("{}: scrape_config_files: {what}", path.display())]
    Further {
        /// Configuration file with the section `scrape_config_files`.
        path: PathBuf,
        /// Path, position and reason of the error in the included file.
        what: String,
    },
    /// Keys or sections of the file are invalid.
    #[error("{}", in_lines(path, wrong))]
    Wrong {
        path: PathBuf,
        /// All errors with their positions, in the order of the file.
        wrong: Vec<yaml::Error>,
    },
}

/// One key of the file, converted to flags.
#[derive(Debug)]
struct Setting {
    key: String,
    place: Position,
    flags: Vec<String>,
    /// Whether the flag requires another flag, which may be set elsewhere.
    needs_others: bool,
}

/// A configuration file that was read without errors.
#[derive(Debug)]
pub(super) struct ConfigFile {
    path: PathBuf,
    settings: Vec<Setting>,
    pub sections: Sections,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sections {
    /// Settings of the plugins in the section.
    pub plugins: Vec<PluginSettings>,
    /// Destinations that receive all samples.
    pub remote_write: Vec<DestinationConfig>,
    pub scrape: ScrapeSettings,
    pub rules: RuleSection,
    pub alerting: AlertingSection,
    pub notify: NotifySection,
    /// The file without its secrets, for the API and the web page.
    pub shown: ShownConfig,
}

#[derive(Default)]
struct Content {
    settings: Vec<Setting>,
    sections: Sections,
    /// Sections about scraping, which depend on each other and are therefore read together.
    global: Option<Rc<Node>>,
    jobs: Option<Rc<Node>>,
    job_files: Option<Rc<Node>>,
    probes: Option<Rc<Node>>,
    probe_modules: Option<Rc<Node>>,
    rule_files: Option<Rc<Node>>,
}

impl ConfigFile {
    /// Reads a file and, depending on `depth`, the files that it includes; checks every key.
    ///
    /// Only at the start, the file may be a pipe, as in `--config=<(…)`.
    pub fn read(path: &Path, depth: Depth, is_start: bool) -> Result<ConfigFile, FileError> {
        let unreadable = |source| FileError::Unreadable { path: path.to_owned(), source };
        let mut text = String::new();
        // A reload accepts only regular files: a pipe would block, or be empty after the start.
        let file = if is_start { File::open(path) } else { open_regular(path) };
        let file = file.map_err(unreadable)?;
        // Reads one byte more, to detect a file that is larger than the maximum.
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            let what = format!("more than {FILE_BYTES_MAX} bytes");
            return Err(unreadable(std::io::Error::other(what)));
        }
        let wrong = |wrong| FileError::Wrong { path: path.to_owned(), wrong };
        let mut content = content(&text).map_err(wrong)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        content.read_scraping(directory, depth).map_err(|error| match error {
            ConfigError::Main(error) => wrong(vec![error]),
            further => FileError::Further { path: path.to_owned(), what: further.to_string() },
        })?;
        if let Some(node) = &content.rule_files {
            let section = RuleSection::read(node, directory);
            content.sections.rules = section.map_err(|error| wrong(vec![error]))?;
        }
        content.sections.alerting.set_directory(directory);
        content.sections.notify.set_directory(directory);
        let Content { settings, sections, .. } = content;
        Ok(ConfigFile { path: path.to_owned(), settings, sections })
    }

    /// Returns the flags of the file that are not set on the command line.
    pub fn flags(&self, command_line: &ArgMatches) -> Vec<String> {
        let command = flags_command();
        let is_given = |key: &str| {
            // The command line was converted to our names, so either name overrides the key.
            find(&command, our_name(key)).is_some_and(|arg| {
                command_line.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
            })
        };
        let left = self.settings.iter().filter(|setting| !is_given(&setting.key));
        left.flat_map(|setting| setting.flags.iter().cloned()).collect()
    }

    /// Returns an error about the whole configuration, with the position of the first flag that the
    /// error names, or of a flag that requires another; `None` if the error is not about this file.
    pub fn place(&self, what: &str) -> Option<FileError> {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let mut names = what.split(|c| !is_of_name(c)).filter_map(|word| word.strip_prefix("--"));
        let named = names.find_map(|name| self.settings.iter().find(|one| one.key == name));
        let setting = named.or_else(|| self.settings.iter().find(|one| one.needs_others))?;
        let wrong = vec![yaml::Error::new(setting.place, &setting.key, what)];
        Some(FileError::Wrong { path: self.path.clone(), wrong })
    }
}

/// Returns a command with only the flags of `serve`, for checking single keys.
fn flags_command() -> Command {
    let command = Command::new("tidepool").no_binary_name(true);
    with_names(ServeArgs::augment_args(command.disable_help_flag(true).disable_version_flag(true)))
}

/// Returns the flag with a name, which may be an alias.
fn find<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        arg.get_long() == Some(name)
            || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    })
}

/// Formats all errors, so that all can be corrected at once.
fn in_lines(path: &Path, wrong: &[yaml::Error]) -> String {
    let shown = wrong.iter().take(WRONG_MAX).map(|wrong| format!("{}:{wrong}", path.display()));
    let left = wrong.len().saturating_sub(WRONG_MAX);
    let left = (left > 0).then(|| format!("{}: {left} more mistakes", path.display()));
    shown.chain(left).collect::<Vec<_>>().join("\n")
}

fn content(text: &str) -> Result<Content, Vec<yaml::Error>> {
    let document = yaml::load(text).map_err(|error| vec![error])?;
    let entries = match &document.data {
        Data::Map(entries) => entries,
        Data::Nothing => return Ok(Content::default()),
        _ => {
            let what = "expected lines of the form `flag: value`";
            return Err(vec![yaml::Error::new(document.place, "", what)]);
        }
    };
    let command = flags_command();
    let mut content = Content::default();
    content.sections.shown = ShownConfig::of(&document);
    let read = entries.iter().map(|entry| content.put(&command, entry));
    // All entries are read before errors are returned, so that every error is reported.
    let wrong: Vec<yaml::Error> = read.filter_map(Result::err).collect();
    if wrong.is_empty() { Ok(content) } else { Err(wrong) }
}

impl Content {
    /// Reads the sections about scraping. External labels become a flag, unless it is set.
    fn read_scraping(&mut self, directory: &Path, depth: Depth) -> Result<(), ConfigError> {
        let sections = ScrapeSections {
            global: self.global.as_deref(),
            jobs: self.jobs.as_deref(),
            files: self.job_files.as_deref(),
            probe_modules: self.probe_modules.as_deref(),
            probes: self.probes.as_deref(),
            depth,
        };
        self.sections.scrape = ScrapeSettings::read(sections, directory)?;
        let labels = &self.sections.scrape.global.external_labels;
        let has_flag = self.settings.iter().any(|one| our_name(&one.key) == EXTERNAL_LABEL);
        if let Some(global) = self.global.as_ref().filter(|_| !labels.is_empty()) {
            if has_flag {
                let what = "external_labels and external-label are the same: give one of them";
                return Err(yaml::Error::new(global.place, GLOBAL, what).into());
            }
            // A label without a value, such as from an unset variable, is ignored.
            let labels = labels.iter().filter(|(_, value)| !value.is_empty());
            let flag =
                |(name, value): (&String, &String)| format!("--{EXTERNAL_LABEL}={name}={value}");
            // Added as a setting, so that a flag on the command line overrides the labels.
            self.settings.push(Setting {
                key: EXTERNAL_LABEL.to_owned(),
                place: global.place,
                flags: labels.map(flag).collect(),
                needs_others: false,
            });
        }
        Ok(())
    }

    fn put(&mut self, command: &Command, entry: &Entry) -> Result<(), yaml::Error> {
        match (entry.key.as_str(), &entry.value.data) {
            // A list is the section; a single value is the flag of the same name.
            (PLUGINS, Data::List(_)) => self.sections.plugins = plugin::read(&entry.value)?,
            (REMOTE_WRITE, _) => {
                self.sections.remote_write = DestinationConfig::read_all(&entry.value)?;
            }
            (GLOBAL, _) => self.global = Some(Rc::clone(&entry.value)),
            (SCRAPE_CONFIGS, _) => self.jobs = Some(Rc::clone(&entry.value)),
            (SCRAPE_CONFIG_FILES, _) => self.job_files = Some(Rc::clone(&entry.value)),
            (PROBE_CONFIGS, _) => self.probes = Some(Rc::clone(&entry.value)),
            (PROBE_MODULES, _) => self.probe_modules = Some(Rc::clone(&entry.value)),
            (RULE_FILES, _) => self.rule_files = Some(Rc::clone(&entry.value)),
            (ALERTING, _) => self.sections.alerting = AlertingSection::read(&entry.value)?,
            (NOTIFY, _) => self.sections.notify = NotifySection::read(&entry.value)?,
            _ => self.settings.push(setting(command, entry)?),
        }
        Ok(())
    }
}

fn setting(command: &Command, entry: &Entry) -> Result<Setting, yaml::Error> {
    let Entry { place, key: name, value } = entry;
    let wrong = |key: &str, what: String| Err(yaml::Error::new(*place, key, what));
    if our_name(name) == "config" {
        // Otherwise configuration files could include each other.
        return wrong(name, "a configuration file names no other".to_owned());
    }
    let Some(arg) = find(command, name) else {
        // Parsed only for the error, which has clap's suggestion of a similar name.
        let error = command.clone().try_get_matches_from([format!("--{name}")]).err();
        if let Some(what) = absent_section(name).or_else(|| absent_flag(error.as_ref()?)) {
            return wrong("", what);
        }
        let similar = error.and_then(|error| similar(&error)).unwrap_or_default();
        return wrong(name, format!("there is no such flag{similar}"));
    };
    let flags = flags(arg, name, value)?;
    // Each key is parsed alone, so that an error has the position of this key.
    let checked = command.clone().try_get_matches_from(&flags);
    let needs_others = match checked {
        Ok(_) => false,
        // The required flag may be on the command line. The whole is checked later.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => true,
        Err(error) => {
            return Err(yaml::Error::new(value.place, name, in_one_line(&error)));
        }
    };
    Ok(Setting { key: name.clone(), place: *place, flags, needs_others })
}

/// Converts a value to the equivalent flags.
fn flags(arg: &Arg, name: &str, value: &Node) -> Result<Vec<String>, yaml::Error> {
    let wrong = |at: &Node, what: &str| yaml::Error::new(at.place, name, what);
    let takes_several = matches!(arg.get_action(), ArgAction::Append);
    match &value.data {
        Data::List(items) if takes_several => {
            let flag = |item: &std::rc::Rc<Node>| match item.text() {
                Some(text) => Ok(format!("--{name}={text}")),
                None => Err(wrong(item, "expected a list of plain values")),
            };
            items.iter().map(flag).collect()
        }
        Data::Map(entries) if takes_several => {
            let flag = |entry: &Entry| match entry.value.text() {
                Some(text) => Ok(format!("--{name}={}={text}", entry.key)),
                None => Err(wrong(&entry.value, "expected a plain name and value")),
            };
            entries.iter().map(flag).collect()
        }
        Data::List(_) | Data::Map(_) => Err(wrong(value, "expected one plain value")),
        _ => match value.text() {
            None | Some("") => Err(wrong(value, "the value is missing")),
            Some(text) => {
                let takes_bool = arg.get_value_parser().type_id() == ValueParser::bool().type_id();
                let is_set = match text {
                    _ if !takes_bool => return Ok(vec![format!("--{name}={text}")]),
                    // A boolean in quotes is accepted as well.
                    "true" => true,
                    "false" => false,
                    _ => yaml::read(name, value)?,
                };
                match (arg.get_action(), is_set) {
                    (ArgAction::SetTrue, true) => Ok(vec![format!("--{name}")]),
                    // A switch has no form for `false`: it is off unless it is set.
                    (ArgAction::SetTrue, false) => Ok(Vec::new()),
                    _ => Ok(vec![format!("--{name}={is_set}")]),
                }
            }
        },
    }
}

/// Returns clap's message without the usage and the hint to `--help`.
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

    fn flags_of(text: &str) -> Result<Vec<String>, Vec<yaml::Error>> {
        Ok(content(text)?.settings.into_iter().flat_map(|setting| setting.flags).collect())
    }

    #[test]
    fn keys_become_flags() {
        let text = "# a node\ndata-dir: /var/lib/tidepool\nwal-sync: 'batch'\nmax-series: 1000\n\
                    head-snapshot: No\nenable-admin-api: yes\naccess-log: off\n\
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
    fn what_is_wrong_is_named_with_its_place() {
        for (text, at, what) in [
            ("listen: 127.0.0.1:1\nwal-sink: batch\n", "2:1: wal-sink: ", "`wal-sync` is like it"),
            ("wal-sync: sometimes\n", "1:11: wal-sync: ", "possible values"),
            ("a-b-c: 1\n", "1:1: a-b-c: ", "no such flag"),
            ("\n\nmax-series: many\n", "3:13: max-series: ", "invalid value 'many'"),
            ("data-dir:\n  - a\n", "2:3: data-dir: ", "one plain value"),
            ("data-dir:\nlisten: 127.0.0.1:1\n", "1:1: data-dir: ", "missing"),
            ("access-log: yEs\n", "1:13: access-log: ", "true or false"),
            ("head-snapshot: 1\n", "1:16: head-snapshot: ", "true or false"),
            ("external-label:\n  node: [a]\n", "2:9: external-label: ", "plain name and value"),
            (
                "max-series: 1\nmax-series: 2\n",
                "2:1: ",
                "the key max-series is there already, in line 1",
            ),
            ("data-dir: 'a\nlisten: b\n", "1:11: ", "not YAML"),
            ("- data-dir\n", "1:1: ", "`flag: value`"),
            ("data-dir: a\n---\ndata-dir: b\n", "2:1: ", "second document"),
            ("config: other.yml\n", "1:1: config: ", "names no other"),
            ("plugins:\n  - name: a\n    wrld: job\n", "3:5: plugins[0].wrld: ", "no such key"),
            ("remote_write:\n  - name: a\n", "2:5: remote_write[0]: ", "url is missing"),
        ] {
            match content(text).map(|content| content.settings) {
                Err(wrong) => {
                    let [one] = wrong.as_slice() else { panic!("{text:?}: {wrong:?}") };
                    let said = one.to_string();
                    assert!(said.starts_with(at) && said.contains(what), "{text:?}: {said}");
                }
                Ok(content) => panic!("{text:?}: {content:?}"),
            }
        }
    }

    #[test]
    fn external_labels_without_a_value_are_none() {
        let mut content =
            content("global: {external_labels: {a: '', b: c}}\n").expect("it is read");
        content.read_scraping(Path::new(""), Depth::Files).expect("labels");
        let flags: Vec<String> =
            content.settings.into_iter().flat_map(|setting| setting.flags).collect();
        assert_eq!(flags, ["--external-label=b=c"]);
    }

    #[test]
    fn prometheus_configuration_is_named_section_by_section() {
        let text = "global:\n  scrape_interval: 15s\nscrape_configs:\n  - job_name: a\n\
                    tracing: {endpoint: a}\nalerting: {}\nstorage.tsdb.path: /d\n\
                    storage.tsdb.paht: /d\nweb.page-title: x\n";
        let wrong = content(text).err().unwrap_or_default();
        let starts = [
            "5:1: tidepool does not know the section `tracing`: ",
            "8:1: storage.tsdb.paht: there is no such flag; `storage.tsdb.path` is like it",
            "9:1: tidepool has no flag --web.page-title, which is Prometheus': ",
        ];
        assert_eq!(wrong.len(), starts.len(), "{wrong:?}");
        for (wrong, start) in wrong.iter().zip(starts) {
            assert!(wrong.to_string().starts_with(start), "{wrong}");
        }
        let wrong = |line| yaml::Error::new(Position { line, column: 2 }, "", "wrong");
        let said = in_lines(Path::new("a.yml"), &(1..=25).map(wrong).collect::<Vec<_>>());
        assert!(said.contains("a.yml:20:2: wrong\na.yml: 5 more mistakes"), "{said}");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\n]{0,200}|(?s).{0,60}") {
            let _ = content(&text);
        }
    }
}
