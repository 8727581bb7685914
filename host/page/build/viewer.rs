//! Builds the viewer: one document with the page and the component of this build.
//!
//! | `TIDEPOOL_VIEWER_DIR` | |
//! | --- | --- |
//! | not set | npm builds the viewer next to the page that it has built. If that fails, cargo warns and there is no viewer |
//! | a folder | the output of `node build.mjs --viewer` in this folder is used; the build fails if there is none |
//! | `off` | there is no viewer |

use super::{copy, npm_ci, one_line, remove, run};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = "TIDEPOOL_VIEWER_DIR";
/// Variable with the component's path, set by the build script of `tidepool-image`.
const COMPONENT: &str = "DEP_TIDEPOOL_IMAGE_COMPONENT";
/// Folder with the output of jco, generated from the component of this build.
const GENERATED: &str = "generated";
/// Inputs of the viewer in `js`, in addition to `src` and the page.
const FILES: [&str; 4] = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"];
const DOCUMENT: &str = "viewer.html.gz";

/// Returns the compressed document, or the reason why there is none. `page` is the folder in which
/// npm has built the page. Without a page, no viewer is built.
pub fn document(js: &Path, page: Option<&Path>) -> Result<Result<PathBuf, String>, String> {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    match (std::env::var_os(VARIABLE), page) {
        (Some(chosen), _) if chosen == "off" => {
            Ok(Err(format!("{VARIABLE}=off when it was built")))
        }
        (Some(folder), _) => {
            let document = Path::new(&folder).join(DOCUMENT);
            println!("cargo::rerun-if-changed={}", document.display());
            let found = fs::canonicalize(&document);
            found.map(Ok).map_err(|error| format!("{VARIABLE}: {}: {error}", document.display()))
        }
        (None, None) => Ok(Err(format!("npm did not build the page, and {VARIABLE} was not set"))),
        (None, Some(page)) => Ok(build(js, page).map_err(|error| {
            let reason = one_line(&error.to_string());
            println!("cargo::warning=there is no viewer in the program: {reason}");
            println!("cargo::warning={VARIABLE}=off says that this is meant");
            reason
        })),
    }
}

fn build(js: &Path, page: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let component = std::env::var_os(COMPONENT).ok_or("the component was not built")?;
    let work = page.parent().ok_or("the page was built in no folder")?;
    for file in FILES {
        println!("cargo::rerun-if-changed={}", js.join(file).display());
        copy(&js.join(file), &work.join(file))?;
    }
    // The copy must not have sources that were deleted since the last build.
    remove(&work.join("src"))?;
    take_sources(&js.join("src"), &work.join("src"))?;
    npm_ci(work, &[])?;
    let mut transpile = Command::new("node");
    transpile.arg("build.mjs").arg("--component").arg(&component).current_dir(work);
    run(&mut transpile, "node build.mjs --component")?;
    let mut bundle = Command::new("node");
    run(bundle.args(["build.mjs", "--viewer"]).current_dir(page), "node build.mjs --viewer")?;
    Ok(fs::canonicalize(page.join("dist-viewer").join(DOCUMENT))?)
}

/// Copies sources without generated folders. Folders are not watched, because generated folders
/// change with other builds; so a new file is noticed once a watched file imports it.
fn take_sources(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))? {
        let entry = entry?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == GENERATED {
            continue;
        }
        if path.is_dir() {
            take_sources(&path, &place)?;
        } else {
            println!("cargo::rerun-if-changed={}", path.display());
            copy(&path, &place)?;
        }
    }
    Ok(())
}
