//! `tidepool plugin new`: creates a Rust plugin that builds without this repository. The program
//! contains the files of the interface and of the crate that the plugin needs.

use super::Done;
use crate::cli::progress::print_line;
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use tidepool_plugins::config::{World, check_name};

#[derive(Debug, Clone, Args)]
pub struct NewArgs {
    /// What the plugin is called; its folder gets this name
    #[arg(value_name = "NAME")]
    name: String,

    /// What it is for: transform, decoder, job or observer
    #[arg(long, value_name = "WORLD", default_value = "transform", value_parser = str::parse::<World>)]
    world: World,

    /// Directory in which the folder is made
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
}

const FILES: [(&str, &str); 12] = [
    (".gitignore", "/target\n"),
    (".cargo/config.toml", "[build]\ntarget = \"wasm32-wasip2\"\n"),
    ("tidepool-plugin/Cargo.toml", include_str!("../../../../examples/plugins/sdk/Cargo.toml")),
    ("tidepool-plugin/src/lib.rs", include_str!("../../../../examples/plugins/sdk/src/lib.rs")),
    ("tidepool-plugin/src/build.rs", include_str!("../../../../examples/plugins/sdk/src/build.rs")),
    ("tidepool-plugin/src/edits.rs", include_str!("../../../../examples/plugins/sdk/src/edits.rs")),
    ("tidepool-plugin/src/job.rs", include_str!("../../../../examples/plugins/sdk/src/job.rs")),
    ("tidepool-plugin/src/read.rs", include_str!("../../../../examples/plugins/sdk/src/read.rs")),
    ("tidepool-plugin/wit/types.wit", include_str!("../../../../wit/plugin/types.wit")),
    ("tidepool-plugin/wit/decoder.wit", include_str!("../../../../wit/plugin/decoder.wit")),
    ("tidepool-plugin/wit/job.wit", include_str!("../../../../wit/plugin/job.wit")),
    ("tidepool-plugin/wit/observer.wit", include_str!("../../../../wit/plugin/observer.wit")),
];

const TRANSFORM_WIT: (&str, &str) =
    ("tidepool-plugin/wit/transform.wit", include_str!("../../../../wit/plugin/transform.wit"));

pub fn run(args: &NewArgs) -> Done {
    check_name(&args.name)?;
    // Cargo would refuse such a name as well, but only at the first build.
    if args.name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("{:?} is no name of a crate, which begins with a letter", args.name));
    }
    let folder = args.directory.join(&args.name);
    fs::create_dir_all(&args.directory).map_err(|error| failed(&args.directory, &error))?;
    // `create_dir` fails if the folder exists, so that nothing is overwritten.
    fs::create_dir(&folder).map_err(|error| failed(&folder, &error))?;
    for (path, text) in FILES.iter().chain([&TRANSFORM_WIT]) {
        write(&folder.join(path), text)?;
    }
    write(&folder.join("Cargo.toml"), &manifest(&args.name, args.world))?;
    let source = match args.world {
        World::Transform => include_str!("template/transform.rs"),
        World::Decoder => include_str!("template/decoder.rs"),
        World::Job => include_str!("../../../../examples/plugins/recording-rule/src/lib.rs"),
        World::Observer => include_str!("template/observer.rs"),
    };
    write(&folder.join("src/lib.rs"), source)?;
    let file = args.name.replace('-', "_");
    let (shown, world) = (folder.display(), args.world.name());
    print_line(&format!(
        "{shown} is a {world}. To build and check it:\n\n  rustup target add wasm32-wasip2\n  \
         cd {shown} && cargo build --release\n  \
         tidepool plugin check target/wasm32-wasip2/release/{file}.wasm"
    ));
    Ok(())
}

fn manifest(name: &str, world: World) -> String {
    format!(
        "[package]\nname = \"{name}\"\ndescription = \"A {} for tidepool\"\nversion = \"0.1.0\"\n\
         edition = \"2024\"\n\n[lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\n\
         tidepool-plugin = {{ path = \"tidepool-plugin\" }}\n\n[profile.release]\nlto = \"fat\"\n\
         codegen-units = 1\npanic = \"abort\"\nstrip = \"symbols\"\n\n[workspace]\n",
        world.name()
    )
}

fn write(path: &Path, text: &str) -> Done {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    fs::write(path, text).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("could not write {}: {error}", path.display())
}
