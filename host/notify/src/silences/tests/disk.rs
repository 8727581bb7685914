//! Disks that fail, and crashes between any two calls.

use super::*;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidepool_disk::fs::{Access, DiskEntry, DiskFile, Lock};

/// The real disk, on which all changes after the first `left` fail.
#[derive(Clone)]
struct Failing {
    left: Arc<AtomicUsize>,
    changes: Arc<AtomicUsize>,
}

struct FailingFile(Arc<dyn DiskFile>, Failing);

impl Failing {
    fn after(changes: usize) -> Failing {
        Failing { left: Arc::new(AtomicUsize::new(changes)), changes: Arc::default() }
    }

    fn change(&self) -> io::Result<()> {
        self.changes.fetch_add(1, Ordering::Relaxed);
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.left.store(left - 1, Ordering::Relaxed);
        Ok(())
    }

    fn heal(&self) {
        self.left.store(usize::MAX, Ordering::Relaxed);
    }
}

impl Disk for Failing {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        RealDisk.create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.change()?;
        Ok(Arc::new(FailingFile(RealDisk.create(path)?, self.clone())))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        RealDisk.open(path, access)
    }

    fn file_size(&self, path: &Path) -> io::Result<u64> {
        RealDisk.file_size(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DiskEntry>> {
        RealDisk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change()?;
        RealDisk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change()?;
        RealDisk.link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        RealDisk.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        RealDisk.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        RealDisk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        RealDisk.lock(path)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        RealDisk.free_bytes(dir)
    }
}

impl DiskFile for FailingFile {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.1.change() {
            // Torn, as a full disk leaves it.
            self.0.write_at(offset, &bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        self.0.write_at(offset, bytes)
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        self.1.change()?;
        self.0.set_len(size_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.1.change()?;
        self.0.sync_data()
    }
}

fn open_on(disk: &Failing, folder: &Path, clocks: &Clocks) -> Silences {
    Silences::open(Arc::new(disk.clone()), folder.join("alerts"), SILENCES_MAX, clocks.clock())
}

/// At whatever call the disk begins to fail: what was answered is there after a restart, what was
/// refused is not in memory, and after the disk works again it is not on the disk either.
#[test]
fn what_is_answered_is_stored_and_what_is_refused_is_gone() {
    for has_one in [false, true] {
        let mut was_complete = false;
        for changes in 0..20 {
            let (folder, clocks) = (tempfile::tempdir().expect("a directory"), Clocks::at(NOON_MS));
            let disk = Failing::after(usize::MAX);
            let mut expected = Vec::new();
            if has_one {
                let silences = open_on(&disk, folder.path(), &clocks);
                expected.push(silences.set(&wanted(0, HOUR_MS)).expect("a silence"));
            }
            disk.left.store(changes, Ordering::Relaxed);
            let silences = open_on(&disk, folder.path(), &clocks);
            match silences.set(&wanted(0, HOUR_MS)) {
                Ok(id) => {
                    expected.push(id);
                    was_complete = true;
                }
                Err(error) => assert!(matches!(error, SilenceError::Disk(_)), "{error}"),
            }
            expected.sort();
            let ids = |silences: &Silences| -> Vec<SilenceId> {
                let mut ids: Vec<_> =
                    silences.list().iter().map(|(silence, _)| silence.id).collect();
                ids.sort();
                ids
            };
            assert_eq!(ids(&silences), expected, "{changes}");
            // A crash here: what was answered is there, and nothing is damaged.
            let after_crash = open_on(&Failing::after(0), folder.path(), &clocks);
            let found = ids(&after_crash);
            assert!(expected.iter().all(|id| found.contains(id)), "{changes}");
            assert!(!folder.path().join("alerts").join(file::DAMAGED_FILE).exists());
            disk.heal();
            silences.maintain();
            let after_repair = open_on(&disk, folder.path(), &clocks);
            assert_eq!(ids(&after_repair), expected, "{changes}");
        }
        assert!(was_complete);
    }
}

#[test]
fn a_directory_without_silences_is_not_written_to() {
    let (folder, clocks) = (tempfile::tempdir().expect("a directory"), Clocks::at(NOON_MS));
    let disk = Failing::after(usize::MAX);
    let silences = open_on(&disk, folder.path(), &clocks);
    clocks.set(NOON_MS + HOUR_MS, false);
    silences.maintain();
    assert_eq!(silences.silencing(&labels()), None);
    assert!(silences.set(&wanted(0, -HOUR_MS)).is_err());
    assert_eq!(disk.changes.load(Ordering::Relaxed), 0);
    assert!(!folder.path().join("alerts").exists());
}

#[test]
fn failed_writes_are_counted() {
    let (folder, clocks) = (tempfile::tempdir().expect("a directory"), Clocks::at(NOON_MS));
    let silences = open_on(&Failing::after(0), folder.path(), &clocks);
    let error = silences.set(&wanted(0, HOUR_MS)).expect_err("a full disk").to_string();
    assert!(
        error.starts_with("the silence could not be stored, and nothing has changed: "),
        "{error}"
    );
    let mut text = MetricsText::default();
    silences.show(&mut text);
    assert!(text.finish().contains("tidepool_silences_failed_writes_total 1\n"));
}

#[tokio::test(start_paused = true)]
async fn moved_times_are_written_each_minute_and_at_the_stop() {
    let node = Node::new();
    node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    let (trigger, shutdown) = Shutdown::manual();
    let kept = tokio::spawn(node.silences.clone().keep(shutdown));
    let before = node.file();
    node.clocks.set(NOON_MS + 2 * HOUR_MS, false);
    trigger.stop();
    kept.await.expect("kept");
    assert_ne!(node.file(), before);
}
