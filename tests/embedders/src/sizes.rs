//! Sizes of the files that embedders load.

use crate::Outcome;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file, or several files that belong together.
pub struct Size {
    pub what: &'static str,
    pub bytes: usize,
    /// Total size with each file packed by gzip at its best level.
    pub gzip_bytes: usize,
}

pub fn measure(workspace: &Path) -> Outcome<Vec<Size>> {
    let target = tidepool_contract::target_dir();
    let (modules, script) = generated(&workspace.join("js/dist/src/generated"))?;
    let (promql_modules, promql_script) =
        generated(&workspace.join("js/dist/src/promql/generated"))?;
    let of = |what, files: &[PathBuf]| -> Outcome<Size> {
        let (mut bytes, mut gzip_bytes) = (0, 0);
        for file in files {
            let content = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&content)?;
            bytes += content.len();
            gzip_bytes += packed.finish()?.len();
        }
        Ok(Size { what, bytes, gzip_bytes })
    };
    Ok(vec![
        of(
            "`tidepool_engine.wasm`, built for speed, with PromQL",
            &[target.join("engine/wasm32-wasip2/component/tidepool_engine.wasm")],
        )?,
        of(
            "`tidepool-standalone.wasm`, built for size",
            &[target.join("wasm32-wasip2/component-small/tidepool-standalone.wasm")],
        )?,
        of(
            "`tidepool-standalone-promql.wasm`, built for size",
            &[target.join("wasm32-wasip2/component-small-promql/tidepool-standalone-promql.wasm")],
        )?,
        of("the modules of `@tidepool/engine`, built for size", &modules)?,
        of("the code around them that jco makes", &script)?,
        of("the modules of `@tidepool/engine/promql`, built for size", &promql_modules)?,
        of("the code around them that jco makes", &promql_script)?,
    ])
}

/// Returns the modules and the scripts that jco made of a component.
fn generated(folder: &Path) -> Outcome<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut modules, mut scripts) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("wasm") => modules.push(path),
            Some("js") => scripts.push(path),
            _ => {}
        }
    }
    Ok((modules, scripts))
}
