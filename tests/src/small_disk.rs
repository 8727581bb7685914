//! A real file system that soon has no space left: a tmpfs of a few megabytes, mounted for one
//! test.
//!
//! Mounting needs root. Without root the test runs once more in a user and mount namespace of its
//! own, made by `unshare -rm`; if that is not allowed either, it fails and names the requirement.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Set if the test already runs in a namespace.
const INSIDE_VARIABLE: &str = "TIDEPOOL_TEST_OWN_MOUNTS";

/// A mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the number of free bytes.
    pub fn free_bytes(&self) -> u64 {
        let stat = rustix::fs::statvfs(self.path()).expect("a mounted file system");
        stat.f_bavail * stat.f_frsize
    }

    /// Fills the file system until at most this number of bytes is free; returns the file that
    /// does.
    pub fn fill(&self, free_bytes: u64) -> Filler {
        let path = self.path().join("filler");
        let mut file = File::options().create(true).append(true).open(&path).expect("a filler");
        let mut piece = vec![0x55; 64 * 1024];
        loop {
            let excess = self.free_bytes().saturating_sub(free_bytes);
            piece.truncate((excess as usize).max(1));
            match file.write(&piece) {
                _ if excess == 0 => return Filler(path),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Filler(path),
                Err(error) => panic!("filling the disk: {error}"),
            }
        }
    }
}

/// A file that takes space.
#[derive(Debug)]
pub struct Filler(PathBuf);

impl Filler {
    /// Removes the file and releases its space.
    pub fn remove(self) {
        std::fs::remove_file(self.0).expect("the filler can be removed");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, because a server that the test leaves behind must not keep the mount.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Runs a test on a file system of this size. `name` is the test's, to run it once more.
#[track_caller]
pub fn on_small_disk(name: &str, mib: u32, test: impl FnOnce(&SmallDisk)) {
    match mount(mib) {
        Ok(disk) => test(&disk),
        Err(reason) if std::env::var_os(INSIDE_VARIABLE).is_some() => {
            panic!("no tmpfs could be mounted in a namespace of its own: {reason}")
        }
        Err(reason) => {
            let program = std::env::current_exe().expect("this test's program");
            let again = Command::new("unshare")
                .args(["--map-root-user", "--mount"])
                .arg(program)
                .args(["--exact", name, "--nocapture"])
                .env(INSIDE_VARIABLE, "1")
                .status();
            let passed = matches!(&again, Ok(status) if status.success());
            assert!(
                passed,
                "this test needs a small file system: run it as root, or allow user namespaces so \
                 that `unshare -rm` works. mount said: {reason}; unshare: {again:?}"
            );
        }
    }
}

fn mount(mib: u32) -> Result<SmallDisk, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let output = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
        .arg(directory.path())
        .output()
        .map_err(|error| format!("mount cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(SmallDisk { directory }),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
