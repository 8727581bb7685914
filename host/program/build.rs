//! Links a program that is built for size.

use std::env::{VarError, var};

fn main() -> Result<(), VarError> {
    println!("cargo::rerun-if-changed=build.rs");
    let is_for_size = matches!(var("OPT_LEVEL")?.as_str(), "s" | "z");
    if !is_for_size || var("CARGO_CFG_TARGET_ENV")? != "gnu" {
        return Ok(());
    }
    // Half a megabyte less of addresses to fix at the start; glibc knows the form since 2.36.
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    // Functions with the same machine code become one. That is of LLVM's linker, which is Rust's
    // own for this processor.
    if var("CARGO_CFG_TARGET_ARCH")? == "x86_64" {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
    Ok(())
}
