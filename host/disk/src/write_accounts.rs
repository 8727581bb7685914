//! Counts the bytes written to the disk, by purpose, because writes wear out flash.
//!
//! A [`CountingDisk`] wraps a [`Disk`] and counts its writes. Each part of the crate has its own
//! `CountingDisk`, which adds to the account of one purpose. Failed writes do not count, nor do
//! writes of the file system for its own structures.

use super::fs::{Access, Disk, DiskEntry, DiskFile, Lock};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenFor {
    Log,
    Checkpoint,
    /// Blocks cut from the head.
    Cut,
    /// Blocks merged from other blocks.
    Merge,
    Other,
}

/// Totals of one account since the data directory was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub bytes: u64,
    /// Number of syncs of files and directories, including failed syncs.
    pub syncs: u64,
}

#[derive(Default)]
pub struct WriteAccounts {
    accounts: [Account; WrittenFor::ALL.len()],
}

#[derive(Default)]
struct Account {
    bytes: AtomicU64,
    syncs: AtomicU64,
}

/// A disk that adds every write and sync to one account.
#[derive(Clone)]
pub struct CountingDisk {
    disk: Arc<dyn Disk>,
    wear: Arc<WriteAccounts>,
    account: WrittenFor,
}

struct CountingFile {
    file: Arc<dyn DiskFile>,
    wear: Arc<WriteAccounts>,
    account: WrittenFor,
}

impl WrittenFor {
    pub const ALL: [WrittenFor; 5] = [
        WrittenFor::Log,
        WrittenFor::Checkpoint,
        WrittenFor::Cut,
        WrittenFor::Merge,
        WrittenFor::Other,
    ];
}

impl WriteAccounts {
    /// Totals of the account for this purpose.
    pub fn written(&self, account: WrittenFor) -> Written {
        let Account { bytes, syncs } = self.account(account);
        Written { bytes: bytes.load(Relaxed), syncs: syncs.load(Relaxed) }
    }

    pub fn bytes_total(&self) -> u64 {
        self.accounts.iter().map(|account| account.bytes.load(Relaxed)).sum()
    }

    fn account(&self, account: WrittenFor) -> &Account {
        &self.accounts[account as usize]
    }
}

impl CountingDisk {
    /// Wraps a disk and creates its accounts. Writes are added to the account `Other`.
    pub fn new(disk: Arc<dyn Disk>) -> CountingDisk {
        CountingDisk { disk, wear: Arc::default(), account: WrittenFor::Other }
    }

    /// Returns the same disk with the same accounts, which adds to another account.
    pub fn with_account(&self, account: WrittenFor) -> Arc<dyn Disk> {
        Arc::new(CountingDisk { account, ..self.clone() })
    }

    pub fn wear(&self) -> Arc<WriteAccounts> {
        Arc::clone(&self.wear)
    }

    fn file(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(CountingFile { file, wear: Arc::clone(&self.wear), account: self.account })
    }
}

impl Disk for CountingDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(path).map(|file| self.file(file))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(path, access).map(|file| self.file(file))
    }

    fn file_size(&self, path: &Path) -> io::Result<u64> {
        self.disk.file_size(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DiskEntry>> {
        self.disk.list(dir)
    }

    fn names_changed_at(&self, dir: &Path) -> io::Result<Option<SystemTime>> {
        self.disk.names_changed_at(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // Counted before the call, because even a failed sync may write.
        self.wear.account(self.account).syncs.fetch_add(1, Relaxed);
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        self.disk.lock(path)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.disk.free_bytes(dir)
    }

    fn total_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.disk.total_bytes(dir)
    }
}

impl DiskFile for CountingFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        // Counted after the call, because failed writes do not count.
        self.file.write_at(offset, bytes)?;
        self.wear.account(self.account).bytes.fetch_add(bytes.len() as u64, Relaxed);
        Ok(())
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        self.file.set_len(size_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.wear.account(self.account).syncs.fetch_add(1, Relaxed);
        self.file.sync_data()
    }
}
