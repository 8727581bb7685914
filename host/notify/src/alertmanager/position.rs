//! The file that says which events an Alertmanager has heard of.
//!
//! ```text
//! DIR/alertmanagers/alertmanager-<16 hex digits: hash of the URL>.json
//! {"url": "http://127.0.0.1:9093/api/v2/alerts", "through": 17, "beyond": [19, 20]}
//! ```
//!
//! All events up to `through` are settled, and those in `beyond` (see `ledger`). A file is replaced
//! as a whole and synced. One that is damaged or of another URL is not used: its Alertmanager
//! starts at the newest event, as one without a file does.
//!
//! Files of Alertmanagers that left stay, so that one that discovery finds again goes on where it
//! was; beyond [`FILES_MAX`], those that are the furthest behind are removed.

use super::ledger::Position;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidepool_disk::fs::{Access, Disk};
use tidepool_disk::{DiskError, replace_file};

const PREFIX: &str = "alertmanager-";
const SUFFIX: &str = ".json";

/// Directory of positions, in the directory of notifications.
const POSITIONS_DIR: &str = "alertmanagers";

const HASH_BYTES: usize = 8;

/// Maximum size of a file; `ledger` bounds its numbers.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Number of files above which those of Alertmanagers that left are removed.
const FILES_MAX: usize = 200;

#[derive(Clone)]
pub(super) struct PositionFile {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    name: String,
    url: String,
}

#[derive(Deserialize, Serialize)]
struct Content {
    url: String,
    through: u64,
    #[serde(default)]
    beyond: BTreeSet<u64>,
}

/// Why a position cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum PositionError {
    #[error("could not read {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is damaged: {what}", path = path.display())]
    Damaged { path: PathBuf, what: String },
}

impl PositionFile {
    /// `dir` is the directory of notifications.
    pub fn new(disk: Arc<dyn Disk>, dir: &Path, url: &str) -> PositionFile {
        let hash = digest(&SHA256, url.as_bytes());
        let digits = hash.as_ref().iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}"));
        let name = format!("{PREFIX}{}{SUFFIX}", digits.collect::<String>());
        PositionFile { disk, dir: dir.join(POSITIONS_DIR), name, url: url.to_owned() }
    }

    /// Blocking. Returns `None` if there is no file.
    pub fn read(&self) -> Result<Option<Position>, PositionError> {
        let path = self.dir.join(&self.name);
        let Some(content) = read(&*self.disk, &path)? else { return Ok(None) };
        if content.url != self.url {
            let what = "it is that of another URL".to_owned();
            return Err(PositionError::Damaged { path, what });
        }
        Ok(Some(Position { through: content.through, beyond: content.beyond }))
    }

    /// Blocking. Replaces the file, durably.
    pub fn write(&self, position: &Position) -> Result<(), DiskError> {
        let Position { through, beyond } = position.clone();
        let content = Content { url: self.url.clone(), through, beyond };
        // These types are written without an error.
        let mut text = serde_json::to_vec(&content).unwrap_or_default();
        text.push(b'\n');
        match replace_file(&*self.disk, &self.dir, &self.name, &text) {
            Err(DiskError::NotFound { .. }) => {
                // If this fails, the next line tells why.
                let _ = self.disk.create_dir(&self.dir);
                replace_file(&*self.disk, &self.dir, &self.name, &text)
            }
            written => written,
        }
    }

    /// Blocking. Removes files of other Alertmanagers if there are too many, those that are the
    /// furthest behind first. For use before a file is written for the first time.
    pub fn make_room(&self, live: &[String]) {
        let names = names(&*self.disk, &self.dir);
        let surplus = (names.len() + 1).saturating_sub(FILES_MAX);
        if surplus == 0 {
            return;
        }
        let mut old: Vec<(u64, PathBuf)> = Vec::new();
        for name in names {
            let path = self.dir.join(name);
            match read(&*self.disk, &path) {
                Ok(Some(content)) if live.contains(&content.url) => {}
                Ok(Some(content)) => old.push((content.through, path)),
                Ok(None) => {}
                Err(_) => old.push((0, path)),
            }
        }
        old.sort();
        for (_, path) in old.into_iter().take(surplus) {
            // A file that cannot be removed is tried again for the next Alertmanager.
            let removed = self.disk.remove_file(&path);
            tracing::info!(
                path = %path.display(), is_removed = removed.is_ok(),
                "too many positions of Alertmanagers; removed that of one that is not known"
            );
        }
    }
}

/// Blocking. Returns the highest number that a position of an Alertmanager has, and 0 without any.
/// The journal must not give numbers up to it again.
pub fn number_max(disk: &dyn Disk, dir: &Path) -> u64 {
    let dir = dir.join(POSITIONS_DIR);
    let names = names(disk, &dir).into_iter();
    let contents = names.filter_map(|name| read(disk, &dir.join(name)).ok().flatten());
    let numbers = contents
        .map(|content| content.beyond.last().copied().unwrap_or_default().max(content.through));
    numbers.max().unwrap_or_default()
}

fn names(disk: &dyn Disk, dir: &Path) -> Vec<String> {
    let entries = disk.list(dir).unwrap_or_default().into_iter();
    let names =
        entries.filter(|entry| !entry.is_dir).filter_map(|entry| entry.name.into_string().ok());
    names.filter(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX)).collect()
}

fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Content>, PositionError> {
    let failed = |source| PositionError::Read { path: path.to_owned(), source };
    let damaged = |what: String| PositionError::Damaged { path: path.to_owned(), what };
    let file = match disk.open(path, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let bytes = file.size().map_err(failed)?;
    if bytes > FILE_BYTES_MAX {
        return Err(damaged(format!("it has {bytes} bytes, more than {FILE_BYTES_MAX}")));
    }
    let mut text = vec![0; usize::try_from(bytes).unwrap_or_default()];
    file.read_at(0, &mut text).map_err(failed)?;
    serde_json::from_slice(&text).map(Some).map_err(|error| damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use tidepool_disk::fs::RealDisk;

    const URL: &str = "http://127.0.0.1:9093/api/v2/alerts";

    fn file(dir: &Path, url: &str) -> PositionFile {
        PositionFile::new(Arc::new(RealDisk), dir, url)
    }

    fn path(dir: &Path) -> PathBuf {
        // The first digits of `printf URL | sha256sum`.
        dir.join("alertmanagers/alertmanager-eff7b3f9fafc9dbb.json")
    }

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = file(dir.path(), URL);
        assert_eq!(file.read().expect("no file"), None);
        assert_eq!(number_max(&RealDisk, dir.path()), 0);
        let position = Position { through: 17, beyond: [19, 20].into() };
        file.write(&position).expect("it is written");
        assert_eq!(
            fs::read_to_string(path(dir.path())).expect("a file"),
            format!("{{\"url\":\"{URL}\",\"through\":17,\"beyond\":[19,20]}}\n")
        );
        assert_eq!(file.read().expect("a file"), Some(position));
        assert_eq!(number_max(&RealDisk, dir.path()), 20);
        let later = Position { through: 30, beyond: BTreeSet::new() };
        file.write(&later).expect("it is replaced");
        assert_eq!(file.read().expect("a file"), Some(later));
        assert_eq!(fs::read_dir(dir.path().join("alertmanagers")).expect("a folder").count(), 1);
    }

    #[test]
    fn positions_of_others_and_large_files_are_not_used() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = file(dir.path(), URL);
        file.write(&Position::default()).expect("it is written");
        fs::write(path(dir.path()), r#"{"url":"http://other/","through":1}"#).expect("written");
        let error = file.read().expect_err("another URL").to_string();
        assert!(error.ends_with("is damaged: it is that of another URL"), "{error}");
        fs::write(path(dir.path()), vec![b' '; 1 << 20]).expect("written");
        assert!(matches!(file.read(), Err(PositionError::Damaged { .. })));
    }

    #[test]
    fn old_positions_make_room() {
        let dir = tempfile::tempdir().expect("a directory");
        let urls: Vec<String> = (0..FILES_MAX).map(|number| format!("http://a{number}/")).collect();
        for (through, url) in urls.iter().enumerate() {
            let position = Position { through: through as u64, ..Position::default() };
            file(dir.path(), url).write(&position).expect("it is written");
        }
        // The first is in use, so the second is the furthest behind of the others.
        file(dir.path(), URL).make_room(&urls[..1]);
        let is_there = |url: &str| file(dir.path(), url).read().expect("readable").is_some();
        let kept: Vec<bool> = urls.iter().map(|url| is_there(url)).collect();
        assert_eq!(kept.iter().position(|is_there| !is_there), Some(1));
        assert_eq!(kept.iter().filter(|is_there| **is_there).count(), FILES_MAX - 1);
        file(dir.path(), URL).make_room(&urls[..1]);
        assert!(is_there(&urls[2]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_position_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..64), cut in 0usize..80,
        ) {
            let dir = tempfile::tempdir().expect("a directory");
            let file = file(dir.path(), URL);
            file.write(&Position { through: 7, ..Position::default() }).expect("written");
            let whole = fs::read(path(dir.path())).expect("a file");
            fs::write(path(dir.path()), &bytes).expect("written");
            prop_assert!(file.read().is_err());
            // A part of a file is no shorter number.
            let cut = cut.min(whole.len() - 2);
            fs::write(path(dir.path()), &whole[..cut]).expect("written");
            prop_assert!(file.read().is_err());
        }
    }
}
