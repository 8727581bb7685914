//! A simulated disk in memory that can lose power.
//!
//! Every file and directory has two states: the one that the running system sees, and the one that
//! would survive. Between them are the changes since the last sync, in order:
//!
//! ```text
//! durable ── write, write, set length … ──▶ seen        sync: durable becomes seen
//!         ── create, rename, remove …   ──▶
//! ```
//!
//! At a power cut any part of the changes may have reached the device. Of a file these are any
//! pages of 4 KiB, as they were after any of the changes, torn at any byte, and any of its lengths
//! (bytes that it gained without data are zeros); of a directory, any of the changes to names, each
//! as a whole. A seed decides. A failed sync loses its changes for good: the pages count as clean,
//! as with Linux.

mod calls;
mod file;

use file::FileNode;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tidepool_tests::series::Random;

const ROOT: u64 = 0;

/// Bytes of the capacity that a name takes.
const NAME_BYTES: u64 = 256;

/// The simulated disk. Clones share it.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// A fault in calls that change the disk, or in those that do not.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Kind of calls that count and fail.
    pub calls: Calls,
    /// Number of calls that succeed before.
    pub after: usize,
    /// Number of calls that fail then.
    pub times: usize,
    pub kind: io::ErrorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Writes, syncs, and all changes to names.
    Changes,
    /// Reads, opens and directory listings.
    Reads,
}

/// The disk's state during one call, and the driver's last mark.
pub struct CutPoint {
    pub disk: SimDisk,
    /// Description of the call in progress.
    pub call: String,
    /// The last argument of [`SimDisk::mark`].
    pub mark: usize,
}

#[derive(Clone)]
struct State {
    nodes: BTreeMap<u64, Node>,
    next_node: u64,
    random: Random,
    fault: Option<Fault>,
    capacity_bytes: Option<u64>,
    ignores_syncs: bool,
    changes: usize,
    reads: usize,
    mark: usize,
    /// One cut point for each change, if they are recorded.
    cut_points: Option<Vec<(State, String)>>,
    locks: BTreeMap<u64, Weak<()>>,
}

#[derive(Clone)]
enum Node {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Clone, Default)]
struct DirNode {
    seen: Names,
    durable: Names,
    unsynced: Vec<NameChange>,
}

type Names = BTreeMap<OsString, u64>;

/// Names and the nodes that they stand for afterwards: two names for a rename.
type NameChange = Vec<(OsString, Option<u64>)>;

impl SimDisk {
    pub fn new(seed: u64) -> SimDisk {
        SimDisk::of(State {
            nodes: BTreeMap::from([(ROOT, Node::Dir(DirNode::default()))]),
            next_node: ROOT + 1,
            random: Random::new(seed, 0xd15c),
            fault: None,
            capacity_bytes: None,
            ignores_syncs: false,
            changes: 0,
            reads: 0,
            mark: 0,
            cut_points: None,
            locks: BTreeMap::new(),
        })
    }

    fn of(state: State) -> SimDisk {
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another disk in the same state, unsynced changes included.
    pub fn fork(&self) -> SimDisk {
        SimDisk::of(self.lock_state().at_rest())
    }

    /// Sets the mark that cut points recorded from now on get.
    pub fn mark(&self, mark: usize) {
        self.lock_state().mark = mark;
    }

    /// Starts recording a cut point at every change.
    pub fn record(&self) {
        self.lock_state().cut_points = Some(Vec::new());
    }

    pub fn take_cut_points(&self) -> Vec<CutPoint> {
        let cut_points = self.lock_state().cut_points.take().unwrap_or_default();
        let cut_point = |(state, call): (State, String)| {
            let mark = state.mark;
            CutPoint { disk: SimDisk::of(state), call, mark }
        };
        cut_points.into_iter().map(cut_point).collect()
    }

    /// Number of calls of a kind so far.
    pub fn calls(&self, calls: Calls) -> usize {
        let state = self.lock_state();
        match calls {
            Calls::Changes => state.changes,
            Calls::Reads => state.reads,
        }
    }

    /// Lets calls fail from now on; `None` ends that.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.lock_state().fault = fault;
    }

    /// Limits the total size of all files and names.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock_state().capacity_bytes = bytes;
    }

    /// Makes syncs succeed without any effect.
    pub fn ignore_syncs(&self) {
        self.lock_state().ignores_syncs = true;
    }

    /// Total size of all files and names.
    pub fn used_bytes(&self) -> u64 {
        self.lock_state().used_bytes()
    }

    /// The disk as the next run finds it after a power cut.
    pub fn after_power_cut(&self, seed: u64) -> SimDisk {
        let mut state = self.lock_state().at_rest();
        state.random = Random::new(seed, 0xc07);
        state.cut_power();
        SimDisk::of(state)
    }

    /// Flips a bit in one of the selected files; returns the file and the offset, or `None` if no
    /// file is selected.
    pub fn flip_bit(
        &self,
        seed: u64,
        is_meant: impl Fn(&Path) -> bool,
    ) -> Option<(PathBuf, String)> {
        let mut state = self.lock_state();
        let mut files = Vec::new();
        state.walk(ROOT, Path::new("/"), &mut |path, node| files.push((path.to_owned(), node)));
        files.retain(|(path, node)| {
            is_meant(path) && state.file(*node).is_ok_and(|f| !f.seen.is_empty())
        });
        let mut random = Random::new(seed, 0xf11b);
        let (path, node) = files.get(random.below(files.len().max(1) as u64) as usize)?;
        let file = state.file_mut(*node).ok()?;
        let at = random.below(file.seen.len() as u64) as usize;
        let bit = 1 << random.below(8);
        for bytes in [&mut file.seen, &mut file.durable] {
            if let Some(byte) = Arc::make_mut(bytes).get_mut(at) {
                *byte ^= bit;
            }
        }
        let about = format!("bit {bit:#04x} of byte {at} of {}", path.display());
        Some((path.clone(), about))
    }
}

impl State {
    /// A copy of the state without faults and recordings.
    fn at_rest(&self) -> State {
        State {
            nodes: self.nodes.clone(),
            random: self.random.clone(),
            fault: None,
            capacity_bytes: self.capacity_bytes,
            cut_points: None,
            locks: BTreeMap::new(),
            ..*self
        }
    }

    /// Counts a change, and fails it if the fault says so.
    fn change(&mut self, about: impl Fn() -> String) -> io::Result<()> {
        self.changes += 1;
        self.fail(Calls::Changes, about)
    }

    fn read(&mut self, about: impl Fn() -> String) -> io::Result<()> {
        self.reads += 1;
        self.fail(Calls::Reads, about)
    }

    fn fail(&mut self, calls: Calls, about: impl Fn() -> String) -> io::Result<()> {
        let Some(fault) = self.fault.as_mut().filter(|fault| fault.calls == calls) else {
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
        Err(io::Error::new(fault.kind, format!("made to fail: {}", about())))
    }

    /// Records a cut point. Changes call this when they are made but not durable, syncs before they
    /// take effect.
    fn remember(&mut self, about: impl Fn() -> String) {
        if self.cut_points.is_some() {
            let cut_point = (self.at_rest(), about());
            self.cut_points.get_or_insert_default().push(cut_point);
        }
    }

    fn file(&self, node: u64) -> io::Result<&FileNode> {
        match self.nodes.get(&node) {
            Some(Node::File(file)) => Ok(file),
            _ => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn file_mut(&mut self, node: u64) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(&node) {
            Some(Node::File(file)) => Ok(file),
            _ => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn dir(&self, node: u64) -> io::Result<&DirNode> {
        match self.nodes.get(&node) {
            Some(Node::Dir(dir)) => Ok(dir),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn dir_mut(&mut self, node: u64) -> io::Result<&mut DirNode> {
        match self.nodes.get_mut(&node) {
            Some(Node::Dir(dir)) => Ok(dir),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn find(&self, path: &Path) -> io::Result<u64> {
        let mut node = ROOT;
        for part in path.components() {
            if let Component::Normal(name) = part {
                let found = self.dir(node)?.seen.get(name);
                node = *found.ok_or(io::ErrorKind::NotFound)?;
            }
        }
        Ok(node)
    }

    /// Directory of a path, and the name in it.
    fn place(&self, path: &Path) -> io::Result<(u64, OsString)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok((self.find(parent)?, name.to_owned()))
    }

    fn add(&mut self, node: Node) -> u64 {
        let number = self.next_node;
        self.next_node += 1;
        self.nodes.insert(number, node);
        number
    }

    fn rename_in(&mut self, dir: u64, change: NameChange) -> io::Result<()> {
        let dir = self.dir_mut(dir)?;
        apply(&mut dir.seen, &change);
        dir.unsynced.push(change);
        Ok(())
    }

    fn used_bytes(&self) -> u64 {
        let mut bytes = 0;
        self.walk(ROOT, Path::new("/"), &mut |_, node| {
            bytes += NAME_BYTES + self.file(node).map_or(0, |file| file.seen.len() as u64);
        });
        bytes
    }

    /// Bytes that may still be added before the disk is full.
    fn room_bytes(&self) -> u64 {
        self.capacity_bytes.map_or(u64::MAX, |max| max.saturating_sub(self.used_bytes()))
    }

    fn check_room(&self, bytes: u64) -> io::Result<()> {
        match self.capacity_bytes.is_some() && bytes > self.room_bytes() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn walk(&self, node: u64, path: &Path, visit: &mut dyn FnMut(&Path, u64)) {
        match self.nodes.get(&node) {
            Some(Node::Dir(dir)) => {
                for (name, below) in &dir.seen {
                    self.walk(*below, &path.join(name), visit);
                }
            }
            _ => visit(path, node),
        }
    }

    fn cut_power(&mut self) {
        let mut nodes = std::mem::take(&mut self.nodes);
        for node in nodes.values_mut() {
            match node {
                Node::File(file) => {
                    file.durable = Arc::new(file.survivor(&mut self.random));
                    file.seen = Arc::clone(&file.durable);
                    file.unsynced.clear();
                }
                Node::Dir(dir) => {
                    let share = self.random.below(5);
                    for change in std::mem::take(&mut dir.unsynced) {
                        // Sometimes none, sometimes all.
                        if self.random.below(4) < share {
                            apply(&mut dir.durable, &change);
                        }
                    }
                    dir.seen = dir.durable.clone();
                }
            }
        }
        self.nodes = nodes;
        // A file without a name has no open handle.
        let mut kept = vec![ROOT];
        let mut next = 0;
        while let Some(node) = kept.get(next) {
            next += 1;
            if let Ok(dir) = self.dir(*node) {
                kept.extend(dir.seen.values());
            }
        }
        self.nodes.retain(|node, _| kept.contains(node));
    }
}

fn apply(names: &mut Names, change: &NameChange) {
    for (name, node) in change {
        match node {
            Some(node) => drop(names.insert(name.clone(), *node)),
            None => drop(names.remove(name)),
        }
    }
}
