//! A disk for tests: the real one, with a fault at a chosen call.

use super::fs::{Access, Disk, DiskEntry, DiskFile, Lock, RealDisk};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    CreateDir,
    Create,
    Rename,
    Link,
    Remove,
    SyncDir,
    Write,
    SetLen,
    Sync,
    Read,
    Open,
}

/// A fault: which calls fail, and when.
#[derive(Clone, Debug)]
pub struct Fault {
    pub ops: Vec<Op>,
    /// Number of calls that succeed before.
    pub after: usize,
    /// Number of calls that fail then.
    pub times: usize,
    /// Number of bytes that a failing write leaves.
    pub torn_bytes: usize,
    pub kind: io::ErrorKind,
}

/// The real disk, with a fault that can be set at any time.
#[derive(Clone, Default)]
pub struct FaultyDisk {
    plan: Arc<Mutex<Plan>>,
}

#[derive(Default)]
struct Plan {
    fault: Option<Fault>,
    free_bytes: Option<u64>,
    log: Vec<Op>,
}

struct FaultyFile {
    file: Arc<dyn DiskFile>,
    disk: FaultyDisk,
}

/// Kinds of calls that change the disk, which a crash suppresses.
pub const CHANGES: [Op; 9] = [
    Op::CreateDir,
    Op::Create,
    Op::Rename,
    Op::Link,
    Op::Remove,
    Op::SyncDir,
    Op::Write,
    Op::SetLen,
    Op::Sync,
];

impl Fault {
    /// Lets the next call of this kind fail.
    pub fn next(op: Op) -> Fault {
        let kind = io::ErrorKind::Other;
        Fault { ops: vec![op], after: 0, times: 1, torn_bytes: 0, kind }
    }

    /// Lets every change after the first `after` fail: a crash, as the next run sees it.
    pub fn crash(after: usize) -> Fault {
        let (ops, kind) = (CHANGES.to_vec(), io::ErrorKind::Other);
        Fault { ops, after, times: usize::MAX, torn_bytes: 11, kind }
    }
}

impl FaultyDisk {
    pub fn set(&self, fault: Fault) {
        self.plan.lock().expect("plan").fault = Some(fault);
    }

    /// From now on reports this much free space, whatever is written.
    pub fn set_free_bytes(&self, free_bytes: u64) {
        self.plan.lock().expect("plan").free_bytes = Some(free_bytes);
    }

    pub fn clear(&self) {
        self.plan.lock().expect("plan").fault = None;
    }

    /// Takes the calls since the last time this was called.
    pub fn take_log(&self) -> Vec<Op> {
        std::mem::take(&mut self.plan.lock().expect("plan").log)
    }

    /// Counts a call. `Err` if the call must fail, with the number of bytes to write before.
    fn call(&self, op: Op) -> Result<(), (io::Error, usize)> {
        let mut plan = self.plan.lock().expect("plan");
        plan.log.push(op);
        let Some(fault) = plan.fault.as_mut().filter(|fault| fault.ops.contains(&op)) else {
            return Ok(());
        };
        if fault.after > 0 {
            fault.after -= 1;
            return Ok(());
        }
        if fault.times == 0 {
            return Ok(());
        }
        fault.times -= 1;
        Err((io::Error::from(fault.kind), fault.torn_bytes))
    }

    fn check(&self, op: Op) -> io::Result<()> {
        self.call(op).map_err(|(error, _)| error)
    }

    fn wrap(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(FaultyFile { file, disk: self.clone() })
    }
}

impl Disk for FaultyDisk {
    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        match self.plan.lock().expect("plan").free_bytes {
            Some(free_bytes) => Ok(free_bytes),
            None => RealDisk.free_bytes(dir),
        }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.check(Op::CreateDir)?;
        RealDisk.create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.check(Op::Create)?;
        RealDisk.create(path).map(|file| self.wrap(file))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        self.check(Op::Open)?;
        RealDisk.open(path, access).map(|file| self.wrap(file))
    }

    fn file_size(&self, path: &Path) -> io::Result<u64> {
        RealDisk.file_size(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DiskEntry>> {
        RealDisk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Op::Rename)?;
        RealDisk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Op::Link)?;
        RealDisk.link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.check(Op::Remove)?;
        RealDisk.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.check(Op::Remove)?;
        RealDisk.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check(Op::SyncDir)?;
        RealDisk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        RealDisk.lock(path)
    }
}

impl DiskFile for FaultyFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.check(Op::Read)?;
        self.file.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self.disk.call(Op::Write) {
            Ok(()) => self.file.write_at(offset, bytes),
            Err((error, torn_bytes)) => {
                self.file.write_at(offset, &bytes[..torn_bytes.min(bytes.len())])?;
                Err(error)
            }
        }
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        self.disk.check(Op::SetLen)?;
        self.file.set_len(size_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.check(Op::Sync)?;
        self.file.sync_data()
    }
}
