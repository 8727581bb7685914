//! The data directory: its lock, and the sweep at a start.

use super::*;
use std::fs;

/// The head, queries and metrics use theirs on different threads.
const _: () = {
    const fn send<T: Send>() {}
    const fn shared<T: Send + Sync>() {}
    send::<Wal>();
    send::<wal::CheckpointWriter>();
    send::<BlockWriter>();
    shared::<wal::WalMonitor>();
    shared::<BlockDirs>();
    shared::<BlockFile>();
    shared::<DataDir>();
};

const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

#[test]
fn a_second_owner_is_refused_until_the_last_handle_is_gone() {
    let root = tempfile::tempdir().expect("tempdir");
    let path = root.path().join("new/data");
    let data = DataDir::open(&path).expect("opens");
    let wal = Wal::open(&data, WalOptions::default()).expect("opens");
    let blocks = BlockDirs::open(&data);
    let is_in_use = || DataDir::open_read_only(&path).and_then(|data| data.is_in_use());
    assert!(matches!(is_in_use(), Ok(true)));
    let Err(error) = DataDir::open(&path) else { panic!("opened twice") };
    assert!(matches!(error, DiskError::Locked { .. }));
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(data);
    assert!(matches!(DataDir::open(&path), Err(DiskError::Locked { .. })));
    drop(wal);
    assert!(matches!(DataDir::open(&path), Err(DiskError::Locked { .. })));
    drop(blocks);
    assert!(matches!(is_in_use(), Ok(false)));
    fs::remove_file(path.join(LOCK_FILE)).expect("a lock file");
    assert!(matches!(is_in_use(), Ok(false)));
    assert!(!path.join(LOCK_FILE).exists());
    DataDir::open(&path).expect("opens again");
}

#[test]
fn only_a_directory_that_nobody_used_is_taken_away() {
    let root = tempfile::tempdir().expect("tempdir");
    let path = root.path().join("data");
    DataDir::open(&path).and_then(|data| data.remove_if_empty()).expect("it goes");
    assert!(!path.exists());
    for used in ["wal/00000000", "note"] {
        let data = DataDir::open(&path).expect("opens");
        fs::write(path.join(used), "").expect("written");
        data.remove_if_empty().expect("it stays");
        assert!(path.join(used).exists() && path.join(LOCK_FILE).exists(), "{used}");
        fs::remove_file(path.join(used)).expect("removed");
    }
}

#[test]
fn unfinished_work_is_swept_and_nothing_else() {
    let root = tempfile::tempdir().expect("tempdir");
    let dirs = [
        (format!("{ULID}.tmp-for-creation/chunks"), false),
        (format!("{ULID}.tmp-for-deletion/chunks"), false),
        (format!("{ULID}.tmp"), false),
        (format!("{ULID}/chunks"), true),
        ("someone-elses.tmp".to_owned(), true),
        ("not-a-ulid.tmp-for-creation".to_owned(), true),
        ("wal/checkpoint.00000004.tmp".to_owned(), false),
        ("wal/checkpoint.00000003".to_owned(), true),
        ("chunks_head".to_owned(), true),
    ];
    for (dir, _) in &dirs {
        fs::create_dir_all(root.path().join(dir)).expect("create");
        fs::write(root.path().join(dir).join("000001"), b"x").expect("write");
    }
    let files = [("positions.tmp", false), ("queries.active", true), ("wal/000003.tmp", true)];
    for (file, _) in files {
        fs::write(root.path().join(file), b"x").expect("write");
    }
    DataDir::open(root.path()).expect("opens");
    let files = files.map(|(file, stays)| (file.to_owned(), stays));
    for (name, stays) in dirs.iter().chain(&files) {
        assert_eq!(root.path().join(name).exists(), *stays, "{name}");
    }
}
