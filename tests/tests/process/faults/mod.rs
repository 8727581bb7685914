//! Faults of the disk at any call, kills at any call, and power cuts at any of them: random worlds
//! whose answers are held against a model. Nothing that was acknowledged is lost, nothing is
//! invented, nothing that was deleted comes back, nothing is there twice.
//!
//! A seed decides what a world does, not which thread does what first: a world that failed may need
//! some attempts to fail again.

mod beside;
mod checks;
mod clock;
mod flags;
mod lives;
mod model;
mod power;
mod steps;
mod values;
mod world;

use tidepool_tests::soak::{SEEDS_VARIABLE, seeds};
use world::{Outcome, World};

/// Lives of a world, without the last.
const LIVES: usize = 4;

/// Runs worlds; returns how many programs were killed at a call in them, and how many calls failed.
/// The directory of a failed one is kept if it runs alone.
fn run_worlds(
    each_run: usize,
    soak: usize,
    journalled: bool,
    run: fn(&mut World) -> Outcome,
) -> [u32; 2] {
    let seeds = seeds(each_run, soak);
    let mut faults = [0; 2];
    let is_one = seeds.end - seeds.start == 1;
    for seed in seeds {
        let mut world = World::new(seed, journalled).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        if let Err(error) = run(&mut world) {
            let text = world.describe(&*error);
            world.server = None;
            world.directory.disable_cleanup(is_one);
            let path = world.directory.path().display().to_string();
            panic!("{text}\n{SEEDS_VARIABLE}={seed} runs it alone and keeps its {path}");
        }
        let counts = [world.faults.kills(), world.faults.failed()];
        for (sum, count) in faults.iter_mut().zip(counts) {
            *sum += count.expect("the numbers of the library");
        }
    }
    println!("programs killed at a call, calls that failed: {faults:?}");
    faults
}

#[test]
fn kills_at_a_call() {
    let [kills, _] = run_worlds(4, 40, false, |world| {
        world.choose_clock()?;
        for _ in 0..LIVES {
            world.life_with_kills()?;
        }
        world.check_at_the_end()
    });
    assert_ne!(kills, 0, "nothing was tested");
}

#[test]
fn errors_of_the_disk() {
    let [_, failed] = run_worlds(4, 40, false, |world| {
        world.choose_clock()?;
        for _ in 0..LIVES {
            world.life_with_errors()?;
        }
        world.check_at_the_end()
    });
    assert_ne!(failed, 0, "nothing was tested");
}

#[test]
fn power_cuts() {
    run_worlds(2, 40, true, power::run);
}
