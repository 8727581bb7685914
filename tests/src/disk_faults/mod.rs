//! A disk that fails, as seen by a program: a library between the program and the C library
//! (`tests/shim/disk_faults.c`), compiled once with `cc`.
//!
//! [`DiskFaults`] chooses the fault of the next calls that change files: an error, half a write,
//! the end of the program. With a journal, [`journal`] reads the changes, and [`power_cut`] makes
//! of them the directories that a power cut may leave.

pub mod journal;
pub mod power_cut;

use crate::built;
use crate::preload::{LIBRARIES_VARIABLE, Variables};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use xxhash_rust::xxh3::xxh3_64;

/// Source of the library, relative to the root of the repository.
const SOURCE: &str = "tests/shim/disk_faults.c";
const SOURCE_TEXT: &str = include_str!("../../shim/disk_faults.c");
/// Size of the file that the library maps.
const CONTROL_BYTES: usize = 4096;
/// Offset of the path's text, and its maximum length with the final zero.
const PATH_PART: (u64, usize) = (64, 64);

/// A number in the file that the library maps, by its position in `struct control`.
#[derive(Clone, Copy, Debug)]
enum Field {
    Calls = 0,
    KillAt = 1,
    Tears = 2,
    Kills = 3,
    FailingKinds = 4,
    FailingPerMille = 5,
    ErrorNumber = 6,
    DonePerMille = 7,
    ShortPerMille = 8,
    LinkError = 9,
    Failed = 10,
    Random = 11,
}

/// Kinds of calls, which are joined with `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    pub const WRITE: Kinds = Kinds(1);
    /// `fsync` and `fdatasync` of a file.
    pub const SYNC_FILE: Kinds = Kinds(2);
    pub const RENAME: Kinds = Kinds(4);
    pub const LINK: Kinds = Kinds(8);
    pub const UNLINK: Kinds = Kinds(16);
    pub const MAKE_DIRECTORY: Kinds = Kinds(32);
    /// Setting the length of a file.
    pub const TRUNCATE: Kinds = Kinds(64);
    /// Opening a file that does not exist yet.
    pub const CREATE: Kinds = Kinds(128);
    /// Opening a file that exists already.
    pub const OPEN: Kinds = Kinds(256);
    pub const SYNC_DIRECTORY: Kinds = Kinds(512);
    pub const REMOVE_DIRECTORY: Kinds = Kinds(1024);
    /// All calls that change something.
    pub const CHANGES: Kinds = Kinds(1 + 2 + 4 + 8 + 16 + 32 + 64 + 128 + 512 + 1024);
}

impl std::ops::BitOr for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

/// Calls that fail, and their error.
#[derive(Clone, Debug)]
pub struct Errors<'a> {
    pub kinds: Kinds,
    /// Number of failing calls in a thousand.
    pub per_mille: u32,
    /// The error number that failing calls return.
    pub error_number: u32,
    /// Number of failed renames, links, removals and new directories in a thousand that are done
    /// nevertheless.
    pub done_per_mille: u32,
    /// Only calls on paths that contain this text fail; empty for all paths.
    pub path_part: &'a str,
}

/// Faults of the disk below one directory, for programs that are started with them.
#[derive(Debug)]
pub struct DiskFaults {
    library: PathBuf,
    watched: PathBuf,
    control_path: PathBuf,
    control: File,
    journal: Option<PathBuf>,
}

impl DiskFaults {
    /// Prepares faults below `watched`, which need not exist yet; no call fails so far. `scratch`
    /// is another directory for the library's files, `seed` decides random choices.
    pub fn new(watched: &Path, scratch: &Path, seed: u64) -> io::Result<DiskFaults> {
        let library = library()?;
        let control_path = scratch.join("disk_faults");
        fs::write(&control_path, [0; CONTROL_BYTES])?;
        let control = File::options().read(true).write(true).open(&control_path)?;
        let watched = watched.to_path_buf();
        let faults = DiskFaults { library, watched, control_path, control, journal: None };
        faults.set(Field::Random, (seed ^ seed >> 32) as u32)?;
        Ok(faults)
    }

    /// Adds a journal of all changes in this file.
    pub fn journalled(self, journal: &Path) -> DiskFaults {
        DiskFaults { journal: Some(journal.to_path_buf()), ..self }
    }

    /// Returns the path of the journal, if there is one.
    pub fn journal(&self) -> Option<&Path> {
        self.journal.as_deref()
    }

    /// Returns the variables with which a program has these faults.
    pub fn variables(&self) -> Variables {
        let mut variables = Variables::from([
            (LIBRARIES_VARIABLE, self.library.clone().into()),
            ("TIDEPOOL_FAULT_DIRECTORY", self.watched.clone().into()),
            ("TIDEPOOL_FAULT_CONTROL", self.control_path.clone().into()),
        ]);
        variables.extend(self.journal().map(|path| ("TIDEPOOL_FAULT_JOURNAL", path.into())));
        variables
    }

    /// Kills the program at a call that changes files, after this number of others; with `tears`, a
    /// write is done in part before.
    pub fn kill_after(&self, calls: u32, tears: bool) -> io::Result<()> {
        self.set(Field::Tears, tears.into())?;
        // Zero means that no call kills the program.
        let kill_at = self.get(Field::Calls)?.wrapping_add(calls).max(1);
        self.set(Field::KillAt, kill_at)
    }

    /// Returns the number of calls that change files so far.
    pub fn calls(&self) -> io::Result<u32> {
        self.get(Field::Calls)
    }

    /// Returns the number of programs killed at a call.
    pub fn kills(&self) -> io::Result<u32> {
        self.get(Field::Kills)
    }

    /// Makes calls fail from now on.
    pub fn fail(&self, errors: &Errors<'_>) -> io::Result<()> {
        let (place, bytes) = PATH_PART;
        let mut text = errors.path_part.as_bytes().to_vec();
        assert!(text.len() < bytes, "{text:?} is too long");
        text.resize(bytes, 0);
        self.control.write_all_at(&text, place)?;
        self.set(Field::ErrorNumber, errors.error_number)?;
        self.set(Field::FailingPerMille, errors.per_mille)?;
        self.set(Field::DonePerMille, errors.done_per_mille)?;
        // Set last, because this value enables all others.
        self.set(Field::FailingKinds, errors.kinds.0)
    }

    /// Returns the number of failed calls so far.
    pub fn failed(&self) -> io::Result<u32> {
        self.get(Field::Failed)
    }

    /// Ends this number of writes in a thousand early, without an error.
    pub fn shorten_writes(&self, per_mille: u32) -> io::Result<()> {
        self.set(Field::ShortPerMille, per_mille)
    }

    /// Makes all hard links fail with this error, as on file systems without links; zero allows
    /// links.
    pub fn refuse_links(&self, error_number: u32) -> io::Result<()> {
        self.set(Field::LinkError, error_number)
    }

    /// Ends all faults; a disk without hard links stays without.
    pub fn clear(&self) -> io::Result<()> {
        for field in [Field::FailingKinds, Field::ShortPerMille, Field::KillAt] {
            self.set(field, 0)?;
        }
        let (place, bytes) = PATH_PART;
        self.control.write_all_at(&vec![0; bytes], place)
    }

    fn set(&self, field: Field, value: u32) -> io::Result<()> {
        self.control.write_all_at(&value.to_ne_bytes(), field as u64 * 4)
    }

    fn get(&self, field: Field) -> io::Result<u32> {
        let mut value = [0; 4];
        self.control.read_exact_at(&mut value, field as u64 * 4)?;
        Ok(u32::from_ne_bytes(value))
    }
}

/// Returns the library, which is compiled unless it exists: its name contains a hash of its source.
fn library() -> io::Result<PathBuf> {
    let directory = built::target_dir().join("tmp");
    let name = format!("disk_faults-{:016x}.so", xxh3_64(SOURCE_TEXT.as_bytes()));
    let library = directory.join(name);
    if library.exists() {
        return Ok(library);
    }
    fs::create_dir_all(&directory)?;
    // Tests that begin at the same time each compile the library, and the last rename counts.
    let unfinished = library.with_extension(format!("{}.so", std::process::id()));
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(compiler)
        .args(["-O1", "-Wall", "-shared", "-fPIC", "-pthread", "-o"])
        .arg(&unfinished)
        .arg(built::workspace().join(SOURCE))
        .arg("-ldl")
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("{SOURCE} cannot be compiled: {text}")));
    }
    fs::rename(unfinished, &library)?;
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn run(faults: &DiskFaults, script: &str) -> std::process::Output {
        let mut command = Command::new("/bin/sh");
        let command = command.args(["-c", script]).current_dir("/");
        command.envs(faults.variables()).output().expect("a shell")
    }

    #[test]
    fn calls_fail_end_early_and_kill_as_they_are_told() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let watched = scratch.path().join("data");
        fs::create_dir(&watched).expect("a directory");
        let faults = DiskFaults::new(&watched, scratch.path(), 1).expect("a compiler");
        let file = watched.join("file");
        let write = format!("printf 'twelve bytes' > {}", file.display());
        assert!(run(&faults, &write).status.success());
        let no_space = 28;
        let errors = Errors {
            kinds: Kinds::WRITE,
            per_mille: 1000,
            error_number: no_space,
            done_per_mille: 0,
            path_part: "fil",
        };
        faults.fail(&errors).expect("it is set");
        assert!(!run(&faults, &write).status.success());
        assert_eq!(faults.failed().expect("a number"), 1);
        faults.fail(&Errors { path_part: "other", ..errors }).expect("it is set");
        assert!(run(&faults, &write).status.success());
        faults.clear().expect("it is set");
        assert!(run(&faults, &write).status.success());
        // The file exists, so its write is the next call that counts.
        faults.kill_after(1, true).expect("it is set");
        assert_eq!(run(&faults, &write).status.signal(), Some(9));
        assert_eq!(faults.kills().expect("a number"), 1);
        assert!(fs::read(&file).expect("the file").len() < "twelve bytes".len());
    }
}
