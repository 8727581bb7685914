//! Memory of the rules that ship, which a node evaluates by default.

use crate::alone::host_metrics::check_memory;

/// Maximum resident memory. Rules use the machine code of queries, whose pages are of the program's
/// file.
const RESIDENT_BYTES_MAX: u64 = 38_000_000;

#[test]
fn the_rules_that_ship_take_little_memory() {
    check_memory(|config| config, RESIDENT_BYTES_MAX);
}
