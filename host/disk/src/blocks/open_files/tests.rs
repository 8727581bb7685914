//! One descriptor for each file, a limit for all, and files of blocks that are deleted while read.

use crate::{BlockDirs, BlockFile, DataDir, DiskError};
use std::path::Path;
use std::sync::Barrier;
use std::thread;

type TestResult = Result<(), Box<dyn std::error::Error>>;

const FILES: [&str; 2] = ["index", "chunks/000001"];

/// Descriptors of this process for files below a directory.
fn descriptors(of: &Path) -> std::io::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let target = std::fs::read_link(entry?.path());
        count += usize::from(target.is_ok_and(|target| target.starts_with(of)));
    }
    Ok(count)
}

fn put(blocks: &BlockDirs) -> Result<String, DiskError> {
    let mut writer = blocks.create(1)?;
    let id = writer.id().to_owned();
    for file in FILES {
        writer.write_at(file, 0, content(&id, file).as_bytes())?;
    }
    writer.write_at("meta.json", 0, b"bytes")?;
    writer.commit()?;
    Ok(id)
}

fn content(block: &str, file: &str) -> String {
    format!("{file} of {block}")
}

fn read(file: &BlockFile) -> Result<String, DiskError> {
    let bytes = file.read_at(0, file.size_bytes() as u32)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A query of two weeks opened each file of chunks for itself. Ten at a time exceeded the usual
/// limit of 1,024 open files, and were refused.
#[test]
fn a_file_is_open_once_however_many_read_it() -> TestResult {
    let root = tempfile::tempdir()?;
    let data = DataDir::open(root.path())?;
    let blocks = BlockDirs::open(&data);
    let id = put(&blocks)?;
    let dir = root.path().join(&id);
    for file in FILES {
        let first = blocks.open_file(&id, file)?;
        let others = (0..10).map(|_| blocks.clone().open_file(&id, file));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        assert_eq!(descriptors(&dir)?, 0, "nobody has read it");
        for reader in others.iter().chain([&first]) {
            assert_eq!(read(reader)?, content(&id, file));
        }
        assert_eq!((descriptors(&dir)?, data.open_files().figures().open), (1, 1));
        drop(first);
        assert_eq!(read(others.last().ok_or("none")?)?, content(&id, file));
        drop(others);
        assert_eq!(descriptors(&dir)?, 0, "the last one closes it");
        assert_eq!(read(&blocks.open_file(&id, file)?)?, content(&id, file));
    }
    // What is replaced under its name is not shared.
    let before = blocks.open_file(&id, "meta.json")?;
    blocks.replace_tombstones(&id, b"", b"other")?;
    assert_eq!(blocks.open_file(&id, "meta.json")?.read_at(0, 5)?, b"other");
    assert_eq!(before.read_at(0, 5)?, b"bytes");
    Ok(())
}

/// All files that were read stayed open, so that the number of blocks set that of descriptors.
#[test]
fn no_more_files_are_open_than_may_be() -> TestResult {
    let root = tempfile::tempdir()?;
    let data = DataDir::open(root.path())?;
    data.open_files().set_open_max(5);
    let blocks = BlockDirs::open(&data);
    let ids = (0..20).map(|_| put(&blocks)).collect::<Result<Vec<_>, _>>()?;
    let mut files = Vec::new();
    for id in &ids {
        for name in FILES {
            files.push((content(id, name), blocks.open_file(id, name)?));
        }
    }
    let (hot_content, hot) = files.pop().ok_or("none")?;
    let mut closed = 0;
    for round in 0..3 {
        for (content, file) in &files {
            assert_eq!(read(file)?, *content);
            assert_eq!(read(&hot)?, hot_content);
            let open = descriptors(root.path())?;
            let figures = data.open_files().figures();
            // The lock is one.
            assert!(open - 1 == figures.open && figures.open <= 5, "{open} {figures:?}");
            assert!(figures.closed >= closed, "{figures:?}");
            closed = figures.closed;
        }
        // What is read all the time stays: of 39 others, at most five are open at the end.
        assert!(closed <= (round + 1) * 39, "{closed} in round {round}");
    }
    assert!(closed >= 3 * 39 - 5, "{closed}");
    drop(files);
    assert_eq!(data.open_files().figures().open, 1);
    Ok(())
}

/// A file that was closed to make room, or never read, stays readable with its deleted block.
#[test]
fn a_deleted_block_is_readable_until_nobody_reads_it() -> TestResult {
    let root = tempfile::tempdir()?;
    let data = DataDir::open(root.path())?;
    data.open_files().set_open_max(1);
    let blocks = BlockDirs::open(&data);
    let (doomed, other) = (put(&blocks)?, put(&blocks)?);
    let bytes = data.size_bytes()?;
    let [index, chunks] = FILES.map(|file| blocks.open_file(&doomed, file));
    let (index, chunks) = (index?, chunks?);
    assert_eq!(read(&index)?, content(&doomed, "index"));
    blocks.delete(&doomed)?;
    assert_eq!(blocks.list()?, std::slice::from_ref(&other));
    assert!(blocks.open_file(&doomed, "index").is_err_and(|error| error.is_not_found()));
    assert!(blocks.delete(&doomed).is_err_and(|error| error.is_not_found()));
    assert!(data.size_bytes()? < bytes, "it counts no more");
    for _ in 0..3 {
        assert_eq!(read(&blocks.open_file(&other, "index")?)?, content(&other, "index"));
        assert_eq!(read(&index)?, content(&doomed, "index"));
        assert_eq!(read(&chunks)?, content(&doomed, "chunks/000001"));
    }
    let left = || -> std::io::Result<usize> {
        let mut names = std::fs::read_dir(root.path())?;
        names.try_fold(0, |count, entry| {
            let name = entry?.file_name();
            Ok(count + usize::from(name.to_string_lossy().starts_with(&doomed)))
        })
    };
    drop(index);
    assert_eq!((left()?, read(&chunks)?), (1, content(&doomed, "chunks/000001")));
    drop((blocks, data));
    // What is still to be removed keeps others out.
    assert!(matches!(DataDir::open(root.path()), Err(DiskError::Locked { .. })));
    drop(chunks);
    assert_eq!(left()?, 0);
    DataDir::open(root.path())?;
    Ok(())
}

/// Many threads read few files at a time, while blocks come and go.
#[test]
fn readers_never_see_that_files_are_closed() -> TestResult {
    let root = tempfile::tempdir()?;
    let data = DataDir::open(root.path())?;
    data.open_files().set_open_max(3);
    let blocks = BlockDirs::open(&data);
    for _ in 0..10 {
        put(&blocks)?;
    }
    let together = Barrier::new(5);
    let read_all = || {
        together.wait();
        for _ in 0..50 {
            let mut files = Vec::new();
            for id in blocks.list().expect("a list") {
                for name in FILES {
                    match blocks.open_file(&id, name) {
                        Ok(file) => files.push((content(&id, name), file)),
                        Err(error) => assert!(error.is_not_found(), "{error}"),
                    }
                }
            }
            for (content, file) in files.iter().chain(files.iter().rev()) {
                assert_eq!(read(file).expect("it reads"), *content);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(read_all);
        }
        together.wait();
        for _ in 0..100 {
            put(&blocks).expect("a block");
            let oldest = blocks.list().expect("a list").remove(0);
            blocks.delete(&oldest).expect("it is there");
        }
    });
    assert_eq!(data.open_files().figures().open, 0);
    let mut names = std::fs::read_dir(root.path())?;
    let left = names.try_fold(0, |count, entry| entry.map(|_| count + 1))?;
    assert_eq!(left, 10 + 2, "the blocks, the lock and the log");
    Ok(())
}
