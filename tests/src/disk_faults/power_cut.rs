//! Directories that a power cut may leave, derived from a journal of changes.
//!
//! A file's bytes are on the device once the file was synced, its name once its directory was.
//! Before that a cut leaves all changes, the first ones, any of them, or none; of a write it may
//! leave a part. A rename within one directory is atomic.

use super::journal::{Change, Entry};
use crate::series::Random;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The directory at one position in the journal: durable and pending changes.
#[derive(Debug)]
pub struct Disk {
    root: PathBuf,
    files: Vec<FileState>,
    /// Directories by number; the first is the root.
    directories: Vec<DirectoryState>,
    by_inode: HashMap<u64, usize>,
}

/// File or directory of a name, by its number.
#[derive(Clone, Copy, Debug)]
enum Node {
    File(usize),
    Directory(usize),
}

#[derive(Debug, Default)]
struct FileState {
    durable: Vec<u8>,
    pending: Vec<Change>,
    /// Length as programs see it, in bytes.
    length: u64,
}

type Names = BTreeMap<String, Node>;
/// Names that change together; `None` for a removed one.
type NameChange = Vec<(String, Option<Node>)>;

#[derive(Debug, Default)]
struct DirectoryState {
    durable: Names,
    seen: Names,
    pending: Vec<NameChange>,
}

/// Part of the pending changes that a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    All,
    First,
    Any,
    /// The first changes, the last of them in part.
    Torn,
}

impl Disk {
    /// Starts with an empty directory.
    pub fn new(root: &Path) -> Disk {
        let directories = vec![DirectoryState::default()];
        Disk { root: root.to_path_buf(), files: Vec::new(), directories, by_inode: HashMap::new() }
    }

    /// Reads an existing directory, all of which counts as durable.
    pub fn of(root: &Path) -> io::Result<Disk> {
        let mut disk = Disk::new(root);
        let mut left = vec![(0, root.to_path_buf())];
        while let Some((number, path)) = left.pop() {
            for entry in fs::read_dir(path)? {
                let path = entry?.path();
                let status = path.symlink_metadata()?;
                let node = if status.is_dir() {
                    disk.directories.push(DirectoryState::default());
                    left.push((disk.directories.len() - 1, path.clone()));
                    Node::Directory(disk.directories.len() - 1)
                } else if let Some(number) = disk.by_inode.get(&status.ino()) {
                    Node::File(*number)
                } else {
                    let durable = fs::read(&path)?;
                    let length = durable.len() as u64;
                    disk.files.push(FileState { durable, pending: Vec::new(), length });
                    disk.by_inode.insert(status.ino(), disk.files.len() - 1);
                    Node::File(disk.files.len() - 1)
                };
                let directory = &mut disk.directories[number];
                directory.durable.insert(file_name(&path), node);
                directory.seen.insert(file_name(&path), node);
            }
        }
        Ok(disk)
    }

    /// Applies the next entry of the journal. A failed sync makes a random part of the pending
    /// changes durable.
    pub fn apply(&mut self, entry: &Entry, random: &mut Random) {
        let Entry { change, path, inode, .. } = entry;
        match change {
            Change::MakeDirectory if *path == self.root => {}
            Change::MakeDirectory => {
                self.directories.push(DirectoryState::default());
                let made = Node::Directory(self.directories.len() - 1);
                let (directory, name) = self.parent(path);
                directory.change(vec![(name, Some(made))]);
            }
            Change::Create => {
                self.files.push(FileState::default());
                let number = self.files.len() - 1;
                self.by_inode.insert(*inode, number);
                let (directory, name) = self.parent(path);
                directory.change(vec![(name, Some(Node::File(number)))]);
            }
            Change::Write { offset, data } => {
                let file = self.file(*inode, path);
                file.length = file.length.max(offset + data.len() as u64);
                file.pending.push(change.clone());
            }
            Change::Truncate(length) => {
                let file = self.file(*inode, path);
                file.length = *length;
                file.pending.push(change.clone());
            }
            Change::SyncFile { failed } => {
                let file = self.file(*inode, path);
                for change in std::mem::take(&mut file.pending) {
                    if !failed || random.one_in(2) {
                        put(&mut file.durable, &change);
                    }
                }
            }
            Change::SyncDirectory { failed: true } => {}
            Change::SyncDirectory { failed: false } => {
                let Some(Node::Directory(number)) = self.find(path) else { return };
                let directory = &mut self.directories[number];
                for change in std::mem::take(&mut directory.pending) {
                    rename(&mut directory.durable, &change);
                }
            }
            Change::Rename(to) => {
                let node = self.find(path);
                let (from_parent, to_parent) = (path.parent(), to.parent());
                let (directory, name) = self.parent(path);
                if from_parent == to_parent {
                    directory.change(vec![(name, None), (file_name(to), node)]);
                    return;
                }
                directory.change(vec![(name, None)]);
                let (directory, name) = self.parent(to);
                directory.change(vec![(name, node)]);
            }
            Change::Link(to) => {
                let node = self.find(path);
                let (directory, name) = self.parent(to);
                directory.change(vec![(name, node)]);
            }
            Change::Remove => {
                let (directory, name) = self.parent(path);
                directory.change(vec![(name, None)]);
            }
        }
    }

    /// Writes the result of a power cut at this position into a directory that does not exist yet.
    pub fn leave(&self, to: &Path, random: &mut Random) -> io::Result<()> {
        // A file with two names has the same bytes under both.
        let mut files = HashMap::new();
        let mut left = vec![(0, to.to_path_buf())];
        while let Some((number, to)) = left.pop() {
            fs::create_dir(&to)?;
            for (name, node) in self.directories[number].left(random) {
                let path = to.join(name);
                match node {
                    Node::Directory(number) => left.push((number, path)),
                    Node::File(number) => {
                        let bytes =
                            files.entry(number).or_insert_with(|| self.files[number].left(random));
                        fs::write(path, bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn find(&self, path: &Path) -> Option<Node> {
        let below = path.strip_prefix(&self.root).ok()?;
        let mut node = Node::Directory(0);
        for name in below {
            let Node::Directory(number) = node else { return None };
            node = *self.directories[number].seen.get(name.to_str()?)?;
        }
        Some(node)
    }

    /// Returns the directory that contains a path, and the name there.
    #[track_caller]
    fn parent(&mut self, path: &Path) -> (&mut DirectoryState, String) {
        match path.parent().and_then(|parent| self.find(parent)) {
            Some(Node::Directory(number)) => (&mut self.directories[number], file_name(path)),
            _ => panic!("{} is in no directory of the journal", path.display()),
        }
    }

    #[track_caller]
    fn file(&mut self, inode: u64, path: &Path) -> &mut FileState {
        match self.by_inode.get(&inode) {
            Some(number) => &mut self.files[*number],
            None => panic!("{} was made by nothing in the journal", path.display()),
        }
    }
}

impl FileState {
    fn left(&self, random: &mut Random) -> Vec<u8> {
        use Left::{All, Any, First, Nothing, Torn};
        let mut bytes = self.durable.clone();
        let left = random.pick(&[Nothing, Nothing, All, First, First, Any, Torn]);
        let mut changes = chosen(&self.pending, left, random);
        if let (Torn, Some(Change::Write { data, .. })) = (left, changes.last_mut()) {
            data.truncate(random.below(data.len() as u64 + 1) as usize);
        }
        changes.iter().for_each(|change| put(&mut bytes, change));
        // The new length may be durable without the bytes.
        if left == Any && random.one_in(2) && (bytes.len() as u64) < self.length {
            bytes.resize(self.length as usize, 0);
        }
        bytes
    }
}

impl DirectoryState {
    fn change(&mut self, change: NameChange) {
        rename(&mut self.seen, &change);
        self.pending.push(change);
    }

    fn left(&self, random: &mut Random) -> Names {
        use Left::{All, Any, First, Nothing};
        let mut names = self.durable.clone();
        let left = random.pick(&[Nothing, Nothing, All, First, First, Any]);
        let changes = chosen(&self.pending, left, random);
        changes.iter().for_each(|change| rename(&mut names, change));
        names
    }
}

fn chosen<T: Clone>(pending: &[T], left: Left, random: &mut Random) -> Vec<T> {
    match left {
        Left::Nothing => Vec::new(),
        Left::All => pending.to_vec(),
        Left::First | Left::Torn => {
            pending[..random.below(pending.len() as u64 + 1) as usize].to_vec()
        }
        Left::Any => pending.iter().filter(|_| random.one_in(2)).cloned().collect(),
    }
}

fn put(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, data } => {
            let (start, end) = (*offset as usize, *offset as usize + data.len());
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[start..end].copy_from_slice(data);
        }
        Change::Truncate(length) => bytes.resize(*length as usize, 0),
        _ => unreachable!("only these wait for a sync of the file"),
    }
}

fn rename(names: &mut Names, change: &NameChange) {
    for (name, node) in change {
        match node {
            Some(node) => names.insert(name.clone(), *node),
            None => names.remove(name),
        };
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn entry(change: Change, path: &str, inode: u64) -> Entry {
        Entry { offset: 0, change, path: Path::new("/data").join(path), inode }
    }

    /// Returns all possible results of power cuts, as names with their bytes.
    fn outcomes(entries: &[Entry]) -> BTreeSet<Vec<(String, String)>> {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let mut random = Random::new(5, 0);
        let mut disk = Disk::new(Path::new("/data"));
        entries.iter().for_each(|entry| disk.apply(entry, &mut random));
        let outcome = |number: usize| {
            let to = scratch.path().join(number.to_string());
            disk.leave(&to, &mut random).expect("it is written");
            let file = |entry: io::Result<fs::DirEntry>| {
                let path = entry.expect("an entry").path();
                let bytes = fs::read(&path).expect("a file");
                (file_name(&path), String::from_utf8_lossy(&bytes).into_owned())
            };
            let mut files: Vec<_> = fs::read_dir(to).expect("a directory").map(file).collect();
            files.sort();
            files
        };
        (0..200).map(outcome).collect()
    }

    #[test]
    fn what_is_there_at_the_beginning_is_on_the_device() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let root = scratch.path().join("data");
        fs::create_dir_all(root.join("wal")).expect("directories");
        fs::write(root.join("wal/0"), "ab").expect("a file");
        fs::hard_link(root.join("wal/0"), root.join("link")).expect("a second name");
        let mut random = Random::new(6, 0);
        let mut disk = Disk::of(&root).expect("it is read");
        let inode = root.join("link").metadata().expect("the file").ino();
        let written = Change::Write { offset: 2, data: b"cd".to_vec() };
        for change in [written, Change::SyncFile { failed: false }, Change::Remove] {
            disk.apply(&Entry { offset: 0, change, path: root.join("link"), inode }, &mut random);
        }
        let mut with_link = 0;
        for number in 0..50 {
            let left = scratch.path().join(number.to_string());
            disk.leave(&left, &mut random).expect("it is written");
            assert_eq!(fs::read(left.join("wal/0")).expect("the file"), b"abcd");
            with_link += usize::from(left.join("link").exists());
        }
        assert!((1..50).contains(&with_link), "the removal waits for a sync");
    }

    #[test]
    fn what_was_synced_is_there_and_what_was_not_may_be() {
        let write = |text: &str| Change::Write { offset: 0, data: text.as_bytes().to_vec() };
        let named = |name: &str, text: &str| vec![(name.to_string(), text.to_string())];
        let mut entries = vec![
            entry(Change::Create, "new", 7),
            entry(write("ab"), "new", 7),
            entry(Change::SyncFile { failed: false }, "new", 7),
            entry(Change::SyncDirectory { failed: false }, "", 1),
        ];
        assert_eq!(outcomes(&entries), [named("new", "ab")].into());
        entries.push(entry(Change::Rename("/data/old".into()), "new", 7));
        assert_eq!(outcomes(&entries), [named("new", "ab"), named("old", "ab")].into());
        entries.push(entry(Change::SyncDirectory { failed: false }, "", 1));
        entries.push(entry(write("CD"), "old", 7));
        let all = [named("old", "ab"), named("old", "Cb"), named("old", "CD")];
        assert_eq!(outcomes(&entries), all.into());
        entries.push(entry(Change::SyncFile { failed: true }, "old", 7));
        assert_eq!(outcomes(&entries).len(), 1, "a failed sync decides it");
        entries.push(entry(Change::Remove, "old", 7));
        assert!(outcomes(&entries).contains(&Vec::new()));
    }
}
