//! The simulated disk loses only what a disk may lose, and tests that rely on more fail on it.

use crate::model::{Model, Promise};
use crate::run::Run;
use crate::sim_disk::{Calls, Fault, SimDisk};
use crate::{TestResult, runtime};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use tidepool_disk::SyncPolicy;
use tidepool_disk::fs::{Access, Disk as _};

/// Enough seeds to see every possible outcome.
const SEEDS: u64 = 400;

fn read(disk: &SimDisk, path: &str) -> Option<Vec<u8>> {
    let file = disk.open(Path::new(path), Access::Read).ok()?;
    let mut bytes = vec![0; file.size().ok()? as usize];
    file.read_at(0, &mut bytes).ok()?;
    Some(bytes)
}

/// All states that a file has after cuts with different seeds.
fn outcomes(disk: &SimDisk, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..SEEDS).map(|seed| read(&disk.after_power_cut(seed), path)).collect()
}

#[test]
fn what_is_synced_stays_and_the_rest_may_be_anything() -> TestResult {
    let disk = SimDisk::new(1);
    let file = disk.create(Path::new("/a"))?;
    file.write_at(0, b"old")?;
    assert!(outcomes(&disk, "/a").contains(&None), "the name is not synced");
    file.sync_data()?;
    disk.sync_dir(Path::new("/"))?;
    assert_eq!(outcomes(&disk, "/a"), BTreeSet::from([Some(b"old".to_vec())]));

    file.write_at(3, b"new")?;
    let seen = outcomes(&disk, "/a");
    for possible in [&b"old"[..], b"oldnew", b"old\0\0\0", b"oldn"] {
        assert!(seen.contains(&Some(possible.to_vec())), "{possible:?} in {seen:?}");
    }
    let is_old = |bytes: &Option<Vec<u8>>| bytes.as_ref().is_some_and(|b| b.starts_with(b"old"));
    assert!(seen.iter().all(is_old), "{seen:?}");
    assert_eq!(read(&disk, "/a"), Some(b"oldnew".to_vec()));
    Ok(())
}

#[test]
fn names_change_whole_and_in_any_order() -> TestResult {
    let disk = SimDisk::new(2);
    for (name, bytes) in [("/a", b"a"), ("/b", b"b"), ("/c", b"c")] {
        let file = disk.create(Path::new(name))?;
        file.write_at(0, bytes)?;
        file.sync_data()?;
    }
    disk.sync_dir(Path::new("/"))?;
    disk.rename(Path::new("/a"), Path::new("/b"))?;
    disk.remove_file(Path::new("/c"))?;
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let after = disk.after_power_cut(seed);
        let names = ["/a", "/b", "/c"].map(|name| read(&after, name));
        let is_whole = names[0].is_some() == (names[1].as_deref() == Some(b"b"));
        assert!(is_whole, "{names:?}");
        seen.insert(names);
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
    Ok(())
}

#[test]
fn a_failed_sync_may_lose_what_a_later_one_does_not_save() -> TestResult {
    let mut lost = 0;
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        let file = disk.create(Path::new("/a"))?;
        disk.sync_dir(Path::new("/"))?;
        file.write_at(0, &[1; 9000])?;
        let (calls, kind) = (Calls::Changes, ErrorKind::Other);
        disk.set_fault(Some(Fault { calls, after: 0, times: 1, kind }));
        assert!(file.sync_data().is_err());
        file.sync_data()?;
        assert_eq!(read(&disk, "/a"), Some(vec![1; 9000]), "it reads well");
        lost += usize::from(read(&disk.after_power_cut(seed), "/a") != Some(vec![1; 9000]));
    }
    assert!(lost > 0);
    Ok(())
}

/// The tests of this file notice a missing sync.
#[test]
fn a_disk_that_ignores_syncs_is_found_out() -> TestResult {
    let runtime = runtime()?;
    let disk = SimDisk::new(4);
    let mut run = Run::start(&runtime, disk, SyncPolicy::Always, Model::default(), 4)?;
    run.steps(5)?;
    run.disk.ignore_syncs();
    run.steps(15)?;
    let mut found_out = 0;
    for seed in 0..10 {
        let disk = run.disk.after_power_cut(seed);
        let past = run.model.clone().after_power_cut();
        let after = Run::start(&runtime, disk, SyncPolicy::Always, past, seed);
        let checked = after.and_then(|mut after| after.check(Promise::Synced));
        found_out += usize::from(checked.is_err());
    }
    assert!(found_out > 5, "{found_out}");
    Ok(())
}
