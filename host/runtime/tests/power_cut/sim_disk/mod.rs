//! A disk in memory with a power switch.
//!
//! Of every file and directory it knows two states: what the running system sees, and what would
//! survive. Between them stand the changes since the last sync, in order:
//!
//! ```text
//! durable ── write, write, set length … ──▶ seen        sync: durable becomes seen
//!         ── create, rename, remove …   ──▶
//! ```
//!
//! At a power cut any part of the changes may have reached the device: of a file any pages of
//! 4 KiB, as they were after any of the changes, torn at any byte, and any of its lengths (what it
//! gained without data is zeros); of a directory any of the changes of names, each as a whole.
//! What is chosen hangs on a seed. A sync that fails loses what it was to save, for good: the pages
//! count as clean, as with Linux.

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

/// Bytes that a name takes of the capacity.
const NAME_BYTES: u64 = 256;

/// The disk. Clones share it.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// A fault in calls that change something, or in those that do not.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Which calls count and fail.
    pub calls: Calls,
    /// How many of them succeed before.
    pub after: usize,
    /// How many fail then.
    pub times: usize,
    pub kind: io::ErrorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Writes, syncs, and all that changes names.
    Changes,
    /// Reads, opens and listings.
    Reads,
}

/// The disk as it was during one call, and what the driver had marked then.
pub struct CutPoint {
    pub disk: SimDisk,
    /// The call during which it was.
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
    /// One for each change, if they are recorded.
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

/// Names and what they stand for from then on: two of them for a rename.
type NameChange = Vec<(OsString, Option<u64>)>;

impl SimDisk {
    /// An empty disk.
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

    /// Remembers what the driver has done so far, for the moments recorded from now on.
    pub fn mark(&self, mark: usize) {
        self.lock_state().mark = mark;
    }

    /// Begins to record the disk at every change.
    pub fn record(&self) {
        self.lock_state().cut_points = Some(Vec::new());
    }

    /// What was recorded.
    pub fn take_cut_points(&self) -> Vec<CutPoint> {
        let cut_points = self.lock_state().cut_points.take().unwrap_or_default();
        let cut_point = |(state, call): (State, String)| {
            let mark = state.mark;
            CutPoint { disk: SimDisk::of(state), call, mark }
        };
        cut_points.into_iter().map(cut_point).collect()
    }

    /// Calls of a kind so far.
    pub fn calls(&self, calls: Calls) -> usize {
        let state = self.lock_state();
        match calls {
            Calls::Changes => state.changes,
            Calls::Reads => state.reads,
        }
    }

    /// Lets calls fail from now on; `None` mends the disk.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.lock_state().fault = fault;
    }

    /// Bounds what all files and names may take.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock_state().capacity_bytes = bytes;
    }

    /// Lets syncs do nothing but say that they did.
    pub fn ignore_syncs(&self) {
        self.lock_state().ignores_syncs = true;
    }

    /// Bytes that all files and names take.
    pub fn used_bytes(&self) -> u64 {
        self.lock_state().used_bytes()
    }

    /// The disk of the next life, after the power went.
    pub fn after_power_cut(&self, seed: u64) -> SimDisk {
        let mut state = self.lock_state().at_rest();
        state.random = Random::new(seed, 0xc07);
        state.cut_power();
        SimDisk::of(state)
    }

    /// Flips a bit of a file; returns which file, and where, or `None` if there is none that is
    /// meant.
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
    /// The disk itself, without what is done to it.
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

    /// Counts a change and fails it if it is to fail.
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

    /// Keeps this cut point. Changes call it when they are done but not durable, syncs before they
    /// are.
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

    /// The directory that a path lies in, and its name there.
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

    /// Bytes that may still be added.
    fn room_bytes(&self) -> u64 {
        self.capacity_bytes.map_or(u64::MAX, |max| max.saturating_sub(self.used_bytes()))
    }

    fn check_room(&self, bytes: u64) -> io::Result<()> {
        match self.capacity_bytes.is_some() && bytes > self.room_bytes() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    /// Visits all files.
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
