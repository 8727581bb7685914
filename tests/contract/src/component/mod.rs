//! Component that checks a storage.

mod blocks;
mod broken;
mod command;
mod wal;

// Generated code calls the canonical ABI, which is unsafe by nature.
#[allow(unsafe_code, missing_docs, clippy::all, clippy::mem_forget)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../wit", "wit"],
        world: "tidepool:contract/contract",
        generate_all,
    });

    use super::Component;
    export!(Component with_types_in self);
    wasip2::cli::command::export!(Component);
}

struct Component;

impl bindings::exports::tidepool::contract::checks::Guest for Component {
    fn write() -> Vec<String> {
        let mut broken = broken::Broken::default();
        wal::write(&mut broken);
        blocks::write(&mut broken);
        broken.sentences
    }

    fn read_back() -> Vec<String> {
        let mut broken = broken::Broken::default();
        wal::read_back(&mut broken);
        blocks::read_back(&mut broken);
        broken.sentences
    }
}
