//! A machine for tests: a tree of files, and a sink that records its input and checks the promises
//! to all sinks.

use crate::Paths;
use crate::collectors::proc_stat::SharedStat;
use crate::collectors::{Collector, Round};
use crate::error::CollectError;
use crate::read::Reader;
use crate::sink::{Kind, Label, Output, Sink, TextFile, TextFileOutcome};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tempfile::TempDir;

/// Directories `proc`, `sys`, `root` and `udev`, empty at first.
pub(crate) struct Tree {
    directory: TempDir,
}

/// Samples as lines of the text format, which leaves out labels without values.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) samples: Vec<String>,
    pub(crate) families: Vec<(String, String, Kind)>,
    pub(crate) failures: Vec<(&'static str, String)>,
    pub(crate) text_files: Vec<String>,
    names: BTreeSet<String>,
    series: BTreeSet<String>,
    has_samples: bool,
}

impl Tree {
    pub(crate) fn new() -> Tree {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["proc", "sys", "root", "udev"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        Tree { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, content).expect("a file");
    }

    /// Writes files in `directory`, each with its content and a line feed.
    pub(crate) fn write_all(&self, directory: &str, files: &[(&str, &str)]) {
        for (name, content) in files {
            self.write(&format!("{directory}/{name}"), format!("{content}\n"));
        }
    }

    pub(crate) fn link(&self, name: &str, target: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        symlink(self.path(target), path).expect("a link");
    }

    pub(crate) fn remove(&self, name: &str) {
        let path = self.path(name);
        let is_directory = path.is_dir() && !path.is_symlink();
        let removed = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.expect("removed");
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths {
            procfs: self.path("proc"),
            sysfs: self.path("sys"),
            rootfs: self.path("root"),
            udev_data: self.path("udev"),
        }
    }

    pub(crate) fn collect(
        &self,
        collector: &mut dyn Collector,
    ) -> Result<Vec<String>, CollectError> {
        let mut recorder = Recorder::default();
        self.collect_into(collector, &mut recorder)?;
        Ok(recorder.samples)
    }

    pub(crate) fn collect_into(
        &self,
        collector: &mut dyn Collector,
        recorder: &mut Recorder,
    ) -> Result<(), CollectError> {
        let mut reader = Reader::default();
        let mut stat = SharedStat::default();
        let paths = self.paths();
        let mut round = Round { paths: &paths, reader: &mut reader, stat: &mut stat };
        let result = collector.collect(&mut round, &mut Output::new(recorder));
        assert!(recorder.families.is_empty() || recorder.has_samples, "a family without samples");
        result
    }
}

impl Recorder {
    pub(crate) fn value(&self, series: &str) -> Option<f64> {
        let line =
            self.samples.iter().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map(|value| value.parse().expect("a number"))
    }
}

impl Sink for Recorder {
    fn family(&mut self, name: &str, help: &str, kind: Kind) {
        assert!(self.families.is_empty() || self.has_samples, "a family without samples");
        assert!(self.names.insert(name.to_owned()), "{name} begins twice");
        assert!(crate::text::is_name_part(name) && name.starts_with("node_"), "{name}");
        self.families.push((name.to_owned(), help.to_owned(), kind));
        self.has_samples = false;
    }

    fn sample(&mut self, labels: &[Label<'_>], value: f64) {
        let (name, ..) = self.families.last().expect("a family");
        assert!(labels.is_sorted_by(|one, next| one.0 < next.0), "{name}: {labels:?}");
        let labels: Vec<String> = labels
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(label, value)| format!("{label}={value:?}"))
            .collect();
        let braces = if labels.is_empty() { String::new() } else { labels.join(",") };
        let series = match braces.as_str() {
            "" => name.clone(),
            labels => format!("{name}{{{labels}}}"),
        };
        assert!(self.series.insert(series.clone()), "{series} comes twice");
        self.samples.push(format!("{series} {value}"));
        self.has_samples = true;
    }

    /// Takes files that begin with `good`, and in part those with `part`.
    fn text_file(&mut self, file: &TextFile<'_>) -> TextFileOutcome {
        self.text_files.push(file.path.to_owned());
        match file.content {
            content if content.starts_with(b"good") => TextFileOutcome::Taken,
            content if content.starts_with(b"part") => TextFileOutcome::TakenInPart,
            _ => TextFileOutcome::Refused,
        }
    }

    fn failed(&mut self, collector: &'static str, error: &CollectError) {
        self.failures.push((collector, error.to_string()));
    }
}
