//! Linker options of a program that is built for size.

use std::env::{VarError, var};

fn main() -> Result<(), VarError> {
    println!("cargo::rerun-if-changed=build.rs");
    let is_for_size = matches!(var("OPT_LEVEL")?.as_str(), "s" | "z");
    if !is_for_size || var("CARGO_CFG_TARGET_ENV")? != "gnu" {
        return Ok(());
    }
    // Saves half a megabyte of relocations; glibc supports the format since 2.36.
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    // Functions with equal machine code become one. Only LLVM's linker can do this, which is Rust's
    // default linker on this processor.
    if var("CARGO_CFG_TARGET_ARCH")? == "x86_64" {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
    Ok(())
}
