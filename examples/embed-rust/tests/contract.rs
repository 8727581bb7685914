//! The example's storage keeps the contract: the checks of `tests/contract`, run on it.

use embed_rust::State;
use tidepool_contract::{Checks, Phase};
use wasmtime::{Engine, Result, Store};

#[test]
fn the_storage_keeps_the_contract() -> Result<()> {
    let engine = Engine::default();
    let checks = Checks::load(&engine)?;
    let linker = embed_rust::linker(&engine)?;
    // One storage for both runs; a host with files would open them again for the second run.
    let mut store = Store::new(&engine, State::default());
    for phase in Phase::ALL {
        let broken = checks.broken(phase, &linker, &mut store)?;
        assert_eq!(broken, Vec::<String>::new(), "{phase:?}");
    }
    Ok(())
}
