//! Files that are read again when they change. An invalid new version leaves the old one in use.

use super::AccessError;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidepool_settings::file::read_regular;

/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Makes a value of files.
type Load<T> = Box<dyn Fn(&mut Files) -> Result<T, AccessError> + Send + Sync>;

/// Files that were read, with what they held. Which come after the first may depend on its content.
#[derive(Default)]
pub struct Files {
    paths: Vec<PathBuf>,
    contents: Vec<Vec<u8>>,
}

impl Files {
    /// Reads one more.
    pub fn read(&mut self, path: &Path) -> Result<&[u8], AccessError> {
        self.contents.push(read(path)?);
        self.paths.push(path.to_owned());
        Ok(self.contents.last().map(Vec::as_slice).unwrap_or_default())
    }
}

/// A value made of files.
pub struct Reloaded<T> {
    load: Load<T>,
    hasher: RandomState,
    /// Held while files are read again.
    reading: Mutex<()>,
    state: Mutex<State<T>>,
}

struct State<T> {
    current: Arc<T>,
    /// The files that it was made of.
    files: Vec<PathBuf>,
    /// Hash of their contents. Contents, not times: a file may be replaced within a clock's tick,
    /// or through a link.
    used: u64,
    /// Problems are logged once.
    problem: String,
}

impl<T> Reloaded<T> {
    /// Reads the files for the first time.
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

    /// The value of the last good version.
    pub fn current(&self) -> Arc<T> {
        Arc::clone(&self.state().current)
    }

    /// Whether it is made of what the files held when they were last looked at.
    pub fn is_used(&self) -> bool {
        self.state().problem.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files again, takes a version that may follow the current one, and logs what is
    /// wrong with them.
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

    /// Reads the files again. If they cannot be used, the old version stays in use.
    pub fn read_again(&self) -> Result<(), AccessError> {
        self.renew(|_, _| Ok(()))
    }

    fn renew(
        &self,
        may_follow: impl FnOnce(&T, &T) -> Result<(), AccessError>,
    ) -> Result<(), AccessError> {
        // One at a time; requests, which need the current version, do not wait for files.
        let _turn = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let (paths, used) = {
            let state = self.state();
            (state.files.clone(), state.used)
        };
        let contents = read_all(&paths)?;
        if self.hasher.hash_one(&contents) == used {
            self.state().problem.clear();
            return Ok(());
        }
        let mut files = Files::default();
        let new = (self.load)(&mut files)?;
        let mut state = self.state();
        may_follow(&state.current, &new)?;
        state.current = Arc::new(new);
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
