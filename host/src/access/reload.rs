//! What files say, read again when they change. A bad new version leaves the old one in place.

use super::AccessError;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Makes a value of the files' contents, which come in the order of the files.
type Load<T> = Box<dyn Fn(&[Vec<u8>]) -> Result<T, AccessError> + Send + Sync>;

/// A value made of files.
pub struct Reloaded<T> {
    files: Vec<PathBuf>,
    load: Load<T>,
    hasher: RandomState,
    state: Mutex<State<T>>,
}

struct State<T> {
    current: Arc<T>,
    /// Hash of the contents that it was made of. Contents, not times: a file may be replaced within
    /// a clock's tick, or through a link.
    used: u64,
    /// Problems are told once.
    problem: String,
}

impl<T> Reloaded<T> {
    /// Reads the files for the first time.
    pub fn open(
        files: Vec<PathBuf>,
        load: impl Fn(&[Vec<u8>]) -> Result<T, AccessError> + Send + Sync + 'static,
    ) -> Result<Reloaded<T>, AccessError> {
        let hasher = RandomState::new();
        let contents = read_all(&files)?;
        let current = Arc::new(load(&contents)?);
        let state = State { current, used: hasher.hash_one(&contents), problem: String::new() };
        Ok(Reloaded { files, load: Box::new(load), hasher, state: Mutex::new(state) })
    }

    /// The value of the last good version.
    pub fn current(&self) -> Arc<T> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner).current)
    }

    /// The files that it is made of.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Reads the files again, and logs what is wrong with them.
    pub fn refresh(&self) {
        let Err(error) = self.read_again() else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = error.to_string();
        if problem != state.problem {
            tracing::error!(error = problem, "the old version stays in use");
            state.problem = problem;
        }
    }

    /// Reads the files again. If they cannot be used, the old version stays in use.
    pub fn read_again(&self) -> Result<(), AccessError> {
        let contents = read_all(&self.files)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = self.hasher.hash_one(&contents);
        if hash == state.used {
            state.problem.clear();
            return Ok(());
        }
        state.current = Arc::new((self.load)(&contents)?);
        state.used = hash;
        state.problem.clear();
        tracing::info!(files = ?self.files, "read again: a file changed");
        Ok(())
    }
}

fn read_all(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, AccessError> {
    files.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, AccessError> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| {
        // One more, which tells that there is more.
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content)
    });
    let path = path.to_path_buf();
    match read {
        Err(source) => Err(AccessError::Read { path, source }),
        Ok(bytes) if bytes as u64 > FILE_BYTES_MAX => {
            Err(AccessError::TooLarge { path, bytes_max: FILE_BYTES_MAX })
        }
        Ok(_) => Ok(content),
    }
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
        let parse = move |contents: &[Vec<u8>]| {
            let text = String::from_utf8_lossy(&contents[0]);
            let path = number.clone();
            let wrong = |_| AccessError::Line { path, line: 1, problem: "no number" };
            text.trim().parse::<u32>().map_err(wrong)
        };
        let missing = Reloaded::open(vec![path.clone()], parse.clone()).err();
        assert!(matches!(missing, Some(AccessError::Read { .. })), "{missing:?}");
        std::fs::write(&path, "1")?;
        let Ok(value) = Reloaded::open(vec![path.clone()], parse) else { panic!("a number") };
        for (content, expected) in [("2", 2), ("two", 2), ("3", 3), ("3", 3)] {
            std::fs::write(&path, content)?;
            value.refresh();
            assert_eq!(*value.current(), expected, "{content}");
        }
        std::fs::remove_file(&path)?;
        value.refresh();
        assert_eq!(*value.current(), 3);
        std::fs::write(&path, vec![b'1'; FILE_BYTES_MAX as usize + 1])?;
        value.refresh();
        assert_eq!(*value.current(), 3);
        std::fs::write(&path, "3")?;
        value.refresh();
        std::fs::write(&path, "4")?;
        value.refresh();
        assert_eq!(*value.current(), 4);
        Ok(())
    }
}
