//! How large the files are that embedders load.

use crate::Outcome;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

/// A file, or several that belong together.
pub struct Size {
    pub what: &'static str,
    pub bytes: usize,
    /// Packed with gzip at its best, each file on its own.
    pub gzip_bytes: usize,
}

pub fn measure(workspace: &Path) -> Outcome<Vec<Size>> {
    let target = tidepool_contract::target_dir();
    let generated = workspace.join("js/dist/src/generated");
    let mut script = Vec::new();
    let mut modules = Vec::new();
    for entry in std::fs::read_dir(&generated)? {
        let path = entry?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("wasm") => modules.push(path),
            Some("js") => script.push(path),
            _ => {}
        }
    }
    let of = |what, files: &[std::path::PathBuf]| -> Outcome<Size> {
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
            "`tidepool_engine.wasm`, built for speed",
            &[target.join("engine/wasm32-wasip2/component/tidepool_engine.wasm")],
        )?,
        of(
            "`tidepool-standalone.wasm`, built for size",
            &[target.join("wasm32-wasip2/component-small/tidepool-standalone.wasm")],
        )?,
        of("the modules of `@tidepool/engine`, built for size", &modules)?,
        of("the code around them that jco makes", &script)?,
    ])
}
