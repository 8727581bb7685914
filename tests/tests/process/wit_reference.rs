//! Every item of the contract is described, and its reference page is up to date.

use std::path::Path;
use tidepool_tests::wit_reference::{PAGE, WIT_DIR, page, read, undescribed};

#[test]
fn the_reference_page_is_up_to_date() {
    let directory = Path::new(WIT_DIR);
    let written = std::fs::read_to_string(directory.join(PAGE)).expect("the page");
    let made = page(&read(directory).expect("the contract"));
    assert!(
        written == made,
        "wit/{PAGE} is out of date: `cargo run -p tidepool-tests --bin wit-reference` writes it"
    );
}

#[test]
fn every_item_is_described_and_says_since_when_it_is_there() {
    let missing = undescribed(&read(Path::new(WIT_DIR)).expect("the contract"));
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
