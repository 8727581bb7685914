//! The checks find faults: each test breaks one promise of a storage that keeps the contract, and
//! expects that the checks name it.

mod blocks;
mod wal;

use embed_rust::State;
use std::sync::LazyLock;
use tidepool_contract::{Checks, Phase};
use wasmtime::component::{ComponentNamedList, ComponentType, Lift, LinkerInstance, Lower};
use wasmtime::{Engine, Result, Store, StoreContextMut};

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);
static CHECKS: LazyLock<Checks> = LazyLock::new(|| Checks::load(&ENGINE).expect("the checks"));

/// Sentences of both phases of the checks.
struct Findings(Vec<String>);

impl Findings {
    /// Runs the checks on a good storage in which some imports of one interface are replaced.
    fn with(
        interface: &str,
        fault: impl FnOnce(&mut LinkerInstance<State>) -> Result<()>,
    ) -> Findings {
        let mut linker = embed_rust::linker(&ENGINE).expect("a linker");
        linker.allow_shadowing(true);
        let interface = format!("tidepool:tsdb/{interface}@0.2.0");
        fault(&mut linker.instance(&interface).expect("an interface")).expect("imports");
        let mut store = Store::new(&ENGINE, State::default());
        let answers = Phase::ALL.map(|phase| CHECKS.broken(phase, &linker, &mut store));
        Findings(answers.into_iter().flat_map(|answer| answer.expect("an answer")).collect())
    }

    #[track_caller]
    fn says(&self, sentence: &str) {
        assert!(self.0.iter().any(|found| found.contains(sentence)), "{:?}", self.0);
    }
}

/// Replaces a function of an interface by a faulty one.
fn replace<P, R>(
    imports: &mut LinkerInstance<State>,
    function: &str,
    faulty: impl Fn(&mut State, P) -> Result<R> + Send + Sync + 'static,
) -> Result<()>
where
    P: ComponentNamedList + Lift + 'static,
    R: ComponentType + Lower + 'static,
{
    imports.func_wrap(function, move |mut store: StoreContextMut<State>, arguments: P| {
        Ok((faulty(store.data_mut(), arguments)?,))
    })
}

/// Without a fault, the checks find nothing.
#[test]
fn a_good_storage_breaks_nothing() {
    assert_eq!(Findings::with("wal", |_| Ok(())).0, Vec::<String>::new());
}
