//! Power cuts at any change of a journalled world.

use super::checks::wait_for_no_leftovers;
use super::flags::Synced;
use super::model::{Asked, Tick, View};
use super::world::{Outcome, World, verify};
use std::path::Path;
use tempfile::TempDir;
use tidepool_tests::disk_faults::journal::{self, Change, Entry};
use tidepool_tests::disk_faults::power_cut::Disk;
use tidepool_tests::histogram::ValueSeries;
use tidepool_tests::process::Server;
use tidepool_tests::proto::prometheus::histogram::ResetHint;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::series::Random;
use tidepool_tests::tidepool::{Config, WalSync};
use tidepool_tests::wait::chain;

/// Number of lives before the cuts.
const LIVES: usize = 2;
/// Number of power cuts: of the first lives, and after one or two earlier cuts.
const CUTS: [usize; 3] = [7, 3, 2];
/// Number of directories made for each position in the first lives.
const VARIANTS: usize = 2;
/// One of this number of directories is used by a node until the next power cut.
const LIVED_IN: u64 = 4;

/// History of a world's lives, all of which were journalled.
struct Past {
    /// The directory before the lives.
    disk: Disk,
    /// Beginning and sync policy of each life.
    lives: Vec<(Tick, WalSync)>,
    /// Samples acknowledged before this tick are kept, whatever their policy.
    kept_before: Tick,
    /// Whether nothing was lost so far.
    is_whole: bool,
    /// Number of earlier power cuts.
    cuts: usize,
}

/// Runs a world, and starts nodes on possible results of power cuts.
pub fn run(world: &mut World) -> Outcome {
    // Half of the worlds promise all acknowledged samples.
    let synced = if world.seed.is_multiple_of(2) { Synced::Always } else { Synced::Mostly };
    let mut lives = Vec::new();
    for _ in 0..LIVES {
        world.life_with_a_journal(synced)?;
        lives.push((world.life_began(), world.flags.wal_sync));
    }
    let disk = Disk::new(&world.data_dir());
    cut(world, Past { disk, lives, kept_before: 0, is_whole: true, cuts: 0 })
}

/// Cuts the power at some positions of the journal.
fn cut(world: &mut World, past: Past) -> Outcome {
    let Past { mut disk, lives, kept_before, is_whole, cuts } = past;
    let path = world.faults.journal().ok_or("a world without a journal")?;
    let entries = journal::read(path)?;
    if entries.is_empty() {
        return Ok(());
    }
    let places = places(&entries, CUTS[cuts], &mut world.random);
    let mut random = Random::new(world.random.next_u64(), 1);
    for (number, entry) in entries.iter().enumerate() {
        for _ in places.iter().filter(|place| **place == number) {
            let after = world.model.tick_at(entry.offset);
            let keeps = lives.iter().filter(|(began, _)| *began < after);
            let mut keeps = keeps.map(|(_, sync)| matches!(sync, WalSync::Always));
            // Only samples that were synced before the answer are promised.
            let keeps_all = keeps.all(|keeps| keeps);
            let acknowledged_before = if keeps_all { after } else { kept_before };
            let view = View { acknowledged_before, deleted_before: after, sent_before: after };
            let is_whole = is_whole && keeps_all;
            for variant in 0..if cuts == 0 { VARIANTS } else { 1 } {
                let left = tempfile::tempdir_in(world.directory.path())?;
                disk.leave(&left.path().join("data"), &mut random)?;
                let is_lived_in = cuts + 1 < CUTS.len() && random.one_in(LIVED_IN);
                let outcome = match is_lived_in {
                    true => live_on(world, left, view, is_whole, cuts + 1, random.next_u64()),
                    false => check(world, left.path(), view, is_whole),
                };
                if let Err(error) = outcome {
                    let (change, path) = (name(&entry.change), entry.path.display());
                    return Err(format!(
                        "power cut {cuts} before change {number} of {}, {change} {path}, variant \
                         {variant}, with the promises before {acknowledged_before}: {}",
                        entries.len(),
                        chain(&*error)
                    )
                    .into());
                }
            }
        }
        disk.apply(entry, &mut random);
    }
    Ok(())
}

/// Lets a node run after a power cut, and cuts the power again.
fn live_on(
    world: &World,
    directory: TempDir,
    view: View,
    is_whole: bool,
    cuts: usize,
    seed: u64,
) -> Outcome {
    let disk = Disk::of(&directory.path().join("data"))?;
    let mut next = world.after_a_cut(directory, view, seed)?;
    let kept_before = next.model.tick();
    let outcome = next.life_after_a_cut().and_then(|()| {
        let lives = vec![(next.life_began(), next.flags.wal_sync)];
        cut(&mut next, Past { disk, lives, kept_before, is_whole, cuts })
    });
    outcome.map_err(|error| {
        let text = next.describe(&*error);
        next.server = None;
        // The directory is deleted with the first world's, or kept with it.
        next.directory.disable_cleanup(true);
        format!("in {}, {text}", next.directory.path().display()).into()
    })
}

/// Chooses changes before which the power is cut, ascending: most near changes of names.
fn places(entries: &[Entry], count: usize, random: &mut Random) -> Vec<usize> {
    let is_of_names = |change: &Change| {
        use Change::{Link, Remove, Rename, SyncDirectory, Truncate};
        matches!(change, Link(_) | Remove | Rename(_) | SyncDirectory { .. } | Truncate(_))
    };
    let all = 0..entries.len();
    let of_names: Vec<usize> = all.filter(|number| is_of_names(&entries[*number].change)).collect();
    let mut place = |_| match of_names.is_empty() || random.one_in(3) {
        true => random.below(entries.len() as u64) as usize,
        false => (random.pick(&of_names) + random.below(4) as usize).saturating_sub(1),
    };
    let mut places: Vec<usize> = (0..count).map(&mut place).collect();
    places.sort_unstable();
    places
}

/// Starts a node after a power cut, checks the promised samples, and starts it once more.
fn check(world: &World, directory: &Path, view: View, is_whole: bool) -> Outcome {
    let config = world.flags.apply(Config::new(directory));
    let server = config.start()?;
    let first = read(&server)?;
    world.model.judge(&first, Asked::EVERYTHING, view)?;
    server.kill()?;
    let server = config.start()?;
    let second = read(&server)?;
    wait_for_no_leftovers(&directory.join("data"))?;
    let log = server.log();
    server.terminate()?;
    if first != second {
        let count = |read: &[ValueSeries]| read.iter().map(|it| it.points.len()).sum::<usize>();
        let (first, second) = (count(&first), count(&second));
        return Err(format!("the first start has {first} samples, the second {second}").into());
    }
    if log.contains("panicked") {
        return Err(log.into());
    }
    // Data that was not synced may exist without the data it depends on.
    if !is_whole {
        return Ok(());
    }
    verify(&directory.join("data"))
}

/// Reads everything, without hints about counter resets, which may be unknown after a start.
fn read(server: &Server) -> Outcome<Vec<ValueSeries>> {
    let everything = everything(i64::MIN, i64::MAX);
    let mut series = Reader::new(&server.url()).sampled_values(&everything)?;
    for point in series.iter_mut().flat_map(|series| &mut series.points) {
        point.hint = ResetHint::Unknown;
    }
    Ok(series)
}

fn name(change: &Change) -> &'static str {
    match change {
        Change::Write { .. } => "write of",
        Change::Truncate(_) => "new length of",
        Change::SyncFile { .. } | Change::SyncDirectory { .. } => "sync of",
        Change::Create | Change::MakeDirectory => "creation of",
        Change::Rename(_) => "rename of",
        Change::Link(_) => "link to",
        Change::Remove => "removal of",
    }
}
