//! `textfile`: metrics that other programs write to files. Upstream: `collector/textfile.go`.
//!
//! The content of files is parsed by the sink. Only regular files are read, or links to regular
//! files, and only up to a maximum size.

use super::{Collector, Round};
use crate::error::{CollectError, Result};
use crate::read::{Reader, open};
use crate::sink::{Kind, Output, TextFile, TextFileOutcome};
use crate::text::valid_utf8;
use rustix::fs::{FileType, fstat};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum size of a file, enough for about fifty thousand series.
pub const TEXT_FILE_BYTES_MAX: usize = 4 << 20;
/// Maximum number of files per directory. The first files found are read, sorted by name.
pub const FILES_MAX: usize = 1000;
const SUFFIX: &[u8] = b".prom";
const NO_REGULAR_FILE: &str = "is no regular file";

pub(crate) struct Textfile {
    directories: Vec<PathBuf>,
}

impl Textfile {
    pub(crate) fn new(directories: Vec<PathBuf>) -> Textfile {
        Textfile { directories }
    }
}

impl Collector for Textfile {
    fn name(&self) -> &'static str {
        "textfile"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let mut errors = Vec::new();
        let mut mtimes = Vec::new();
        for directory in &self.directories {
            let names = names(directory, &mut errors);
            for path in names.into_iter().map(|name| directory.join(name)) {
                match read(&path, round.reader, output) {
                    Ok((TextFileOutcome::Taken, mtime)) => mtimes.push((path, mtime)),
                    Ok((TextFileOutcome::TakenInPart, mtime)) => {
                        errors.push(None);
                        mtimes.push((path, mtime));
                    }
                    // The sink has reported the reason.
                    Ok((TextFileOutcome::Refused, _)) => errors.push(None),
                    Err(error) => errors.push(Some(error)),
                }
            }
        }
        mtimes.sort_unstable();
        // Removes duplicates, because a directory may be listed twice.
        mtimes.dedup_by(|one, other| one.0 == other.0);
        let help = "Unixtime mtime of textfiles successfully read.";
        let mut family = output.family("node_textfile_mtime_seconds", help, Kind::Gauge);
        for (path, mtime) in &mtimes {
            family.sample(&[("file", &valid_utf8(path.as_os_str().as_bytes()))], *mtime as f64);
        }
        let help = "1 if there was an error opening or reading a file, 0 otherwise";
        let has_errors = f64::from(u8::from(!errors.is_empty()));
        output.single("node_textfile_scrape_error", help, Kind::Gauge, has_errors);
        // Errors of files are reported, but the collector as a whole succeeds.
        for error in errors.iter().flatten() {
            output.failed(self.name(), error);
        }
        Ok(())
    }
}

/// Returns the sorted names of the metric files in a directory.
fn names(directory: &Path, errors: &mut Vec<Option<CollectError>>) -> Vec<OsString> {
    let mut names = Vec::new();
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => {
            errors.push(Some(CollectError::read(directory, error)));
            return names;
        }
    };
    for entry in entries {
        match entry {
            Ok(entry) if !entry.file_name().as_bytes().ends_with(SUFFIX) => {}
            Ok(_) if names.len() == FILES_MAX => {
                let error = std::io::Error::other(format!("has more than {FILES_MAX} files"));
                errors.push(Some(CollectError::read(directory, error)));
                break;
            }
            Ok(entry) => names.push(entry.file_name()),
            Err(error) => {
                errors.push(Some(CollectError::read(directory, error)));
                break;
            }
        }
    }
    names.sort_unstable();
    names
}

/// Returns the outcome and the time of change, queried last: a file that fails gets no fresh time.
fn read(
    path: &Path,
    reader: &mut Reader,
    output: &mut Output<'_>,
) -> Result<(TextFileOutcome, i64)> {
    let error = |error: rustix::io::Errno| CollectError::read(path, error);
    let file = open(path).map_err(error)?;
    // Other files are refused: reading a device may never end, or may have effects.
    if FileType::from_raw_mode(fstat(&file).map_err(error)?.st_mode) != FileType::RegularFile {
        return Err(CollectError::read(path, std::io::Error::other(NO_REGULAR_FILE)));
    }
    let content = reader.all_of(&file, path, TEXT_FILE_BYTES_MAX)?;
    let outcome =
        output.text_file(&TextFile { path: &valid_utf8(path.as_os_str().as_bytes()), content });
    // In whole seconds, as in upstream.
    Ok((outcome, fstat(&file).map_err(error)?.st_mtime))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};
    use rustix::fs::{CWD, Mode, mknodat};
    use std::fs::{File, FileTimes};
    use std::time::{Duration, UNIX_EPOCH};

    const ERROR: &str = "node_textfile_scrape_error";

    fn recorded(tree: &Tree, directories: &[&str]) -> Recorder {
        let directories = directories.iter().map(|name| tree.path(name)).collect();
        let mut recorder = Recorder::default();
        tree.collect_into(&mut Textfile::new(directories), &mut recorder).expect("collected");
        recorder
    }

    #[test]
    fn without_directories_there_is_no_error() {
        assert_eq!(recorded(&Tree::new(), &[]).samples, ["node_textfile_scrape_error 0"]);
    }

    #[test]
    fn files_are_handed_over_in_order_and_have_their_time() {
        let tree = Tree::new();
        for name in ["one/b.prom", "one/a.prom", "one/no.txt", "two/c.prom"] {
            tree.write(name, "good");
            let file = File::options().write(true).open(tree.path(name)).expect("a file");
            let time = UNIX_EPOCH + Duration::from_millis(1_442_000_000_900);
            file.set_times(FileTimes::new().set_modified(time)).expect("set");
        }
        tree.link("two/d.prom", "one/b.prom");
        let recorder = recorded(&tree, &["two", "one"]);
        let path = |name: &str| tree.path(name).to_str().expect("a text").to_owned();
        let handed = ["two/c.prom", "two/d.prom", "one/a.prom", "one/b.prom"].map(path);
        assert_eq!(recorder.text_files, handed);
        let mtime =
            |name| format!("node_textfile_mtime_seconds{{file={:?}}} 1442000000", path(name));
        let [a, b, c, d] = ["one/a.prom", "one/b.prom", "two/c.prom", "two/d.prom"].map(mtime);
        assert_eq!(recorder.samples, [a, b, c, d, format!("{ERROR} 0")]);
        assert!(recorder.failures.is_empty());
    }

    #[test]
    fn what_the_sink_refuses_is_an_error_without_a_time() {
        let tree = Tree::new();
        tree.write("one/a.prom", "bad");
        let recorder = recorded(&tree, &["one"]);
        assert_eq!(recorder.samples, [format!("{ERROR} 1")]);
        tree.write("one/a.prom", "part");
        let recorder = recorded(&tree, &["one"]);
        assert_eq!((recorder.samples.len(), recorder.value(ERROR)), (2, Some(1.0)));
    }

    #[test]
    fn hostile_files_cost_themselves_only() {
        let tree = Tree::new();
        tree.write("one/good.prom", "good");
        tree.write("one/directory.prom/x", "");
        mknodat(CWD, tree.path("one/fifo.prom"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a FIFO");
        tree.link("one/link.prom", "nowhere");
        std::os::unix::fs::symlink("/dev/zero", tree.path("one/zero.prom")).expect("a link");
        tree.write("one/large.prom", "good");
        let large = File::options().write(true).open(tree.path("one/large.prom")).expect("a file");
        large.set_len(1 << 30).expect("a sparse gigabyte");
        let recorder = recorded(&tree, &["one", "missing"]);
        let good = tree.path("one/good.prom");
        assert_eq!(recorder.text_files, [good.to_str().expect("a text")]);
        assert_eq!((recorder.samples.len(), recorder.value(ERROR)), (2, Some(1.0)));
        let failures: Vec<&str> =
            recorder.failures.iter().map(|(_, error)| error.as_str()).collect();
        for (name, said) in [
            ("directory.prom", NO_REGULAR_FILE),
            ("fifo.prom", NO_REGULAR_FILE),
            ("zero.prom", NO_REGULAR_FILE),
            ("link.prom", "No such file"),
            ("large.prom", "more than 4194304 bytes"),
            ("missing", "No such file"),
        ] {
            let is_said = |error: &&str| error.contains(name) && error.contains(said);
            assert!(failures.iter().any(is_said), "{name}: {failures:?}");
        }
        assert_eq!(failures.len(), 6);
    }

    #[test]
    fn a_directory_of_very_many_files_is_cut() {
        let tree = Tree::new();
        for number in 0..FILES_MAX + 5 {
            tree.write(&format!("one/{number}.prom"), "good");
        }
        let recorder = recorded(&tree, &["one"]);
        assert_eq!(recorder.text_files.len(), FILES_MAX);
        assert_eq!(recorder.value(ERROR), Some(1.0));
    }
}
