//! A memory limit kept by the kernel: a control group of either version (cgroups(7)).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A control group with a memory limit, removed when dropped; its processes must have ended.
#[derive(Debug)]
pub struct MemoryGroup {
    directory: PathBuf,
}

impl MemoryGroup {
    /// Makes a group. Needs root, or a delegated group.
    pub fn new(limit_bytes: u64) -> io::Result<MemoryGroup> {
        let (parent, limit_file) = match Path::new("/sys/fs/cgroup/memory").is_dir() {
            true => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            false => ("/sys/fs/cgroup", "memory.max"),
        };
        let name = format!("tidepool-test-{}-{limit_bytes}", std::process::id());
        let group = MemoryGroup { directory: Path::new(parent).join(name) };
        fs::create_dir(&group.directory)?;
        fs::write(group.directory.join(limit_file), limit_bytes.to_string())?;
        Ok(group)
    }

    /// Makes a group inside this one, without a limit of its own.
    pub fn inner(&self) -> io::Result<MemoryGroup> {
        let group = MemoryGroup { directory: self.directory.join("inner") };
        fs::create_dir(&group.directory)?;
        Ok(group)
    }

    /// Returns a command that starts a program in the group: a shell that enters the group and
    /// executes its arguments.
    pub fn starter(&self) -> Vec<OsString> {
        let script = "echo $$ >\"$0\" && exec \"$@\"";
        let processes = self.directory.join("cgroup.procs");
        vec!["/bin/sh".into(), "-c".into(), script.into(), processes.into()]
    }

    /// Moves a process into the group. Memory that it allocated before is not counted.
    pub fn add(&self, process_id: u32) -> io::Result<()> {
        fs::write(self.directory.join("cgroup.procs"), process_id.to_string())
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The last process may still be ending.
        for _ in 0..50 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
