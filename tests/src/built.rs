//! Paths of cargo's outputs, and whether their sources changed since: a test must not pass because
//! of an earlier build.
//!
//! Beside each program and component cargo lists its sources (`tidepool.d`, in the form of a
//! Makefile's rule). A folder in that list stands for all files in it.

use std::path::{Path, PathBuf};

/// Returns the program that cargo built in the folder of this program.
///
/// # Panics
///
/// If it does not exist, or is older than its sources.
pub fn program() -> PathBuf {
    current(target_dir().join("release/tidepool"), "cargo build --release")
}

/// Returns the engine's component: that of nodes, or of the profile in
/// `TIDEPOOL_COMPONENT_PROFILE`.
///
/// # Panics
///
/// If it does not exist, or is older than its sources.
pub fn component() -> PathBuf {
    let profile = std::env::var("TIDEPOOL_COMPONENT_PROFILE");
    let profile = profile.as_deref().unwrap_or("component");
    let file = format!("engine/wasm32-wasip2/{profile}/tidepool_engine.wasm");
    current(target_dir().join(file), "cargo build-component")
}

/// Returns a file that `cargo build-standalone` made, by its folder and name there.
///
/// # Panics
///
/// If it does not exist, or is older than its sources.
pub fn standalone(file: &str) -> PathBuf {
    current(target_dir().join("wasm32-wasip2").join(file), "cargo build-standalone")
}

/// Returns cargo's target directory, which contains this program.
pub fn target_dir() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let is_target = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    let found = program.ancestors().skip(1).find(is_target);
    found.map_or_else(|| workspace().join("target"), Path::to_path_buf)
}

pub fn workspace() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests)
}

#[track_caller]
fn current(path: PathBuf, command: &str) -> PathBuf {
    match newer_source(&path) {
        Ok(None) => path,
        Ok(Some(source)) => {
            panic!("{} is newer than {}; run: {command}", source.display(), path.display())
        }
        Err(reason) => panic!("{}: {reason}; run: {command}", path.display()),
    }
}

/// Returns a source that is newer than the file built from it, if there is one.
fn newer_source(path: &Path) -> std::io::Result<Option<PathBuf>> {
    let built = path.metadata()?.modified()?;
    let mut left = sources(&std::fs::read_to_string(path.with_extension("d"))?);
    while let Some(source) = left.pop() {
        if source.is_dir() {
            for entry in std::fs::read_dir(&source)? {
                let path = entry?.path();
                // Documentation in a folder of sources does not affect the build.
                if path.extension().is_none_or(|extension| extension != "md") {
                    left.push(path);
                }
            }
        } else if source
            .metadata()
            .and_then(|found| found.modified())
            .is_ok_and(|time| time > built)
        {
            return Ok(Some(source));
        }
    }
    Ok(None)
}

/// Returns the files after the colon of a rule. Blanks in their names follow a backslash.
fn sources(rule: &str) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    let mut name = String::new();
    for word in rule.split_whitespace() {
        name += word;
        if name.ends_with('\\') {
            name.pop();
            name.push(' ');
        } else {
            sources.push(std::mem::take(&mut name));
        }
    }
    sources.retain(|name| !name.ends_with(':'));
    sources.into_iter().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    #[test]
    fn what_was_built_before_its_sources_changed_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("a folder")).expect("a folder");
        for name in ["built", "one.rs", "a folder/two.rs", "a folder/page.md"] {
            fs::write(at(name), "").expect("a file");
        }
        let root = directory.path().display();
        let rule = format!("{root}/built: {root}/one.rs {root}/a\\ folder\n");
        fs::write(at("built.d"), rule).expect("a file");
        let set = |name: &str, seconds| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            File::options().write(true).open(at(name)).and_then(|file| file.set_modified(time))
        };
        for (name, seconds) in [("built", 5), ("one.rs", 5), ("a folder/two.rs", 4)] {
            set(name, seconds).expect("a time");
        }
        let found = || newer_source(&at("built")).expect("it can be read");
        assert_eq!(found(), None);
        set("a folder/two.rs", 6).expect("a time");
        assert_eq!(found(), Some(at("a folder/two.rs")));
        set("one.rs", 6).expect("a time");
        set("a folder/two.rs", 4).expect("a time");
        assert_eq!(found(), Some(at("one.rs")));

        fs::remove_file(at("built.d")).expect("a file");
        assert!(newer_source(&at("built")).is_err());
        assert!(newer_source(&at("nothing")).is_err());
    }
}
