//! Files that are reloaded when they change. If new content is invalid, the old one stays in use.

use super::AccessError;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidepool_settings::file::read_regular;

/// Maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Builds a value from files.
type Load<T> = Box<dyn Fn(&mut Files) -> Result<T, AccessError> + Send + Sync>;

/// The files read so far, with their contents. The path of a later file may depend on them.
#[derive(Default)]
pub struct Files {
    paths: Vec<PathBuf>,
    contents: Vec<Vec<u8>>,
}

impl Files {
    pub fn read(&mut self, path: &Path) -> Result<&[u8], AccessError> {
        self.contents.push(read(path)?);
        self.paths.push(path.to_owned());
        Ok(self.contents.last().map(Vec::as_slice).unwrap_or_default())
    }
}

/// A value built from files, rebuilt when they change.
pub struct Reloaded<T> {
    load: Load<T>,
    hasher: RandomState,
    /// Locked during a reload, so that only one reload runs at a time.
    reading: Mutex<()>,
    state: Mutex<State<T>>,
}

struct State<T> {
    current: Arc<T>,
    /// Files from which `current` was built.
    files: Vec<PathBuf>,
    /// Hash of the contents, since times can miss a change within a clock tick or of a link.
    used: u64,
    /// The last logged problem, so that a lasting problem is logged once.
    problem: String,
}

impl<T> Reloaded<T> {
    /// Loads the files for the first time.
    pub fn open(
        load: impl Fn(&mut Files) -> Result<T, AccessError> + Send + Sync + 'static,
    ) -> Result<Reloaded<T>, AccessError> {
        let hasher = RandomState::new();
        let mut files = Files::default();
        let current = Arc::new(load(&mut files)?);
        let used = hasher.hash_one(&files.contents);
        let state = State { current, files: files.paths, used, problem: String::new() };
        Ok(Reloaded {
            load: Box::new(load),
            hasher,
            state: Mutex::new(state),
            reading: Mutex::default(),
        })
    }

    /// The value of the last valid version.
    pub fn current(&self) -> Arc<T> {
        Arc::clone(&self.state().current)
    }

    /// Returns whether the value was built from the present content of the files.
    pub fn is_used(&self) -> bool {
        self.state().problem.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reloads changed files if `may_follow` accepts the new version, and logs errors.
    pub fn refresh(&self, may_follow: impl FnOnce(&T, &T) -> Result<(), AccessError>) {
        let Err(error) = self.renew(may_follow) else { return };
        let mut state = self.state();
        let problem = error.to_string();
        if problem != state.problem {
            tracing::error!(
                error = problem,
                "reload of a changed file failed; the old version stays in use"
            );
            state.problem = problem;
        }
    }

    /// Reloads the files. On an error, the old version stays in use.
    pub fn read_again(&self) -> Result<(), AccessError> {
        self.renew(|_, _| Ok(()))
    }

    fn renew(
        &self,
        may_follow: impl FnOnce(&T, &T) -> Result<(), AccessError>,
    ) -> Result<(), AccessError> {
        // One reload at a time. Requests do not wait: `state` is not locked while files are read.
        let _turn = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let (paths, used) = {
            let state = self.state();
            (state.files.clone(), state.used)
        };
        let contents = read_all(&paths)?;
        if self.hasher.hash_one(&contents) == used {
            // The content in use is back, so an earlier problem is over.
            self.state().problem.clear();
            return Ok(());
        }
        let mut files = Files::default();
        let new = (self.load)(&mut files)?;
        // Locked only now, because loading reads files and may check certificates.
        let mut state = self.state();
        may_follow(&state.current, &new)?;
        state.current = Arc::new(new);
        // Hashed from the loaded content, since the files may have changed after `read_all`.
        state.used = self.hasher.hash_one(&files.contents);
        state.files = files.paths;
        state.problem.clear();
        tracing::info!(files = ?state.files, "changed files were reloaded");
        Ok(())
    }
}

fn read_all(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, AccessError> {
    files.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, AccessError> {
    let read = read_regular(path, FILE_BYTES_MAX);
    read.map_err(|source| AccessError::Read { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_good_new_version_is_taken_and_a_bad_one_is_not() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("number");
        let number = path.clone();
        let parse = move |files: &mut Files| {
            let text = String::from_utf8_lossy(files.read(&number)?).into_owned();
            let path = number.clone();
            let wrong = |_| AccessError::Line { path, line: 1, problem: "no number" };
            text.trim().parse::<u32>().map_err(wrong)
        };
        let missing = Reloaded::open(parse.clone()).err();
        assert!(matches!(missing, Some(AccessError::Read { .. })), "{missing:?}");
        std::fs::write(&path, "1")?;
        let Ok(value) = Reloaded::open(parse) else { panic!("a number") };
        for (content, expected) in [("2", 2), ("two", 2), ("3", 3), ("3", 3)] {
            std::fs::write(&path, content)?;
            value.refresh(|_, _| Ok(()));
            assert_eq!(*value.current(), expected, "{content}");
            assert_eq!(value.is_used(), content != "two");
        }
        std::fs::remove_file(&path)?;
        value.refresh(|_, _| Ok(()));
        assert_eq!(*value.current(), 3);
        std::fs::write(&path, vec![b'1'; FILE_BYTES_MAX as usize + 1])?;
        value.refresh(|_, _| Ok(()));
        assert_eq!(*value.current(), 3);
        std::fs::write(&path, "3")?;
        value.refresh(|_, _| Ok(()));
        std::fs::write(&path, "4")?;
        value.refresh(|_, _| Ok(()));
        assert_eq!(*value.current(), 4);
        let falls = |_: &u32, _: &u32| Err(AccessError::Empty { path: path.clone() });
        std::fs::write(&path, "5")?;
        value.refresh(falls);
        assert_eq!(*value.current(), 4, "5 may not follow");
        assert!(value.read_again().is_ok());
        assert_eq!(*value.current(), 5);
        Ok(())
    }
}
