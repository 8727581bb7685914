//! The file `silences.json`: a JSON document in which each silence has its line and its checksum,
//! so that damage costs only the silences that it touches.
//!
//! ```text
//! {"version":1,"judgedAt":"2026-11-08T12:00:00.000Z","silences":[
//! {"crc32c":"1b2c3d4e","silence":{"id":"…","updatedAt":"…","comment":"…",…}},
//! {"crc32c":"5f60718a","silence":{…}}
//! ]}
//! ```
//!
//! The checksum is that of the silence's text, without spaces and with its keys in this order.
//! `judgedAt` is the time by which states were judged at the write. `setInDoubt` marks a silence
//! that was set while the clock was doubted. The last file with damage is kept as
//! `silences.json.damaged`.

use super::json;
use super::{Map, Silence};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidepool_disk::error::Action;
use tidepool_disk::fs::{Access, Disk};
use tidepool_disk::{DiskError, replace_file};

pub const FILE: &str = "silences.json";

pub const DAMAGED_FILE: &str = "silences.json.damaged";

const VERSION: u64 = 1;

/// Maximum size of a file that is read: far more than a server writes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What a file holds.
#[derive(Default)]
pub struct Content {
    pub silences: Map,
    pub judged_ms: Option<i64>,
    /// Number of damaged lines; 1 if the file could not be read.
    pub damaged: u64,
}

/// Reads the file of a directory, and keeps a copy of it if it is damaged.
pub fn read(disk: &dyn Disk, dir: &Path, monotonic: Duration) -> Content {
    let path = dir.join(FILE);
    let (content, kept) = match bytes(disk, &path) {
        Ok(None) => return Content::default(),
        Ok(Some(bytes)) => {
            let content = decode(&bytes, monotonic);
            if content.damaged == 0 {
                return content;
            }
            // A copy: the file stays until another replaces it, so that a crash loses no silence.
            let kept = replace_file(disk, dir, DAMAGED_FILE, &bytes);
            (content, kept.map_err(|error| error.to_string()))
        }
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "could not read the silences");
            let kept = disk.rename(&path, &dir.join(DAMAGED_FILE));
            (Content { damaged: 1, ..Content::default() }, kept.map_err(|error| error.to_string()))
        }
    };
    let (silences, damaged) = (content.silences.len(), content.damaged);
    tracing::error!(
        path = %path.display(), silences, damaged,
        "the file of silences is damaged: only intact silences hold; if this repeats, check the \
         disk"
    );
    match kept {
        Ok(()) => tracing::error!(file = DAMAGED_FILE, "the damaged file was kept"),
        Err(error) => tracing::error!(%error, "the damaged file could not be kept"),
    }
    content
}

fn bytes(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(path, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let size_bytes = file.size()?;
    if size_bytes > FILE_BYTES_MAX {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    let mut bytes = vec![0; size_bytes as usize];
    file.read_at(0, &mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces the file; it is on the disk then. The directory is created by the first write.
pub fn write(disk: &dyn Disk, dir: &Path, silences: &Map, judged_ms: i64) -> Result<(), DiskError> {
    let bytes = encode(silences, judged_ms);
    match replace_file(disk, dir, FILE, bytes.as_bytes()) {
        Err(DiskError::NotFound { .. }) => {
            create_dir(disk, dir)?;
            replace_file(disk, dir, FILE, bytes.as_bytes())
        }
        written => written,
    }
}

fn create_dir(disk: &dyn Disk, dir: &Path) -> Result<(), DiskError> {
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| DiskError::Io { action, path, source }
    };
    disk.create_dir(dir).map_err(failed(Action::Create, dir))?;
    // The new name survives a power cut only once its parent is synced.
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    disk.sync_dir(parent).map_err(failed(Action::Sync, parent))
}

pub fn encode(silences: &Map, judged_ms: i64) -> String {
    let judged_at = json::time_text(judged_ms);
    let mut out = format!("{{\"version\":{VERSION},\"judgedAt\":\"{judged_at}\",\"silences\":[");
    let mut comma = "";
    for silence in silences.values() {
        let text = json::stored(silence).to_string();
        let sum = checksum(&text);
        out += &format!("{comma}\n{{\"crc32c\":\"{sum}\",\"silence\":{text}}}");
        comma = ",";
    }
    out + "\n]}\n"
}

pub fn decode(bytes: &[u8], monotonic: Duration) -> Content {
    let mut content = Content::default();
    let mut is_ended = false;
    for (place, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b",").unwrap_or(line);
        let decoded = match (place, line) {
            (0, _) => head(line).map(|judged_ms| content.judged_ms = Some(judged_ms)),
            (_, b"]}") => {
                is_ended = true;
                Ok(())
            }
            (_, b"") => Ok(()),
            _ => silence(line, monotonic).map(|silence| {
                content.silences.insert(silence.id, Arc::new(silence));
            }),
        };
        if let Err(why) = decoded {
            let line = place + 1;
            tracing::error!(file = FILE, line, %why, "a line of the silences is damaged");
            content.damaged += 1;
        }
    }
    // Without its end, the file may lack silences.
    content.damaged += u64::from(!is_ended);
    // The newest change is the best guess if the first line is damaged.
    let changed_ms = content.silences.values().map(|silence| silence.updated_at_ms).max();
    content.judged_ms = content.judged_ms.or(changed_ms);
    content
}

/// Reads the first line.
fn head(line: &[u8]) -> Result<i64, String> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    let head: Value =
        serde_json::from_str(&format!("{text}]}}")).map_err(|error| error.to_string())?;
    match head["version"].as_u64() {
        Some(VERSION) => {}
        version => return Err(format!("the version is not {VERSION}: {version:?}")),
    }
    head["judgedAt"].as_str().and_then(json::time_ms).ok_or_else(|| "no time".to_owned())
}

/// Reads a line with a silence.
fn silence(line: &[u8], monotonic: Duration) -> Result<Silence, String> {
    let line: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let stored = &line["silence"];
    let sum = checksum(&stored.to_string());
    if line["crc32c"].as_str() != Some(&sum) {
        return Err(format!("the checksum is not {sum}"));
    }
    json::read(stored, monotonic)
}

fn checksum(text: &str) -> String {
    format!("{:08x}", crc32c::crc32c(text.as_bytes()))
}
