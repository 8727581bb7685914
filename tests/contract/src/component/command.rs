//! Runs the checks as a WASI command.

use super::Component;
use super::bindings::exports::tidepool::contract::checks::Guest;

impl wasip2::exports::cli::run::Guest for Component {
    fn run() -> Result<(), ()> {
        let broken = match std::env::args().nth(1).as_deref() {
            Some("write") => Component::write(),
            Some("read-back") => Component::read_back(),
            _ => vec!["usage: write | read-back".to_owned()],
        };
        broken.iter().for_each(|sentence| eprintln!("{sentence}"));
        if broken.is_empty() { Ok(()) } else { Err(()) }
    }
}
