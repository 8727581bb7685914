//! Links a program that is built for size.

use std::env::{VarError, var};

fn main() -> Result<(), VarError> {
    println!("cargo::rerun-if-changed=build.rs");
    let is_for_size = matches!(var("OPT_LEVEL")?.as_str(), "s" | "z");
    // Half a megabyte less of addresses to fix at the start; glibc knows the form since 2.36.
    if is_for_size && var("CARGO_CFG_TARGET_ENV")? == "gnu" {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}
