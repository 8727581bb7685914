//! Cost of WebAssembly: `host/runtime/benches/append.rs` runs the same appends through the
//! component and through the native engine, and criterion writes its estimates to files.

use super::super::contender::Contender;
use super::super::outcome::Outcome;
use super::super::{BenchError, Context};
use serde_json::Value;
use std::process::Command;
use tidepool_tests::built::{target_dir, workspace};
use tidepool_tests::remote_write::Version;

/// Measures both versions of remote write.
pub fn measure(context: &Context) -> Result<Outcome, BenchError> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(["bench", "-p", "tidepool-runtime", "--bench", "append"]).current_dir(workspace());
    if context.quick {
        command.args(["--", "--quick"]);
    }
    let output = command.output()?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BenchError::Command { program: "cargo bench".to_string(), log });
    }
    let mut outcome = Outcome::default();
    for version in Version::ALL {
        let times = median_ns(version, "wasm")? / median_ns(version, "native")?;
        outcome.add(&format!("wasm-{version}"), Contender::Tidepool, times);
    }
    Ok(outcome)
}

fn median_ns(version: Version, kind: &str) -> Result<f64, BenchError> {
    let path = target_dir().join(format!("criterion/append/{version}_{kind}/new/estimates.json"));
    let text = std::fs::read(&path)?;
    let figures = |source| BenchError::Figures { path: path.clone(), source };
    let estimates: Value = serde_json::from_slice(&text).map_err(figures)?;
    estimates["median"]["point_estimate"].as_f64().ok_or_else(|| BenchError::Command {
        program: "cargo bench".to_string(),
        log: format!("{} has no median", path.display()),
    })
}
