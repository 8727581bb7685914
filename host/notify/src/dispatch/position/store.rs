//! The files of positions. All calls block.

use super::{Damage, FILE_BYTES_MAX, Position, PositionError, decode, encode};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidepool_disk::fs::{Access, Disk};
use tidepool_disk::replace_file;

const SUFFIX: &str = ".json";
const DAMAGED: &str = ".damaged";
const UNFINISHED: &str = ".json.tmp";

/// How long the position of a receiver is kept that is absent from the configuration.
const KEPT_MS: i64 = 14 * 24 * 3_600_000;

/// The directory of the positions.
#[derive(Clone)]
pub struct Positions {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
}

/// What was found of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    Position(Position),
    /// Logged, and renamed.
    Damaged,
}

impl Positions {
    /// `dir` is created by the first write.
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf) -> Positions {
        Positions { disk, dir }
    }

    pub fn load(&self, receiver: &str) -> Found {
        match self.read(receiver) {
            Ok(None) => Found::Nothing,
            Ok(Some((position, _))) => Found::Position(position),
            Err(damage) => {
                self.quarantine(receiver, &damage);
                Found::Damaged
            }
        }
    }

    pub fn store(&self, receiver: &str, position: &Position) -> Result<(), PositionError> {
        self.write(receiver, position, None)
    }

    /// Removes positions of receivers that were absent from these names for 14 days, by a clock
    /// that is not doubted: without one, nothing is removed. Called at the start, after a reload,
    /// and once in a while.
    pub fn tidy(&self, names: &[&str], now_ms: Option<i64>) -> Result<(), PositionError> {
        for file_name in self.file_names()? {
            let Some(receiver) = file_name.strip_suffix(SUFFIX) else {
                // A crash left it. No pump of another name works on it.
                let receiver = file_name.strip_suffix(UNFINISHED);
                if receiver.is_some_and(|receiver| !names.contains(&receiver)) {
                    self.remove(&file_name)?;
                }
                continue;
            };
            let Some(now_ms) = now_ms.filter(|_| !names.contains(&receiver)) else { continue };
            match self.read(receiver) {
                Ok(None) => {}
                Err(damage) => self.quarantine(receiver, &damage),
                Ok(Some((position, left_ms))) => match left_ms {
                    // The clock went back since, or the receiver leaves now.
                    None => self.write(receiver, &position, Some(now_ms))?,
                    Some(left_ms) if left_ms > now_ms => {
                        self.write(receiver, &position, Some(now_ms))?;
                    }
                    Some(left_ms) if now_ms.saturating_sub(left_ms) >= KEPT_MS => {
                        self.remove(&file_name)?;
                        self.remove(&format!("{file_name}{DAMAGED}"))?;
                        tracing::info!(receiver, "removed the position of a receiver that is gone");
                    }
                    Some(_) => {}
                },
            }
        }
        Ok(())
    }

    /// Returns the highest number of an event that any position knows. The journal's next number
    /// must be above it, or a new event would count as delivered.
    pub fn number_max(&self) -> Result<u64, PositionError> {
        let names = self.file_names()?;
        let receivers = names.iter().filter_map(|name| name.strip_suffix(SUFFIX));
        let positions = receivers.filter_map(|receiver| self.read(receiver).ok().flatten());
        Ok(positions.map(|(position, _)| position.last()).max().unwrap_or(0))
    }

    fn path(&self, receiver: &str) -> PathBuf {
        self.dir.join(format!("{receiver}{SUFFIX}"))
    }

    fn read(&self, receiver: &str) -> Result<Option<(Position, Option<i64>)>, Damage> {
        let unreadable = |error: io::Error| Damage::Unreadable(error.to_string());
        let file = match self.disk.open(&self.path(receiver), Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(unreadable)?,
        };
        let bytes = file.size().map_err(unreadable)?;
        if bytes > FILE_BYTES_MAX {
            return Err(Damage::TooLong { bytes });
        }
        let mut content = vec![0; bytes as usize];
        file.read_at(0, &mut content).map_err(unreadable)?;
        decode(&content).map(Some)
    }

    fn write(
        &self,
        receiver: &str,
        position: &Position,
        left_ms: Option<i64>,
    ) -> Result<(), PositionError> {
        self.disk.create_dir(&self.dir).map_err(failed("create", &self.dir))?;
        let name = format!("{receiver}{SUFFIX}");
        replace_file(&*self.disk, &self.dir, &name, &encode(position, left_ms))
            .map_err(|source| PositionError::Write { receiver: receiver.to_owned(), source })
    }

    fn quarantine(&self, receiver: &str, damage: &Damage) {
        let path = self.path(receiver);
        let kept = self.dir.join(format!("{receiver}{SUFFIX}{DAMAGED}"));
        // If this fails, the next write replaces the file.
        let is_kept = self.disk.rename(&path, &kept).is_ok();
        tracing::error!(
            receiver, %damage, path = %path.display(), kept = is_kept.then(|| kept.display().to_string()),
            "position file damaged: delivery starts at the newest event, with the alerts that fire"
        );
    }

    fn file_names(&self) -> Result<Vec<String>, PositionError> {
        let entries = match self.disk.list(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(failed("list", &self.dir))?,
        };
        let files = entries.iter().filter(|entry| !entry.is_dir);
        Ok(files.filter_map(|entry| entry.name().map(str::to_owned)).collect())
    }

    fn remove(&self, file_name: &str) -> Result<(), PositionError> {
        let path = self.dir.join(file_name);
        match self.disk.remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(failed("remove", &path)),
        }
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PositionError {
    let path = path.to_owned();
    move |source| PositionError::Io { action, path, source }
}
