//! Faults of the disk at any call, kills at any call, and power cuts at any change: random worlds
//! whose answers are compared with a model. No acknowledged sample is lost, none is invented or
//! doubled, and no deleted sample returns.
//!
//! A seed determines the actions of a world, not the order of threads: a failed world may need
//! several attempts to fail again.

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

/// Number of lives in a world, without the last.
const LIVES: usize = 4;

/// Runs worlds; returns the number of programs killed at a call and the number of failed calls. The
/// directory of a failed world is kept if it runs alone.
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
