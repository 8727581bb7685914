//! Writes the reference page of the contract: `cargo run -p tidepool-tests --bin wit-reference`.

use std::path::Path;
use tidepool_tests::wit_reference::{PAGE, WIT_DIR, page, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = Path::new(WIT_DIR);
    std::fs::write(directory.join(PAGE), page(&read(directory)?))?;
    Ok(())
}
