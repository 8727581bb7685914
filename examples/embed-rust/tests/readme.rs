//! The example prints what its README shows.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_readme_shows_what_the_example_prints() {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let component = target.join("engine/wasm32-wasip2/component/tidepool_engine.wasm");
    let output = Command::new(env!("CARGO_BIN_EXE_embed-rust"))
        .arg(component)
        .output()
        .expect("the example starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let readme = include_str!("../README.md");
    let shown = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(Some(&*printed), shown);
}
