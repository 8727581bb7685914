//! Reads small files whose size is unknown: files in procfs and sysfs have size 0 or 4096.
//!
//! Reading does not wait: a FIFO is read as empty. Memory is bounded: a file larger than
//! [`FILE_BYTES_MAX`] is an error, and the buffer shrinks after each round.

use crate::error::{CollectError, Malformed, Result};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Maximum size of a file. The largest known files have 2 MB: `mountinfo` of a machine with
/// thousands of containers, and `stat` of a machine with thousands of interrupts.
pub(crate) const FILE_BYTES_MAX: usize = 8 << 20;
/// Size to which the buffer shrinks after each round.
const BUFFER_BYTES_KEPT: usize = 64 << 10;
/// Minimum number of bytes per read, enough for most files, and for nearly all of drivers.
const READ_BYTES: usize = 16 << 10;
/// Maximum number of bytes that upstream reads of an attribute in sysfs.
const ATTRIBUTE_BYTES_MAX: usize = 128;

/// Reads files one after another into the same buffer.
#[derive(Default)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
}

/// Opens a file. Does not wait for a FIFO's writer, and does not get a controlling terminal.
pub(crate) fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
}

/// Returns the sorted entries of a directory that match upstream's `prefix[0-9]*`.
pub(crate) fn numbered(directory: &Path, prefix: &str) -> io::Result<Vec<String>> {
    let is_one = |name: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut names = entries(directory)?;
    names.retain(|name| is_one(name));
    Ok(names)
}

/// Returns the sorted entries of a directory. Names that are not UTF-8 are skipped.
pub(crate) fn entries(directory: &Path) -> io::Result<Vec<String>> {
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
    let mut names = names.filter_map(io::Result::transpose).collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

impl Reader {
    /// Reads a whole file, up to [`FILE_BYTES_MAX`].
    pub(crate) fn bytes(&mut self, path: &Path) -> Result<&[u8]> {
        let file = open(path).map_err(|error| CollectError::read(path, error))?;
        self.all_of(file, path, FILE_BYTES_MAX)
    }

    /// Reads a whole file as text, which must be UTF-8.
    pub(crate) fn text(&mut self, path: &Path) -> Result<&str> {
        let bytes = self.bytes(path)?;
        std::str::from_utf8(bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count();
            Malformed::new(line, "UTF-8 text", "other bytes").of(path)
        })
    }

    /// Reads an open file to its end. `path` is used in errors.
    pub(crate) fn all_of(
        &mut self,
        file: impl AsFd,
        path: &Path,
        bytes_max: usize,
    ) -> Result<&[u8]> {
        let mut len = 0;
        loop {
            // The buffer keeps its capacity, so mostly this only writes zeros.
            self.buffer.resize(self.buffer.len().max(len + READ_BYTES), 0);
            match retry_on_intr(|| rustix::io::read(&file, &mut self.buffer[len..])) {
                Ok(0) => return Ok(&self.buffer[..len]),
                Ok(read) => len += read,
                Err(error) => return Err(CollectError::read(path, error)),
            }
            // Checked after each read, so that reading an endless file ends.
            if len > bytes_max {
                return Err(CollectError::TooLarge { path: path.to_owned(), bytes_max });
            }
        }
    }

    /// Reads an attribute of sysfs, a short line. Surrounding white space is removed.
    pub(crate) fn attribute(&mut self, path: &Path) -> rustix::io::Result<&[u8]> {
        self.raw_attribute(path).map(<[u8]>::trim_ascii)
    }

    /// Reads an attribute unchanged. One read as in upstream, as some drivers never report the end.
    pub(crate) fn raw_attribute(&mut self, path: &Path) -> rustix::io::Result<&[u8]> {
        let file = open(path)?;
        // The buffer is never shortened here, so it need not be zeroed for each attribute.
        self.buffer.resize(self.buffer.len().max(ATTRIBUTE_BYTES_MAX), 0);
        let buffer = &mut self.buffer[..ATTRIBUTE_BYTES_MAX];
        let read = retry_on_intr(|| rustix::io::read(&file, &mut *buffer))?;
        Ok(&self.buffer[..read])
    }

    pub(crate) fn number<N: std::str::FromStr>(&mut self, path: &Path) -> rustix::io::Result<N> {
        let text = std::str::from_utf8(self.attribute(path)?).map_err(|_| Errno::INVAL)?;
        text.parse().map_err(|_| Errno::INVAL)
    }

    pub(crate) fn buffer(&mut self, len: usize) -> &mut [u8] {
        self.buffer.resize(self.buffer.len().max(len), 0);
        &mut self.buffer[..len]
    }

    /// Shrinks the buffer. Called at the end of a round.
    pub(crate) fn shrink(&mut self) {
        self.buffer.truncate(BUFFER_BYTES_KEPT);
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType};
    use std::fs::File;

    #[test]
    fn what_is_too_large_or_never_ends_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("large");
        let file = File::create(&path).expect("a file");
        let mut reader = Reader::default();
        // Sparse: it has no bytes on disk.
        for (len, is_read) in
            [(FILE_BYTES_MAX, true), (FILE_BYTES_MAX + 1, false), (1 << 30, false)]
        {
            file.set_len(len as u64).expect("a length");
            assert_eq!(reader.bytes(&path).is_ok(), is_read, "{len}");
            assert!(reader.buffer.len() <= 2 * FILE_BYTES_MAX);
        }
        reader.shrink();
        assert!(reader.buffer.capacity() <= BUFFER_BYTES_KEPT);
        let endless = reader.bytes(Path::new("/dev/zero"));
        assert!(matches!(endless, Err(CollectError::TooLarge { .. })), "{endless:?}");
    }

    #[test]
    fn a_fifo_without_a_writer_is_empty() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("fifo");
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).expect("a FIFO");
        let mut reader = Reader::default();
        assert_eq!(reader.bytes(&path).expect("it ends"), b"");
        assert_eq!(reader.attribute(&path).expect("it ends"), b"");
    }

    #[test]
    fn text_is_utf_8_and_attributes_are_one_short_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let mut reader = Reader::default();
        fs::write(&path, b"good\nbad \xff\n").expect("written");
        let error = reader.text(&path).expect_err("no text").to_string();
        assert!(error.contains("file:2: expected UTF-8 text"), "{error}");
        fs::write(&path, format!(" {}\n", "7".repeat(200))).expect("written");
        assert_eq!(reader.attribute(&path).expect("read").len(), ATTRIBUTE_BYTES_MAX - 1);
        for (text, number) in [("-7\n", Some(-7)), ("+7", Some(7)), ("", None), ("7 8", None)] {
            fs::write(&path, text).expect("written");
            assert_eq!(reader.number::<i64>(&path).ok(), number, "{text:?}");
        }
    }

    #[test]
    fn numbered_entries_are_sorted_as_text() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["cpu10", "cpu2", "cpu1x", "cpufreq", "cpu", "xcpu1"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        let names = numbered(directory.path(), "cpu").expect("read");
        assert_eq!(names, ["cpu10", "cpu1x", "cpu2"]);
    }
}
